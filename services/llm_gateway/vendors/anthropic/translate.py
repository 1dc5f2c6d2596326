"""The neutral chat as Anthropic's Messages API (version 2026-10-21). Pure.

Thoughts go back only with the signature they came with, and only to who signed them. The habits of models
and of other vendors of the dialect are in profiles.py.

At most four blocks of a request may be marked for the cache: the last tool, the last instruction, and the ends of this
request's history and of the one before. With the last mark a turn reads from the cache what its former step wrote,
however many blocks have come since.
"""

from collections.abc import Iterable, Iterator
from typing import Any, assert_never

import orjson

from services.llm_gateway.core.chat import (
    ChatRequest,
    Image,
    Part,
    Reasoning,
    RedactedReasoning,
    Text,
    ToolCall,
    ToolMode,
    ToolResult,
    ToolSpec,
)
from services.llm_gateway.core.models import ChatModel
from services.llm_gateway.core.thinking import usual_budget
from services.llm_gateway.vendors.anthropic.profiles import (
    VendorProfile,
    parse_claude,
    profile_of,
    room_for,
    shows_thoughts,
    thinking_of,
)
from services.llm_gateway.vendors.anthropic.schema import close_schema, close_schema_json
from services.llm_gateway.vendors.shared import call_ids, prompt_notes
from services.llm_gateway.vendors.shared.call_ids import with_valid_ids
from services.llm_gateway.vendors.shared.model_settings import ANTHROPIC, own_settings
from services.llm_gateway.vendors.shared.origins import own_value
from services.llm_gateway.vendors.shared.schemas import plain_json
from services.llm_gateway.vendors.shared.turns import alternating, instructions

# Where nobody says how much a model may write; every current model may write as much.
_LEAST_MAX_TOKENS = 8_192
# The made-up tool whose input is the reply, where JSON is wanted that the wire has no other way to demand.
REPLY_TOOL = "structured_reply"
REPLY_TOOL_DESCRIPTION = "Give the final reply to the user. Its input is the whole reply."
_MODES = {ToolMode.AUTO: "auto", ToolMode.REQUIRED: "any", ToolMode.NONE: "none"}


def body_of(request: ChatRequest, model: ChatModel, *, stream: bool) -> bytes:
    """Returns the request's JSON."""
    profile = profile_of(model.provider_type)
    settings = _settings(request, model, profile)
    body = _input_of(request, model, profile, settings)
    limit = request.max_output_tokens or model.max_output_tokens or _LEAST_MAX_TOKENS
    body["max_tokens"] = room_for(settings.get("thinking"), limit, model.max_output_tokens)
    if request.temperature is not None and profile.temperatures is not None:
        least, highest = profile.temperatures
        body["temperature"] = min(max(request.temperature, least), highest)
    if stream:
        body["stream"] = True
    return orjson.dumps(body | settings)


def count_body_of(request: ChatRequest, model: ChatModel) -> bytes:
    """Returns the JSON of a request to count its tokens."""
    profile = profile_of(model.provider_type)
    settings = _settings(request, model, profile)
    counted = {name: settings[name] for name in ("thinking", "output_config") if name in settings}
    return orjson.dumps({**_input_of(request, model, profile, settings), **counted})


def replies_by_call(request: ChatRequest, model: ChatModel) -> bool:
    """Returns whether the reply is the input of REPLY_TOOL. Not where a call of the caller's own tools is demanded."""
    return _wants_json(request) and _reply_schema(request, model) is None and _can_be_forced(model)


def _wants_json(request: ChatRequest) -> bool:
    return request.response_format is not None and not request.forces_a_call


def _reply_schema(request: ChatRequest, model: ChatModel) -> dict[str, Any] | None:
    """Returns the schema of a reply that the wire itself demands, None for any other."""
    format = request.response_format
    if format is None or format.schema is None or not model.capabilities.structured_output:
        return None
    return close_schema(format.schema)


def _can_be_forced(model: ChatModel) -> bool:
    claude = parse_claude(model.name)
    return claude is None or claude.can_be_forced


def _input_of(
    request: ChatRequest, model: ChatModel, profile: VendorProfile, settings: dict[str, Any]
) -> dict[str, Any]:
    """Returns the part of the body that costs input tokens."""
    origin = profile.origin if shows_thoughts(parse_claude(model.name), settings.get("thinking")) else None
    unforced = not _can_be_forced(model)
    note = prompt_notes.note_for(
        request,
        must_call=unforced and request.forces_a_call,
        in_json=_wants_json(request) and unforced and _reply_schema(request, model) is None,
    )
    body: dict[str, Any] = {"model": model.name, "messages": conversation(request, origin, note)}
    if system := system_of(request):
        body["system"] = system
    if tools := _tools(request, model, profile):
        body["tools"] = tools
        body["tool_choice"] = _tool_choice(request, model)
    return body


