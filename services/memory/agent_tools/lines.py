"""Tools' edits of blocks: those of a tenant that come at the same time are looked up together, and stored together.

An edit is a function of the value. Those that wait while another of the same block is being stored are applied one
after the other in memory, and stored as one change of the block: as many versions, rows of history and results of calls
as there are edits. Between processes the version of the block decides.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from uuid import UUID
from weakref import WeakValueDictionary

from services.memory.agent_tools.model import EditView, Look, ValueChange, ValueEdit
from services.memory.agent_tools.together import Asked, Together
from services.memory.blocks.model import Block
from services.memory.core.errors import Refused, VersionConflict
from services.memory.core.ports.blocks import BlockStore
from services.memory.core.ports.calls import CallStore

# Stored at once; every version's value is sent in full.
_MOST_CHARACTERS = 5_000_000
# Statements of a tenant that this process has under way, of each kind.
_AT_ONCE = 2

Make = Callable[[Block], ValueEdit]
# What was made of the block, and the block with it: None where nothing changed.
Made = tuple[ValueEdit, Block | None]


@dataclass(frozen=True, slots=True)
class _Wanted:
    call_key: str
    seen: Block
    make: Make


_Waiting = Asked[_Wanted, Made]


@dataclass(slots=True)
class _Round:
    """What is stored at once, who is told something else when it is, and who is left for the next round."""

    changes: list[tuple[_Waiting, ValueEdit]] = field(default_factory=list)
    unchanged: list[tuple[_Waiting, ValueEdit]] = field(default_factory=list)
    refused: list[tuple[_Waiting, Exception]] = field(default_factory=list)
    left: Sequence[_Waiting] = ()

    def tell(self, stored: Sequence[Block]) -> None:
        """The answers, when it is done."""
        for (one, edit), block in zip(self.changes, stored, strict=True):
            one.tell((edit, block))
        for one, edit in self.unchanged:
            one.tell((edit, None))
        for one, error in self.refused:
            one.refuse(error)


class Lines:
    """The edits of a process. What it keeps is only there while somebody waits."""

    def __init__(self, store: BlockStore, calls: CallStore) -> None:
        self._store = store
        self._calls = calls
        self._desks: WeakValueDictionary[UUID, _Desk] = WeakValueDictionary()
        self._lines: WeakValueDictionary[tuple[UUID, UUID], _Line] = WeakValueDictionary()

    async def look(self, organization_id: UUID, look: Look) -> EditView:
        """What an edit has to know."""
        desk = self._desk(organization_id)  # held, so that others find it
        return await desk.looks.ask(look)

    async def edit(self, organization_id: UUID, call_key: str, seen: Block, make: Make) -> Made:
        """Stores what `make` makes of the block; it may be called several times, also with newer versions than `seen`.

        Raises VersionConflict when the block must be looked up again, and Refused as `make` does.
        """
        key = organization_id, seen.id
        line = self._lines.get(key)
        if line is None:
            line = self._lines[key] = _Line(self._desk(organization_id))
        return await line.ask(_Wanted(call_key, seen, make))

    def _desk(self, organization_id: UUID) -> "_Desk":
        desk = self._desks.get(organization_id)
        if desk is None:
            desk = self._desks[organization_id] = _Desk(self._store, self._calls, organization_id)
        return desk


class _Desk:
    """The statements of one tenant."""

    def __init__(self, store: BlockStore, calls: CallStore, organization_id: UUID) -> None:
        async def look(asked: Sequence[Asked[Look, EditView]]) -> None:
            views = await calls.views(organization_id, [one.question for one in asked])
            for one, view in zip(asked, views, strict=True):
                one.tell(view)

        async def commit(asked: Sequence[Asked[ValueChange, list[Block] | None]]) -> None:
            stored = await store.commit_values(organization_id, [one.question for one in asked])
            for one, blocks in zip(asked, stored, strict=True):
                one.tell(blocks)

        self.looks = Together(look, _AT_ONCE)
        self.commits = Together(commit, _AT_ONCE)


class _Line(Together[_Wanted, Made]):
    """Of one block."""

    def __init__(self, desk: _Desk) -> None:
        super().__init__(self._apply)
        self._desk = desk
        self._newest: Block | None = None

    async def _apply(self, asked: Sequence[_Waiting]) -> None:
        block = max((one.question.seen for one in asked), key=lambda seen: seen.version)
        if self._newest is not None and self._newest.version > block.version:
            block = self._newest
        # An error, or an interruption, may leave behind it a version that is not known here.
        self._newest = None
        left = asked
        while left:
            made = _round(block, left)
            stored: list[Block] | None = []
            if made.changes:
                edits = [edit for _, edit in made.changes]
                stored = await self._desk.commits.ask(ValueChange(block, edits))
            if stored is None:
                for one in left:
                    one.refuse(VersionConflict(block.id))
                return
            made.tell(stored)
            block, left = (stored or [block])[-1], made.left
        self._newest = block


def _round(block: Block, asked: Sequence[_Waiting]) -> _Round:
    """As many edits as may be stored at once, each made of what the one before left."""
    made, characters, keys = _Round(), 0, set[str]()
    for number, one in enumerate(asked):
        wanted = one.question
        if made.changes and characters + len(block.value) > _MOST_CHARACTERS:
            made.left = asked[number:]
            break
        # A call that was sent twice shall find the result of the first, and a label that moved its new block.
        if wanted.call_key in keys or wanted.seen.label != block.label:
            made.refused.append((one, VersionConflict(block.id)))
            continue
        keys.add(wanted.call_key)
        try:
            edit = wanted.make(block)
        except Refused as refused:
            made.refused.append((one, refused))
            continue
        if edit.value == block.value:
            made.unchanged.append((one, edit))
            continue
        made.changes.append((one, edit))
        characters += len(edit.value)
        block = replace(block, value=edit.value)
    return made
