"""Blocks made out of other blocks. Pure."""

from dataclasses import fields
from uuid import UUID

from services.memory.model import Block, BlockDraft

_COPIED = [field.name for field in fields(BlockDraft) if field.name != "id"]


def copy_of(block: Block, new_id: UUID) -> BlockDraft:
    """A block with the same content under another id."""
    return BlockDraft(id=new_id, **{name: getattr(block, name) for name in _COPIED})
