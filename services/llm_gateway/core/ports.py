"""The port behind which every provider stands: calls to models, a count of tokens, the list of its models."""

from collections.abc import AsyncGenerator, Sequence
from typing import Protocol, runtime_checkable

from services.llm_gateway.core.chat import ChatRequest, Embeddings, Event
from services.llm_gateway.core.models import ChatModel, EmbeddingModel, ListedModel


class Provider(Protocol):
    """A provider. Constructing one is cheap: SDK and connections are made at the first call and then kept."""

    name: str
    type: str
    endpoint: str

    def generate(self, request: ChatRequest, model: ChatModel, *, stream: bool) -> AsyncGenerator[Event, None]:
        """Makes one call. It ends with Completed; without `stream` that is the only event. Raises LlmError.

        An async generator: closing it closes the connection to the provider at once.
        """
        ...

    async def count_tokens(self, request: ChatRequest, model: ChatModel) -> int | None:
        """Returns the input tokens of a request as the provider counts them; None where it does not offer that. Raises
        LlmError.
        """
        ...

    async def embed(self, model: EmbeddingModel, texts: Sequence[str]) -> Embeddings:
        """Returns vectors for at most `model.batch_size` texts. Raises LlmError."""
        ...

    async def list_models(self, timeout: float) -> Sequence[ListedModel]:
        """Returns the models that the endpoint offers, of every kind, within `timeout` seconds. Raises LlmError."""
        ...

    async def close(self) -> None:
        """Closes the connections."""
        ...


@runtime_checkable
class Reranker(Protocol):
    """What a provider also is that has a model which compares."""

    async def rerank(self, name: str, query: str, texts: Sequence[str]) -> Sequence[float]:
        """Returns how well each text answers the query, 0 to 1. Raises LlmError; ModelNotFound where the name is not
        its model's.
        """
        ...
