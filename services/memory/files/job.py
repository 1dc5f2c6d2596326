"""The job of an upload: its text is taken out, split into pieces, and these are embedded; see jobs/worker.py.

How far a file is stands in its row, and moves on with what was made of it in one transaction, so that whoever takes
over after a crash goes on there. What fails for good, or too often, ends in ERROR, and can be tried again.
"""

import asyncio
import logging
import time
from collections.abc import Sequence
from contextlib import aclosing
from uuid import UUID

from services.common.core import words
from services.common.core.vectors import to_embed
from services.common.errors import FailedPrecondition, InvalidArgument, LociError, NotFound
from services.memory.core.errors import FileConflict, ModelConflict, Unparsable
from services.memory.core.file_text.kinds import of_media_type
from services.memory.core.ports.files import FolderStore, IngestionStore, Parser, UploadStore
from services.memory.embedding_changes.model import TextToEmbed
from services.memory.files.model import Batch, Chunk, FileStatus, ParseSummary, TextPage, Work
from services.memory.jobs.model import Job, Reschedule, pause_after
from services.memory.passages.embedding import TextEmbedder

logger = logging.getLogger(__name__)

# Pieces that are stored together, and those of them that one call embeds.
_BATCH, _PER_CALL = 256, 64
_PAGES_AT_ONCE = 32
_EMBED_SECONDS = 60.0
# Then other files have a turn.
_TURN_SECONDS = 10.0
# With growing pauses: about an hour.
_MOST_FAILURES = 20
_MOST_TRIES = 5
# Repeating does not help until somebody does something.
_FINAL = (InvalidArgument, NotFound, FailedPrecondition)


