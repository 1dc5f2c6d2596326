"""Texts become vectors: many texts in several calls, and no vector that cannot be stored."""

import asyncio
import time
from collections.abc import Iterator, Sequence

from services.common.core.vectors import to_embed, unit_vector
from services.common.errors import FailedPrecondition, InvalidArgument, LociError, OutOfRange
from services.memory.archives.model import EmbeddingModel
from services.memory.core.ports.embedding_changes import Models
from services.memory.core.ports.search import Embedder
from services.memory.core.vectors import MOST_DIMENSIONS
from services.memory.embedding_changes.model import TextToEmbed, TextVector

MOST_TEXTS = 256
MOST_BYTES = 200_000
_AT_ONCE = 4
# What every model has a vector for.
_PROBE = "A short text about nothing in particular."
_PROBE_SECONDS = 10.0


class _NotFinite(FailedPrecondition):
    """A vector that is none."""


async def embed_all(embedder: Embedder, handle: str, texts: Sequence[str], seconds: float) -> list[list[float]]:
    """Returns a vector per text, all of one length, within `seconds`. Raises LociError when one of the calls fails."""
    parts = list(batches(texts))
    if len(parts) == 1:
        return await embedder.embed(handle, texts, seconds)
    end, gate = time.monotonic() + seconds, asyncio.Semaphore(_AT_ONCE)

    async def one(part: Sequence[str]) -> list[list[float]]:
        async with gate:
            return await embedder.embed(handle, part, max(0.1, end - time.monotonic()))

    failure = None
    try:
        async with asyncio.TaskGroup() as calls:
            tasks = [calls.create_task(one(part)) for part in parts]
    except* LociError as failures:
        failure = _first(failures)  # it has stopped the others
    if failure is not None:
        raise failure
    vectors = [vector for task in tasks for vector in task.result()]
    if len({len(vector) for vector in vectors}) > 1:
        raise unusable_vector(handle, "vectors of different lengths")
    return vectors


def batches(texts: Sequence[str]) -> Iterator[Sequence[str]]:
    """Returns the texts in order, in lists of at most MOST_TEXTS and about MOST_BYTES."""
    start = size = 0
    for number, text in enumerate(texts):
        length = len(text.encode())
        if number > start and (number - start == MOST_TEXTS or size + length > MOST_BYTES):
            yield texts[start:number]
            start, size = number, 0
        size += length
    yield texts[start:]


def unit(handle: str, values: Sequence[float]) -> list[float] | None:
    """Returns the vector at length 1; None without a direction. Raises FailedPrecondition (EMBEDDING_INVALID)."""
    try:
        return unit_vector(values)
    except ValueError as error:
        sentence = f"the embedding model {handle} answered with {error}"
        raise _NotFinite(sentence, reason="EMBEDDING_INVALID") from None


def unusable_vector(handle: str, problem: str) -> FailedPrecondition:
    """Returns the error for an answer that cannot be stored, or compared with what is."""
    return FailedPrecondition(f"the embedding model {handle} answered with {problem}", reason="EMBEDDING_INVALID")


def _first(failures: BaseExceptionGroup[LociError]) -> LociError:
    failure: BaseException = failures
    while isinstance(failure, BaseExceptionGroup):
        failure = failure.exceptions[0]
    assert isinstance(failure, LociError)
    return failure


class TextEmbedder:
    """Asks models for vectors of length 1, and learns how long those are."""

    def __init__(self, embedder: Embedder, models: Models) -> None:
        self._embedder = embedder
        self._models = models

    async def model(self, handle: str) -> EmbeddingModel:
        """Asks a handle for its model. Raises LociError: that of the embedder, EMBEDDING_INVALID."""
        [values] = await self._embedder.embed(handle, [_PROBE], _PROBE_SECONDS)
        if not 1 <= len(values) <= MOST_DIMENSIONS:
            raise _unusable(handle, f"{len(values)} dimensions; there may be 1 to {MOST_DIMENSIONS}")
        return await self._models.embedding_model(handle, len(values))

    async def embed(self, handle: str, model_id: int, texts: Sequence[TextToEmbed], seconds: float) -> list[TextVector]:
        """Embeds each text; none where the model refuses that text alone. Raises LociError otherwise."""
        if not texts:
            return []
        try:
            return await self._all(handle, model_id, texts, seconds)
        except (InvalidArgument, OutOfRange, _NotFinite):
            if len(texts) == 1:
                await self.model(handle)  # it is the text, not the model: this call would have failed, too
                return [TextVector(texts[0].passage_id, texts[0].text_hash, None)]
        half = len(texts) // 2
        first = await self.embed(handle, model_id, texts[:half], seconds)
        return first + await self.embed(handle, model_id, texts[half:], seconds)

    async def _all(self, handle: str, model_id: int, texts: Sequence[TextToEmbed], seconds: float) -> list[TextVector]:
        answer = await self._embedder.embed(handle, [to_embed(one.text) for one in texts], seconds)
        for size in {len(values) for values in answer}:
            if (await self._models.embedding_model(handle, size)).id != model_id:
                raise _unusable(handle, f"vectors of {size} dimensions, not as before; roll the change back")
        return [
            TextVector(one.passage_id, one.text_hash, unit(handle, values))
            for one, values in zip(texts, answer, strict=True)
        ]


def _unusable(handle: str, problem: str) -> LociError:
    return FailedPrecondition(f"the embedding model {handle} answers with {problem}", reason="EMBEDDING_INVALID")
