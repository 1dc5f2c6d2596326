"""The neutral chat as Anthropic's Messages API (version 2026-10-21) and back. Pure.

That wire wants roles to alternate, tool results first in one user message, and no empty text; all of it is
made so here. Thoughts go back only with the signature they came with. Sampling parameters no longer exist
there.
"""

import base64
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, assert_never

import orjson

from services.llm_gateway.chat import (
    ChatRequest,
    Image,
    Part,
    Reasoning,
    RedactedReasoning,
    Role,
    Text,
    ToolCall,
    ToolMode,
    ToolResult,
    ToolSpec,
)
from services.llm_gateway.provider import ChatModel
from services.llm_gateway.providers import call_ids
from services.llm_gateway.providers.call_ids import with_valid_ids
from services.llm_gateway.providers.settings import ANTHROPIC, checked

# Where nobody says how much a model may write; every current model may write as much.
_LEAST_MAX_TOKENS = 8_192
# These still think by a budget of tokens; all later ones refuse that and decide by themselves how much to
# think.
_THINKS_BY_BUDGET = re.compile(r"claude-(3|(opus|sonnet|haiku)-4(-[0-6])?(-20|$))")
_CACHE = {"type": "ephemeral"}
# The made-up tool whose input is the reply, where JSON is wanted that the wire has no other way to demand.
REPLY_TOOL = "structured_reply"
_MODES = {ToolMode.AUTO: "auto", ToolMode.REQUIRED: "any", ToolMode.NONE: "none"}


def body_of(request: ChatRequest, model: ChatModel, *, stream: bool) -> bytes:
    """The request's JSON."""
    body = _input_of(request, model)
    body["max_tokens"] = request.max_output_tokens or model.max_output_tokens or _LEAST_MAX_TOKENS
    if stream:
        body["stream"] = True
    body |= _settings(request, model)
    return orjson.dumps(body)


def count_body_of(request: ChatRequest, model: ChatModel) -> bytes:
    """The JSON of a request to count its tokens."""
    settings = _settings(request, model)
    counted = {name: settings[name] for name in ("thinking", "output_config") if name in settings}
    return orjson.dumps({**_input_of(request, model), **counted})


def _input_of(request: ChatRequest, model: ChatModel) -> dict[str, Any]:
    """What costs input tokens."""
    body: dict[str, Any] = {"model": model.name, "messages": _messages(request)}
    if system := _system(request):
        body["system"] = system
    if tools := _tools(request, model):
        body["tools"] = tools
        body["tool_choice"] = _tool_choice(request, model)
    return body


def replies_by_call(request: ChatRequest, model: ChatModel) -> bool:
    """Whether the reply is the input of REPLY_TOOL. Not where a call of the caller's own tools is demanded."""
    if request.response_format is None or request.forces_a_call:
        return False
    return request.response_format.schema is None or not model.capabilities.structured_output


def _settings(request: ChatRequest, model: ChatModel) -> dict[str, Any]:
    settings = checked(request.settings, ANTHROPIC, request.handle)
    by_call = replies_by_call(request, model)
    if by_call or request.forces_a_call:
        # A model that thinks cannot be forced to call.
        settings.pop("thinking", None)
    if (settings.get("thinking") or {}).get("type") == "enabled" and not _THINKS_BY_BUDGET.match(model.name):
        settings["thinking"] = {"type": "adaptive", "display": "summarized"}
    effort, wanted = settings.pop("effort", None), request.response_format
    output: dict[str, Any] = {"effort": effort} if effort else {}
    if wanted is not None and wanted.schema is not None and not by_call and model.capabilities.structured_output:
        output["format"] = {"type": "json_schema", "schema": closed(wanted.schema)}
    return {**settings, "output_config": output} if output else settings


def closed(schema: Any) -> Any:
    """The schema with every object closed to further properties, as this wire demands."""
    if isinstance(schema, list):
        return [closed(item) for item in schema]
    if not isinstance(schema, Mapping):
        return schema
    made = {name: value if name in ("enum", "const", "default") else closed(value) for name, value in schema.items()}
    return {**made, "additionalProperties": False} if made.get("type") == "object" else made


def _system(request: ChatRequest) -> list[dict[str, Any]]:
    """The instructions, marked so that they and the tools before them are cached by the provider."""
    parts = (part for message in request.messages if message.role is Role.SYSTEM for part in message.parts)
    texts = (part.text for part in parts if isinstance(part, Text) and part.text)
    blocks: list[dict[str, Any]] = [{"type": "text", "text": text} for text in texts]
    if blocks:
        blocks[-1] = {**blocks[-1], "cache_control": _CACHE}
    return blocks