class Ingestion:
    """Handles the jobs of files, of deleted folders, and of uploads that became nothing."""

    def __init__(
        self,
        store: IngestionStore,
        uploads: UploadStore,
        folders: FolderStore,
        parser: Parser,
        models: TextEmbedder,
    ) -> None:
        self._store = store
        self._uploads = uploads
        self._folders = folders
        self._parser = parser
        self._models = models

    async def go_on(self, job: Job) -> Reschedule | None:
        """Returns a file's job: the next that it needs, until there is nothing more."""
        folder_id, file_id = (UUID(part) for part in job.subject.split("/"))
        work = await self._store.work(job.organization_id, folder_id, file_id)
        try:
            if work is None or work.file.status is FileStatus.ERROR:
                await self._remove(job.organization_id, folder_id, file_id)
                return None
            if work.file.status is not FileStatus.COMPLETED and _is_hopeless(job, work):
                await self._give_up(job.organization_id, work, "could not be taken in; the server's log says why")
                return None
            if work.file.status in (FileStatus.PENDING, FileStatus.PARSING):
                await self._parse(job.organization_id, work)
            return await self._embed(job, folder_id, file_id)
        except FileConflict:
            # Deleted, or taken on by who has lost this job meanwhile and is stopped: what it needs now is read again.
            return Reschedule(0.0, failed=True)

    async def remove_folder(self, job: Job) -> Reschedule | None:
        """Erases what a deleted folder left."""
        end = time.monotonic() + _TURN_SECONDS
        while await self._folders.empty(job.organization_id, UUID(job.subject)):
            if time.monotonic() > end:
                return Reschedule(0.0)
        return None

    async def forget_upload(self, job: Job) -> Reschedule | None:
        """Erases what an upload left whose process died."""
        await self._uploads.drop(job.organization_id, UUID(job.subject))
        return None

    async def _parse(self, organization_id: UUID, work: Work) -> None:
        file = work.file
        await self._store.start_parsing(organization_id, file.id)
        try:
            parsed = await self._pages(organization_id, work)
        except Unparsable as error:
            logger.info("a file cannot be parsed", extra={"file": str(file.id), "reason": error.message})
            await self._give_up(organization_id, work, f"cannot be read: {error.message}")
            return
        await self._store.finish_parsing(organization_id, work, parsed)

    async def _pages(self, organization_id: UUID, work: Work) -> ParseSummary:
        """Stores the pages as they come. Raises Unparsable."""
        file, pages = work.file, list[TextPage]()
        if work.upload_id is None:
            raise FileConflict
        data = self._uploads.parts(organization_id, work.upload_id)
        kind = of_media_type(file.name, file.media_type)
        async with aclosing(self._parser.parse(kind, data)) as answers:
            async for answer in answers:
                if isinstance(answer, ParseSummary):
                    await self._store.add_pages(organization_id, file.id, pages)
                    return answer
                pages.append(answer)
                if len(pages) == _PAGES_AT_ONCE:
                    await self._store.add_pages(organization_id, file.id, pages)
                    pages.clear()
        raise Unparsable("it needs too much time or memory")

    async def _embed(self, job: Job, folder_id: UUID, file_id: UUID) -> Reschedule | None:
        end, moved = time.monotonic() + _TURN_SECONDS, False
        while True:
            work = await self._store.work(job.organization_id, folder_id, file_id)
            if work is None or work.file.status is not FileStatus.EMBEDDING:
                return None
            if not work.file.embedded_count:
                # Of a try that was given up.
                await self._remove(job.organization_id, folder_id, file_id)
            try:
                batch = await self._batch(job.organization_id, work)
                await self._store.add_batch(job.organization_id, work, batch)
                moved = True
            except ModelConflict:
                continue
            except LociError as error:
                return await self._handle_failure(job, work, error, moved=moved)
            if time.monotonic() > end:
                return Reschedule(0.0)

    async def _batch(self, organization_id: UUID, work: Work) -> Batch:
        """Returns the next pieces with words and vectors. Raises LociError."""
        handle = work.embedding if work.model is None else work.model.handle
        file = work.file
        chunks = await self._store.chunks(organization_id, file.id, file.embedded_count, _BATCH)
        search_words = await asyncio.to_thread(_words, chunks)
        if not handle or not chunks:
            return Batch(chunks=chunks, words=search_words, vectors=[None] * len(chunks), model=work.model)
        model = work.model or await self._models.model(handle)
        texts = [TextToEmbed(file.id, to_embed(chunk.text), "") for chunk in chunks]
        parts = [texts[start : start + _PER_CALL] for start in range(0, len(texts), _PER_CALL)]
        calls = (self._models.embed(handle, model.id, part, _EMBED_SECONDS) for part in parts)
        # All of them are waited for: none goes on when another has failed.
        vectors: list[Sequence[float] | None] = []
        for result in await asyncio.gather(*calls, return_exceptions=True):
            if isinstance(result, BaseException):
                raise result
            vectors += (one.vector for one in result)
        return Batch(chunks=chunks, words=search_words, vectors=vectors, model=model)

    async def _handle_failure(self, job: Job, work: Work, error: LociError, *, moved: bool) -> Reschedule | None:
        failures = 1 if moved else job.failures + 1
        logger.warning("a file could not be embedded", extra={"file": str(work.file.id), "reason": error.reason})
        if isinstance(error, _FINAL) or failures >= _MOST_FAILURES:
            await self._give_up(job.organization_id, work, f"could not be embedded: {error.message}")
            return None
        await self._store.note(job.organization_id, work.file.id, f"trying again: {error.message}")
        return Reschedule(pause_after(failures), failed=not moved)

    async def _give_up(self, organization_id: UUID, work: Work, why: str) -> None:
        await self._store.give_up(organization_id, work, f"{work.file.name} {why}")
        await self._remove(organization_id, work.file.folder_id, work.file.id)

    async def _remove(self, organization_id: UUID, folder_id: UUID, file_id: UUID) -> None:
        while await self._store.remove_passages(organization_id, folder_id, file_id):
            pass


def _is_hopeless(job: Job, work: Work) -> bool:
    """Returns whether it failed as often as it may, or ended as many processes."""
    return job.failures >= _MOST_FAILURES or (work.file.status is FileStatus.PARSING and work.tries >= _MOST_TRIES)


def _words(chunks: Sequence[Chunk]) -> list[list[str]]:
    return words.index_words_of_all(chunk.text for chunk in chunks)
