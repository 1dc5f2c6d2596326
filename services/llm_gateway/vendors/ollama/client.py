"""Ollama by its own API: what its OpenAI-compatible one cannot be told (the window) or asked (capabilities)."""

import asyncio
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import aclosing, contextmanager
from functools import cached_property
from typing import Any

import orjson

from services.llm_gateway.core.chat import ChatRequest, Embeddings, Event
from services.llm_gateway.core.errors import LlmBadRequest, LlmContextOverflow, LlmError, LlmServerError, ModelNotFound
from services.llm_gateway.core.models import ChatModel, EmbeddingModel, ListedModel
from services.llm_gateway.core.ndjson import NdjsonParser
from services.llm_gateway.core.overrides import WINDOWS_SETTING
from services.llm_gateway.core.provider_config import ProviderConfig
from services.llm_gateway.core.reply_builder import ReplyBuilder
from services.llm_gateway.http.exchange import Call
from services.llm_gateway.http.provider import HttpProvider
from services.llm_gateway.http.routes import BearerRoutes, Routes
from services.llm_gateway.vendors.ollama.listing import listed_model
from services.llm_gateway.vendors.ollama.replies import Reader, read_refusal
from services.llm_gateway.vendors.ollama.translate import body_of, embed_body_of
from services.llm_gateway.vendors.shared.text_thoughts import AUTO, OPTION, TextHabits

_CHAT = "/api/chat"
# Models that are asked about at once while the list is made.
_SHOWN_AT_ONCE = 8


class OllamaProvider(HttpProvider):
    """One endpoint. `config.base_url` is without the version; hosted Ollama's is given with /api at times."""

    def __init__(self, config: ProviderConfig) -> None:
        super().__init__(config)
        self._keep_alive = _seconds_or_duration(config.options.get("keep_alive"))
        # (name, digest) -> what /api/show said: it stays so until the model is pulled again.
        self._shown: dict[tuple[str, str], Mapping[str, Any]] = {}

    @cached_property
    def _routes(self) -> Routes:
        return BearerRoutes(self.endpoint.removesuffix("/api"), self._config.api_key)

    _read_refusal = staticmethod(read_refusal)

    async def generate(self, request: ChatRequest, model: ChatModel, *, stream: bool) -> AsyncGenerator[Event, None]:
        """See Provider.generate."""
        with _with_advice(model):
            async with aclosing(super().generate(request, model, stream=stream)) as events:
                async for event in events:
                    yield event

    async def _call(self, request: ChatRequest, model: ChatModel, *, stream: bool) -> Call:
        body = body_of(request, model, stream=stream, keep_alive=self._keep_alive)
        builder = ReplyBuilder()
        reader = Reader(builder, len(body), self._habits.reader(builder, model.name))
        return Call(_CHAT, body, reader, stream, NdjsonParser)

    @cached_property
    def _habits(self) -> TextHabits:
        return TextHabits(self._config.options.get(OPTION) or AUTO)

    async def embed(self, model: EmbeddingModel, texts: Sequence[str]) -> Embeddings:
        """See Provider.embed."""
        body, patience = embed_body_of(model, texts, self._keep_alive), self._config.stall_seconds
        with _with_advice(model):
            reply = await self._transport.post("/api/embed", body, handle=model.handle, patience=patience)
        return self._embeddings(model, texts, reply.get("embeddings") or [], reply.get("prompt_eval_count") or 0)

    async def list_models(self, timeout: float) -> Sequence[ListedModel]:
        """See Provider.list_models."""
        reply = await self._transport.get("/api/tags", {}, timeout=timeout)
        tags = [tag for tag in reply.get("models") or () if tag.get("name")] if isinstance(reply, dict) else []
        turns = asyncio.Semaphore(_SHOWN_AT_ONCE)
        try:
            async with asyncio.TaskGroup() as group:
                listed = [group.create_task(self._model(tag, timeout, turns)) for tag in tags]
        except BaseExceptionGroup as failures:
            raise failures.exceptions[0] from None
        models = [model for task in listed if (model := task.result()) is not None]
        self._shown = {key: shown for key, shown in self._shown.items() if key in set(map(_key, tags))}
        return models

    async def _model(self, tag: Mapping[str, Any], timeout: float, turns: asyncio.Semaphore) -> ListedModel | None:
        """Returns None for a model that was removed meanwhile."""
        key, name = _key(tag), tag["name"]
        answer = self._shown.get(key)
        if answer is None:
            async with turns:
                try:
                    # Versions before 0.1.33 know the older field alone.
                    body = orjson.dumps({"model": name, "name": name})
                    answer = await self._transport.post("/api/show", body, handle="", patience=timeout)
                except ModelNotFound:
                    return None
                except (LlmBadRequest, LlmServerError):
                    # One broken model does not hide the others; its window is unknown, which says how to set it.
                    return listed_model(name, tag, {})
            self._shown[key] = answer
        return listed_model(name, tag, answer)


def _key(tag: Mapping[str, Any]) -> tuple[str, str]:
    return str(tag["name"]), str(tag.get("digest") or "")


def _seconds_or_duration(keep_alive: str | int | None) -> str | int | None:
    """Returns how long a model stays loaded: a duration such as "10m", or seconds, which must be a number."""
    text = str(keep_alive or "")
    return int(text) if text.lstrip("-").isdigit() else keep_alive


@contextmanager
def _with_advice(model: ChatModel | EmbeddingModel) -> Iterator[None]:
    """Adds advice for Ollama to failures that leave the block."""
    try:
        yield
    except LlmError as error:
        if isinstance(error, ModelNotFound) and "model '" in error.message.replace('"', "'"):
            _advise(error, f"Get it with: ollama pull {model.name}")
        elif isinstance(error, LlmContextOverflow) and isinstance(model, ChatModel) and model.context_window:
            error.metadata.setdefault("limit", str(model.context_window))
        elif "system memory" in error.message:
            error.retryable = False
            _advise(error, f"A smaller context window takes less memory: see {WINDOWS_SETTING}.")
        raise


def _advise(error: LlmError, advice: str) -> None:
    error.message = f"{error.message} {advice}"
    error.args = (error.message,)
