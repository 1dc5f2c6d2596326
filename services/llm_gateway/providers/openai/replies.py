"""OpenAI's replies, whole or as chunks, as the neutral chat. Pure."""

from collections.abc import Iterator, Mapping
from typing import Any

from services.llm_gateway.chat import Delta, FinishReason, Usage
from services.llm_gateway.providers.assembly import Assembly
from services.llm_gateway.providers.faults import Refusal

_FINISH = {
    "stop": FinishReason.STOP,
    "length": FinishReason.LENGTH,
    "tool_calls": FinishReason.TOOL_CALLS,
    "function_call": FinishReason.TOOL_CALLS,
    "content_filter": FinishReason.CONTENT_FILTER,
}
# What servers that are not OpenAI's call their models' thoughts.
_THOUGHTS = ("reasoning_content", "reasoning")


def take_whole(assembly: Assembly, body: Mapping[str, Any]) -> None:
    """Read a blocking reply."""
    for choice in (body.get("choices") or ())[:1]:
        for _ in _take_message(assembly, choice.get("message") or {}):
            pass
        _take_token_details(assembly, choice)
        assembly.finish = _FINISH.get(choice.get("finish_reason"), FinishReason.UNKNOWN)
    _take_envelope(assembly, body)


def take_chunk(assembly: Assembly, chunk: Mapping[str, Any]) -> Iterator[Delta]:
    """Read one chunk of a stream; yields what it adds."""
    for choice in (chunk.get("choices") or ())[:1]:
        yield from _take_message(assembly, choice.get("delta") or {})
        _take_token_details(assembly, choice)
        if reason := choice.get("finish_reason"):
            assembly.finish = _FINISH.get(reason, FinishReason.UNKNOWN)
    _take_envelope(assembly, chunk)


def _take_token_details(assembly: Assembly, choice: Mapping[str, Any]) -> None:
    if logprobs := choice.get("logprobs"):
        assembly.tokens.add_logprobs(logprobs)
    if ids := choice.get("token_ids"):
        assembly.tokens.ids += ids


def _take_envelope(assembly: Assembly, body: Mapping[str, Any]) -> None:
    if not assembly.response_id:
        assembly.response_id, assembly.model = body.get("id") or "", body.get("model") or ""
    if usage := body.get("usage"):
        assembly.usage = usage_of(usage)


def _take_message(assembly: Assembly, message: Mapping[str, Any]) -> Iterator[Delta]:
    """A whole message or a delta of one: they have the same fields."""
    for name in _THOUGHTS:
        if isinstance(thoughts := message.get(name), str) and thoughts:
            yield assembly.add_reasoning("reasoning", thoughts)
            break
    # A refusal is what the model says to the user, in a field of its own.
    for text in (message.get("content"), message.get("refusal")):
        if text:
            yield assembly.add_text("text", text)
    for position, call in enumerate(message.get("tool_calls") or ()):
        yield from _take_call(assembly, position, call)


def _take_call(assembly: Assembly, position: int, call: Mapping[str, Any]) -> Iterator[Delta]:
    function = call.get("function") or {}
    id, index = call.get("id") or "", call.get("index")
    key: object = ("call", position if index is None else index)
    known = assembly.call_id(key)
    if known is not None and id and id != known:
        # Some compatible servers number every call 0 and tell them apart by id alone.
        key = ("call", id)
        known = assembly.call_id(key)
    if known is None:
        yield assembly.begin_call(key, id, function.get("name") or "")
    if arguments := function.get("arguments"):
        yield assembly.add_arguments(key, arguments)


def usage_of(usage: Mapping[str, Any]) -> Usage:
    """Usage in the neutral form."""
    prompt_details = usage.get("prompt_tokens_details") or {}
    completion_details = usage.get("completion_tokens_details") or {}
    return Usage(
        prompt_tokens=usage.get("prompt_tokens") or 0,
        completion_tokens=usage.get("completion_tokens") or 0,
        cached_input_tokens=prompt_details.get("cached_tokens"),
        reasoning_tokens=completion_details.get("reasoning_tokens"),
    )


def read_refusal(status: int, body: Any) -> Refusal:
    """What an error body says; compatible servers also send `detail`, `message` or plain text."""
    error = body.get("error", body) if isinstance(body, dict) else body
    if not isinstance(error, dict):
        return Refusal(status, str(error or ""))
    message = error.get("message") or error.get("detail") or ""
    return Refusal(status, str(message), str(error.get("type") or ""), str(error.get("code") or ""))


def embeddings_of(body: Mapping[str, Any]) -> list[list[float]]:
    """The vectors of an embeddings reply, in the order of the inputs."""
    return [item["embedding"] for item in sorted(body["data"], key=lambda item: item["index"])]
