"""Stores of what an agent remembers as a whole, and of the results of its tool calls."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Protocol
from uuid import UUID

from services.memory.agent_tools.model import CallRecord, EditContext, EditLookup
from services.memory.agents.model import AgentMemory, BlockEdit, RestoreRequest
from services.memory.blocks.model import Block, BlockDraft, Origin
from services.memory.core.editing.patches import Plan


class AgentStore(Protocol):
    """An agent's memory as a whole."""

    async def memory(self, organization_id: UUID, agent_id: UUID, conversation_id: UUID | None = None) -> AgentMemory:
        """Returns it in one statement, on the path of every turn; with the copies of a conversation if one is given."""

    async def memories(self, organization_id: UUID, agent_ids: Sequence[UUID]) -> list[AgentMemory]:
        """Returns them in the order of the ids, without counts and tags of passages; in a fixed number of queries."""

    async def create(
        self,
        organization_id: UUID,
        user_id: UUID,
        agent_id: UUID,
        drafts: Sequence[BlockDraft],
        block_ids: Sequence[UUID],
    ) -> None:
        """Creates and attaches, all or nothing. Raises as BlockStore.create and attach."""

    async def purge(self, organization_id: UUID, agent_id: UUID, *, erase_blocks: bool) -> None:
        """See AgentMemoryService.PurgeAgent."""

    async def purge_organization(self, organization_id: UUID) -> bool:
        """Erases rows of the tenant in all tables; False while there are some left. May be repeated."""


class CopyStore(Protocol):
    """Blocks that are made out of others. Every method is all or nothing."""

    async def isolate(
        self,
        organization_id: UUID,
        user_id: UUID,
        agent_id: UUID,
        conversation_id: UUID,
        labels: Sequence[str],
        source_conversation_id: UUID | None,
        versions: Mapping[UUID, int],
    ) -> list[Block]:
        """Returns the conversation's copies in the order of `labels`, made where missing; of the blocks in `versions`
        as they were then.

        Raises NotFound (BLOCK_NOT_FOUND) for a label that neither the agent nor the conversation has, NotFound
        (BLOCK_VERSION_NOT_FOUND).
        """

    async def adopt(
        self, organization_id: UUID, agent_id: UUID, conversation_id: UUID, block_ids: Sequence[UUID]
    ) -> list[Block]:
        """Makes blocks that are there the conversation's copies of their labels; where it has one, that stays.

        Raises NotFound (BLOCK_NOT_FOUND).
        """

    async def purge_conversation(self, organization_id: UUID, agent_id: UUID, conversation_id: UUID) -> None:
        """Erases the conversation's copies."""

    async def restore(self, request: RestoreRequest, arguments_hash: bytes) -> CallRecord:
        """Sets blocks back; the answer names them, and as its text the ids (JSON) that the owners have no more.

        Raises NotFound (BLOCK_VERSION_NOT_FOUND), DuplicateCall.
        """

    async def at_versions(self, organization_id: UUID, versions: Mapping[UUID, int]) -> dict[UUID, Block]:
        """Returns those that still exist, with the label, value, limit, description and metadata of these versions.

        Raises NotFound (BLOCK_VERSION_NOT_FOUND).
        """

    async def create_and_attach(
        self,
        organization_id: UUID,
        agent_id: UUID,
        drafts: Sequence[BlockDraft],
        origin: Origin,
        record: CallRecord,
    ) -> None:
        """Creates blocks, attaches them in this order and keeps the call's result.

        Raises AlreadyExists (BLOCK_LABEL_TAKEN), DuplicateCall.
        """

    async def apply_plan(
        self, organization_id: UUID, agent_id: UUID, plan: Plan, origin: Origin, record: CallRecord
    ) -> None:
        """Carries out a patch on several blocks and keeps the call's result.

        Raises VersionConflict, AlreadyExists (BLOCK_LABEL_TAKEN), DuplicateCall.
        """

    async def share_archives(
        self, organization_id: UUID, source_agent_id: UUID, target_agent_id: UUID
    ) -> Sequence[UUID]:
        """Attaches the archives of one agent to another; which they are."""

    async def edits(self, organization_id: UUID, run_ids: Sequence[UUID]) -> Sequence[BlockEdit]:
        """Returns the versions that runs made, of each block in order."""

    async def shared_with_others(
        self, organization_id: UUID, agent_id: UUID, block_ids: Sequence[UUID]
    ) -> Sequence[UUID]:
        """Returns which of these blocks are attached to other agents."""


class CallStore(Protocol):
    """Results of tool calls by their key."""

    async def views(self, organization_id: UUID, looks: Sequence[EditLookup]) -> list[EditContext]:
        """Returns one for each, in one statement; the block is the conversation's copy where it has one."""

    async def find(self, organization_id: UUID, call_key: str) -> CallRecord | None:
        """Returns the call's result, if it was applied."""

    async def record(self, organization_id: UUID, record: CallRecord) -> CallRecord:
        """Keeps a result unless there is one; returns the one that is kept."""

    async def fence(self, organization_id: UUID, run_id: UUID, fence: int) -> None:
        """Refuses what the run's owners before this fence ask for, from now on."""

    async def blocks(self, organization_id: UUID, block_ids: Sequence[UUID]) -> list[Block]:
        """Returns those that still exist."""

    async def forget(self, older_than: timedelta, limit: int) -> int:
        """Deletes at most `limit` of the oldest results and of the oldest fences, of all tenants; returns of which it
        were more, and how many.
        """
