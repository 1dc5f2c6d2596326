"""Blocks made out of other blocks. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from uuid import UUID, uuid5

from services.memory.blocks.model import Block, BlockDraft

_COPIED = [field.name for field in fields(BlockDraft) if field.name != "id"]


def copy_of(block: Block, new_id: UUID) -> BlockDraft:
    """Returns a block with the same content under another id."""
    return BlockDraft(id=new_id, **{name: getattr(block, name) for name in _COPIED})


def id_of_copy(organization_id: UUID, request_id: str, source_id: UUID) -> UUID:
    """Returns an id that is derived (UUID version 5), so that a repeated request makes the same block."""
    return uuid5(organization_id, f"copy {source_id} {request_id}")


def to_copy(present: Sequence[Block], named: Mapping[UUID, Block]) -> list[Block]:
    """Returns the blocks that a copy of an agent's memory is made from, one per label.

    present: the agent's blocks as they are, in order. named: by id, the blocks that were asked for as they were; they
    stand in the places of the present ones, and those that are not present any more at the end. Where the renaming of
    a block gave two the same label, the named one is meant.
    """
    by_label: dict[str, Block] = {}
    here = {block.id for block in present}
    for block in (*present, *(block for block_id, block in named.items() if block_id not in here)):
        then = named.get(block.id, block)
        if then.label not in by_label or (then.id in named and by_label[then.label].id not in named):
            by_label[then.label] = then
    return list(by_label.values())
