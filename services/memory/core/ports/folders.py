"""The store of folders."""

from collections.abc import Mapping
from typing import Any, Protocol
from uuid import UUID

from services.common.core.paging import Page, PageOf
from services.memory.folders.model import Folder, FolderDraft


class FolderStore(Protocol):
    """Folders."""

    async def create(self, organization_id: UUID, user_id: UUID, draft: FolderDraft) -> Folder:
        """Raises AlreadyExists (FOLDER_NAME_TAKEN) unless the same was created before."""

    async def get(self, organization_id: UUID, folder_id: UUID) -> Folder:
        """Raises NotFound (FOLDER_NOT_FOUND)."""

    async def update(self, organization_id: UUID, user_id: UUID, folder_id: UUID, changes: Mapping[str, Any]) -> Folder:
        """Raises NotFound (FOLDER_NOT_FOUND), AlreadyExists (FOLDER_NAME_TAKEN)."""

    async def delete(self, organization_id: UUID, folder_id: UUID) -> None:
        """Returns the folder at once, what was in it by FOLDER_JOB. Raises NotFound (FOLDER_NOT_FOUND)."""

    async def empty(self, organization_id: UUID, folder_id: UUID) -> bool:
        """Removes some files that a deleted folder left; False when there are none."""

    async def count(self, organization_id: UUID) -> tuple[int, int, int]:
        """Returns folders, files, and the bytes of these."""

    async def list(self, organization_id: UUID, name: str | None, page: Page) -> PageOf[Folder]:
        """Raises NotFound (FOLDER_NOT_FOUND) for a cursor that does not exist."""
