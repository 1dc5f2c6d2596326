"""Requests from protobuf, replies to protobuf."""

from collections.abc import Mapping, Sequence
from typing import Any, assert_never
from uuid import UUID

import orjson

from loci.llm.v1 import chat_pb2, chat_service_pb2
from services.common.errors import InvalidArgument
from services.common.ids import from_public
from services.llm_gateway.core.chat import (
    ChatRequest,
    Completed,
    Event,
    FinishReason,
    Generation,
    Image,
    Message,
    Part,
    Reasoning,
    ReasoningDelta,
    RedactedReasoning,
    ResponseFormat,
    Role,
    Text,
    TextDelta,
    ToolCall,
    ToolCallDelta,
    ToolMode,
    ToolResult,
    ToolSpec,
    Usage,
)
from services.llm_gateway.core.pictures import with_media_type
from services.llm_gateway.core.stops import stop_settings

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
_FINISH = {
    FinishReason.UNKNOWN: chat_pb2.FINISH_REASON_UNSPECIFIED,
    FinishReason.STOP: chat_pb2.FINISH_REASON_STOP,
    FinishReason.TOOL_CALLS: chat_pb2.FINISH_REASON_TOOL_CALLS,
    FinishReason.LENGTH: chat_pb2.FINISH_REASON_LENGTH,
    FinishReason.CONTENT_FILTER: chat_pb2.FINISH_REASON_CONTENT_FILTER,
}
_NO_ARGUMENTS = '{"type":"object","properties":{}}'
_MOST_TOP_LOGPROBS = 20
_MOST_FALLBACKS = 4


def chat_request(message: chat_service_pb2.GenerationRequest, run_key: str = "") -> ChatRequest:
    """Returns the request; `run_key` names the run the call belongs to. Raises InvalidArgument for a request that no
    provider takes.
    """
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
        settings={**settings, **stop_settings(message.stop)},
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
        stop=_stops(message.stop),
        fills_defaults=message.fill_defaults,
    )


def optional_id(prefix: str, text: str) -> UUID | None:
    """Returns the UUID of a public id, None for an empty one. Raises InvalidArgument."""
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
            detail = _optional(image, "detail")
            return with_media_type(Image(image.data_base64, image.url, image.media_type, detail))
        case None:
            raise InvalidArgument("a message has an empty part", reason="LLM_BAD_REQUEST")


def _optional(message: Any, name: str) -> str | None:
    return getattr(message, name) if message.HasField(name) else None


def _tool(tool: chat_pb2.ToolSpec, *, strict: bool) -> ToolSpec:
    """Returns the tool; `strict`: the settings want it of all tools."""
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


def _stops(texts: Sequence[str]) -> Sequence[str]:
    if not all(texts):
        raise InvalidArgument("stop takes texts that are not empty", reason="LLM_BAD_REQUEST")
    return list(texts)


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


def generation_message(generation: Generation) -> chat_pb2.Generation:
    """Returns the message of a whole reply."""
    return chat_pb2.Generation(
        message=chat_pb2.ChatMessage(
            role=chat_pb2.CHAT_ROLE_ASSISTANT, parts=[_part_message(part) for part in generation.message.parts]
        ),
        finish_reason=_FINISH[generation.finish_reason],
        usage=_usage_message(generation.usage),
        provider_response_id=generation.provider_response_id,
        provider_model=generation.provider_model,
        logprobs_json=generation.logprobs_json,
        output_token_ids=generation.token_ids,
        output_token_logprobs_json=generation.token_logprobs_json,
        provider_trace_json=generation.trace_json,
        handle=generation.handle,
        cost_nanos_usd=generation.cost,
        failed_tries=[
            chat_pb2.FailedTry(handle=failed.handle, reason=failed.reason, message=failed.message)
            for failed in generation.failed_tries
        ],
        tool_problems=[chat_pb2.ToolProblem(name=name, problem=why) for name, why in generation.tool_problems],
    )


def _part_message(part: Part) -> chat_pb2.ChatPart:
    match part:
        case Text():
            return chat_pb2.ChatPart(text=chat_pb2.TextPart(text=part.text, signature=part.signature))
        case ToolCall():
            call = chat_pb2.ToolCallPart(id=part.id, name=part.name, arguments_json=part.arguments_json)
            return chat_pb2.ChatPart(tool_call=call)
        case Reasoning():
            return chat_pb2.ChatPart(reasoning=chat_pb2.ReasoningPart(text=part.text, signature=part.signature))
        case RedactedReasoning():
            return chat_pb2.ChatPart(redacted_reasoning=chat_pb2.RedactedReasoningPart(data=part.data))
        case Image() | ToolResult():
            raise AssertionError("a model replies with neither images nor tool results")
        case _:
            assert_never(part)


def _usage_message(usage: Usage) -> chat_pb2.Usage:
    return chat_pb2.Usage(
        prompt_tokens=usage.prompt_tokens,
        completion_tokens=usage.completion_tokens,
        cached_input_tokens=usage.cached_input_tokens,
        cache_write_tokens=usage.cache_write_tokens,
        reasoning_tokens=usage.reasoning_tokens,
        estimated=usage.estimated,
    )


def event_message(event: Event, sequence: int) -> chat_service_pb2.StreamGenerateResponse:
    """Returns the message of one event of a stream."""
    response = chat_service_pb2.StreamGenerateResponse
    match event:
        case TextDelta():
            delta = chat_service_pb2.TextDelta(index=event.index, text=event.text)
            return response(sequence=sequence, text_delta=delta)
        case ReasoningDelta():
            thoughts = chat_service_pb2.ReasoningDelta(index=event.index, text=event.text)
            return response(sequence=sequence, reasoning_delta=thoughts)
        case ToolCallDelta():
            call = chat_service_pb2.ToolCallDelta(
                index=event.index, id=event.id, name=event.name, arguments_delta=event.arguments
            )
            return response(sequence=sequence, tool_call_delta=call)
        case Completed():
            return response(sequence=sequence, completed=generation_message(event.generation))
        case _:
            assert_never(event)
