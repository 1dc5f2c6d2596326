"""Rows of blocks as values, and the columns that they need."""

from collections.abc import Mapping
from typing import Any

from services.common.core.records import names_in, record
from services.memory.blocks.model import Block, BlockSettings
from services.memory.blocks.tables import blocks
from services.memory.sql.columns import select_list
from services.memory.sql.rows import whole

BLOCK_COLUMNS = select_list("b", Block, blocks)
SETTINGS = names_in(BlockSettings, blocks.c.keys())


def block_of_row(row: Mapping[Any, Any]) -> Block:
    """Returns the block in a row with BLOCK_COLUMNS."""
    whole(row["value"])
    return record(Block, row)
