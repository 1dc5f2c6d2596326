"""Stores of changes of an embedding model."""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol
from uuid import UUID

from services.memory.archives.model import EmbeddingModel
from services.memory.embedding_changes.model import (
    Decide,
    EmbeddingChange,
    ModelCoverage,
    PassageCheck,
    Position,
    Progress,
    TextToEmbed,
    TextVector,
)


class Models(Protocol):
    """Embedding models as the store knows them."""

    async def embedding_model(self, handle: str, dimensions: int) -> EmbeddingModel:
        """Returns the model, and stores it if it is new."""


class LockedChange(Protocol):
    """A change that runs, while nothing can be inserted into its archive: one transaction."""

    async def lacking(self, limit: int) -> list[UUID]:
        """Returns passages without a vector of the model after."""

    async def switch(self) -> None:
        """Lets searches and insertions use the model after from now on."""


class ModelAlternatives(Protocol):
    """The vectors of other models, which a search uses where the embedder of a model does not answer."""

    async def alternatives(
        self, organization_id: UUID, archive_ids: Sequence[UUID] | None, model: EmbeddingModel
    ) -> list[ModelCoverage]:
        """Returns coverage by other models, in those of the archives that use `model` and are being changed.

        None: in all archives of the tenant.
        """


class ChangeStore(ModelAlternatives, Protocol):
    """Changes of embedding models, and the vectors that they make. `archive_id` may be a folder's."""

    async def progress(self, organization_id: UUID, archive_id: UUID, *, folder: bool) -> Progress | None:
        """Returns that of the newest change of an archive, or folder; counts vectors."""

    async def newest(self, organization_id: UUID, archive_id: UUID) -> EmbeddingChange | None:
        """Returns the newest change, without counting."""

    async def exists(self, organization_id: UUID, archive_id: UUID, *, folder: bool) -> bool:
        """Returns whether there is such an archive, or folder."""

    async def decide(self, organization_id: UUID, user_id: UUID, archive_id: UUID, decide: Decide) -> EmbeddingChange:
        """Stores what `decide` makes of the archive's state, which nobody changes meanwhile, and asks for the job.

        Raises NotFound (ARCHIVE_NOT_FOUND), and what `decide` raises.
        """

    async def record_failure(self, organization_id: UUID, change: EmbeddingChange, error: str) -> None:
        """Shows why the change does not go on."""

    async def set_model(self, organization_id: UUID, change: EmbeddingChange, model_id: int) -> None:
        """Returns the number of the model after is known now."""

    async def walk(self, organization_id: UUID, change: EmbeddingChange, limit: int) -> list[PassageCheck]:
        """Returns the passages after `change.reached`, oldest first."""

    async def lacking(self, organization_id: UUID, change: EmbeddingChange, limit: int) -> list[UUID]:
        """Returns passages without a vector of the model after."""

    async def texts(self, organization_id: UUID, archive_id: UUID, passage_ids: Sequence[UUID]) -> list[TextToEmbed]:
        """Returns the texts of those that still exist."""

    async def write(
        self, organization_id: UUID, change: EmbeddingChange, vectors: Sequence[TextVector], position: Position | None
    ) -> bool:
        """Stores vectors of texts that are still the same; False, and nothing stored, when the change went on."""

    def lock(self, organization_id: UUID, change: EmbeddingChange) -> AbstractAsyncContextManager[LockedChange | None]:
        """Keeps insertions out; None when the change does not run."""

    async def needs_index(self, organization_id: UUID, change: EmbeddingChange) -> bool:
        """Returns whether searches would become slow without an index of the new vectors, which is asked for then."""

    async def erase(self, organization_id: UUID, change: EmbeddingChange, start: UUID, limit: int) -> UUID | None:
        """Erases some vectors of models that the archive does not use, from this passage on; where to go on.

        None when all are gone, or the change is not over.
        """
