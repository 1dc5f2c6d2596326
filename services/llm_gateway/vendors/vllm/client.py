"""vLLM: OpenAI's dialect, its own count of tokens, and its completion route where a prompt formatter is set."""

from collections.abc import AsyncGenerator, Sequence
from functools import cached_property

import orjson

from services.llm_gateway.core.chat import ChatRequest, Event
from services.llm_gateway.core.models import ChatModel, ListedModel
from services.llm_gateway.http.exchange import Call
from services.llm_gateway.vendors.openai.client import LocalProvider
from services.llm_gateway.vendors.openai.translate import body_of
from services.llm_gateway.vendors.text.templates import Formatter, formatter_of
from services.llm_gateway.vendors.vllm.replies import CompletionReader, models_in
from services.llm_gateway.vendors.vllm.translate import completion_body_of, prompt_fields

# What a count of tokens and a generation have in common.
_COUNTED = ("model", "messages", "tools")


class VllmProvider(LocalProvider):
    """One endpoint; /tokenize is beside OpenAI's dialect."""

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
        return super().generate(request, model, stream=stream)

    async def _call(self, request: ChatRequest, model: ChatModel, *, stream: bool) -> Call:
        assert self._formatter is not None
        prompt = await self._formatter.prompt(request)
        body = completion_body_of(request, model, prompt, stream=stream)
        return Call("/v1/completions", body, CompletionReader(request, prompt.opening), stream)

    async def count_tokens(self, request: ChatRequest, model: ChatModel) -> int | None:
        """See Provider.count_tokens. Exact: by the server's own tokenizer and template, images aside."""
        if self._formatter is None:
            body = orjson.loads(body_of(request, model, stream=False))
            fields = {name: body[name] for name in _COUNTED if name in body}
        else:
            fields = {"model": model.name, **prompt_fields(await self._formatter.prompt(request))}
        # A server in front may not pass the route on.
        return await self._exchange.count(request, "/tokenize", orjson.dumps(fields), "count", may_lack=True)

    async def list_models(self, timeout: float) -> Sequence[ListedModel]:
        """See Provider.list_models."""
        return models_in(await self._transport.get("/v1/models", {}, timeout=timeout))

    async def close(self) -> None:
        """See Provider.close."""
        await super().close()
        if vars(self).get("_formatter") is not None:
            await vars(self)["_formatter"].close()
