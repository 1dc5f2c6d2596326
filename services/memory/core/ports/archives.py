"""The store of archives."""

from collections.abc import Mapping
from typing import Any, Protocol
from uuid import UUID

from services.memory.archives.model import Archive, ArchiveDraft


class ArchiveStore(Protocol):
    """Archives and the agents they are attached to. Those of folders are not among them."""

    async def get(self, organization_id: UUID, archive_id: UUID) -> Archive:
        """Raises NotFound (ARCHIVE_NOT_FOUND), as every method here that names an archive."""

    async def create(self, organization_id: UUID, user_id: UUID, draft: ArchiveDraft) -> Archive:
        """Raises AlreadyExists (ARCHIVE_ID_TAKEN) unless the same was created before."""

    async def update(
        self, organization_id: UUID, user_id: UUID, archive_id: UUID, changes: Mapping[str, Any]
    ) -> Archive:
        """Returns the archive as stored."""

    async def delete(self, organization_id: UUID, archive_id: UUID) -> None:
        """Deletes it for everybody at once; many passages are erased in the background (`erase`)."""

    async def erase(self, organization_id: UUID, archive_id: UUID) -> bool:
        """Erases a portion of a deleted archive; whether there is more."""

    async def attach(self, organization_id: UUID, agent_id: UUID, archive_id: UUID) -> None:
        """Returns the first becomes the agent's default."""

    async def detach(self, organization_id: UUID, agent_id: UUID, archive_id: UUID) -> None:
        """Raises NotFound (ARCHIVE_NOT_ATTACHED)."""

    async def agents_of(self, organization_id: UUID, archive_id: UUID) -> list[UUID]:
        """Returns agents in the order of attachment."""
