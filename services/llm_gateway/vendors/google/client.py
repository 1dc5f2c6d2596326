"""Google AI (the Gemini API) in its native dialect; Vertex AI, which speaks it too, is in vertex.py.

No SDK stands between: what one would do here is an address and a header, and its models cost more than the call.
"""

from collections.abc import AsyncGenerator, Mapping, Sequence
from functools import cached_property
from typing import Any
from urllib.parse import quote

import httpx2
import orjson

from services.llm_gateway.core.chat import ChatRequest, Completed, Embeddings, Event
from services.llm_gateway.core.models import ChatModel, EmbeddingModel, ListedModel
from services.llm_gateway.core.provider_config import ProviderConfig
from services.llm_gateway.core.refusals import Caller, wrong_count
from services.llm_gateway.core.reply_builder import ReplyBuilder
from services.llm_gateway.core.reply_guard import understood
from services.llm_gateway.core.trace import Trace, traced
from services.llm_gateway.http.client import http_client
from services.llm_gateway.http.routes import Route, Routes
from services.llm_gateway.http.transport import Transport
from services.llm_gateway.vendors.google.listing import listed
from services.llm_gateway.vendors.google.replies import Reader, read_refusal, status_of
from services.llm_gateway.vendors.google.translate import body_of, count_body_of

_VERSION = "v1beta"
_PAGE = 1000


