"""Identities made, read, changed and removed: their rows and agents here, their blocks in the memory service.

Blocks come first and the row last: it is the commit point. What was set of blocks is taken back where it is refused.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from uuid import UUID

from services.agent.resources.identities.model import (
    Identity,
    IdentityList,
    IdentitySettings,
    Property,
)
from services.agent.resources.identities.ports import IdentityMemories, IdentityStore
from services.agent.resources.outbox.ports import OutboxEntry
from services.agent.resources.outbox.service import Handler
from services.common.context import CallContext
from services.common.core.drafts import Draft
from services.common.core.paging import PageOf
from services.common.errors import Aborted, AlreadyExists, NotFound

# What the store refuses with, nothing being written.
_REFUSALS = (NotFound, AlreadyExists)
# A key that is taken is free again at the next look, or the other way round, only when others are at it, too.
_ATTEMPTS = 3


class Identities:
    """Creates, reads, changes and deletes identities."""

    def __init__(self, store: IdentityStore, memories: IdentityMemories) -> None:
        self._store = store
        self._memories = memories

    async def create(self, caller: CallContext, identity_id: UUID, draft: IdentitySettings) -> Identity:
        """Raises NotFound (AGENT_NOT_FOUND, BLOCK_NOT_FOUND), AlreadyExists (IDENTITY_KEY_TAKEN)."""
        if draft.block_ids:
            try:
                return await self.get(caller.organization_id, identity_id)
            except NotFound:
                await self._memories.set_blocks(identity_id, draft.block_ids)
        try:
            identity = await self._store.insert(caller.organization_id, identity_id, caller.user_id, draft)
        except _REFUSALS:
            if draft.block_ids:
                await self._memories.purge_identity(identity_id)
            raise
        return await self._with_blocks(identity)

    async def get(self, organization_id: UUID, identity_id: UUID) -> Identity:
        """Raises NotFound (IDENTITY_NOT_FOUND)."""
        return await self._with_blocks(await self._store.get(organization_id, identity_id))

    async def list(self, organization_id: UUID, filters: IdentityList) -> PageOf[Identity]:
        """Returns one page in one statement and one RPC. Raises Refused, NotFound."""
        page = await self._store.list(organization_id, filters)
        blocks = await self._memories.blocks_of([identity.id for identity in page.items])
        return PageOf(tuple(_with_block_ids(identity, blocks) for identity in page.items), page.next_token)

    async def count(self, organization_id: UUID) -> int:
        """Returns all of the tenant."""
        return await self._store.count(organization_id)

    async def update(self, caller: CallContext, identity_id: UUID, draft: Draft[IdentitySettings]) -> Identity:
        """Changes the fields of the draft. Raises as `create`, and NotFound (IDENTITY_NOT_FOUND)."""
        if "block_ids" not in draft.names:
            return await self._with_blocks(await self._update(caller, identity_id, draft))
        await self._store.get(caller.organization_id, identity_id)
        before = (await self._memories.blocks_of([identity_id])).get(identity_id, ())
        await self._memories.set_blocks(identity_id, draft.values.block_ids)
        try:
            return await self._with_blocks(await self._update(caller, identity_id, draft))
        except _REFUSALS:
            await self._memories.set_blocks(identity_id, before)
            raise

    async def upsert(
        self, caller: CallContext, identity_id: UUID, settings: IdentitySettings, names: frozenset[str]
    ) -> Identity:
        """Changes these fields of the identity that has the key in the project, or creates one with this id.

        Raises as `create`.
        """
        for _ in range(_ATTEMPTS):
            there = await self._store.find(caller.organization_id, settings.identifier_key, settings.project_id)
            try:
                if there is None:
                    return await self.create(caller, identity_id, settings)
                return await self.update(caller, there, Draft(settings, names))
            except _REFUSALS as error:
                if error.reason not in ("IDENTITY_NOT_FOUND", "IDENTITY_KEY_TAKEN"):
                    raise
        sentence = f"the identity {settings.identifier_key[:80]!r} is being made and deleted by others; try again"
        raise Aborted(sentence, reason="ABORTED")

    async def upsert_properties(
        self, caller: CallContext, identity_id: UUID, properties: Sequence[Property]
    ) -> Identity:
        """Sets properties by their keys. Raises Refused, NotFound (IDENTITY_NOT_FOUND)."""
        identity = await self._store.upsert_properties(caller.organization_id, identity_id, caller.user_id, properties)
        return await self._with_blocks(identity)

    async def delete(self, caller: CallContext, identity_id: UUID) -> None:
        """Memory forgets it by the outbox. Raises NotFound (IDENTITY_NOT_FOUND)."""
        await self._store.delete(caller.organization_id, identity_id, caller.user_id)

    async def attach(self, organization_id: UUID, agent_id: UUID, identity_id: UUID) -> None:
        """May be repeated. Raises NotFound (AGENT_NOT_FOUND, IDENTITY_NOT_FOUND)."""
        await self._store.attach(organization_id, agent_id, identity_id)

    async def detach(self, organization_id: UUID, agent_id: UUID, identity_id: UUID) -> None:
        """May be repeated. Raises NotFound (AGENT_NOT_FOUND, IDENTITY_NOT_FOUND)."""
        await self._store.detach(organization_id, agent_id, identity_id)

    async def _update(self, caller: CallContext, identity_id: UUID, draft: Draft[IdentitySettings]) -> Identity:
        return await self._store.update(
            caller.organization_id, identity_id, caller.user_id, draft.values, draft.names - {"block_ids"}
        )

    async def _with_blocks(self, identity: Identity) -> Identity:
        return _with_block_ids(identity, await self._memories.blocks_of([identity.id]))


def handlers(memories: IdentityMemories) -> Mapping[str, Handler]:
    """Returns what handles each kind of outbox entry about an identity."""

    async def purge_identity(order: OutboxEntry) -> bool:
        await memories.purge_identity(order.subject_id)
        return True

    return {purge_identity.__name__: purge_identity}


def _with_block_ids(identity: Identity, blocks: Mapping[UUID, tuple[UUID, ...]]) -> Identity:
    return replace(identity, block_ids=blocks.get(identity.id, ()))
