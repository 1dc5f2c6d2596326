"""Changes of an archive's embedding model, as clients ask for them."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from uuid import UUID

from services.common.errors import Aborted, FailedPrecondition, LociError, NotFound
from services.common.ids import uuid7
from services.memory.core.ports.embedding_changes import ChangeStore
from services.memory.embedding_changes.model import (
    ArchiveState,
    ChangeFinished,
    ChangeRunning,
    Decide,
    EmbeddingChange,
    Progress,
    Target,
    begin_change,
    finish_change,
    roll_back_change,
)
from services.memory.passages.embedding import TextEmbedder


@dataclass(frozen=True, slots=True)
class ArchiveRef:
    """An archive or folder of a tenant, as a user names it."""

    organization_id: UUID
    user_id: UUID
    archive_id: UUID
    folder: bool

    @property
    def name(self) -> str:
        """Returns its name for sentences."""
        return f"{'Folder source' if self.folder else 'Archive archive'}-{self.archive_id}"


class EmbeddingChangeService:
    """Begins changes, tells how far they are, takes them back and finishes them. See job.py for the work.

    Every method raises NotFound: ARCHIVE_NOT_FOUND, FOLDER_NOT_FOUND; all but `change` EMBEDDING_CHANGE_NOT_FOUND, too.
    """

    def __init__(self, store: ChangeStore, calls: TextEmbedder, wake: Callable[[], None]) -> None:
        """Takes `wake`, which says that there is a job to do."""
        self._store = store
        self._calls = calls
        self._wake = wake

    async def change(self, ref: ArchiveRef, embedding: str | None) -> Progress:
        """Begins a change to this handle. Raises NotFound (EMBEDDING_NOT_FOUND), Aborted (EMBEDDING_CHANGE_RUNNING)."""
        await self._check(ref)
        model_id, error = await self._ask_model(embedding)
        draft = EmbeddingChange(
            id=uuid7(),
            archive_id=ref.archive_id,
            before=Target(embedding=None, model_id=None),
            after=Target(embedding=embedding, model_id=model_id),
            error=error,
        )
        await self._decide(ref, partial(begin_change, draft=draft))
        return await self.progress(ref)

    async def progress(self, ref: ArchiveRef) -> Progress:
        """Returns the newest change."""
        progress = await self._store.progress(ref.organization_id, ref.archive_id, folder=ref.folder)
        if progress is None:
            await self._check(ref)
            raise _no_change(ref)
        return progress

    async def roll_back(self, ref: ArchiveRef) -> Progress:
        """Takes the newest change back. Raises FailedPrecondition (EMBEDDING_CHANGE_FINISHED)."""
        await self._check(ref)
        change = await self._decide(ref, lambda standing: roll_back_change(_newest(ref, standing)))
        if change.rolling_back:
            async with self._store.lock(ref.organization_id, change) as locked:
                if locked is not None and (change.after.embedding is None or not await locked.lacking(1)):
                    await locked.switch()
        return await self.progress(ref)

    async def finish(self, ref: ArchiveRef) -> Progress:
        """Erases the vectors that are not used. Raises Aborted (EMBEDDING_CHANGE_RUNNING)."""
        await self._check(ref)
        await self._decide(ref, lambda standing: finish_change(_newest(ref, standing)))
        return await self.progress(ref)

    async def _ask_model(self, embedding: str | None) -> tuple[int | None, str]:
        """Returns the model's number, or why it does not answer now: the job will ask again."""
        if embedding is None:
            return None, ""
        try:
            return (await self._calls.model(embedding)).id, ""
        except NotFound:
            raise
        except LociError as error:
            return None, error.message

    async def _check(self, ref: ArchiveRef) -> None:
        if not await self._store.exists(ref.organization_id, ref.archive_id, folder=ref.folder):
            reason = "FOLDER_NOT_FOUND" if ref.folder else "ARCHIVE_NOT_FOUND"
            raise NotFound(f"{ref.name} not found", reason=reason)

    async def _decide(self, ref: ArchiveRef, decide: Decide) -> EmbeddingChange:
        try:
            change = await self._store.decide(ref.organization_id, ref.user_id, ref.archive_id, decide)
        except ChangeRunning as refused:
            raise Aborted(refused.message, reason="EMBEDDING_CHANGE_RUNNING") from None
        except ChangeFinished as refused:
            raise FailedPrecondition(refused.message, reason="EMBEDDING_CHANGE_FINISHED") from None
        self._wake()
        return change


def _newest(ref: ArchiveRef, standing: ArchiveState) -> EmbeddingChange:
    if standing.newest is None:
        raise _no_change(ref)
    return standing.newest


def _no_change(ref: ArchiveRef) -> NotFound:
    sentence = f"{ref.name}: its embedding model was never changed"
    return NotFound(sentence, reason="EMBEDDING_CHANGE_NOT_FOUND")
