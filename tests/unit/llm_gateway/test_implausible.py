"""Figures, lists and vectors that no model has."""

from typing import Any

import asyncpg
import pytest

from services.llm_gateway.core.chat import Embeddings, FinishReason, Text, Usage
from services.llm_gateway.core.costs import MOST_OF_CALL, cost_of
from services.llm_gateway.core.errors import LlmStreamMalformed
from services.llm_gateway.core.models import EmbeddingModel, ListedModel, Price
from services.llm_gateway.core.reply_builder import ReplyBuilder
from services.llm_gateway.models.embeddings import embed_batch
from services.llm_gateway.providers.listings import list_models
from services.llm_gateway.usage.model import StoreRefused
from services.llm_gateway.usage.store import store_errors
from tests.unit.llm_gateway.builders import config, request


class Odd:
    """An endpoint that says what it was told to say."""

    def __init__(self, says: Any) -> None:
        self.says = says

    async def list_models(self, timeout: float) -> Any:
        return [ListedModel(**{"name": "m", **self.says})]

    async def embed(self, model: EmbeddingModel, texts: Any) -> Embeddings:
        return Embeddings(*self.says)


@pytest.mark.parametrize(
    "says",
    [
        {"context_window": 2**40},
        {"context_window": -5},
        {"context_window": "8192"},
        {"context_window": True},
        {"max_output_tokens": 2**31},
        {"dimensions": 10**9},
        {"price": Price(10**18, 1)},
        {"price": Price(1, 1, -1)},
    ],
)
async def test_a_figure_that_is_none_is_not_known(says: dict[str, Any]) -> None:
    provider: Any = Odd(says)
    assert await list_models(provider, config("openai"), 1.0) == [ListedModel("m")]


@pytest.mark.parametrize("name", ["", "a\0b", "a\nb", "x" * 501])
async def test_a_name_that_none_can_have_is_passed_over(name: str) -> None:
    provider: Any = Odd({"name": name})
    assert await list_models(provider, config("openai"), 1.0) == []


@pytest.mark.parametrize("says", [{"name": 5}, {"name": None}, {"display_name": []}, {"price": "free"}])
async def test_a_list_of_another_shape(says: dict[str, Any]) -> None:
    provider: Any = Odd(says)
    with pytest.raises(LlmStreamMalformed, match="breaks its protocol"):
        await list_models(provider, config("openai"), 1.0)


def _embedding_model() -> EmbeddingModel:
    return EmbeddingModel("p", "openai", "m", "", 2, 10, "m")


@pytest.mark.parametrize(
    "vector", [["a", "b"], [None, 1.0], [[1.0], [2.0]], {"a": 1}, 5, "ab", [float("inf"), 1.0], [1e300, 1.0]]
)
async def test_a_vector_that_is_none(vector: Any) -> None:
    provider: Any = Odd(([vector], 3))
    with pytest.raises(LlmStreamMalformed):
        await embed_batch(provider, _embedding_model(), ["x"])


@pytest.mark.parametrize("tokens", [-1, 2**70, "3", None, 1.5])
async def test_vectors_whose_tokens_are_not_counted(tokens: Any) -> None:
    provider: Any = Odd(([[1.0, 0.5]], tokens))
    assert await embed_batch(provider, _embedding_model(), ["x"]) == Embeddings([[1.0, 0.5]], 0)


@pytest.mark.parametrize("usage", [Usage(-1, 5), Usage(5, 2**70), Usage("12", 5), Usage(1.5, 5), Usage(None, 5)])  # type: ignore[arg-type]
def test_usage_that_is_none_is_estimated(usage: Usage) -> None:
    builder = ReplyBuilder()
    builder.add_text("text", "hello")
    builder.usage, builder.finish = usage, FinishReason.STOP
    made = builder.generation(request(), "p", 100).usage
    assert made.estimated
    assert made.prompt_tokens > 0


def test_details_of_usage_that_are_none_are_left_out() -> None:
    builder = ReplyBuilder()
    builder.add_text("text", "a\0b")
    builder.usage, builder.finish = Usage(10, 5, -3, 2**70, 2), FinishReason.STOP
    made = builder.generation(request(), "p", 100)
    assert made.usage == Usage(10, 5, None, None, 2)
    assert made.message.parts == [Text("ab")]


def test_a_call_costs_no_more_than_can_be_counted() -> None:
    assert cost_of(Price(10**9, 10**9), Usage(2**31, 2**31)) == MOST_OF_CALL


def test_what_the_driver_refuses_does_not_wait_for_the_database() -> None:
    with pytest.raises(StoreRefused), store_errors():
        raise asyncpg.DataError("value out of int64 range")
