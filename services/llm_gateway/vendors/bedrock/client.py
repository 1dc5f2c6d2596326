"""AWS Bedrock: Converse for chats with any model, InvokeModel for embeddings."""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from functools import cached_property
from typing import Any

import orjson

from services.llm_gateway.core.chat import ChatRequest, Completed, Embeddings, Event, ToolMode
from services.llm_gateway.core.errors import LlmBadRequest, LlmEmptyResponse
from services.llm_gateway.core.models import ChatModel, EmbeddingModel, ListedModel
from services.llm_gateway.core.provider_config import ProviderConfig
from services.llm_gateway.core.refusals import Caller
from services.llm_gateway.core.reply_builder import ReplyBuilder
from services.llm_gateway.core.reply_guard import understood
from services.llm_gateway.core.tables.bedrock import foundation_id
from services.llm_gateway.core.trace import Trace, traced
from services.llm_gateway.http.client import http_client
from services.llm_gateway.http.transport import Transport
from services.llm_gateway.vendors.anthropic.translate import REPLY_TOOL
from services.llm_gateway.vendors.bedrock.embeddings import bodies_of, vectors_in
from services.llm_gateway.vendors.bedrock.framing import EventStreamParser, Frame
from services.llm_gateway.vendors.bedrock.listing import listed_models
from services.llm_gateway.vendors.bedrock.profiles import habits_of
from services.llm_gateway.vendors.bedrock.replies import Reader, read_refusal, status_of
from services.llm_gateway.vendors.bedrock.signing import BedrockRoutes, endpoints, key_setting
from services.llm_gateway.vendors.bedrock.translate import body_of, count_body_of, path_of, replies_by_call

_PAGE = 1000
_PROFILE_TYPES = ("SYSTEM_DEFINED", "APPLICATION")
_UNCOUNTED = "support counting tokens"


