"""Gemini on Google Cloud (Vertex AI, now named Gemini Enterprise Agent Platform): the dialect of vendors/google
behind addresses by project and location, with bearer tokens.
"""

import asyncio
import re
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

import httpx2

from services.llm_gateway.core.chat import ChatRequest, Embeddings
from services.llm_gateway.core.errors import ModelNotFound, ProviderInvalid
from services.llm_gateway.core.models import ChatModel, EmbeddingModel, ListedModel
from services.llm_gateway.core.provider_config import ProviderConfig
from services.llm_gateway.core.tables import google
from services.llm_gateway.http.client import http_client
from services.llm_gateway.http.routes import Route, Routes
from services.llm_gateway.vendors.google.client import GoogleProvider
from services.llm_gateway.vendors.google.listing import model_from_name, model_from_publisher
from services.llm_gateway.vendors.vertex.credentials import Credentials, Tokens, credentials_of

_ANYWHERE = "global"
_MULTI_REGIONS = ("us", "eu")
# They become part of a host and of paths.
_LOCATION = re.compile(r"[a-z0-9-]{1,40}")
_PROJECT = re.compile(r"[a-z0-9][a-z0-9.:-]{0,62}")
_PUBLISHED = "publishers/google/models"


def host_of(location: str) -> str:
    """Returns the address that serves a location."""
    if location == _ANYWHERE:
        return "https://aiplatform.googleapis.com"
    if location in _MULTI_REGIONS:
        return f"https://aiplatform.{location}.rep.googleapis.com"
    return f"https://{location}-aiplatform.googleapis.com"


class VertexProvider(GoogleProvider):
    """One project at one location."""

    version = "v1beta1"

    def __init__(self, config: ProviderConfig) -> None:
        super().__init__(config)
        self._location = config.region or _ANYWHERE
        if _LOCATION.fullmatch(self._location) is None:
            raise ProviderInvalid(
                f"{config.name}: {self._location!r} is not a location of Google Cloud; expected for example "
                f"{_ANYWHERE} or europe-west1 (GOOGLE_CLOUD_LOCATION).",
                provider=config.name,
            )
        self.endpoint = config.base_url or host_of(self._location)

    @cached_property
    def _access(self) -> "_Access":
        return _Access(self._config)

    @cached_property
    def _routes(self) -> Routes:
        return TokenRoutes(self.endpoint, self._access)

    async def _resource(self, name: str) -> str:
        project = f"projects/{await self._access.project()}/locations/{self._location}"
        if name.startswith(("publishers/", "endpoints/")):
            return f"{project}/{name}"
        return f"{project}/{_PUBLISHED}/{name}"

    async def count_tokens(self, request: ChatRequest, model: ChatModel) -> int | None:
        """See Provider.count_tokens."""
        return await self._count_as(request, model, "")

    async def embed(self, model: EmbeddingModel, texts: Sequence[str]) -> Embeddings:
        """See Provider.embed. Models from before Gemini have a route of their own."""
        size = {"outputDimensionality": model.dimensions} if model.dimensions else {}
        if "gemini" in model.name:
            config = {"embedContentConfig": size} if size else {}
            requests = [{"content": {"role": "user", "parts": [{"text": text}]}, **config} for text in texts]
            reply = await self._post_embeddings(model, "batchEmbedContents", {"requests": requests})
            items = reply.get("embeddings") or ()
            tokens = (reply.get("usageMetadata") or {}).get("promptTokenCount")
        else:
            body = {"instances": [{"content": text} for text in texts], "parameters": size}
            reply = await self._post_embeddings(model, "predict", body)
            items, tokens = [item.get("embeddings") or {} for item in reply.get("predictions") or ()], None
        if tokens is None:
            tokens = sum(int((item.get("statistics") or {}).get("token_count") or 0) for item in items)
        return self._embeddings(model, texts, [item.get("values") or [] for item in items], tokens)

    async def list_models(self, timeout: float) -> Sequence[ListedModel]:
        """See Provider.list_models. Where the list of published models is not offered, the table is it."""
        await self._access.project()
        try:
            return [model_from_publisher(item) for item in await self._items(_PUBLISHED, "publisherModels", timeout)]
        except ModelNotFound:
            return [model_from_name(name) for name in (*google.MODELS, *google.EMBEDDINGS, *google.VERTEX_EMBEDDINGS)]

    async def close(self) -> None:
        """See Provider.close."""
        await super().close()
        if "_access" in vars(self):
            await self._access.close()


class _Access:
    """The credentials of a provider, read at its first call."""

    def __init__(self, config: ProviderConfig) -> None:
        self._config = config
        self._http = http_client(replace(config, record_to=""))
        self._lock = asyncio.Lock()
        self._credentials: Credentials | None = None
        self._tokens: Tokens | None = None

    async def token(self) -> str:
        """Returns a token that is valid now; empty where recorded replies are replayed. Raises LlmError."""
        if self._config.replay_from:
            return ""
        if self._tokens is None:
            credentials = await self._load()
            self._tokens = self._tokens or Tokens(credentials.fetch)
        return await self._tokens.get()

    async def project(self) -> str:
        """Returns the project to which calls are billed. Raises ProviderInvalid and LlmAuthentication."""
        option = str(self._config.options.get("project") or "")
        project = option or ("" if self._config.replay_from else (await self._load()).project)
        if _PROJECT.fullmatch(project) is None:
            raise ProviderInvalid(
                f"{self._config.name} has no project of Google Cloud ({project!r}); set GOOGLE_CLOUD_PROJECT, or the "
                "provider's option project.",
                provider=self._config.name,
            )
        return project

    async def _load(self) -> Credentials:
        async with self._lock:
            if self._credentials is None:
                self._credentials = await credentials_of(self._config, self._http)
        return self._credentials

    async def close(self) -> None:
        if self._tokens is not None:
            await self._tokens.close()
        await self._http.aclose()


class TokenRoutes:
    """Addresses of Google Cloud, with a bearer token."""

    def __init__(self, base_url: str, access: _Access) -> None:
        self._base_url = base_url
        self._access = access

    async def find(self, method: str, path: str, body: bytes) -> Route:
        """See Routes.find."""
        token = await self._access.token()
        headers = {"accept-encoding": "gzip, deflate", "content-type": "application/json"}
        if token:
            headers["authorization"] = f"Bearer {token}"
        return Route(httpx2.URL(f"{self._base_url}{path}"), httpx2.Headers(headers))
