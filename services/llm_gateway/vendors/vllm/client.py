"""vLLM: OpenAI's dialect, its own count of tokens, and its completion route where a prompt formatter is set."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import replace
from functools import cached_property

import orjson

from services.llm_gateway.core.chat import ChatRequest, Embeddings, Event
from services.llm_gateway.core.errors import ModelNotFound
from services.llm_gateway.core.models import ChatModel, EmbeddingModel, ListedModel
from services.llm_gateway.core.provider_config import ProviderConfig
from services.llm_gateway.core.refusals import Caller
from services.llm_gateway.http.client import http_client
from services.llm_gateway.http.routes import BearerRoutes
from services.llm_gateway.http.transport import Transport
from services.llm_gateway.vendors.openai.client import OpenAIProvider
from services.llm_gateway.vendors.openai.replies import read_refusal
from services.llm_gateway.vendors.openai.translate import body_of
from services.llm_gateway.vendors.text.templates import Formatter, formatter_of
from services.llm_gateway.vendors.text.text_route import text_events
from services.llm_gateway.vendors.vllm.replies import CompletionReader, listed_of
from services.llm_gateway.vendors.vllm.translate import completion_body_of, prompt_fields

# What a count of tokens and a generation have in common.
_COUNTED = ("model", "messages", "tools")


class VllmProvider:
    """One endpoint. `config.base_url` is without the version: /tokenize is beside it."""

    def __init__(self, config: ProviderConfig) -> None:
        self.name, self.type, self.endpoint = config.name, config.type, config.base_url
        self._config = config
        self._openai = OpenAIProvider(replace(config, base_url=f"{config.base_url}/v1"))

    @cached_property
    def _transport(self) -> Transport:
        config = self._config
        caller = Caller.of(config)
        return Transport(http_client(config), BearerRoutes.of(config), caller, read_refusal)

    @cached_property
    def _formatter(self) -> Formatter | None:
        """None: the server makes the prompts."""
        value = self._config.options.get("prompt_formatter")
        is_operators = self._config.organization_id is None
        return formatter_of(value, "prompt_formatter (VLLM_PROMPT_FORMATTER)", may_read=is_operators) if value else None

    def generate(self, request: ChatRequest, model: ChatModel, *, stream: bool) -> AsyncGenerator[Event, None]:
        """See Provider.generate."""
        if self._formatter is None:
            return self._openai.generate(request, model, stream=stream)
        return self._completed(self._formatter, request, model, stream=stream)

    async def _completed(
        self, formatter: Formatter, request: ChatRequest, model: ChatModel, *, stream: bool
    ) -> AsyncGenerator[Event, None]:
        prompt = await formatter.prompt(request)
        body = completion_body_of(request, model, prompt, stream=stream)
        reader, path = CompletionReader(request, prompt.opening), "/v1/completions"
        events = text_events(self._transport, self._config, path, body, request, reader, stream=stream)
        async with aclosing(events):
            async for event in events:
                yield event

    async def count_tokens(self, request: ChatRequest, model: ChatModel) -> int | None:
        """See Provider.count_tokens. Exact: by the server's own tokenizer and template, images aside."""
        if self._formatter is None:
            body = orjson.loads(body_of(request, model, stream=False))
            asked = {name: body[name] for name in _COUNTED if name in body}
        else:
            asked = {"model": model.name, **prompt_fields(await self._formatter.prompt(request))}
        patience = request.stall_timeout or self._config.stall_seconds
        try:
            reply = await self._transport.post(
                "/tokenize", orjson.dumps(asked), handle=request.handle, patience=patience
            )
        except ModelNotFound:  # a server in front may not pass the route on
            return None
        count = reply.get("count")
        return count if isinstance(count, int) else None

    async def embed(self, model: EmbeddingModel, texts: Sequence[str]) -> Embeddings:
        """See Provider.embed."""
        return await self._openai.embed(model, texts)

    async def list_models(self, timeout: float) -> Sequence[ListedModel]:
        """See Provider.list_models."""
        return listed_of(await self._transport.get("/v1/models", {}, timeout=timeout))

    async def close(self) -> None:
        """See Provider.close."""
        await self._openai.close()
        if "_transport" in vars(self):
            await self._transport.close()
        if vars(self).get("_formatter") is not None:
            await vars(self)["_formatter"].close()
