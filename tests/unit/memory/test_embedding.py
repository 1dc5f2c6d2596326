"""Many texts are embedded in several calls, of which one that fails is told of alone."""

import asyncio
from collections.abc import Sequence

import pytest

from services.common.errors import FailedPrecondition, Unavailable
from services.memory.passages.embedding import MOST_BYTES, MOST_TEXTS, batches, embed_all


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ([1], [1]),
        ([1] * MOST_TEXTS, [MOST_TEXTS]),
        ([1] * (MOST_TEXTS + 1), [MOST_TEXTS, 1]),
        ([MOST_BYTES, 1], [1, 1]),
        ([MOST_BYTES * 2, MOST_BYTES * 2], [1, 1]),
        ([1, MOST_BYTES - 1, 1], [2, 1]),
    ],
)
def test_batches_are_neither_too_many_nor_too_long(sizes: list[int], expected: list[int]) -> None:
    texts = ["x" * size for size in sizes]
    found = list(batches(texts))
    assert [len(batch) for batch in found] == expected
    assert [text for batch in found for text in batch] == texts


class Lengths:
    """A model whose vectors hold the length of the text, in as many components as it says."""

    def __init__(self, dimensions: int = 2) -> None:
        self.calls = self.ended = 0
        self.dimensions = dimensions

    async def embed(self, handle: str, texts: Sequence[str], seconds: float) -> list[list[float]]:
        """Fails for a text of seven characters; the third call answers with longer vectors, if it is told so."""
        self.calls += 1
        if any(len(text) == 7 for text in texts):
            raise Unavailable("down", reason="LLM_UNAVAILABLE")
        size = self.dimensions if self.calls > 2 else 2
        await asyncio.sleep(0.001)
        self.ended += 1
        return [[float(len(text))] * size for text in texts]

    async def check(self, handle: str, seconds: float) -> None:
        """Every handle is configured."""


async def test_vectors_come_in_the_order_of_the_texts() -> None:
    texts = ["x" * (1 + number % 5) for number in range(3 * MOST_TEXTS)]
    vectors = await embed_all(Lengths(), "a/b", texts, 5.0)
    assert [vector[0] for vector in vectors] == [len(text) for text in texts]


async def test_a_call_that_fails_stops_the_others() -> None:
    model, texts = Lengths(), ["x"] * (MOST_TEXTS * 9) + ["x" * 7]
    texts[MOST_TEXTS] = "x" * 7
    with pytest.raises(Unavailable):
        await embed_all(model, "a/b", texts, 5.0)
    assert model.calls < 10
    with pytest.raises(FailedPrecondition, match="different lengths"):
        await embed_all(Lengths(3), "a/b", ["x"] * (MOST_TEXTS * 3), 5.0)
