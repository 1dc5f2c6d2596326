"""Tools' edits of blocks: those of a tenant that come at the same time are looked up together, and stored together.

An edit is a function of the value. Those that wait while another of the same block is being stored are applied one
after the other in memory, and stored as one change of the block: as many versions, rows of history and results of calls
as there are edits. Between processes the version of the block decides.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from uuid import UUID
from weakref import WeakValueDictionary

from services.common.core.refusals import Refused
from services.memory.agent_tools.batching import Batcher, Waiter
from services.memory.agent_tools.model import EditContext, EditLookup, ValueChange, ValueEdit
from services.memory.blocks.model import Block
from services.memory.core.errors import VersionConflict
from services.memory.core.ports.agents import CallStore
from services.memory.core.ports.blocks import BlockStore

# Stored at once; every version's value is sent in full.
_MOST_CHARACTERS = 5_000_000
# Statements of a tenant that this process has under way, of each kind.
_AT_ONCE = 2

EditFunction = Callable[[Block], ValueEdit]
# What was made of the block, and the block with it: None where nothing changed.
EditResult = tuple[ValueEdit, Block | None]


@dataclass(frozen=True, slots=True)
class _Edit:
    call_key: str
    seen: Block
    make: EditFunction


_EditWaiter = Waiter[_Edit, EditResult]


@dataclass(slots=True)
class _Round:
    """Edits that are stored at once, those answered when that is done, and those left for the next round."""

    changes: list[tuple[_EditWaiter, ValueEdit]] = field(default_factory=list)
    no_ops: list[tuple[_EditWaiter, ValueEdit]] = field(default_factory=list)
    refused: list[tuple[_EditWaiter, Exception]] = field(default_factory=list)
    left: Sequence[_EditWaiter] = ()

    def tell(self, stored: Sequence[Block]) -> None:
        """Returns the answers, when it is done."""
        for (one, edit), block in zip(self.changes, stored, strict=True):
            one.tell((edit, block))
        for one, edit in self.no_ops:
            one.tell((edit, None))
        for one, error in self.refused:
            one.refuse(error)


class EditQueues:
    """The edits of a process. What it keeps is only there while somebody waits."""

    def __init__(self, store: BlockStore, calls: CallStore) -> None:
        self._store = store
        self._calls = calls
        self._tenants: WeakValueDictionary[UUID, _TenantBatches] = WeakValueDictionary()
        self._queues: WeakValueDictionary[tuple[UUID, UUID], _BlockQueue] = WeakValueDictionary()

    async def look(self, organization_id: UUID, look: EditLookup) -> EditContext:
        """Returns what an edit has to know."""
        batches = self._tenant_batches(organization_id)  # held, so that others find it
        return await batches.looks.ask(look)

    async def edit(self, organization_id: UUID, call_key: str, seen: Block, make: EditFunction) -> EditResult:
        """Stores what `make` makes of the block; it may be called several times, also with newer versions than `seen`.

        Raises VersionConflict when the block must be looked up again, and Refused as `make` does.
        """
        key = organization_id, seen.id
        queue = self._queues.get(key)
        if queue is None:
            queue = self._queues[key] = _BlockQueue(self._tenant_batches(organization_id))
        return await queue.ask(_Edit(call_key, seen, make))

    def _tenant_batches(self, organization_id: UUID) -> "_TenantBatches":
        batches = self._tenants.get(organization_id)
        if batches is None:
            batches = self._tenants[organization_id] = _TenantBatches(self._store, self._calls, organization_id)
        return batches


class _TenantBatches:
    """The statements of one tenant."""

    def __init__(self, store: BlockStore, calls: CallStore, organization_id: UUID) -> None:
        async def look(waiters: Sequence[Waiter[EditLookup, EditContext]]) -> None:
            views = await calls.views(organization_id, [one.question for one in waiters])
            for one, view in zip(waiters, views, strict=True):
                one.tell(view)

        async def commit(waiters: Sequence[Waiter[ValueChange, list[Block] | None]]) -> None:
            stored = await store.commit_values(organization_id, [one.question for one in waiters])
            for one, blocks in zip(waiters, stored, strict=True):
                one.tell(blocks)

        self.looks = Batcher(look, _AT_ONCE)
        self.commits = Batcher(commit, _AT_ONCE)


class _BlockQueue(Batcher[_Edit, EditResult]):
    """The queue of one block."""

    def __init__(self, batches: _TenantBatches) -> None:
        super().__init__(self._apply)
        self._tenant_batches = batches
        self._newest: Block | None = None

    async def _apply(self, waiters: Sequence[_EditWaiter]) -> None:
        block = max((one.question.seen for one in waiters), key=lambda seen: seen.version)
        if self._newest is not None and self._newest.version > block.version:
            block = self._newest
        # An error, or an interruption, may leave behind it a version that is not known here.
        self._newest = None
        left = waiters
        while left:
            next_round = _round(block, left)
            stored: list[Block] | None = []
            if next_round.changes:
                edits = [edit for _, edit in next_round.changes]
                stored = await self._tenant_batches.commits.ask(ValueChange(block, edits))
            if stored is None:
                for one in left:
                    one.refuse(VersionConflict(block.id))
                return
            next_round.tell(stored)
            block, left = (stored or [block])[-1], next_round.left
        self._newest = block


def _round(block: Block, waiters: Sequence[_EditWaiter]) -> _Round:
    """Returns as many edits as may be stored at once, each made of what the one before left."""
    result, characters, keys = _Round(), 0, set[str]()
    for number, one in enumerate(waiters):
        question = one.question
        if result.changes and characters + len(block.value) > _MOST_CHARACTERS:
            result.left = waiters[number:]
            break
        # A call that was sent twice shall find the result of the first, and a label that moved its new block.
        if question.call_key in keys or question.seen.label != block.label:
            result.refused.append((one, VersionConflict(block.id)))
            continue
        keys.add(question.call_key)
        try:
            edit = question.make(block)
        except Refused as refused:
            result.refused.append((one, refused))
            continue
        if edit.value == block.value:
            result.no_ops.append((one, edit))
            continue
        result.changes.append((one, edit))
        characters += len(edit.value)
        block = replace(block, value=edit.value)
    return result
