"""OpenAI and whatever speaks its Chat Completions, through the `openai` SDK's client."""

from collections.abc import AsyncGenerator, Sequence
from functools import cached_property

import httpx2
import openai
import orjson

from services.llm_gateway.core.chat import ChatRequest, Completed, Embeddings, Event
from services.llm_gateway.core.errors import LlmBadRequest, LlmError
from services.llm_gateway.core.models import ChatModel, EmbeddingModel, ListedModel
from services.llm_gateway.core.provider_config import ProviderConfig
from services.llm_gateway.core.refusals import Caller, status_in, wrong_count
from services.llm_gateway.core.reply_builder import ReplyBuilder
from services.llm_gateway.core.reply_guard import understood
from services.llm_gateway.core.trace import traced
from services.llm_gateway.http.client import http_client
from services.llm_gateway.http.routes import Routes, SdkRoutes
from services.llm_gateway.http.transport import Transport
from services.llm_gateway.vendors.openai.listing import models_in
from services.llm_gateway.vendors.openai.profiles import Vendor, vendor_of
from services.llm_gateway.vendors.openai.replies import (
    embeddings_of,
    error_in,
    read_refusal,
    take_chunk,
    take_whole,
    usage_of,
)
from services.llm_gateway.vendors.openai.translate import body_of, finished
from services.llm_gateway.vendors.responses.client import Responses
from services.llm_gateway.vendors.shared.origins import OPENAI

_PATH = "/chat/completions"


