"""What archives and passages need from outside. `adapters/archival/` has it on Postgres."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from services.common.paging import Page, PageOf
from services.memory.archival.places import Place
from services.memory.archival.search import Scope
from services.memory.lists import ArchiveList, PassageList
from services.memory.model import (
    Archive,
    ArchiveChanges,
    ArchiveDraft,
    CallRecord,
    EmbeddingModel,
    Passage,
    PassageChanges,
    PassageDraft,
)

# Archive and passage.
PassageKey = tuple[UUID, UUID]


class ArchiveChanged(Exception):
    """The archive is not what the vectors were made for; begin again. Stays in the service."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Embedded:
    """Words and vectors of some texts, made for an archive with this embedding handle, if any.

    model: that of the vectors, None without a handle. A vector may be None also with a model: a text without any
    direction. search_words: see `services.common.words.to_index`.
    """

    embedding: str | None
    model: EmbeddingModel | None
    search_words: Sequence[Sequence[str]]
    vectors: Sequence[Sequence[float] | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class NewPassages:
    """Passages for one archive. `default_of`: the agent whose default archive must be made with them, else None."""

    archive_id: UUID
    default_of: UUID | None
    drafts: Sequence[PassageDraft]
    embedded: Embedded


class PassageStore(Protocol):
    """Passages, and what insertion and search have to know of their archives."""

    async def default_archive(self, organization_id: UUID, agent_id: UUID) -> Archive | None:
        """The archive that new passages go into."""

    async def scope(self, organization_id: UUID, place: Place) -> Scope:
        """In one statement. Raises NotFound (ARCHIVE_NOT_FOUND, FOLDER_NOT_FOUND)."""

    async def embedding_model(self, handle: str, dimensions: int) -> EmbeddingModel:
        """Known from now on, if it was not."""

    async def insert(
        self, organization_id: UUID, user_id: UUID, new: NewPassages, record: CallRecord | None = None
    ) -> list[Passage]:
        """Stores passages, tags, vectors, the archive if it is missing, the call's result: all or nothing.

        Ids that are there already are left as they are. Raises ArchiveChanged, CallRepeated.
        """

    async def update(
        self,
        organization_id: UUID,
        user_id: UUID,
        key: PassageKey,
        changes: PassageChanges,
        embedded: Embedded | None,
    ) -> Passage:
        """`embedded`: of the new text, if there is one; vectors of other models are erased with the old text.

        Raises NotFound (PASSAGE_NOT_FOUND), ArchiveChanged.
        """

    async def delete(self, organization_id: UUID, place: Place, passage_id: UUID) -> None:
        """Raises NotFound (PASSAGE_NOT_FOUND)."""

    async def get(self, organization_id: UUID, place: Place, passage_id: UUID) -> Passage:
        """Raises NotFound (PASSAGE_NOT_FOUND)."""

    async def by_keys(self, organization_id: UUID, keys: Sequence[PassageKey]) -> dict[PassageKey, Passage]:
        """Those that still exist."""


class ArchiveStore(Protocol):
    """Archives and the agents they are attached to. Those of folders are not among them."""

    async def get(self, organization_id: UUID, archive_id: UUID) -> Archive:
        """Raises NotFound (ARCHIVE_NOT_FOUND), as every method here that names an archive."""

    async def create(self, organization_id: UUID, user_id: UUID, draft: ArchiveDraft) -> Archive:
        """Raises AlreadyExists (ARCHIVE_ID_TAKEN) unless the same was created before."""

    async def update(self, organization_id: UUID, user_id: UUID, archive_id: UUID, changes: ArchiveChanges) -> Archive:
        """As stored."""

    async def delete(self, organization_id: UUID, archive_id: UUID) -> None:
        """Gone for everybody at once; many passages are erased in the background (`erase`)."""

    async def erase(self, organization_id: UUID, archive_id: UUID) -> bool:
        """Erases a portion of a deleted archive; whether there is more."""

    async def attach(self, organization_id: UUID, agent_id: UUID, archive_id: UUID) -> None:
        """The first becomes the agent's default."""

    async def detach(self, organization_id: UUID, agent_id: UUID, archive_id: UUID) -> None:
        """Raises NotFound (ARCHIVE_NOT_ATTACHED)."""

    async def agents_of(self, organization_id: UUID, archive_id: UUID) -> list[UUID]:
        """In the order of attachment."""


class ArchivalLists(Protocol):
    """Pages of archives and passages."""

    async def passages(self, organization_id: UUID, wanted: PassageList, page: Page) -> PageOf[Passage]:
        """Raises NotFound (PASSAGE_NOT_FOUND for a cursor that does not exist, ARCHIVE_NOT_FOUND, FOLDER_NOT_FOUND)."""

    async def storage(self, organization_id: UUID) -> tuple[int, int]:
        """How many vectors there are, and the bytes of their values."""

    async def archives(self, organization_id: UUID, wanted: ArchiveList, page: Page) -> PageOf[Archive]:
        """Raises NotFound (ARCHIVE_NOT_FOUND) for a cursor that does not exist."""