class GoogleProvider:
    """One endpoint. `config.base_url` may end with the version that Google's own examples have."""

    version = _VERSION

    def __init__(self, config: ProviderConfig) -> None:
        self.name, self.type = config.name, config.type
        self.endpoint = config.base_url.removesuffix(f"/{_VERSION}")
        self._config = config

    @cached_property
    def _transport(self) -> Transport:
        http = http_client(self._config)
        return Transport(http, self._routes(), self.caller, read_refusal)

    @property
    def caller(self) -> Caller:
        """Who asks, for messages."""
        config = self._config
        return Caller(config.name, self.endpoint, config.key_setting, config.url_setting)

    def _routes(self) -> Routes:
        return KeyRoutes(self.endpoint, self._config.api_key)

    async def _resource(self, name: str) -> str:
        """The path of a model below the version."""
        return name if name.startswith(("models/", "tunedModels/")) else f"models/{name}"

    async def _path(self, name: str, method: str) -> str:
        resource = quote(await self._resource(name), safe="/@-._")
        return f"/{self._config.api_version or self.version}/{resource}:{method}"

    def generate(self, request: ChatRequest, model: ChatModel, *, stream: bool) -> AsyncGenerator[Event, None]:
        """See Provider.generate."""
        return self._stream(request, model) if stream else self._whole(request, model)

    async def _whole(self, request: ChatRequest, model: ChatModel) -> AsyncGenerator[Event, None]:
        body = body_of(request, model)
        data, path = orjson.dumps(body), await self._path(model.name, "generateContent")
        patience = request.stall_timeout or self._config.reply_seconds
        builder, handle, transport = ReplyBuilder(), request.handle, self._transport
        reader = Reader(builder, self.name, handle)
        with traced(request, data) as trace, understood(self.name, request.handle):
            asked = data
            while asked:
                reply = await transport.post(path, asked, handle=handle, patience=patience, trace=trace)
                if error := reply.get("error"):
                    raise transport.refused(status_of(error), reply, handle)
                for _ in reader.take(reply):
                    pass
                asked = _next_request(body, reader)
            reader.check()
            generation = builder.generation(request, self.name, len(data), trace)
        yield Completed(generation)

    async def _stream(self, request: ChatRequest, model: ChatModel) -> AsyncGenerator[Event, None]:
        body = body_of(request, model)
        data, path = orjson.dumps(body), await self._path(model.name, "streamGenerateContent?alt=sse")
        builder = ReplyBuilder()
        reader = Reader(builder, self.name, request.handle)
        with traced(request, data) as trace, understood(self.name, request.handle):
            asked = data
            while asked:
                deltas = self._hop(request, path, asked, reader, trace)
                try:
                    async for delta in deltas:
                        yield delta
                finally:
                    await deltas.aclose()
                asked = _next_request(body, reader)
            reader.check()
            generation = builder.generation(request, self.name, len(data), trace)
        yield Completed(generation)

    async def _hop(
        self, request: ChatRequest, path: str, data: bytes, reader: Reader, trace: Trace | None
    ) -> AsyncGenerator[Event, None]:
        """The deltas of one request; a long reply may need several."""
        transport, handle = self._transport, request.handle
        patience = request.stall_timeout or self._config.stall_seconds
        events = transport.stream(path, data, handle=handle, patience=patience, trace=trace)
        try:
            async for event in events:
                chunk = transport.parse(event.data, handle, trace)
                if error := chunk.get("error"):
                    raise transport.refused(status_of(error), chunk, handle)
                for delta in reader.take(chunk):
                    yield delta
                if reader.ended:
                    break
        finally:
            await transport.leave(events, ended=reader.ended)
        if not reader.finish:
            raise transport.incomplete("ended the stream before the model had finished", handle)

    async def count_tokens(self, request: ChatRequest, model: ChatModel) -> int | None:
        """See Provider.count_tokens."""
        return await self._count(request, model, await self._resource(model.name))

    async def _count(self, request: ChatRequest, model: ChatModel, resource: str) -> int | None:
        body = orjson.dumps(count_body_of(request, model, resource))
        patience = request.stall_timeout or self._config.stall_seconds
        path = await self._path(model.name, "countTokens")
        reply = await self._transport.post(path, body, handle=request.handle, patience=patience)
        tokens = reply.get("totalTokens")
        return tokens if isinstance(tokens, int) else None

    async def embed(self, model: EmbeddingModel, texts: Sequence[str]) -> Embeddings:
        """See Provider.embed."""
        resource, size = await self._resource(model.name), {"outputDimensionality": model.dimensions}
        requests = [
            {"model": resource, "content": {"parts": [{"text": text}]}, **(size if model.dimensions else {})}
            for text in texts
        ]
        reply = await self._embedded(model, "batchEmbedContents", {"requests": requests})
        vectors = [item.get("values") or [] for item in reply.get("embeddings") or ()]
        return self._embeddings(model, texts, vectors, (reply.get("usageMetadata") or {}).get("promptTokenCount") or 0)

    async def _embedded(self, model: EmbeddingModel, method: str, body: Mapping[str, Any]) -> dict[str, Any]:
        path = await self._path(model.name, method)
        patience = self._config.stall_seconds
        return await self._transport.post(path, orjson.dumps(body), handle=model.handle, patience=patience)

    def _embeddings(
        self, model: EmbeddingModel, texts: Sequence[str], vectors: Sequence[Sequence[float]], tokens: int
    ) -> Embeddings:
        if len(vectors) != len(texts) or not all(vectors):
            raise wrong_count(self.name, model.handle, vectors=sum(map(bool, vectors)), texts=len(texts))
        return Embeddings(vectors, tokens)

    async def list_models(self, timeout: float) -> Sequence[ListedModel]:
        """See Provider.list_models."""
        return [listed(item) for item in await self._pages("models", "models", timeout)]

    async def _pages(self, resource: str, field: str, timeout: float) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = []
        query: dict[str, object] = {"pageSize": _PAGE}
        path = f"/{self._config.api_version or self.version}/{resource}"
        while True:
            page = await self._transport.get(path, query, timeout=timeout)
            found = page if isinstance(page, dict) else {}
            items += [item for item in found.get(field) or () if isinstance(item, dict) and item.get("name")]
            if not found.get("nextPageToken"):
                return items
            query["pageToken"] = found["nextPageToken"]

    async def close(self) -> None:
        """See Provider.close."""
        if "_transport" in vars(self):
            await self._transport.close()


class KeyRoutes:
    """Google AI's addresses, with the key in its own header."""

    def __init__(self, base_url: str, api_key: str) -> None:
        self._base_url = base_url
        self._headers = httpx2.Headers(
            {"accept-encoding": "gzip, deflate", "content-type": "application/json", "x-goog-api-key": api_key}
        )

    async def find(self, method: str, path: str, body: bytes) -> Route:
        """See Routes.find."""
        return Route(httpx2.URL(f"{self._base_url}{path}"), self._headers)


def _next_request(body: Mapping[str, Any], reader: Reader) -> bytes:
    """What goes on with a reply that is longer than one request's; empty where it is complete."""
    if not reader.continuation:
        return b""
    data = orjson.dumps({**body, "continuationToken": reader.continuation})
    reader.begin_next()
    return data
