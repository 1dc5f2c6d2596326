"""Undo and redo of a block's value, found in its history. Pure.

Nothing is erased: an undo is a version like any other, which brings an earlier value back. So that a series of them
behaves like the stack of an editor, a version made by UNDO or REDO says whose value it has (`restored_version`, always
a version that was made by an ordinary change) and of which version a redo would bring the value back
(`redo_version`). The stack that can be redone is thereby a list: each of its entries is a version whose own
`redo_version` is the entry below.

The versions given here are those that changed the value; in between may be some that did not (a new description),
which neither count nor end what can be redone. Whatever the length of the history, two versions tell all.
"""

from dataclasses import replace

from services.memory.blocks.model import Block, BlockVersion, Operation, Restoration

_JOURNEYS = (Operation.UNDO, Operation.REDO)


def before(now: BlockVersion) -> int | None:
    """Returns the version at or below which the value stands that an undo brings back; None where there is none."""
    change = _change(now)
    return change - 1 if change > 1 else None


def undo_restoration(now: BlockVersion, then: BlockVersion) -> Restoration:
    """Returns the record of an undo from the version `now` to the value of `then`, which `before` found."""
    return Restoration(version=_change(then), redo_version=now.version)


def redo_restoration(then: BlockVersion) -> Restoration:
    """Returns the record of a redo to the value of `then`, which the newest version's `redo_version` names."""
    return Restoration(version=_change(then), redo_version=then.redo_version)


def bring_back(block: Block, value: str, limit: int) -> Block:
    """Returns the block with an earlier value, and with the limit of its time where today's would be too low."""
    return replace(block, value=value, limit=limit if len(value) > block.limit else block.limit)


def _change(version: BlockVersion) -> int:
    """Returns the version of the ordinary change whose value this version has."""
    if version.operation in _JOURNEYS and version.restored_version is not None:
        return version.restored_version
    return version.version
