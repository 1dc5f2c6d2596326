"""The job that gives every passage of an archive a vector of another model, and erases those that are not used.

No transaction waits for a model. Where passages keep coming, searches switch while the last few have no vector yet:
these are found by their words until the job, which is stored, has embedded them, too.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from services.common.errors import LociError
from services.memory.core.ports.embedding_changes import ChangeStore
from services.memory.embedding_changes.model import (
    ChangeState,
    EmbeddingChange,
    Position,
    TextToEmbed,
    TextVector,
    next_batch,
)
from services.memory.jobs.model import Job, Reschedule, pause_after
from services.memory.passages.embedding import TextEmbedder

# Where nothing lacks a vector, the next look goes further.
_FAR = 1_024
_TEXTS_PER_CALL = 128
# About 60,000 tokens; a local model reads some thousand in a second.
_CHARACTERS_PER_CALL = 250_000
_CALL_SECONDS = 120.0
# Then other jobs have their turn.
_SLICE_SECONDS = 10.0
_ERASED_AT_ONCE = 2_000
# Where passages keep coming while others are embedded, the switch does not wait for the last few.
_PATIENT_TRIES = 3
# Searches go on by the vectors before while an index of the new ones is built; if that takes longer, without it.
_INDEX_PAUSE_SECONDS = 5.0
_INDEX_SECONDS = 3_600.0
_FIRST = UUID(int=0)


@dataclass(slots=True)
class _Slice:
    """One run of the job. `late_tries`: how often new passages were found when all seemed to be done."""

    job: Job
    until: float
    moved: bool = False
    late_tries: int = 0

    @property
    def over(self) -> bool:
        return time.monotonic() >= self.until


class EmbeddingChangeJob:
    """Handles jobs of the kind `embedding_change`, whose subject is an archive's id."""

    def __init__(self, store: ChangeStore, calls: TextEmbedder, *, slice_seconds: float = _SLICE_SECONDS) -> None:
        self._store = store
        self._calls = calls
        self._slice_seconds = slice_seconds
        # Since when changes wait for an index.
        self._waiting: dict[UUID, float] = {}

    async def __call__(self, job: Job) -> Reschedule | None:
        """Goes on where the rows stand, for some seconds."""
        run = _Slice(job, time.monotonic() + self._slice_seconds)
        while not run.over:
            change = await self._store.newest(job.organization_id, UUID(job.subject))
            if change is None:
                return None
            try:
                if change.state is not ChangeState.RUNNING:
                    return await self._settle(run, change)
                if (later := await self._move(run, change)) is not None:
                    return later
            except LociError as error:
                await self._store.record_failure(job.organization_id, change, error.message)
                failures = 0 if run.moved else job.failures
                return Reschedule(pause_after(failures + 1), failed=not run.moved)
        return Reschedule(0.0)

    async def _move(self, run: _Slice, change: EmbeddingChange) -> Reschedule | None:
        """Goes on until it is done, does not run any more, must wait, or the slice is over."""
        handle, organization_id = change.after.embedding, run.job.organization_id
        if handle is not None and change.after.model_id is None:
            model = await self._calls.model(handle)
            await self._store.set_model(organization_id, change, model.id)
            return None
        place: Position | None
        look = _TEXTS_PER_CALL
        while not run.over:
            walked = [] if handle is None else await self._store.walk(organization_id, change, look)
            if walked:
                passage_ids, place = next_batch(walked, self._most(run))
                look = _TEXTS_PER_CALL if passage_ids else _FAR
            elif await self._needs_index(run, change):
                return Reschedule(_INDEX_PAUSE_SECONDS)
            else:
                passage_ids = await self._close(run, change)
                if not passage_ids:
                    return None
                # Passages may have been stored with a time of the past.
                place = None if len(passage_ids) >= _TEXTS_PER_CALL else change.reached
            if passage_ids and not await self._embed(run, change, passage_ids, place):
                return None
            change = replace(change, reached=place)
        return None

    async def _needs_index(self, run: _Slice, change: EmbeddingChange) -> bool:
        if not await self._store.needs_index(run.job.organization_id, change):
            self._waiting.pop(change.id, None)
            return False
        return time.monotonic() - self._waiting.setdefault(change.id, time.monotonic()) < _INDEX_SECONDS

    async def _embed(
        self, run: _Slice, change: EmbeddingChange, passage_ids: Sequence[UUID], reached: Position | None
    ) -> bool:
        texts = await self._store.texts(run.job.organization_id, change.archive_id, passage_ids)
        calls = _calls(texts)
        for number, some in enumerate(calls, 1):
            vectors = await self._vectors(change, some, _CALL_SECONDS)
            place = reached if number == len(calls) else change.reached
            if not await self._store.write(run.job.organization_id, change, vectors, place):
                return False
            run.moved = True
        return True

    async def _close(self, run: _Slice, change: EmbeddingChange) -> list[UUID]:
        """Switches; else returns passages that lack a vector. None lack one, too, when the change does not run."""
        async with self._store.lock(run.job.organization_id, change) as locked:
            if locked is None:
                return []
            lacking = [] if change.after.embedding is None else await locked.lacking(_TEXTS_PER_CALL)
            if not lacking or (len(lacking) < _TEXTS_PER_CALL and run.late_tries >= _PATIENT_TRIES):
                await locked.switch()
                return []
            run.late_tries += 1
            return lacking

    async def _settle(self, run: _Slice, change: EmbeddingChange) -> Reschedule | None:
        """After a switch: erases what is not used, and embeds what came while it was made."""
        if change.state is not ChangeState.COMPLETED and not await self._erase(run, change):
            return Reschedule(0.0)
        used = replace(change, after=change.in_use)
        if used.after.model_id is None:
            return None
        while lacking := await self._store.lacking(run.job.organization_id, used, _TEXTS_PER_CALL):
            if run.over:
                return Reschedule(0.0)
            if not await self._embed(run, used, lacking, None):
                return Reschedule(0.0)
        return None

    async def _vectors(self, change: EmbeddingChange, texts: Sequence[TextToEmbed], seconds: float) -> list[TextVector]:
        handle, model_id = change.after.embedding, change.after.model_id
        assert handle is not None
        assert model_id is not None
        return await self._calls.embed(handle, model_id, texts, seconds)

    def _most(self, run: _Slice) -> int:
        """Returns the texts per call: fewer where calls fail, since a slow model may not get through more."""
        return max(1, _TEXTS_PER_CALL >> min(run.job.failures, 7))

    async def _erase(self, run: _Slice, change: EmbeddingChange) -> bool:
        """Returns whether all is gone."""
        start: UUID | None = _FIRST
        while start is not None and not run.over:
            start = await self._store.erase(run.job.organization_id, change, start, _ERASED_AT_ONCE)
        return start is None


def _calls(texts: Sequence[TextToEmbed]) -> list[list[TextToEmbed]]:
    """Returns as many texts at a time as a model reads in a reasonable time."""
    calls: list[list[TextToEmbed]] = []
    characters = 0
    for text in texts:
        characters += len(text.text)
        if not calls or characters > _CHARACTERS_PER_CALL:
            calls.append([])
            characters = len(text.text)
        calls[-1].append(text)
    return calls
