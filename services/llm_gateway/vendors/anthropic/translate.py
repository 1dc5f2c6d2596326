"""The neutral chat as Anthropic's Messages API (version 2026-10-21). Pure.

Thoughts go back only with the signature they came with, and only to who signed them. What a model takes of thinking and
forced calls is in claude.py, what other vendors of the dialect do otherwise in profiles.py.
"""

from typing import Any

import orjson

from services.llm_gateway.core.chat import ChatRequest, ToolMode, ToolSpec
from services.llm_gateway.core.models import ChatModel
from services.llm_gateway.vendors.anthropic.claude import parse_claude, room_for, shows_thoughts, thinking_of
from services.llm_gateway.vendors.anthropic.messages import CACHE, conversation, system_of
from services.llm_gateway.vendors.anthropic.profiles import VendorProfile, profile_of
from services.llm_gateway.vendors.anthropic.schema import close_schema, close_schema_json
from services.llm_gateway.vendors.shared import prompt_notes as spoken
from services.llm_gateway.vendors.shared.model_settings import ANTHROPIC, own_settings
from services.llm_gateway.vendors.shared.schemas import plain_json

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
    note = spoken.note_for(
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
