"""Journeys through the versions of blocks: set back, or copied as they were. Each is done once per request id."""

import json
from collections.abc import Awaitable, Callable, Mapping
from hashlib import sha256
from uuid import UUID

from services.memory.agent_tools.model import CallRecord
from services.memory.agent_tools.records import check_same_call
from services.memory.agents.model import CopyRequest, RestoreRequest
from services.memory.blocks.model import Block
from services.memory.core.editing.copies import copy_of, id_of_copy, to_copy
from services.memory.core.errors import DuplicateCall
from services.memory.core.ports.agents import AgentStore, CallStore, CopyStore


class VersionService:
    """Restores and copies blocks."""

    def __init__(self, store: CopyStore, calls: CallStore, agents: AgentStore) -> None:
        self._store = store
        self._calls = calls
        self._agents = agents

    async def restore(self, request: RestoreRequest) -> tuple[list[Block], list[UUID]]:
        """Returns the blocks as they are now, and the ids of those that the owners have no more.

        Raises NotFound (BLOCK_VERSION_NOT_FOUND), FailedPrecondition (CALL_KEY_REUSED).
        """
        fingerprint = _fingerprint("restore", request.versions, request.agent_id, request.conversation_id)
        record = await self._once(
            request.organization_id, request.request_id, fingerprint, lambda: self._store.restore(request, fingerprint)
        )
        missing = [UUID(text) for text in json.loads(record.tool_return)]
        return await self._blocks(request.organization_id, record), missing

    async def copy(self, request: CopyRequest) -> list[Block]:
        """Returns the new blocks, in order.

        Raises NotFound (BLOCK_VERSION_NOT_FOUND), AlreadyExists (BLOCK_LABEL_TAKEN), FailedPrecondition
        (CALL_KEY_REUSED).
        """
        agents = request.source_agent_id, request.source_conversation_id, request.target_agent_id
        fingerprint = _fingerprint("copy", request.versions, *agents)
        record = await self._once(
            request.organization_id, request.request_id, fingerprint, lambda: self._copy(request, fingerprint)
        )
        return await self._blocks(request.organization_id, record)

    async def _copy(self, request: CopyRequest, fingerprint: bytes) -> CallRecord:
        memory = await self._agents.memory(
            request.organization_id, request.source_agent_id, request.source_conversation_id
        )
        named = await self._store.at_versions(request.organization_id, request.versions)
        drafts = [
            copy_of(block, id_of_copy(request.organization_id, request.request_id, block.id))
            for block in to_copy(memory.blocks, named)
        ]
        record = CallRecord(
            call_key=request.request_id,
            agent_id=request.target_agent_id,
            tool_name="copy_blocks",
            arguments_hash=fingerprint,
            tool_return="",
            is_error=False,
            changed_block_ids=tuple(draft.id for draft in drafts if draft.id is not None),
        )
        await self._store.create_and_attach(
            request.organization_id, request.target_agent_id, drafts, request.origin, record
        )
        return record

    async def _once(
        self, organization_id: UUID, request_id: str, fingerprint: bytes, act: Callable[[], Awaitable[CallRecord]]
    ) -> CallRecord:
        """Returns the record that `act` makes, or made when the same was asked before."""
        record = await self._calls.find(organization_id, request_id)
        if record is None:
            try:
                return await act()
            except DuplicateCall:
                record = await self._calls.find(organization_id, request_id)
                assert record is not None
        check_same_call(record, fingerprint)
        return record

    async def _blocks(self, organization_id: UUID, record: CallRecord) -> list[Block]:
        """Returns those that the record names, in its order."""
        blocks = await self._calls.blocks(organization_id, record.changed_block_ids)
        return sorted(blocks, key=lambda block: record.changed_block_ids.index(block.id))


def _fingerprint(kind: str, versions: Mapping[UUID, int], *owners: UUID | None) -> bytes:
    named = sorted((str(block_id), version) for block_id, version in versions.items())
    return sha256(repr((kind, [str(owner) for owner in owners], named)).encode()).digest()
