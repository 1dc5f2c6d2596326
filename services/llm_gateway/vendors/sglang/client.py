"""SGLang: OpenAI's dialect, and its own /generate where the ids of tokens are asked for.

/generate takes a prompt, so the model's chat template must be known: by the option `chat_template`, else the server
tells it where it was started with the name of one that is built in here. Parsers of calls and thoughts are those of
`model_settings`, of the options, or the ones the server was started with, in this order; without any, tool_text.py
reads the text.
"""

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import orjson

from services.llm_gateway.core.chat import ChatRequest, Event
from services.llm_gateway.core.errors import LlmAuthentication, LlmBadRequest, LlmNotAnApi, ModelNotFound
from services.llm_gateway.core.models import ChatModel, ListedModel, ModelKind
from services.llm_gateway.core.provider_config import ProviderConfig
from services.llm_gateway.core.refusals import Refusal
from services.llm_gateway.http.exchange import Call
from services.llm_gateway.vendors.openai.client import LocalProvider
from services.llm_gateway.vendors.sglang.reading import ParsedReader, Parsers, TextReader
from services.llm_gateway.vendors.sglang.replies import abort_reason
from services.llm_gateway.vendors.sglang.translate import generate_body_of
from services.llm_gateway.vendors.shared.model_settings import SGLANG, own_settings
from services.llm_gateway.vendors.text.rendering import FORMATS
from services.llm_gateway.vendors.text.templates import Formatter, formatter_of

_SETTING = "chat_template (SGLANG_CHAT_TEMPLATE)"
# The newer name of each first.
_SERVER_INFO = ("/server_info", "/get_server_info")
_MODEL_INFO = ("/model_info", "/get_model_info")
_INFO_SECONDS = 10.0


class SglangProvider(LocalProvider):
    """One endpoint; /generate is beside OpenAI's dialect."""

    def __init__(self, config: ProviderConfig) -> None:
        super().__init__(config)
        self._server: Mapping[str, Any] | None = None
        self._formatters: dict[tuple[str, bool], Formatter] = {}

    def _read_refusal(self, status: int, body: Any) -> Refusal:
        """Returns an error, or a reply that was given up."""
        given_up = abort_reason(body) if isinstance(body, Mapping) else None
        message = None if given_up is None else str(given_up.get("message") or "")
        return super()._read_refusal(status, body) if message is None else Refusal(status, message)

    def generate(self, request: ChatRequest, model: ChatModel, *, stream: bool) -> AsyncGenerator[Event, None]:
        """See Provider.generate."""
        if request.token_ids or self._config.options.get("native"):
            return super().generate(request, model, stream=stream)
        return self._openai.generate(request, model, stream=stream)

    async def _call(self, request: ChatRequest, model: ChatModel, *, stream: bool) -> Call:
        settings = own_settings(request.settings, SGLANG, request.handle)
        parsers = await self._parsers(settings)
        formatter = await self._formatter(request, reads_calls=bool(parsers.calls))
        prompt = await formatter.prompt(request)
        body = generate_body_of(request, prompt, stream=stream)
        if not parsers.calls and not parsers.reasoning:
            return Call("/generate", body, TextReader(request, prompt, model.name), stream)

        async def ask(path: str, body: bytes) -> Mapping[str, Any]:
            patience = request.stall_timeout or self._config.stall_seconds
            return await self._transport.post(path, body, handle=request.handle, patience=patience)

        reader = ParsedReader(request, prompt, model.name, parsers, ask)
        return Call("/generate", body, reader, stream, last=reader.last)

    async def _parsers(self, settings: Mapping[str, Any]) -> Parsers:
        names = {}
        for name in ("tool_call_parser", "reasoning_parser"):
            names[name] = (
                settings.get(name) or self._config.options.get(name) or (await self._server_info()).get(name) or ""
            )
        return Parsers(names["tool_call_parser"], names["reasoning_parser"])

    async def _formatter(self, request: ChatRequest, *, reads_calls: bool) -> Formatter:
        option = self._config.options.get("chat_template")
        template = "" if option else (await self._server_info()).get("chat_template")
        value = option or (template if template in FORMATS else "")
        if not value:
            known = ", ".join(sorted(FORMATS))
            raise LlmBadRequest(
                f"{self.name} gives token ids for prompts alone, and does not tell the chat template of "
                f"{request.handle}. Set SGLANG_CHAT_TEMPLATE to one of {known}, or to the model's own: the text of its "
                "tokenizer_config.json.",
                provider=self.name,
                handle=request.handle,
            )
        formatter = self._formatters.get((value, reads_calls))
        if formatter is None:
            may_read = self._config.organization_id is None
            formatter = formatter_of(value, _SETTING, may_read=may_read, reads_calls=reads_calls)
            self._formatters[value, reads_calls] = formatter
        return formatter

    async def _server_info(self) -> Mapping[str, Any]:
        """Returns the arguments the server was started with; none where only its administrator may see them."""
        if self._server is None:
            try:
                self._server = await self._first(_SERVER_INFO, _INFO_SECONDS)
            except LlmAuthentication:
                self._server = {}
        return self._server

    async def _first(self, paths: Sequence[str], timeout: float) -> Mapping[str, Any]:
        """Returns the object behind the first of the paths that there is, {} without any."""
        for path in paths:
            try:
                reply = await self._transport.get(path, {}, timeout=timeout)
            except (ModelNotFound, LlmNotAnApi):
                continue
            if isinstance(reply, dict):
                return reply
        return {}

    async def count_tokens(self, request: ChatRequest, model: ChatModel) -> int | None:
        """See Provider.count_tokens. Exact, where the chat template is known by the option."""
        if not self._config.options.get("chat_template"):
            return None
        parsers = await self._parsers(own_settings(request.settings, SGLANG, request.handle))
        prompt = await (await self._formatter(request, reads_calls=bool(parsers.calls))).prompt(request)
        body = orjson.dumps({"model": model.name, "prompt": prompt.text, "add_special_tokens": True})
        # Versions before 0.5.3 have no such route.
        return await self._exchange.count(request, "/tokenize", body, "count", may_lack=True)

    async def list_models(self, timeout: float) -> Sequence[ListedModel]:
        """See Provider.list_models. One server serves one model, adapters aside."""
        models = await self._openai.list_models(timeout)
        info = await self._first(_MODEL_INFO, timeout)
        if "is_generation" not in info:
            return models
        kind = ModelKind.CHAT if info["is_generation"] else ModelKind.EMBEDDING
        capabilities = {"vision": bool(info["has_image_understanding"])} if "has_image_understanding" in info else {}
        return [replace(model, kind=kind, capabilities={**model.capabilities, **capabilities}) for model in models]

    async def close(self) -> None:
        """See Provider.close."""
        await super().close()
        for formatter in self._formatters.values():
            await formatter.close()
