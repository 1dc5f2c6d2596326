"""What clients ask of a change of an archive's embedding model."""

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
    begin,
    finished,
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
        """For sentences."""
        return f"{'Folder source' if self.folder else 'Archive archive'}-{self.archive_id}"


class EmbeddingChangeService:
    """Begins changes, tells how far they are, takes them back and finishes them. See embedding_move.py for the work.

    Every method raises NotFound: ARCHIVE_NOT_FOUND, FOLDER_NOT_FOUND; all but `change` EMBEDDING_CHANGE_NOT_FOUND, too.
    """

    def __init__(self, store: ChangeStore, calls: TextEmbedder, wake: Callable[[], None]) -> None:
        """`wake`: there is a job to do."""
        self._store = store
        self._calls = calls
        self._wake = wake

    async def change(self, whose: ArchiveRef, embedding: str | None) -> Progress:
        """Begins a change to this handle. Raises NotFound (MODEL_NOT_FOUND), Aborted (EMBEDDING_CHANGE_RUNNING)."""
        await self._check(whose)
        model_id, error = await self._asked(embedding)
        draft = EmbeddingChange(
            id=uuid7(),
            archive_id=whose.archive_id,
            before=Target(embedding=None, model_id=None),
            after=Target(embedding=embedding, model_id=model_id),
            error=error,
        )
        await self._decide(whose, partial(begin, draft=draft))
        return await self.progress(whose)

    async def progress(self, whose: ArchiveRef) -> Progress:
        """The newest change."""
        progress = await self._store.progress(whose.organization_id, whose.archive_id, folder=whose.folder)
        if progress is None:
            await self._check(whose)
            raise _no_change(whose)
        return progress

    async def roll_back(self, whose: ArchiveRef) -> Progress:
        """Takes the newest change back. Raises FailedPrecondition (EMBEDDING_CHANGE_FINISHED)."""
        await self._check(whose)
        change = await self._decide(whose, lambda standing: roll_back_change(_newest(whose, standing)))
        if change.rolling_back:
            async with self._store.lock(whose.organization_id, change) as locked:
                if locked is not None and (change.after.embedding is None or not await locked.lacking(1)):
                    await locked.switch()
        return await self.progress(whose)

    async def finish(self, whose: ArchiveRef) -> Progress:
        """Lets the vectors that are not used go. Raises Aborted (EMBEDDING_CHANGE_RUNNING)."""
        await self._check(whose)
        await self._decide(whose, lambda standing: finished(_newest(whose, standing)))
        return await self.progress(whose)

    async def _asked(self, embedding: str | None) -> tuple[int | None, str]:
        """The model's number, or why it does not answer now: the job will ask again."""
        if embedding is None:
            return None, ""
        try:
            return (await self._calls.model(embedding)).id, ""
        except NotFound:
            raise
        except LociError as error:
            return None, error.message

    async def _check(self, whose: ArchiveRef) -> None:
        if not await self._store.exists(whose.organization_id, whose.archive_id, folder=whose.folder):
            reason = "FOLDER_NOT_FOUND" if whose.folder else "ARCHIVE_NOT_FOUND"
            raise NotFound(f"{whose.name} not found", reason=reason)

    async def _decide(self, whose: ArchiveRef, decide: Decide) -> EmbeddingChange:
        try:
            change = await self._store.decide(whose.organization_id, whose.user_id, whose.archive_id, decide)
        except ChangeRunning as refused:
            raise Aborted(refused.message, reason="EMBEDDING_CHANGE_RUNNING") from None
        except ChangeFinished as refused:
            raise FailedPrecondition(refused.message, reason="EMBEDDING_CHANGE_FINISHED") from None
        self._wake()
        return change


def _newest(whose: ArchiveRef, standing: ArchiveState) -> EmbeddingChange:
    if standing.newest is None:
        raise _no_change(whose)
    return standing.newest


def _no_change(whose: ArchiveRef) -> NotFound:
    sentence = f"{whose.name}: its embedding model was never changed"
    return NotFound(sentence, reason="EMBEDDING_CHANGE_NOT_FOUND")
