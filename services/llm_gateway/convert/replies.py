"""Replies to protobuf."""

from typing import assert_never

from loci.llm.v1 import chat_pb2, chat_service_pb2
from services.llm_gateway.chat import (
    Completed,
    Event,
    FinishReason,
    Generation,
    Image,
    Part,
    Reasoning,
    ReasoningDelta,
    RedactedReasoning,
    Text,
    TextDelta,
    ToolCall,
    ToolCallDelta,
    ToolResult,
    Usage,
)

_FINISH = {
    FinishReason.UNKNOWN: chat_pb2.FINISH_REASON_UNSPECIFIED,
    FinishReason.STOP: chat_pb2.FINISH_REASON_STOP,
    FinishReason.TOOL_CALLS: chat_pb2.FINISH_REASON_TOOL_CALLS,
    FinishReason.LENGTH: chat_pb2.FINISH_REASON_LENGTH,
    FinishReason.CONTENT_FILTER: chat_pb2.FINISH_REASON_CONTENT_FILTER,
}


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
