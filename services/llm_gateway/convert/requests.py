"""Requests from protobuf."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

import orjson

from loci.llm.v1 import chat_pb2, chat_service_pb2
from services.common.errors import InvalidArgument
from services.common.ids import from_public
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

_ROLES = {
    chat_pb2.CHAT_ROLE_SYSTEM: Role.SYSTEM,
    chat_pb2.CHAT_ROLE_USER: Role.USER,
    chat_pb2.CHAT_ROLE_ASSISTANT: Role.ASSISTANT,
    chat_pb2.CHAT_ROLE_TOOL: Role.TOOL,
}
_MODES = {
    chat_pb2.TOOL_CHOICE_MODE_REQUIRED: ToolMode.REQUIRED,
    chat_pb2.TOOL_CHOICE_MODE_NONE: ToolMode.NONE,
}
_NO_ARGUMENTS = '{"type":"object","properties":{}}'
_MOST_TOP_LOGPROBS = 20
_MOST_FALLBACKS = 4


def chat_request(message: chat_service_pb2.GenerationRequest, run_key: str = "") -> ChatRequest:
    """`run_key` names the run the call belongs to. Raises InvalidArgument for what no provider could be sent."""
    if not message.messages:
        raise InvalidArgument("a generation needs at least one message", reason="LLM_BAD_REQUEST")
    settings = _settings(message.settings_json)
    return ChatRequest(
        handle=message.handle,
        messages=[_message(item) for item in message.messages],
        tools=[_tool(tool, strict=settings.get("strict") is True) for tool in message.tools],
        tool_choice=_tool_choice(message),
        parallel_tool_calls=message.parallel_tool_calls if message.HasField("parallel_tool_calls") else None,
        temperature=message.temperature if message.HasField("temperature") else None,
        max_output_tokens=message.max_output_tokens if message.HasField("max_output_tokens") else None,
        settings=settings,
        stall_timeout=_seconds(message),
        response_format=_response_format(message.response_format_json, settings),
        logprobs=message.return_logprobs or message.HasField("top_logprobs"),
        top_logprobs=_top_logprobs(message),
        token_ids=message.return_token_ids,
        trace=message.include_trace,
        fallbacks=_fallbacks(message.fallback_handles, settings),
        websocket=message.websocket,
        run_key=run_key,
        cache_key=message.agent_id,
    )


def optional_id(prefix: str, text: str) -> UUID | None:
    """The UUID of a public id, None for an empty one. Raises InvalidArgument."""
    return from_public(prefix, text) if text else None


def _seconds(message: chat_service_pb2.GenerationRequest) -> float | None:
    return message.stall_timeout.ToMicroseconds() / 1e6 if message.HasField("stall_timeout") else None


def _message(message: chat_pb2.ChatMessage) -> Message:
    role = _ROLES.get(message.role)
    if role is None:
        raise InvalidArgument("a message has no role", reason="LLM_BAD_REQUEST")
    return Message(role, [_part(part) for part in message.parts])


def _part(message: chat_pb2.ChatPart) -> Part:
    match message.WhichOneof("part"):
        case "text":
            text = message.text
            return Text(text.text, text.signature if text.HasField("signature") else None)
        case "tool_call":
            call = message.tool_call
            return ToolCall(call.id, call.name, call.arguments_json)
        case "tool_result":
            result = message.tool_result
            content = [part for part in map(_part, result.content) if isinstance(part, Text | Image)]
            return ToolResult(result.tool_call_id, content, result.is_error)
        case "reasoning":
            return Reasoning(message.reasoning.text, _optional(message.reasoning, "signature"))
        case "redacted_reasoning":
            return RedactedReasoning(message.redacted_reasoning.data)
        case "image":
            image = message.image
            return Image(image.data, image.url, image.media_type, _optional(image, "detail"))
        case None:
            raise InvalidArgument("a message has an empty part", reason="LLM_BAD_REQUEST")


def _optional(message: Any, name: str) -> str | None:
    return getattr(message, name) if message.HasField(name) else None


def _tool(tool: chat_pb2.ToolSpec, *, strict: bool) -> ToolSpec:
    """`strict`: the settings want it of all tools."""
    return ToolSpec(tool.name, tool.description, tool.parameters_json or _NO_ARGUMENTS, tool.strict or strict)


def _tool_choice(message: chat_service_pb2.GenerationRequest) -> ToolMode | str:
    choice = message.tool_choice
    return choice.tool_name or _MODES.get(choice.mode, ToolMode.AUTO)


def _settings(text: str) -> Mapping[str, Any]:
    return _object(text, "settings_json") if text else {}


def _object(text: str, name: str) -> Mapping[str, Any]:
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        value = None
    if not isinstance(value, dict):
        raise InvalidArgument(f"{name} is not a JSON object", reason="LLM_BAD_REQUEST")
    return value


def _response_format(text: str, settings: Mapping[str, Any]) -> ResponseFormat | None:
    value = _object(text, "response_format_json") if text else settings.get("response_format") or {}
    match value:
        case {"type": "text"} | {"type": None}:
            return None
        case {"type": "json_object"}:
            return ResponseFormat()
        case {"type": "json_schema", "json_schema": {"schema": dict(schema)} as more}:
            return ResponseFormat(schema, str(more.get("name") or "reply"), more.get("strict"))
        case dict() if not value:
            return None
    raise InvalidArgument(
        'response_format is none of {"type": "text"}, {"type": "json_object"} and '
        '{"type": "json_schema", "json_schema": {"name": ..., "schema": {...}}}',
        reason="LLM_BAD_REQUEST",
    )


def _top_logprobs(message: chat_service_pb2.GenerationRequest) -> int | None:
    if not message.HasField("top_logprobs"):
        return None
    if not 0 <= message.top_logprobs <= _MOST_TOP_LOGPROBS:
        raise InvalidArgument(f"top_logprobs is from 0 to {_MOST_TOP_LOGPROBS}", reason="LLM_BAD_REQUEST")
    return message.top_logprobs


def _fallbacks(handles: Sequence[str], settings: Mapping[str, Any]) -> Sequence[str]:
    chosen = list(handles) or settings.get("fallback_handles") or []
    if not isinstance(chosen, list) or len(chosen) > _MOST_FALLBACKS or not all(isinstance(one, str) for one in chosen):
        raise InvalidArgument(
            f"fallback_handles is a list of at most {_MOST_FALLBACKS} model handles", reason="LLM_BAD_REQUEST"
        )
    return chosen


def texts_to_embed(texts: Sequence[str]) -> list[str]:
    """Raises InvalidArgument unless there are 1 to 2,048, none empty."""
    if not 1 <= len(texts) <= 2_048 or not all(texts):
        raise InvalidArgument("an embedding request has 1 to 2,048 texts, none empty", reason="LLM_BAD_REQUEST")
    return list(texts)
