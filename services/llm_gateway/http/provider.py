"""The part that all providers behind HTTP share; a vendor says where requests go, and what a call is."""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from functools import cached_property, partial
from typing import Any

import httpx2

from services.llm_gateway.core.chat import ChatRequest, Embeddings, Event
from services.llm_gateway.core.errors import LlmBadRequest
from services.llm_gateway.core.models import ChatModel, EmbeddingModel
from services.llm_gateway.core.provider_config import ProviderConfig
from services.llm_gateway.core.refusals import Caller, Refusal, wrong_count
from services.llm_gateway.http.client import http_client
from services.llm_gateway.http.exchange import Call, Exchange
from services.llm_gateway.http.routes import BearerRoutes, Routes
from services.llm_gateway.http.transport import Transport


class HttpProvider:
    """A Provider but for its list of models. The client and its connections are made at the first call."""

    # From the status and the body of an error answer to what it says.
    _read_refusal: Callable[[int, Any], Refusal]

    def __init__(self, config: ProviderConfig) -> None:
        self.name, self.type, self.endpoint = config.name, config.type, config.base_url
        self._config = config

    async def _call(self, request: ChatRequest, model: ChatModel, *, stream: bool) -> Call:
        """Returns what is sent for a request, and what reads the reply. Raises LlmError."""
        raise NotImplementedError

    @cached_property
    def _http(self) -> httpx2.AsyncClient:
        return http_client(self._config)

    @cached_property
    def _routes(self) -> Routes:
        return BearerRoutes(self.endpoint, self._config.api_key)

    @property
    def _caller(self) -> Caller:
        config = self._config
        return Caller(config.name, self.endpoint, config.key_setting, config.url_setting)

    @cached_property
    def _transport(self) -> Transport:
        return Transport(self._http, self._routes, self._caller, self._read_refusal)

    @cached_property
    def _exchange(self) -> Exchange:
        return Exchange(self._config, self._transport)

    def generate(self, request: ChatRequest, model: ChatModel, *, stream: bool) -> AsyncGenerator[Event, None]:
        """See Provider.generate."""
        return self._exchange.generate(request, partial(self._call, request, model, stream=stream), deltas=stream)

    async def count_tokens(self, request: ChatRequest, model: ChatModel) -> int | None:
        """See Provider.count_tokens. Returns None: it counts only what it has answered."""
        return None

    async def embed(self, model: EmbeddingModel, texts: Sequence[str]) -> Embeddings:
        """See Provider.embed. Raises LlmBadRequest: it has none."""
        message = f"{self.name} has no embeddings. Choose an embedding model of another provider."
        raise LlmBadRequest(message, provider=self.name, handle=model.handle)

    def _embeddings(
        self, model: EmbeddingModel, texts: Sequence[str], vectors: Sequence[Sequence[float]], tokens: int
    ) -> Embeddings:
        """Returns the vectors. Raises LlmEmptyResponse unless there is one for each text."""
        if len(vectors) != len(texts) or not all(vectors):
            raise wrong_count(self.name, model.handle, vectors=sum(map(bool, vectors)), texts=len(texts))
        return Embeddings(vectors, tokens)

    async def _pages(
        self,
        path: str,
        query: Mapping[str, object],
        timeout: float,
        following: Callable[[Mapping[str, Any]], Mapping[str, object]],
    ) -> list[Mapping[str, Any]]:
        """Returns the pages of a list; `following` says what asks for the page after one, empty after the last."""
        pages: list[Mapping[str, Any]] = []
        while True:
            reply = await self._transport.get(path, query, timeout=timeout)
            page = reply if isinstance(reply, dict) else {}
            pages.append(page)
            if not (more := following(page)):
                return pages
            query = {**query, **more}

    async def close(self) -> None:
        """See Provider.close."""
        if "_transport" in vars(self):
            await self._transport.close()
        if "_http" in vars(self):
            await self._http.aclose()
