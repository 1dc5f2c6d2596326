"""The store of the results of tool calls."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Protocol
from uuid import UUID

from services.memory.agent_tools.model import CallRecord, EditContext, EditLookup
from services.memory.blocks.model import Block


class CallStore(Protocol):
    """Results of tool calls by their key."""

    async def views(self, organization_id: UUID, looks: Sequence[EditLookup]) -> list[EditContext]:
        """Returns one for each, in one statement; the block is the conversation's copy where it has one."""

    async def find(self, organization_id: UUID, call_key: str) -> CallRecord | None:
        """Returns the call's result, if it was applied."""

    async def record(self, organization_id: UUID, record: CallRecord) -> CallRecord:
        """Keeps a result unless there is one; returns the one that is kept."""

    async def blocks(self, organization_id: UUID, block_ids: Sequence[UUID]) -> list[Block]:
        """Returns those that still exist."""

    async def forget(self, older_than: timedelta, limit: int) -> int:
        """Deletes at most `limit` of the oldest results, of all tenants; returns how many."""
