"""Tools' edits of blocks: those that come at the same time are looked up together, and those of one block stored so.

An edit is a function of the value. Those that wait while another of the same block is being stored are applied one
after the other in memory, and stored by one statement: as many versions, rows of history and results of calls as there
are edits. Between processes the version of the block decides.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from uuid import UUID
from weakref import WeakValueDictionary

from services.memory.core.together import Asked, Together
from services.memory.model import Block, Refused, ValueEdit
from services.memory.ports import BlockStore, CallStore, EditView, Look, VersionConflict

# Stored at once; every version's value is sent in full.
_MOST_CHARACTERS = 5_000_000
_LOOKS_AT_ONCE = 3

Make = Callable[[Block], ValueEdit]
# What was made of the block, and the block with it: None where nothing changed.
Made = tuple[ValueEdit, Block | None]


@dataclass(frozen=True, slots=True)
class _Wanted:
    seen: Block
    make: Make


_Waiting = Asked[_Wanted, Made]


class Lines:
    """The edits of a process. What it keeps is only there while somebody waits."""

    def __init__(self, store: BlockStore, calls: CallStore) -> None:
        self._store = store
        self._calls = calls
        self._desks: WeakValueDictionary[UUID, Together[Look, EditView]] = WeakValueDictionary()
        self._lines: WeakValueDictionary[tuple[UUID, UUID], _Line] = WeakValueDictionary()

    async def look(self, organization_id: UUID, look: Look) -> EditView:
        """What an edit has to know."""

        async def serve(asked: Sequence[Asked[Look, EditView]]) -> None:
            views = await self._calls.views(organization_id, [one.question for one in asked])
            for one, view in zip(asked, views, strict=True):
                one.tell(view)

        desk = self._desks.get(organization_id)
        if desk is None:
            desk = self._desks[organization_id] = Together(serve, _LOOKS_AT_ONCE)
        return await desk.ask(look)

    async def edit(self, organization_id: UUID, seen: Block, make: Make) -> Made:
        """Stores what `make` makes of the block; it may be called several times, also with newer versions than `seen`.

        Raises VersionConflict when the block must be looked up again, and Refused as `make` does.
        """
        key = organization_id, seen.id
        line = self._lines.get(key)
        if line is None:
            line = self._lines[key] = _Line(self._store, organization_id)
        return await line.ask(_Wanted(seen, make))


class _Line(Together[_Wanted, Made]):
    """Of one block."""

    def __init__(self, store: BlockStore, organization_id: UUID) -> None:
        super().__init__(self._apply)
        self._store = store
        self._organization_id = organization_id
        self._newest: Block | None = None

    async def _apply(self, asked: Sequence[_Waiting]) -> None:
        block = max((one.question.seen for one in asked), key=lambda seen: seen.version)
        if self._newest is not None and self._newest.version > block.version:
            block = self._newest
        # An error, or an interruption, may leave behind it a version that is not known here.
        self._newest = None
        left = list(asked)
        try:
            while left:
                changes, left = _changes(block, left)
                if changes:
                    edits = [edit for _, edit in changes]
                    stored = await self._store.commit_values(self._organization_id, block, edits)
                    for (one, edit), after in zip(changes, stored, strict=True):
                        one.tell((edit, after))
                    block = stored[-1]
        except VersionConflict:
            for one in asked:
                one.refuse(VersionConflict(block.id))
            return
        self._newest = block


def _changes(block: Block, asked: Sequence[_Waiting]) -> tuple[list[tuple[_Waiting, ValueEdit]], list[_Waiting]]:
    """The edits to store at once, and who is left for the next time. Whose edit changes nothing is told so."""
    changes: list[tuple[_Waiting, ValueEdit]] = []
    characters, keys = 0, set[str]()
    for number, one in enumerate(asked):
        if changes and characters + len(block.value) > _MOST_CHARACTERS:
            return changes, list(asked[number:])
        if one.question.seen.label != block.label:
            one.refuse(VersionConflict(block.id))
            continue
        try:
            edit = one.question.make(block)
        except Refused as refused:
            one.refuse(refused)
            continue
        if edit.value == block.value:
            one.tell((edit, None))
        elif edit.record.call_key in keys:  # sent twice: the second is to find the result of the first
            one.refuse(VersionConflict(block.id))
        else:
            changes.append((one, edit))
            keys.add(edit.record.call_key)
            characters += len(edit.value)
            block = replace(block, value=edit.value)
    return changes, []
