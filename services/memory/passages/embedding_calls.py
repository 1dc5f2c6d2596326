"""Vectors of a model for texts of which single ones may be refused."""

from collections.abc import Sequence

from services.common.errors import FailedPrecondition, InvalidArgument, LociError, OutOfRange
from services.memory.archives.model import EmbeddingModel
from services.memory.core.ports.embedder import Embedder
from services.memory.core.ports.embedding_changes import Models
from services.memory.core.vectors import to_embed, unit_vector
from services.memory.embedding_changes.model import Made, ToEmbed

MOST_DIMENSIONS = 16_000
# What every model has a vector for.
_PROBE = "A short text about nothing in particular."
_PROBE_SECONDS = 10.0


class _NotFinite(FailedPrecondition):
    """A vector that is none."""


class EmbeddingCalls:
    """Asks models for vectors of length 1, and learns how long those are."""

    def __init__(self, embedder: Embedder, models: Models) -> None:
        self._embedder = embedder
        self._models = models

    async def model(self, handle: str) -> EmbeddingModel:
        """The model of a handle, as it answers now. Raises LociError: that of the embedder, EMBEDDING_INVALID."""
        [values] = await self._embedder.embed(handle, [_PROBE], _PROBE_SECONDS)
        if not 1 <= len(values) <= MOST_DIMENSIONS:
            raise _unusable(handle, f"{len(values)} dimensions; there may be 1 to {MOST_DIMENSIONS}")
        return await self._models.embedding_model(handle, len(values))

    async def made(self, handle: str, model_id: int, texts: Sequence[ToEmbed], seconds: float) -> list[Made]:
        """A vector for each text, or none where the model refuses that text alone. Raises LociError otherwise."""
        if not texts:
            return []
        try:
            return await self._all(handle, model_id, texts, seconds)
        except (InvalidArgument, OutOfRange, _NotFinite):
            if len(texts) == 1:
                await self.model(handle)  # it is the text, not the model: this call would have failed, too
                return [Made(texts[0].passage_id, texts[0].text_hash, None)]
        half = len(texts) // 2
        first = await self.made(handle, model_id, texts[:half], seconds)
        return first + await self.made(handle, model_id, texts[half:], seconds)

    async def _all(self, handle: str, model_id: int, texts: Sequence[ToEmbed], seconds: float) -> list[Made]:
        answer = await self._embedder.embed(handle, [to_embed(one.text) for one in texts], seconds)
        for size in {len(values) for values in answer}:
            if (await self._models.embedding_model(handle, size)).id != model_id:
                raise _unusable(handle, f"vectors of {size} dimensions, not as before; roll the change back")
        return [
            Made(one.passage_id, one.text_hash, _unit(handle, values))
            for one, values in zip(texts, answer, strict=True)
        ]


def _unit(handle: str, values: Sequence[float]) -> list[float] | None:
    try:
        return unit_vector(values)
    except ValueError as error:
        raise _NotFinite(f"{handle}: {error}", reason="EMBEDDING_INVALID") from None


def _unusable(handle: str, problem: str) -> LociError:
    return FailedPrecondition(f"the embedding model {handle} answers with {problem}", reason="EMBEDDING_INVALID")
