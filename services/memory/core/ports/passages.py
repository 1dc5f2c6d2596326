"""Stores of archives and their passages."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol
from uuid import UUID

from services.common.core.paging import Page, PageOf
from services.memory.agent_tools.model import CallRecord
from services.memory.archives.model import Archive, ArchiveDraft, ArchiveList, EmbeddingModel
from services.memory.core.ranking.search import Scope
from services.memory.passages.model import (
    EmbeddedTexts,
    NewPassages,
    Passage,
    PassageKey,
    PassageList,
    Place,
)


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


class PassageStore(Protocol):
    """Passages, and what insertion and search have to know of their archives."""

    async def default_archive(self, organization_id: UUID, agent_id: UUID) -> Archive | None:
        """Returns the archive that new passages go into."""

    async def scope(self, organization_id: UUID, place: Place) -> Scope:
        """Returns the scope of a place, in one statement. Raises NotFound (ARCHIVE_NOT_FOUND, FOLDER_NOT_FOUND)."""

    async def embedding_model(self, handle: str, dimensions: int) -> EmbeddingModel:
        """Returns the model, and stores it if it is new."""

    async def insert(
        self, organization_id: UUID, user_id: UUID, new: NewPassages, record: CallRecord | None = None
    ) -> list[Passage]:
        """Stores passages, tags, vectors, the archive if it is missing, the call's result: all or nothing.

        Ids that are there already are left as they are. Raises ArchiveConflict, DuplicateCall.
        """

    async def update(
        self,
        organization_id: UUID,
        user_id: UUID,
        key: PassageKey,
        changes: Mapping[str, Any],
        embedded: EmbeddedTexts | None,
    ) -> Passage:
        """Changes a passage. embedded: of the new text, if there is one; vectors of other models go with the old text.

        Raises NotFound (PASSAGE_NOT_FOUND), ArchiveConflict.
        """

    async def delete(self, organization_id: UUID, place: Place, passage_id: UUID) -> None:
        """Raises NotFound (PASSAGE_NOT_FOUND)."""

    async def get(self, organization_id: UUID, place: Place, passage_id: UUID) -> Passage:
        """Raises NotFound (PASSAGE_NOT_FOUND)."""

    async def by_keys(self, organization_id: UUID, keys: Sequence[PassageKey]) -> dict[PassageKey, Passage]:
        """Returns those that still exist."""


class PassageLists(Protocol):
    """Pages of archives and passages."""

    async def passages(self, organization_id: UUID, request: PassageList, page: Page) -> PageOf[Passage]:
        """Raises NotFound (PASSAGE_NOT_FOUND for a cursor that does not exist, ARCHIVE_NOT_FOUND, FOLDER_NOT_FOUND)."""

    async def storage(self, organization_id: UUID) -> tuple[int, int]:
        """Returns how many vectors there are, and the bytes of their values."""

    async def archives(self, organization_id: UUID, filters: ArchiveList, page: Page) -> PageOf[Archive]:
        """Raises NotFound (CURSOR_NOT_FOUND) for a cursor that does not exist."""
