"""Protobuf to the plain dataclasses and back."""

from collections.abc import Mapping, Sequence
from typing import Any, assert_never
from uuid import UUID

import orjson

from loci.llm.v1 import chat_pb2, chat_service_pb2, model_pb2
from services.common.errors import InvalidArgument
from services.common.ids import from_public
from services.llm_gateway.chat import (
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
from services.llm_gateway.provider import Capabilities, ChatModel, EmbeddingModel, ValueSource

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
_SOURCES = {
    None: model_pb2.VALUE_SOURCE_UNSPECIFIED,
    ValueSource.ENDPOINT: model_pb2.VALUE_SOURCE_ENDPOINT,
    ValueSource.TABLE: model_pb2.VALUE_SOURCE_TABLE,
    ValueSource.OVERRIDE: model_pb2.VALUE_SOURCE_OVERRIDE,
}
_NO_ARGUMENTS = '{"type":"object","properties":{}}'


def chat_request(message: chat_service_pb2.GenerationRequest) -> ChatRequest:
    """Raises InvalidArgument for what no provider could be sent."""
    if not message.messages:
        raise InvalidArgument("a generation needs at least one message", reason="LLM_BAD_REQUEST")
    return ChatRequest(
        handle=message.handle,
        messages=[_message(item) for item in message.messages],
        tools=[_tool(tool) for tool in message.tools],
        tool_choice=_tool_choice(message),
        parallel_tool_calls=message.parallel_tool_calls if message.HasField("parallel_tool_calls") else None,
        temperature=message.temperature if message.HasField("temperature") else None,
        max_output_tokens=message.max_output_tokens if message.HasField("max_output_tokens") else None,
        settings=_settings(message.settings_json),
        stall_timeout=_seconds(message),
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
            return Text(message.text.text, _optional(message.text, "signature"))
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


def _tool(tool: chat_pb2.ToolSpec) -> ToolSpec:
    return ToolSpec(tool.name, tool.description, tool.parameters_json or _NO_ARGUMENTS, tool.strict)


def _tool_choice(message: chat_service_pb2.GenerationRequest) -> ToolMode | str:
    choice = message.tool_choice
    return choice.tool_name or _MODES.get(choice.mode, ToolMode.AUTO)


def _settings(text: str) -> Mapping[str, Any]:
    try:
        value = orjson.loads(text) if text else {}
    except orjson.JSONDecodeError:
        value = None
    if not isinstance(value, dict):
        raise InvalidArgument("settings_json is not a JSON object", reason="LLM_BAD_REQUEST")
    return value


def generation_message(generation: Generation) -> chat_pb2.Generation:
    """A whole reply."""
    return chat_pb2.Generation(
        message=chat_pb2.ChatMessage(
            role=chat_pb2.CHAT_ROLE_ASSISTANT, parts=[_part_message(part) for part in generation.message.parts]
        ),
        finish_reason=_FINISH[generation.finish_reason],
        usage=_usage_message(generation.usage),
        provider_response_id=generation.provider_response_id,
        provider_model=generation.provider_model,
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
    """One event of a stream."""
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


def model_message(model: ChatModel) -> model_pb2.Model:
    """A chat model."""
    return model_pb2.Model(
        handle=model.handle,
        name=model.name,
        provider_type=model.provider_type,
        provider_name=model.provider_name,
        endpoint=model.endpoint,
        context_window=model.context_window or 0,
        context_window_source=_SOURCES[model.context_window_source],
        max_output_tokens=model.max_output_tokens or 0,
        capabilities=_capabilities_message(model.capabilities),
        display_name=model.display_name,
    )


def _capabilities_message(capabilities: Capabilities) -> model_pb2.ModelCapabilities:
    return model_pb2.ModelCapabilities(
        tools=capabilities.tools,
        parallel_tool_calls=capabilities.parallel_tool_calls,
        streaming=capabilities.streaming,
        vision=capabilities.vision,
        reasoning=capabilities.reasoning,
        structured_output=capabilities.structured_output,
    )


def embedding_model_message(model: EmbeddingModel) -> model_pb2.EmbeddingModel:
    """An embedding model."""
    return model_pb2.EmbeddingModel(
        handle=model.handle,
        name=model.name,
        provider_type=model.provider_type,
        provider_name=model.provider_name,
        endpoint=model.endpoint,
        dimensions=model.dimensions,
        batch_size=model.batch_size,
        display_name=model.display_name,
    )


def texts_to_embed(texts: Sequence[str]) -> list[str]:
    """Raises InvalidArgument unless there are 1 to 2,048, none empty."""
    if not 1 <= len(texts) <= 2_048 or not all(texts):
        raise InvalidArgument("an embedding request has 1 to 2,048 texts, none empty", reason="LLM_BAD_REQUEST")
    return list(texts)
