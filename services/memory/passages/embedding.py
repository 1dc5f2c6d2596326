"""Texts become vectors: many texts in several calls, and no vector that cannot be stored."""

import asyncio
import time
from collections.abc import Iterator, Sequence

from services.common.errors import FailedPrecondition, LociError
from services.memory.core.ports.embedder import Embedder
from services.memory.core.vectors import unit_vector

MOST_TEXTS = 256
MOST_BYTES = 200_000
_AT_ONCE = 4


async def embed_all(embedder: Embedder, handle: str, texts: Sequence[str], seconds: float) -> list[list[float]]:
    """One vector per text, all of one length, within `seconds`. Raises LociError when one of the calls fails."""
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
        raise unusable(handle, "vectors of different lengths")
    return vectors


def batches(texts: Sequence[str]) -> Iterator[Sequence[str]]:
    """The texts in order, in lists of at most MOST_TEXTS and about MOST_BYTES."""
    start = size = 0
    for number, text in enumerate(texts):
        length = len(text.encode())
        if number > start and (number - start == MOST_TEXTS or size + length > MOST_BYTES):
            yield texts[start:number]
            start, size = number, 0
        size += length
    yield texts[start:]


def unit(handle: str, values: Sequence[float]) -> list[float] | None:
    """The vector at length 1; None for one without any direction. Raises FailedPrecondition (EMBEDDING_INVALID)."""
    try:
        return unit_vector(values)
    except ValueError as error:
        raise unusable(handle, str(error)) from None


def unusable(handle: str, problem: str) -> FailedPrecondition:
    """What a model answered cannot be stored, or compared with what is."""
    return FailedPrecondition(f"the embedding model {handle} answered with {problem}", reason="EMBEDDING_INVALID")


def _first(failures: BaseExceptionGroup[LociError]) -> LociError:
    failure: BaseException = failures
    while isinstance(failure, BaseExceptionGroup):
        failure = failure.exceptions[0]
    assert isinstance(failure, LociError)
    return failure
