"""Ollama by its own API: what its OpenAI-compatible one cannot be told (the window) or asked (capabilities)."""

import asyncio
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import orjson

from services.llm_gateway.core.chat import ChatRequest, Completed, Embeddings, Event
from services.llm_gateway.core.errors import (
    LlmBadRequest,
    LlmContextOverflow,
    LlmError,
    LlmServerError,
    ModelNotFound,
)
from services.llm_gateway.core.models import ChatModel, EmbeddingModel, ListedModel
from services.llm_gateway.core.ndjson import NdjsonParser
from services.llm_gateway.core.provider_config import ProviderConfig
from services.llm_gateway.core.refusals import Caller, wrong_count
from services.llm_gateway.core.reply_builder import ReplyBuilder
from services.llm_gateway.core.reply_guard import understood
from services.llm_gateway.core.trace import traced
from services.llm_gateway.http.client import http_client
from services.llm_gateway.http.routes import BearerRoutes
from services.llm_gateway.http.transport import Transport
from services.llm_gateway.vendors.ollama.listing import listed_of
from services.llm_gateway.vendors.ollama.replies import read_refusal, take
from services.llm_gateway.vendors.ollama.translate import body_of, embed_body_of

_CHAT = "/api/chat"
# Where the operator says windows; see the catalogue.
_WINDOWS_SETTING = "LOCI_MODEL_WINDOWS"
# Models that are asked about at once while the list is made.
_SHOWN_AT_ONCE = 8


