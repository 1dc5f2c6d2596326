"""Batches: one request for vectors as several calls, a few of them at once."""

import asyncio
from array import array
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from math import isfinite
from typing import Any

from services.llm_gateway.core.chat import Embeddings
from services.llm_gateway.core.errors import LlmBadRequest
from services.llm_gateway.core.models import EmbeddingModel
from services.llm_gateway.core.ports import Provider
from services.llm_gateway.core.reply_guard import reply_guard

_AT_ONCE = 4


async def embed_batch(provider: Provider, model: EmbeddingModel, texts: Sequence[str]) -> Embeddings:
    """Returns vectors for a batch, of the model's length where that is known. Raises LlmError, also where the reply
    is of another shape.
    """
    with reply_guard(model.provider_name, model.handle):
        embeddings = await provider.embed(model, texts)
        for vector in embeddings.vectors:
            if not isfinite(sum(array("f", vector))):
                raise ValueError("a vector with a number that is none")
        _check_lengths(model, embeddings)
        if type(embeddings.prompt_tokens) is not int or not 0 <= embeddings.prompt_tokens < 2**31:
            return Embeddings(embeddings.vectors)
        return embeddings


def _check_lengths(model: EmbeddingModel, embeddings: Embeddings) -> None:
    wrong = next((len(vector) for vector in embeddings.vectors if len(vector) != model.dimensions), None)
    if wrong is not None and model.dimensions:
        message = (
            f"{model.provider_name} returned vectors of {wrong} numbers where {model.handle} is known to have "
            f"{model.dimensions}. Say its dimensions in LOCI_MODELS, or in the options of a provider of your own."
        )
        raise LlmBadRequest(message, provider=model.provider_name, handle=model.handle)


class Batches:
    """`tokens`: input of the batches that were answered, as the provider counted them; it charges for them even where
    another batch fails.
    """

    def __init__(self, texts: Sequence[str], size: int) -> None:
        self.answered = 0
        self.tokens = 0
        self._batches = [texts[start : start + size] for start in range(0, len(texts), size)]
        self._places = asyncio.Semaphore(_AT_ONCE)

    async def embed(self, call: Callable[[Sequence[str]], Awaitable[Embeddings]]) -> Embeddings:
        """Returns all vectors in order. The first failure cancels the rest and is raised as it is."""
        parts = await _all(self._one(call, batch) for batch in self._batches)
        return Embeddings([vector for part in parts for vector in part.vectors], self.tokens)

    async def _one(self, call: Callable[[Sequence[str]], Awaitable[Embeddings]], batch: Sequence[str]) -> Embeddings:
        async with self._places:
            part = await call(batch)
        self.answered += 1
        self.tokens += part.prompt_tokens
        return part


async def _all(work: Iterable[Coroutine[Any, Any, Embeddings]]) -> list[Embeddings]:
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one) for one in work]
    except BaseExceptionGroup as failures:
        raise failures.exceptions[0] from None
    return [task.result() for task in tasks]
