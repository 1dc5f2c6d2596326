"""OpenAI and whatever speaks its Chat Completions, through the `openai` SDK's client."""

from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace
from functools import cached_property

import openai
import orjson

from services.llm_gateway.core.chat import ChatRequest, Embeddings, Event
from services.llm_gateway.core.models import ChatModel, EmbeddingModel, ListedModel
from services.llm_gateway.core.provider_config import ProviderConfig
from services.llm_gateway.core.reply_builder import ReplyBuilder
from services.llm_gateway.http.exchange import Call
from services.llm_gateway.http.provider import HttpProvider
from services.llm_gateway.http.routes import Routes, SdkRoutes
from services.llm_gateway.vendors.openai.listing import models_in
from services.llm_gateway.vendors.openai.profiles import VendorProfile, profile_of
from services.llm_gateway.vendors.openai.replies import Reader, embeddings_of, read_refusal, usage_of
from services.llm_gateway.vendors.openai.translate import body_of
from services.llm_gateway.vendors.responses.client import Responses
from services.llm_gateway.vendors.shared.origins import OPENAI
from services.llm_gateway.vendors.shared.text_thoughts import AUTO, OFF, OPTION, TextHabits

_PATH = "/chat/completions"


class OpenAIProvider(HttpProvider):
    """One endpoint. `config.base_url` ends with the version, as the SDK wants it."""

    @cached_property
    def _routes(self) -> Routes:
        key, url = self._config.api_key, self._config.base_url
        client = openai.AsyncOpenAI(api_key=key, base_url=url, max_retries=0, http_client=self._http)
        is_operators = self._is_openai and self._config.organization_id is None
        return SdkRoutes(client, is_operators=is_operators)

    _read_refusal = staticmethod(read_refusal)

    @cached_property
    def _responses(self) -> Responses:
        count = "/responses/input_tokens"
        return Responses(self._http, self._routes, self._caller, self._config, origin=OPENAI, count_path=count)

    @property
    def _is_openai(self) -> bool:
        """Returns whether it is OpenAI's own API: a compatible vendor at its own base URL is not."""
        return self._config.is_vendor and self.type in ("openai", "azure")

    @property
    def _vendor(self) -> VendorProfile:
        return profile_of(self.type, is_vendor=self._config.is_vendor)

    def _speaks_responses(self, model: ChatModel) -> bool:
        """Returns whether it is called by Responses: as the option says, else OpenAI's own models that reason."""
        setting = self._config.options.get("responses")
        return self._is_openai and model.capabilities.reasoning if setting is None else bool(setting)

    @cached_property
    def _habits(self) -> TextHabits:
        # OpenAI's own models keep their thoughts apart.
        usual = OFF if self.type == "openai" and self._config.is_vendor else AUTO
        return TextHabits(self._config.options.get(OPTION) or usual)

    def _path(self, path: str, model: str) -> str:
        """Returns the path of that call of the model."""
        return path

    def generate(self, request: ChatRequest, model: ChatModel, *, stream: bool) -> AsyncGenerator[Event, None]:
        """See Provider.generate."""
        if self._speaks_responses(model):
            return self._responses.generate(request, model, stream=stream)
        return super().generate(request, model, stream=stream)

    async def _call(self, request: ChatRequest, model: ChatModel, *, stream: bool) -> Call:
        body = body_of(request, model, stream=stream, is_vendor=self._config.is_vendor)
        builder = ReplyBuilder()
        reader = Reader(builder, request, self._vendor, self._habits.reader(builder, model.name))
        return Call(self._path(_PATH, model.name), body, reader, stream)

    async def count_tokens(self, request: ChatRequest, model: ChatModel) -> int | None:
        """See Provider.count_tokens. Chat Completions counts only what it has answered; the vendor's count is another
        route's, which has every model."""
        if self._is_openai or self._speaks_responses(model):
            return await self._responses.count_tokens(request, model)
        return None

    async def embed(self, model: EmbeddingModel, texts: Sequence[str]) -> Embeddings:
        """See Provider.embed. In several calls where the vendor takes fewer texts in one."""
        if not self._vendor.embeds:
            return await super().embed(model, texts)
        most = self._vendor.most_texts or len(texts)
        batches = [texts[start : start + most] for start in range(0, len(texts), most)]
        parts = [await self._embed_batch(model, batch) for batch in batches]
        return Embeddings([vector for part in parts for vector in part.vectors], sum(p.prompt_tokens for p in parts))

    async def _embed_batch(self, model: EmbeddingModel, texts: Sequence[str]) -> Embeddings:
        body = orjson.dumps({"model": model.name, "input": list(texts), "encoding_format": "float"})
        path, patience = self._path("/embeddings", model.name), self._config.stall_seconds
        reply = await self._transport.post(path, body, handle=model.handle, patience=patience)
        vectors = embeddings_of(reply) if reply.get("data") else []
        return self._embeddings(model, texts, vectors, usage_of(reply.get("usage") or {}).prompt_tokens)

    async def list_models(self, timeout: float) -> Sequence[ListedModel]:
        """See Provider.list_models."""
        reply = await self._transport.get("/models", {}, timeout=timeout)
        tier = str(self._config.options.get("tier") or "")
        return models_in(reply, self._vendor, self._listed_as, tier)

    @property
    def _listed_as(self) -> str:
        """Returns the type by whose names models are told apart; any server may be behind OpenAI's."""
        return "" if self.type == "openai" and not self._config.is_vendor else self.type

    async def close(self) -> None:
        """See Provider.close."""
        if "_responses" in vars(self):
            await self._responses.close()
        await super().close()


class LocalProvider(HttpProvider):
    """A server that speaks OpenAI's dialect under /v1, and has routes of its own beside. `config.base_url` is without
    the version."""

    def __init__(self, config: ProviderConfig) -> None:
        super().__init__(config)
        self._openai = OpenAIProvider(replace(config, base_url=f"{config.base_url}/v1"))

    _read_refusal = staticmethod(read_refusal)

    async def embed(self, model: EmbeddingModel, texts: Sequence[str]) -> Embeddings:
        """See Provider.embed."""
        return await self._openai.embed(model, texts)

    async def close(self) -> None:
        """See Provider.close."""
        await self._openai.close()
        await super().close()