class OllamaProvider:
    """One endpoint. `config.base_url` is without the version; hosted Ollama's is given with /api at times."""

    def __init__(self, config: ProviderConfig) -> None:
        self.name, self.type, self.endpoint = config.name, config.type, config.base_url
        self._config = config
        self._keep_alive = _seconds_or_duration(config.options.get("keep_alive"))
        # (name, digest) -> what /api/show said: it stays so until the model is pulled again.
        self._shown: dict[tuple[str, str], Mapping[str, Any]] = {}

    @cached_property
    def _transport(self) -> Transport:
        config = self._config
        caller = Caller.of(config)
        routes = BearerRoutes(config.base_url.removesuffix("/api"), config.api_key)
        return Transport(http_client(config), routes, caller, read_refusal)

    def generate(self, request: ChatRequest, model: ChatModel, *, stream: bool) -> AsyncGenerator[Event, None]:
        """See Provider.generate."""
        return self._stream(request, model) if stream else self._whole(request, model)

    async def _whole(self, request: ChatRequest, model: ChatModel) -> AsyncGenerator[Event, None]:
        body = body_of(request, model, stream=False, keep_alive=self._keep_alive)
        patience = request.stall_timeout or self._config.reply_seconds
        builder = ReplyBuilder()
        with _advised(model), traced(request, body) as trace, understood(self.name, request.handle):
            reply = await self._transport.post(_CHAT, body, handle=request.handle, patience=patience, trace=trace)
            self._check(reply, request.handle)
            for _ in take(builder, reply, len(body)):
                pass
            generation = builder.generation(request, self.name, len(body), trace)
        yield Completed(generation)

    async def _stream(self, request: ChatRequest, model: ChatModel) -> AsyncGenerator[Event, None]:
        body = body_of(request, model, stream=True, keep_alive=self._keep_alive)
        patience = request.stall_timeout or self._config.stall_seconds
        builder, handle, transport = ReplyBuilder(), request.handle, self._transport
        with _advised(model), traced(request, body) as trace, understood(self.name, request.handle):
            lines = transport.events(_CHAT, body, NdjsonParser(), handle=handle, patience=patience, trace=trace)
            try:
                async for line in lines:
                    said = transport.parse(line, handle, trace)
                    self._check(said, handle)
                    for delta in take(builder, said, len(body)):
                        yield delta
                    if builder.finish is not None:
                        break
            finally:
                await transport.leave(lines, ended=builder.finish is not None)
            if builder.finish is None:
                raise transport.incomplete("ended the stream before the model had finished", handle)
            generation = builder.generation(request, self.name, len(body), trace)
        yield Completed(generation)

    def _check(self, reply: Mapping[str, Any], handle: str) -> None:
        """Raises for an error that came after the head of the reply."""
        if "error" in reply:
            raise self._transport.refused(500, reply, handle)

    async def count_tokens(self, request: ChatRequest, model: ChatModel) -> int | None:
        """None: Ollama counts only what it has answered."""
        return None

    async def embed(self, model: EmbeddingModel, texts: Sequence[str]) -> Embeddings:
        """See Provider.embed."""
        body, patience = embed_body_of(model, texts, self._keep_alive), self._config.stall_seconds
        with _advised(model):
            reply = await self._transport.post("/api/embed", body, handle=model.handle, patience=patience)
        vectors = reply.get("embeddings") or []
        if len(vectors) != len(texts):
            raise wrong_count(self.name, model.handle, vectors=len(vectors), texts=len(texts))
        return Embeddings(vectors, reply.get("prompt_eval_count") or 0)

    async def list_models(self, timeout: float) -> Sequence[ListedModel]:
        """See Provider.list_models."""
        reply = await self._transport.get("/api/tags", {}, timeout=timeout)
        tags = [tag for tag in reply.get("models") or () if tag.get("name")] if isinstance(reply, dict) else []
        turns = asyncio.Semaphore(_SHOWN_AT_ONCE)
        try:
            async with asyncio.TaskGroup() as group:
                listed = [group.create_task(self._listed(tag, timeout, turns)) for tag in tags]
        except BaseExceptionGroup as failures:
            raise failures.exceptions[0] from None
        models = [model for task in listed if (model := task.result()) is not None]
        self._shown = {key: shown for key, shown in self._shown.items() if key in set(map(_key, tags))}
        return models

    async def _listed(self, tag: Mapping[str, Any], timeout: float, turns: asyncio.Semaphore) -> ListedModel | None:
        """None: it was removed meanwhile."""
        key, name = _key(tag), tag["name"]
        shown = self._shown.get(key)
        if shown is None:
            async with turns:
                try:
                    # Versions before 0.1.33 know the older field alone.
                    body = orjson.dumps({"model": name, "name": name})
                    shown = await self._transport.post("/api/show", body, handle="", patience=timeout)
                except ModelNotFound:
                    return None
                except (LlmBadRequest, LlmServerError):
                    # One broken model does not hide the others; its window is unknown, which says how to set it.
                    return listed_of(name, tag, {})
            self._shown[key] = shown
        return listed_of(name, tag, shown)

    async def close(self) -> None:
        """See Provider.close."""
        if "_transport" in vars(self):
            await self._transport.close()


def _key(tag: Mapping[str, Any]) -> tuple[str, str]:
    return str(tag["name"]), str(tag.get("digest") or "")


def _seconds_or_duration(keep_alive: str | int | None) -> str | int | None:
    """How long a model stays loaded: a duration such as "10m", or seconds, which must be a number."""
    text = str(keep_alive or "")
    return int(text) if text.lstrip("-").isdigit() else keep_alive


@contextmanager
def _advised(model: ChatModel | EmbeddingModel) -> Iterator[None]:
    """Failures that leave the block say what helps with Ollama."""
    try:
        yield
    except LlmError as error:
        if isinstance(error, ModelNotFound) and "model '" in error.message.replace('"', "'"):
            _advise(error, f"Get it with: ollama pull {model.name}")
        elif isinstance(error, LlmContextOverflow) and isinstance(model, ChatModel) and model.context_window:
            error.metadata.setdefault("limit", str(model.context_window))
        elif "system memory" in error.message:
            error.retryable = False
            _advise(error, f"A smaller context window takes less memory: see {_WINDOWS_SETTING}.")
        raise


def _advise(error: LlmError, advice: str) -> None:
    error.message = f"{error.message} {advice}"
    error.args = (error.message,)