def _tools(request: ChatRequest, model: ChatModel) -> list[dict[str, Any]]:
    tools = [_tool(tool) for tool in request.tools]
    wanted = request.response_format
    if wanted is not None and replies_by_call(request, model):
        description = "Give the final reply to the user. Its input is the whole reply."
        schema = wanted.schema or {"type": "object"}
        tools.append({"name": REPLY_TOOL, "description": description, "input_schema": schema})
    return tools


def _tool(tool: ToolSpec) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "name": tool.name,
        "description": tool.description,
        "input_schema": orjson.Fragment(tool.parameters_json),
    }
    return {**fields, "strict": True} if tool.strict else fields


def _tool_choice(request: ChatRequest, model: ChatModel) -> dict[str, Any]:
    choice = request.tool_choice
    if replies_by_call(request, model):
        choice = ToolMode.REQUIRED if request.tools and choice is ToolMode.AUTO else REPLY_TOOL
    fields = {"type": "tool", "name": choice} if isinstance(choice, str) else {"type": _MODES[choice]}
    if request.parallel_tool_calls is False and choice is not ToolMode.NONE:
        return {**fields, "disable_parallel_tool_use": True}
    return fields


def _messages(request: ChatRequest) -> list[dict[str, Any]]:
    """Messages with neighbours of one role merged, and the end of the history marked for the cache."""
    merged: list[dict[str, Any]] = []
    for message in with_valid_ids(request.messages, call_ids.ANTHROPIC):
        if message.role is Role.SYSTEM:
            continue
        role = "assistant" if message.role is Role.ASSISTANT else "user"
        blocks = list(_blocks(message.parts))
        if not blocks:
            continue
        if merged and merged[-1]["role"] == role:
            merged[-1]["content"] = _results_first(merged[-1]["content"] + blocks)
        else:
            merged.append({"role": role, "content": _results_first(blocks)})
    if merged and merged[0]["role"] == "assistant":
        merged.insert(0, _filler("(The conversation begins earlier.)"))
    if merged and merged[-1]["role"] == "assistant":
        merged.append(_filler("(Continue.)"))
    _mark_end(merged)
    return merged


def _filler(text: str) -> dict[str, Any]:
    """What stands where that wire demands a user's message and there is none."""
    return {"role": "user", "content": [{"type": "text", "text": text}]}


def _results_first(blocks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(blocks, key=lambda block: block["type"] != "tool_result")


def _mark_end(messages: list[dict[str, Any]]) -> None:
    """Mark the newest user message: the next step of the turn then reads all before it from the cache."""
    if messages and messages[-1]["role"] == "user":
        content = messages[-1]["content"]
        content[-1] = {**content[-1], "cache_control": _CACHE}


def _blocks(parts: Iterable[Part]) -> Iterator[dict[str, Any]]:
    for part in parts:
        match part:
            case Text():
                if part.text.strip():
                    yield {"type": "text", "text": part.text}
            case Image():
                yield {"type": "image", "source": _source(part)}
            case Reasoning():
                if part.signature:
                    yield {"type": "thinking", "thinking": part.text, "signature": part.signature}
            case RedactedReasoning():
                yield {"type": "redacted_thinking", "data": part.data}
            case ToolCall():
                yield {"type": "tool_use", "id": part.id, "name": part.name, "input": _input(part)}
            case ToolResult():
                yield _result(part)
            case _:
                assert_never(part)


def _source(image: Image) -> dict[str, Any]:
    if image.url:
        return {"type": "url", "url": image.url}
    data = base64.b64encode(image.data).decode()
    return {"type": "base64", "media_type": image.media_type, "data": data}


def _input(call: ToolCall) -> Any:
    """The arguments object. What the model once wrote and is no object is shown to it as text."""
    try:
        value = orjson.loads(call.arguments_json)
    except orjson.JSONDecodeError:
        value = None
    return value if isinstance(value, dict) else {"unparsed_arguments": call.arguments_json}


def _result(result: ToolResult) -> dict[str, Any]:
    content = list(_blocks(result.content))
    fields: dict[str, Any] = {"type": "tool_result", "tool_use_id": result.tool_call_id}
    if content:
        fields["content"] = content
    return {**fields, "is_error": True} if result.is_error else fields
