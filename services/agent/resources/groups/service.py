"""Groups made, read, changed and removed: their rows here, the blocks that members share in the memory service.

New blocks are attached first, the row follows: it is the commit point. What was attached is detached again where the
row is refused. What members share no more is detached last.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from uuid import UUID

from services.agent.resources.concurrency import until_stored
from services.agent.resources.groups import model as groups
from services.agent.resources.groups.model import Group, GroupList, GroupSettings
from services.agent.resources.groups.ports import GroupStore, SharedBlocks
from services.common.context import CallContext
from services.common.core.drafts import Draft
from services.common.core.paging import PageOf
from services.common.errors import AlreadyExists, NotFound

Share = tuple[UUID, UUID]


class Groups:
    """Creates, reads, changes and deletes groups."""

    def __init__(self, store: GroupStore, blocks: SharedBlocks) -> None:
        self._store = store
        self._blocks = blocks

    async def create(self, caller: CallContext, group_id: UUID, settings: GroupSettings) -> Group:
        """Raises Refused, NotFound (AGENT_NOT_FOUND, BLOCK_NOT_FOUND), AlreadyExists (BLOCK_LABEL_TAKEN)."""
        settings = groups.check(settings)
        await self._store.check_agents(caller.organization_id, settings.agents)
        attached = await self._attach(settings.shares)
        try:
            return await self._store.insert(caller.organization_id, group_id, caller.user_id, settings)
        except NotFound:
            await self._detach(attached)
            raise

    async def get(self, organization_id: UUID, group_id: UUID) -> Group:
        """Raises NotFound (GROUP_NOT_FOUND)."""
        return await self._store.get(organization_id, group_id)

    async def list(self, organization_id: UUID, filters: GroupList) -> PageOf[Group]:
        """Returns one page in one statement. Raises Refused, NotFound."""
        return await self._store.list(organization_id, filters)

    async def count(self, organization_id: UUID) -> int:
        """Returns all of the tenant, hidden ones too."""
        return await self._store.count(organization_id)

    async def update(self, caller: CallContext, group_id: UUID, draft: Draft[GroupSettings]) -> Group:
        """Changes the fields of the draft. Raises as `create`, and NotFound (GROUP_NOT_FOUND)."""

        async def attempt() -> Group | None:
            before = await self._store.get(caller.organization_id, group_id)
            return await self._change(caller, before, groups.change(before, draft))

        return await until_stored(attempt, name=f"group-{group_id}")

    async def attach_block(self, caller: CallContext, group_id: UUID, block_id: UUID) -> Group:
        """Shares a block. Raises as `update`."""
        return await self._set_shared(caller, group_id, block_id, shared=True)

    async def detach_block(self, caller: CallContext, group_id: UUID, block_id: UUID) -> Group:
        """Shares it no more. Raises NotFound (GROUP_NOT_FOUND)."""
        return await self._set_shared(caller, group_id, block_id, shared=False)

    async def delete(self, caller: CallContext, group_id: UUID) -> None:
        """Members keep the blocks. Raises NotFound (GROUP_NOT_FOUND)."""
        await self._store.delete(caller.organization_id, group_id)

    async def _set_shared(self, caller: CallContext, group_id: UUID, block_id: UUID, *, shared: bool) -> Group:

        async def attempt() -> Group | None:
            before = await self._store.get(caller.organization_id, group_id)
            others = tuple(each for each in before.shared_block_ids if each != block_id)
            block_ids = (*others, block_id) if shared else others
            if frozenset(block_ids) != frozenset(before.shared_block_ids):
                return await self._change(caller, before, replace(before, shared_block_ids=block_ids))
            if shared:
                # A member may have lost it meanwhile.
                await self._attach(before.shares)
            return before

        return await until_stored(attempt, name=f"group-{group_id}")

    async def _change(self, caller: CallContext, before: Group, after: Group) -> Group | None:
        """Stores `after`; None when `before` is not the present one any more, and then nothing changed."""
        # Those that have been there may be deleted just now: they leave with it.
        await self._store.check_agents(caller.organization_id, after.agents - before.agents)
        attached = await self._attach(after.shares - before.shares)
        try:
            stored = await self._store.update(caller.organization_id, caller.user_id, before, after)
        except NotFound:
            await self._detach(attached)
            raise
        if stored is None:
            await self._detach(attached)
        else:
            await self._detach(before.shares - after.shares)
        return stored

    async def _attach(self, shares: frozenset[Share]) -> Sequence[Share]:
        """Attaches what is not; all of it or nothing. What was attached."""
        there = await self._blocks.attachments(sorted({agent_id for agent_id, _ in shares}))
        done: list[Share] = []
        try:
            for agent_id, block_id in sorted(shares - there):
                await self._blocks.attach_block(agent_id, block_id)
                done.append((agent_id, block_id))
        except (NotFound, AlreadyExists):
            await self._detach(done)
            raise
        return done

    async def _detach(self, shares: Iterable[Share]) -> None:
        for agent_id, block_id in sorted(shares):
            await self._blocks.detach_block(agent_id, block_id)
