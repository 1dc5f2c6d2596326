"""The neutral chat as OpenAI's Chat Completions and back. Pure.

Reasoning of earlier turns is left out of requests: this wire has no place for it and no model demands it.
"""

import base64
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, assert_never

import orjson

from services.llm_gateway.chat import (
    ChatRequest,
    Image,
    Message,
    Part,
    Reasoning,
    RedactedReasoning,
    ResponseFormat,
    Role,
    Text,
    ToolCall,
    ToolMode,
    ToolResult,
    ToolSpec,
)
from services.llm_gateway.errors import LlmBadRequest
from services.llm_gateway.provider import ChatModel
from services.llm_gateway.providers.settings import OPENAI, checked

# With tools these take no reasoning effort on Chat Completions: without "none" every request is refused.
_NO_EFFORT_WITH_TOOLS = re.compile(r"gpt-(5\.([2-9]|\d\d)|[6-9])")
# The lowest effort is spelt "minimal" by the first GPT-5 models alone, "none" by those after; o-models begin
# at "low".
_MINIMAL = re.compile(r"gpt-5(-mini|-nano)?(-20|$)")
_O_MODEL = re.compile(r"o\d")
_MODES = {ToolMode.REQUIRED: "required", ToolMode.NONE: "none"}


def body_of(request: ChatRequest, model: ChatModel, *, stream: bool, is_vendor: bool = False) -> bytes:
    """The request's JSON; `is_vendor`: for OpenAI itself, which refuses what only compatible servers know."""
    body: dict[str, Any] = {"model": model.name, "messages": list(_messages(request))}
    if request.tools:
        body["tools"] = [_tool(tool) for tool in request.tools]
        body |= _tool_choice(request)
    if request.max_output_tokens is not None:
        # The older name is what compatible servers know, the newer what reasoning models demand.
        body["max_completion_tokens" if model.capabilities.reasoning else "max_tokens"] = request.max_output_tokens
    if request.temperature is not None and model.capabilities.temperature:
        body["temperature"] = request.temperature
    if stream:
        body |= {"stream": True, "stream_options": {"include_usage": True}}
    if request.response_format is not None:
        body["response_format"] = _response_format(request.response_format)
    body |= _token_details(request, model, is_vendor=is_vendor)
    body |= _settings(request, model)
    return orjson.dumps(body)


def _token_details(request: ChatRequest, model: ChatModel, *, is_vendor: bool) -> dict[str, Any]:
    """Log probabilities, which reasoning models refuse, and token ids, as vLLM gives them."""
    fields: dict[str, Any] = {}
    if (request.logprobs or request.token_ids) and not model.capabilities.reasoning:
        fields["logprobs"] = True
        if request.top_logprobs:
            fields["top_logprobs"] = request.top_logprobs
    if request.token_ids and not is_vendor:
        fields["return_token_ids"] = True
    return fields


def _response_format(wanted: ResponseFormat) -> dict[str, Any]:
    if wanted.schema is None:
        return {"type": "json_object"}
    strict = {} if wanted.strict is None else {"strict": wanted.strict}
    return {"type": "json_schema", "json_schema": {"name": wanted.name, "schema": wanted.schema, **strict}}


def _settings(request: ChatRequest, model: ChatModel) -> dict[str, Any]:
    settings = checked(request.settings, OPENAI, request.handle)
    reasoning = settings.pop("reasoning", None) or {}
    effort = settings.pop("reasoning_effort", None) or reasoning.get("reasoning_effort")
    if not model.capabilities.reasoning:
        return settings
    if request.tools and _NO_EFFORT_WITH_TOOLS.match(model.base_model or model.name):
        effort = "none"
    return {**settings, "reasoning_effort": spelt_effort(effort, model.base_model or model.name)} if effort else settings


def spelt_effort(effort: str, name: str) -> str:
    """The effort as the vendor's model of this name takes it."""
    if effort not in ("none", "minimal"):
        return effort
    if _O_MODEL.match(name):
        return "low"
    if _MINIMAL.match(name):
        return "minimal"
    return "none"


def _tool(tool: ToolSpec) -> dict[str, Any]:
    function: dict[str, Any] = {
        "name": tool.name,
        "description": tool.description,
        "parameters": orjson.Fragment(tool.parameters_json),
    }
    return {"type": "function", "function": {**function, "strict": True} if tool.strict else function}


def _tool_choice(request: ChatRequest) -> dict[str, Any]:
    choice = request.tool_choice
    fields: dict[str, Any] = {}
    if isinstance(choice, str):
        fields["tool_choice"] = {"type": "function", "function": {"name": choice}}
    elif choice in _MODES:
        fields["tool_choice"] = _MODES[choice]
    if request.parallel_tool_calls is False:
        # True is everybody's default, and some models refuse the parameter.
        fields["parallel_tool_calls"] = False
    return fields


def _messages(request: ChatRequest) -> Iterator[dict[str, Any]]:
    for message in request.messages:
        match message.role:
            case Role.SYSTEM:
                yield {"role": "system", "content": _joined_text(message.parts)}
            case Role.USER:
                yield {"role": "user", "content": _content(message.parts)}
            case Role.ASSISTANT:
                yield _assistant(message)
            case Role.TOOL:
                yield from _tool_results(message.parts, request.handle)
            case _:
                assert_never(message.role)


def _assistant(message: Message) -> dict[str, Any]:
    calls = [
        {"id": part.id, "type": "function", "function": {"name": part.name, "arguments": part.arguments_json}}
        for part in message.parts
        if isinstance(part, ToolCall)
    ]
    text = _joined_text(message.parts)
    if not calls:
        return {"role": "assistant", "content": text}
    return {"role": "assistant", "content": text or None, "tool_calls": calls}


def _tool_results(parts: Iterable[Part], handle: str) -> Iterator[dict[str, Any]]:
    """A message per result; pictures follow in a user message, because results hold only text on this
    wire.
    """
    pictures: list[Part] = []
    for part in parts:
        if not isinstance(part, ToolResult):
            raise LlmBadRequest("a tool message may hold tool results only", handle=handle)
        found = [item for item in part.content if isinstance(item, Image)]
        pictures += found
        text = _joined_text(part.content)
        note = f"({len(found)} picture(s) in the next message)" if found else ""
        yield {
            "role": "tool",
            "tool_call_id": part.tool_call_id,
            "content": f"{text}\n{note}".strip() if note else text,
        }
    if pictures:
        yield {"role": "user", "content": _content(pictures)}


def _content(parts: Sequence[Part]) -> str | list[dict[str, Any]]:
    """A plain string where there is only text: older compatible servers know nothing else."""
    if all(isinstance(part, Text) for part in parts):
        return _joined_text(parts)
    return [_content_part(part) for part in parts if isinstance(part, Text | Image)]


def _content_part(part: Text | Image) -> dict[str, Any]:
    if isinstance(part, Text):
        return {"type": "text", "text": part.text}
    url = part.url or f"data:{part.media_type};base64,{base64.b64encode(part.data).decode()}"
    return {"type": "image_url", "image_url": {"url": url} | ({"detail": part.detail} if part.detail else {})}


def _joined_text(parts: Iterable[Part]) -> str:
    texts = []
    for part in parts:
        match part:
            case Text():
                texts.append(part.text)
            case Image() | Reasoning() | RedactedReasoning() | ToolCall() | ToolResult():
                pass
            case _:
                assert_never(part)
    return "\n".join(texts)