def _settings(request: ChatRequest, model: ChatModel, profile: VendorProfile) -> dict[str, Any]:
    settings = own_settings(request.settings, ANTHROPIC - profile.ignores, request.handle)
    effort, thinking = settings.pop("effort", None), settings.pop("thinking", None)
    if thinking is None and (budget := usual_budget(model)):
        thinking = {"type": "enabled", "budget_tokens": budget}
    forced = _can_be_forced(model) and (replies_by_call(request, model) or request.forces_a_call)
    claude = parse_claude(model.name)
    if claude is not None:
        thinking = thinking_of(thinking, claude, request.messages, effort=effort, forced=forced)
    if thinking and not (claude is None and forced):
        settings["thinking"] = thinking
    output: dict[str, Any] = {"effort": effort} if effort else {}
    if _wants_json(request) and (schema := _reply_schema(request, model)) is not None:
        output["format"] = {"type": "json_schema", "schema": schema}
    return {**settings, "output_config": output} if output else settings


def _tools(request: ChatRequest, model: ChatModel, profile: VendorProfile) -> list[dict[str, Any]]:
    """Returns the tools, the last marked for the cache: they change less often than the instructions behind them."""
    tools = [
        _tool(tool, strict=profile.strict_tools and model.capabilities.structured_output) for tool in request.tools
    ]
    if replies_by_call(request, model) and request.response_format is not None:
        schema = request.response_format.schema or {"type": "object"}
        tools.append({"name": REPLY_TOOL, "description": REPLY_TOOL_DESCRIPTION, "input_schema": schema})
    if tools:
        tools[-1] = {**tools[-1], "cache_control": CACHE}
    return tools


def _tool(tool: ToolSpec, *, strict: bool) -> dict[str, Any]:
    """Returns the tool, strict where that is wanted and its schema has the form for it."""
    form = close_schema_json(tool.parameters_json) if strict and tool.strict else None
    fields: dict[str, Any] = {
        "name": tool.name,
        "description": tool.description,
        "input_schema": orjson.Fragment(form or plain_json(tool.parameters_json)),
    }
    return {**fields, "strict": True} if form else fields


def _tool_choice(request: ChatRequest, model: ChatModel) -> dict[str, Any]:
    choice = request.tool_choice
    if replies_by_call(request, model):
        choice = ToolMode.REQUIRED if request.tools and choice is ToolMode.AUTO else REPLY_TOOL
    elif request.forces_a_call and not _can_be_forced(model):
        choice = ToolMode.AUTO
    fields = {"type": "tool", "name": choice} if isinstance(choice, str) else {"type": _MODES[choice]}
    if request.parallel_tool_calls is False and choice is not ToolMode.NONE:
        return {**fields, "disable_parallel_tool_use": True}
    return fields


CACHE = {"type": "ephemeral"}
_MARKED_ENDS = 2


def system_of(request: ChatRequest) -> list[dict[str, Any]]:
    """Returns the instructions, marked so that they and the tools before them are cached by the provider."""
    blocks = [_text(text) for text in instructions(request.messages)]
    if blocks:
        blocks[-1] = {**blocks[-1], "cache_control": CACHE}
    return blocks


def conversation(request: ChatRequest, origin: str | None, note: str = "") -> list[dict[str, Any]]:
    """Returns the messages with `origin`'s own thoughts (None: with none), and at the end `note`, which is not
    cached.
    """
    messages = with_valid_ids(request.messages, call_ids.ANTHROPIC)
    turns = alternating(messages, lambda parts: _blocks(parts, origin), _is_result, _text)
    users = [turn["content"] for turn in turns if turn["role"] == "user"]
    for content in users[-_MARKED_ENDS:]:
        content[-1] = {**content[-1], "cache_control": CACHE}
    if note and users:
        users[-1].append(_text(note))
    return turns


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _is_result(block: dict[str, Any]) -> bool:
    return bool(block["type"] == "tool_result")


def _blocks(parts: Iterable[Part], origin: str | None) -> Iterator[dict[str, Any]]:
    for part in parts:
        match part:
            case Text():
                if part.text.strip():
                    yield _text(part.text)
            case Image():
                yield {"type": "image", "source": _source(part)}
            case Reasoning():
                if origin and (signature := own_value(origin, part.signature)):
                    yield {"type": "thinking", "thinking": part.text, "signature": signature}
            case RedactedReasoning():
                if origin and (data := own_value(origin, part.data)):
                    yield {"type": "redacted_thinking", "data": data}
            case ToolCall():
                yield {"type": "tool_use", "id": part.id, "name": part.name, "input": arguments_of(part)}
            case ToolResult():
                yield _result(part)
            case _:
                assert_never(part)


def _source(image: Image) -> dict[str, Any]:
    if image.url:
        return {"type": "url", "url": image.url}
    return {"type": "base64", "media_type": image.media_type, "data": image.data}


def arguments_of(call: ToolCall) -> Any:
    """Returns the arguments object. Text of the model that is no object is shown to it as text."""
    try:
        value = orjson.loads(call.arguments_json)
    except orjson.JSONDecodeError:
        value = None
    return value if isinstance(value, dict) else {"unparsed_arguments": call.arguments_json}


def _result(result: ToolResult) -> dict[str, Any]:
    content = list(_blocks(result.content, None))
    fields: dict[str, Any] = {"type": "tool_result", "tool_use_id": result.tool_call_id}
    if content:
        fields["content"] = content
    return {**fields, "is_error": True} if result.is_error else fields