class OpenAIProvider:
    """One endpoint. `config.base_url` ends with the version, as the SDK wants it."""

    def __init__(self, config: ProviderConfig) -> None:
        self.name, self.type, self.endpoint = config.name, config.type, config.base_url
        self._config = config

    @cached_property
    def _http(self) -> httpx2.AsyncClient:
        return http_client(self._config)

    @cached_property
    def _routes(self) -> Routes:
        key, url = self._config.api_key, self._config.base_url
        client = openai.AsyncOpenAI(api_key=key, base_url=url, max_retries=0, http_client=self._http)
        is_operators = self._is_openai and self._config.organization_id is None
        return SdkRoutes(client, is_operators=is_operators)

    @cached_property
    def _transport(self) -> Transport:
        return Transport(self._http, self._routes, self._caller, read_refusal)

    @property
    def _caller(self) -> Caller:
        return Caller.of(self._config)

    @cached_property
    def _responses(self) -> Responses:
        count = "/responses/input_tokens"
        return Responses(self._http, self._routes, self._caller, self._config, origin=OPENAI, count_path=count)

    @property
    def _is_openai(self) -> bool:
        """Whether it is OpenAI's own API: a compatible vendor at its own base URL is not."""
        return self._config.is_vendor and self.type in ("openai", "azure")

    @property
    def _vendor(self) -> Vendor:
        return vendor_of(self.type, is_vendor=self._config.is_vendor)

    def _speaks_responses(self, model: ChatModel) -> bool:
        """Whether it is called by Responses: where that is said, else OpenAI's own models that reason."""
        said = self._config.options.get("responses")
        return self._is_openai and model.capabilities.reasoning if said is None else bool(said)

    def _path(self, path: str, model: str) -> str:
        """Where that call of the model goes."""
        return path

    def generate(self, request: ChatRequest, model: ChatModel, *, stream: bool) -> AsyncGenerator[Event, None]:
        """See Provider.generate."""
        if self._speaks_responses(model):
            return self._responses.generate(request, model, stream=stream)
        return self._stream(request, model) if stream else self._whole(request, model)

    async def _whole(self, request: ChatRequest, model: ChatModel) -> AsyncGenerator[Event, None]:
        body = body_of(request, model, stream=False, is_vendor=self._config.is_vendor)
        patience = request.stall_timeout or self._config.reply_seconds
        builder, handle, path = ReplyBuilder(), request.handle, self._path(_PATH, model.name)
        with traced(request, body) as trace, understood(self.name, request.handle):
            reply = await self._transport.post(path, body, handle=handle, patience=patience, trace=trace)
            if error := error_in(reply):  # some servers send errors as 200
                raise self._transport.refused(status_in(error), {"error": error}, handle)
            take_whole(builder, reply)
            if builder.finish is None and reply.get("choices"):
                raise self._broke_off(handle)
            generation = builder.generation(request, self.name, len(body), trace)
        yield Completed(finished(generation, request, self._vendor))

    async def _stream(self, request: ChatRequest, model: ChatModel) -> AsyncGenerator[Event, None]:
        body = body_of(request, model, stream=True, is_vendor=self._config.is_vendor)
        patience = request.stall_timeout or self._config.stall_seconds
        builder, handle, transport = ReplyBuilder(), request.handle, self._transport
        path = self._path(_PATH, model.name)
        with traced(request, body) as trace, understood(self.name, request.handle):
            events, ended = transport.stream(path, body, handle=handle, patience=patience, trace=trace), False
            try:
                async for event in events:
                    if event.data == b"[DONE]":
                        ended = True
                        break
                    chunk = transport.parse(event.data, handle, trace)
                    if error := error_in(chunk):
                        raise transport.refused(status_in(error), {"error": error}, handle)
                    for delta in take_chunk(builder, chunk):
                        yield delta
            finally:
                await transport.leave(events, ended=ended)
            if builder.finish is None:
                raise self._broke_off(handle)
            generation = builder.generation(request, self.name, len(body), trace)
        yield Completed(finished(generation, request, self._vendor))

    def _broke_off(self, handle: str) -> LlmError:
        return self._transport.incomplete("ended the reply before the model had finished", handle)

    async def count_tokens(self, request: ChatRequest, model: ChatModel) -> int | None:
        """See Provider.count_tokens. Chat Completions counts only what it has answered; the vendor's count is another
        route's, which has every model."""
        if self._is_openai or self._speaks_responses(model):
            return await self._responses.count_tokens(request, model)
        return None

    async def embed(self, model: EmbeddingModel, texts: Sequence[str]) -> Embeddings:
        """See Provider.embed. In several calls where the vendor takes fewer texts in one."""
        if not self._vendor.embeds:
            message = f"{self.name} has no embeddings. Choose an embedding model of another provider."
            raise LlmBadRequest(message, provider=self.name, handle=model.handle)
        most = self._vendor.most_texts or len(texts)
        vectors: list[Sequence[float]] = []
        tokens = 0
        for start in range(0, len(texts), most):
            part = await self._embedded(model, texts[start : start + most])
            vectors += part.vectors
            tokens += part.prompt_tokens
        return Embeddings(vectors, tokens)

    async def _embedded(self, model: EmbeddingModel, texts: Sequence[str]) -> Embeddings:
        body = orjson.dumps({"model": model.name, "input": list(texts), "encoding_format": "float"})
        path, patience = self._path("/embeddings", model.name), self._config.stall_seconds
        reply = await self._transport.post(path, body, handle=model.handle, patience=patience)
        vectors = embeddings_of(reply) if reply.get("data") else []
        if len(vectors) != len(texts):
            raise wrong_count(self.name, model.handle, vectors=len(vectors), texts=len(texts))
        return Embeddings(vectors, usage_of(reply.get("usage") or {}).prompt_tokens)

    async def list_models(self, timeout: float) -> Sequence[ListedModel]:
        """See Provider.list_models."""
        reply = await self._transport.get("/models", {}, timeout=timeout)
        tier = str(self._config.options.get("tier") or "")
        return models_in(reply, self._vendor, self._listed_as, tier)

    @property
    def _listed_as(self) -> str:
        """The type by whose names models are told apart; any server may be behind OpenAI's."""
        return "" if self.type == "openai" and not self._config.is_vendor else self.type

    async def close(self) -> None:
        """See Provider.close."""
        if "_responses" in vars(self):
            await self._responses.close()
        if "_transport" in vars(self):
            await self._transport.close()
        if "_http" in vars(self):
            await self._http.aclose()