class BedrockProvider:
    """Bedrock in one region, or behind a private endpoint."""

    def __init__(self, config: ProviderConfig) -> None:
        self.name, self.type, self.endpoint = config.name, config.type, config.base_url
        self._config = config

    @cached_property
    def _transport(self) -> Transport:
        config = self._config
        routes = BedrockRoutes(config)
        caller = Caller(config.name, endpoints(config)[0], key_setting(config), config.url_setting)
        return Transport(http_client(config), routes, caller, read_refusal)

    def generate(self, request: ChatRequest, model: ChatModel, *, stream: bool) -> AsyncGenerator[Event, None]:
        """See Provider.generate."""
        if stream and model.capabilities.streaming:
            return self._stream(request, model)
        return self._whole(request, model, deltas=stream)

    async def _whole(self, request: ChatRequest, model: ChatModel, *, deltas: bool) -> AsyncGenerator[Event, None]:
        body = body_of(request, model)
        patience = request.stall_timeout or self._config.reply_seconds
        builder, headers = _builder(model), dict[str, str]()
        with traced(request, body) as trace, understood(self.name, request.handle):
            reply = await self._transport.post(
                path_of(model.name, "converse"),
                body,
                handle=request.handle,
                patience=patience,
                trace=trace,
                headers=headers,
            )
            for delta in _reader(builder, request, model).take_whole(reply):
                if deltas:
                    yield delta
            builder.response_id = headers.get("x-amzn-requestid", "")
            generation = builder.generation(request, self.name, len(body), trace)
        yield Completed(generation)

    async def _stream(self, request: ChatRequest, model: ChatModel) -> AsyncGenerator[Event, None]:
        body = body_of(request, model)
        patience = request.stall_timeout or self._config.stall_seconds
        builder, handle, transport, headers = _builder(model), request.handle, self._transport, dict[str, str]()
        reader = _reader(builder, request, model)
        with traced(request, body) as trace, understood(self.name, request.handle):
            frames = transport.events(
                path_of(model.name, "converse-stream"),
                body,
                EventStreamParser(),
                handle=handle,
                patience=patience,
                trace=trace,
                headers=headers,
            )
            try:
                async for frame in frames:
                    for delta in reader.take_event(self._event(frame, handle, trace)):
                        yield delta
                    if reader.ended:
                        break
            finally:
                await transport.leave(frames, ended=reader.ended)
            if not reader.stopped:
                raise transport.incomplete("ended the stream before the model had finished", handle)
            builder.response_id = headers.get("x-amzn-requestid", "")
            generation = builder.generation(request, self.name, len(body), trace)
        yield Completed(generation)

    def _event(self, frame: Frame, handle: str, trace: Trace | None) -> dict[str, Any]:
        """{name: what it says}. Raises LlmError for an exception, and for what is no JSON."""
        if frame.kind == "error":
            body = {"__type": frame.name, "message": frame.payload.decode("utf-8", "replace")}
            raise self._transport.refused(500, body, handle)
        if frame.kind == "exception":
            said = self._transport.parse(frame.payload, handle, trace)
            raise self._transport.refused(status_of(frame.name), {"__type": frame.name, **said}, handle)
        name = orjson.dumps(frame.name)
        return self._transport.parse(b"{%b:%b}" % (name, frame.payload or b"{}"), handle, trace)

    async def count_tokens(self, request: ChatRequest, model: ChatModel) -> int | None:
        """See Provider.count_tokens. Only some of Claude's models are counted for, by their own id."""
        id = foundation_id(model.name)
        if not id.startswith("anthropic."):
            return None
        body = count_body_of(request, model)
        patience = request.stall_timeout or self._config.stall_seconds
        path = path_of(id, "count-tokens")
        try:
            reply = await self._transport.post(path, body, handle=request.handle, patience=patience)
        except LlmBadRequest as error:
            if _UNCOUNTED in error.message:
                return None
            raise
        tokens = reply.get("inputTokens")
        return tokens if isinstance(tokens, int) else None

    async def embed(self, model: EmbeddingModel, texts: Sequence[str]) -> Embeddings:
        """See Provider.embed."""
        path, patience = path_of(model.name, "invoke"), self._config.reply_seconds

        async def invoke(body: bytes) -> tuple[Mapping[str, Any], int]:
            headers: dict[str, str] = {}
            reply = await self._transport.post(path, body, handle=model.handle, patience=patience, headers=headers)
            return reply, int(headers.get("x-amzn-bedrock-input-token-count", 0))

        replies = await asyncio.gather(*(invoke(body) for body in bodies_of(model, texts)))
        vectors = [vector for reply, _ in replies for vector in vectors_in(reply)]
        if len(vectors) != len(texts):
            sentence = (
                f"{self.name} answered {len(vectors)} vectors to {len(texts)} texts. Is {model.name} for embeddings?"
            )
            raise LlmEmptyResponse(sentence, provider=self.name, handle=model.handle)
        return Embeddings(vectors, sum(counted for _, counted in replies))

    async def list_models(self, timeout: float) -> Sequence[ListedModel]:
        """See Provider.list_models."""
        models = self._transport.get("/foundation-models", {}, timeout=timeout)
        found, *pages = await asyncio.gather(models, *(self._profiles(kind, timeout) for kind in _PROFILE_TYPES))
        return list(listed_models(found.get("modelSummaries") or (), [one for page in pages for one in page]))

    async def _profiles(self, kind: str, timeout: float) -> list[Mapping[str, Any]]:
        profiles: list[Mapping[str, Any]] = []
        query: dict[str, object] = {"maxResults": _PAGE, "type": kind}
        while True:
            page = await self._transport.get("/inference-profiles", query, timeout=timeout)
            profiles += page.get("inferenceProfileSummaries") or ()
            if not page.get("nextToken"):
                return profiles
            query["nextToken"] = page["nextToken"]

    async def close(self) -> None:
        """See Provider.close."""
        if "_transport" in vars(self):
            await self._transport.close()


def _builder(model: ChatModel) -> ReplyBuilder:
    """The reply does not name its model: it is what was asked for."""
    builder = ReplyBuilder()
    builder.model = model.name
    return builder


def _reader(builder: ReplyBuilder, request: ChatRequest, model: ChatModel) -> Reader:
    reply_tool = REPLY_TOOL if replies_by_call(request, model) else ""
    may_call = request.tool_choice is not ToolMode.NONE
    return Reader(builder, habits_of(model).signed_by, reply_tool, may_call=may_call)
