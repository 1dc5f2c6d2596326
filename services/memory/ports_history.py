"""What journeys through the history of one block need from outside."""

from datetime import datetime
from typing import Protocol
from uuid import UUID

from services.memory.model import BlockVersion


class HistoryStore(Protocol):
    """Versions of blocks. Every method raises NotFound (BLOCK_VERSION_NOT_FOUND)."""

    async def version(self, organization_id: UUID, block_id: UUID, version: int) -> BlockVersion:
        """By its number."""

    async def as_of(self, organization_id: UUID, block_id: UUID, time: datetime) -> BlockVersion:
        """The version that stood at this time."""

    async def changed(self, organization_id: UUID, block_id: UUID, version: int) -> BlockVersion:
        """The newest at or below this number that changed the value, and so has the value of all up to this one."""
