"""Google AI (the Gemini API) in its native dialect; Vertex AI (vendors/vertex) speaks it, too.

No SDK stands between: what one would do here is an address and a header, and its models cost more than the call.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any
from urllib.parse import quote

import httpx2
import orjson

from services.llm_gateway.core.chat import ChatRequest, Embeddings
from services.llm_gateway.core.models import ChatModel, EmbeddingModel, ListedModel
from services.llm_gateway.core.provider_config import ProviderConfig
from services.llm_gateway.core.reply_builder import ReplyBuilder
from services.llm_gateway.http.exchange import Call
from services.llm_gateway.http.provider import HttpProvider
from services.llm_gateway.http.routes import Route, Routes
from services.llm_gateway.vendors.google.listing import model_from_list
from services.llm_gateway.vendors.google.replies import Reader, read_refusal
from services.llm_gateway.vendors.google.translate import body_of, count_body_of

_VERSION = "v1beta"
_PAGE = 1000


class GoogleProvider(HttpProvider):
    """One endpoint. `config.base_url` may end with the version that Google's own examples have."""

    version = _VERSION

    def __init__(self, config: ProviderConfig) -> None:
        super().__init__(config)
        self.endpoint = config.base_url.removesuffix(f"/{_VERSION}")

    @cached_property
    def _routes(self) -> Routes:
        return KeyRoutes(self.endpoint, self._config.api_key)

    _read_refusal = staticmethod(read_refusal)

    async def _resource(self, name: str) -> str:
        """Returns the path of a model below the version."""
        return name if name.startswith(("models/", "tunedModels/")) else f"models/{name}"

    async def _path(self, name: str, method: str) -> str:
        resource = quote(await self._resource(name), safe="/@-._")
        return f"/{self._config.api_version or self.version}/{resource}:{method}"

    async def _call(self, request: ChatRequest, model: ChatModel, *, stream: bool) -> Call:
        body = body_of(request, model)
        path = await self._path(model.name, "streamGenerateContent?alt=sse" if stream else "generateContent")
        return Call(path, orjson.dumps(body), Reader(ReplyBuilder(), self.name, request.handle, body), stream)

    async def count_tokens(self, request: ChatRequest, model: ChatModel) -> int | None:
        """See Provider.count_tokens."""
        return await self._count_as(request, model, await self._resource(model.name))

    async def _count_as(self, request: ChatRequest, model: ChatModel, resource: str) -> int | None:
        body = orjson.dumps(count_body_of(request, model, resource))
        return await self._exchange.count(request, await self._path(model.name, "countTokens"), body, "totalTokens")

    async def embed(self, model: EmbeddingModel, texts: Sequence[str]) -> Embeddings:
        """See Provider.embed."""
        resource, size = await self._resource(model.name), {"outputDimensionality": model.dimensions}
        requests = [
            {"model": resource, "content": {"parts": [{"text": text}]}, **(size if model.dimensions else {})}
            for text in texts
        ]
        reply = await self._post_embeddings(model, "batchEmbedContents", {"requests": requests})
        vectors = [item.get("values") or [] for item in reply.get("embeddings") or ()]
        return self._embeddings(model, texts, vectors, (reply.get("usageMetadata") or {}).get("promptTokenCount") or 0)

    async def _post_embeddings(self, model: EmbeddingModel, method: str, body: Mapping[str, Any]) -> dict[str, Any]:
        path = await self._path(model.name, method)
        patience = self._config.stall_seconds
        return await self._transport.post(path, orjson.dumps(body), handle=model.handle, patience=patience)

    async def list_models(self, timeout: float) -> Sequence[ListedModel]:
        """See Provider.list_models."""
        return [model_from_list(item) for item in await self._items("models", "models", timeout)]

    async def _items(self, resource: str, field: str, timeout: float) -> list[dict[str, Any]]:
        path = f"/{self._config.api_version or self.version}/{resource}"
        pages = await self._pages(path, {"pageSize": _PAGE}, timeout, _following)
        items = (item for page in pages for item in page.get(field) or ())
        return [item for item in items if isinstance(item, dict) and item.get("name")]


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


def _following(page: Mapping[str, Any]) -> Mapping[str, object]:
    return {"pageToken": page["nextPageToken"]} if page.get("nextPageToken") else {}
