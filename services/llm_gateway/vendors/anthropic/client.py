"""Anthropic and whatever speaks its Messages API, through the `anthropic` SDK's client."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from functools import cached_property
from typing import Any

import anthropic

from services.llm_gateway.core.chat import ChatRequest, Completed, Embeddings, Event
from services.llm_gateway.core.errors import LlmBadRequest, ModelNotFound
from services.llm_gateway.core.models import ChatModel, EmbeddingModel, ListedModel, ModelKind
from services.llm_gateway.core.provider_config import ProviderConfig
from services.llm_gateway.core.refusals import Caller
from services.llm_gateway.core.reply_builder import ReplyBuilder
from services.llm_gateway.core.reply_guard import understood
from services.llm_gateway.core.trace import traced
from services.llm_gateway.http.client import http_client
from services.llm_gateway.http.routes import SdkRoutes
from services.llm_gateway.http.transport import Transport
from services.llm_gateway.vendors.anthropic.profiles import dialect_of
from services.llm_gateway.vendors.anthropic.replies import STATUSES, Reader, read_refusal
from services.llm_gateway.vendors.anthropic.translate import REPLY_TOOL, body_of, count_body_of, replies_by_call

_PATH = "/v1/messages"
_PAGE = 1000
# Ours, and how the models list calls them.
_CAPABILITIES = {"vision": "image_input", "reasoning": "thinking", "structured_output": "structured_outputs"}


class AnthropicProvider:
    """One endpoint. `config.base_url` ends without the version, as the SDK wants it."""

    def __init__(self, config: ProviderConfig) -> None:
        self.name, self.type, self.endpoint = config.name, config.type, config.base_url
        self._config = config

    @cached_property
    def _transport(self) -> Transport:
        config = self._config
        # The SDK sends the key as a bearer token; compatible servers may know the older header alone.
        headers = {} if config.is_vendor else {"x-api-key": config.api_key}
        if betas := dialect_of(config.type).betas:
            headers["anthropic-beta"] = ",".join(betas)
        http = http_client(config)
        client = anthropic.AsyncAnthropic(
            api_key=config.api_key,
            base_url=config.base_url,
            max_retries=0,
            default_headers=headers,
            http_client=http,
        )
        caller = Caller.of(config)
        is_operators = config.is_vendor and config.type == "anthropic" and config.organization_id is None
        return Transport(http, SdkRoutes(client, is_operators=is_operators), caller, read_refusal)

    def generate(self, request: ChatRequest, model: ChatModel, *, stream: bool) -> AsyncGenerator[Event, None]:
        """See Provider.generate."""
        return self._stream(request, model) if stream else self._whole(request, model)

    async def _whole(self, request: ChatRequest, model: ChatModel) -> AsyncGenerator[Event, None]:
        body = body_of(request, model, stream=False)
        patience = request.stall_timeout or self._config.reply_seconds
        builder = ReplyBuilder()
        with traced(request, body) as trace, understood(self.name, request.handle):
            reply = await self._transport.post(_PATH, body, handle=request.handle, patience=patience, trace=trace)
            _reader(builder, request, model).take_whole(reply)
            generation = builder.generation(request, self.name, len(body), trace)
        yield Completed(generation)

    async def _stream(self, request: ChatRequest, model: ChatModel) -> AsyncGenerator[Event, None]:
        body = body_of(request, model, stream=True)
        patience = request.stall_timeout or self._config.stall_seconds
        builder, handle, transport = ReplyBuilder(), request.handle, self._transport
        reader = _reader(builder, request, model)
        with traced(request, body) as trace, understood(self.name, request.handle):
            events = transport.stream(_PATH, body, handle=handle, patience=patience, trace=trace)
            try:
                async for event in events:
                    data = transport.parse(event.data, handle, trace)
                    if data.get("type") == "error":
                        refusal = read_refusal(500, data)
                        raise transport.refused(STATUSES.get(refusal.kind, 500), data, handle)
                    for delta in reader.take_event(data):
                        yield delta
                    if reader.stopped:
                        break
            finally:
                await transport.leave(events, ended=reader.stopped)
            if not reader.stopped:
                raise transport.incomplete("ended the stream before the model had finished", handle)
            generation = builder.generation(request, self.name, len(body), trace)
        yield Completed(generation)

    async def count_tokens(self, request: ChatRequest, model: ChatModel) -> int | None:
        """See Provider.count_tokens. Compatible servers may not have the route."""
        body = count_body_of(request, model)
        patience = request.stall_timeout or self._config.stall_seconds
        try:
            reply = await self._transport.post(f"{_PATH}/count_tokens", body, handle=request.handle, patience=patience)
        except ModelNotFound:
            if self._config.is_vendor and self.type == "anthropic":
                raise
            return None
        tokens = reply.get("input_tokens")
        return tokens if isinstance(tokens, int) else None

    async def embed(self, model: EmbeddingModel, texts: Sequence[str]) -> Embeddings:
        """This dialect has no embeddings."""
        message = f"{self.name} has no embeddings; use another provider's, for example loci/hash."
        raise LlmBadRequest(message, provider=self.name, handle=model.handle)

    async def list_models(self, timeout: float) -> Sequence[ListedModel]:
        """See Provider.list_models."""
        listed: list[ListedModel] = []
        query: dict[str, object] = {"limit": _PAGE}
        while True:
            page = await self._transport.get("/v1/models", query, timeout=timeout)
            listed += [_listed(item) for item in page.get("data") or () if _is_served(item)]
            if not page.get("has_more") or not page.get("last_id"):
                return listed
            query["after_id"] = page["last_id"]

    async def close(self) -> None:
        """See Provider.close."""
        if "_transport" in vars(self):
            await self._transport.close()


def _reader(builder: ReplyBuilder, request: ChatRequest, model: ChatModel) -> Reader:
    reply_tool = REPLY_TOOL if replies_by_call(request, model) else ""
    return Reader(builder, reply_tool, dialect_of(model.provider_type).origin)


def _is_served(item: Mapping[str, Any]) -> bool:
    return bool(item.get("id")) and item.get("lifecycle") != "retired"


def _listed(item: Mapping[str, Any]) -> ListedModel:
    said = item.get("capabilities") or {}
    capabilities = {
        ours: bool(said[theirs].get("supported"))
        for ours, theirs in _CAPABILITIES.items()
        if isinstance(said.get(theirs), dict)
    }
    return ListedModel(
        item["id"],
        item.get("max_input_tokens"),
        item.get("max_tokens"),
        item.get("display_name") or "",
        ModelKind.CHAT,
        capabilities,
    )
