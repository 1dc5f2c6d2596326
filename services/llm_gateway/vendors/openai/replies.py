"""Replies of Chat Completions, whole or as chunks, as the neutral chat. Pure.

All vendors' words are read from whoever says them: they do not contradict each other.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import orjson

from services.llm_gateway.core.chat import ChatRequest, Delta, FinishReason, Generation, Usage
from services.llm_gateway.core.refusals import Refusal, status_in
from services.llm_gateway.core.reply_builder import ReplyBuilder
from services.llm_gateway.core.reply_reader import ReplyReader
from services.llm_gateway.vendors.openai.details import take_details
from services.llm_gateway.vendors.openai.profiles import VendorProfile
from services.llm_gateway.vendors.openai.translate import complete_reply

_FINISH = {
    "stop": FinishReason.STOP,
    "eos": FinishReason.STOP,
    "eos_token": FinishReason.STOP,
    "stop_sequence": FinishReason.STOP,
    "length": FinishReason.LENGTH,
    "model_length": FinishReason.LENGTH,
    "model_context_window_exceeded": FinishReason.LENGTH,
    "tool_calls": FinishReason.TOOL_CALLS,
    "function_call": FinishReason.TOOL_CALLS,
    "content_filter": FinishReason.CONTENT_FILTER,
    "sensitive": FinishReason.CONTENT_FILTER,
}
# The vendor broke off (OpenRouter and Mistral, DeepSeek, Z.ai).
_BROKEN = frozenset({"error", "insufficient_system_resource", "network_error"})
# The names of models' thoughts: DeepSeek and many; Cerebras, Groq, OpenRouter and Together.
_THOUGHTS = ("reasoning_content", "reasoning")


class Reader(ReplyReader):
    """Reads one reply to `request`."""

    def __init__(self, builder: ReplyBuilder, request: ChatRequest, vendor: VendorProfile) -> None:
        super().__init__(builder)
        self._request = request
        self._vendor = vendor

    def take_whole(self, reply: Mapping[str, Any]) -> Iterable[Delta]:
        """See ReplyReader.take_whole. Some servers send errors as 200."""
        if self._fails(reply):
            return ()
        deltas = take_whole(self.builder, reply)
        if not reply.get("choices"):
            self.builder.finish = FinishReason.UNKNOWN
        return deltas

    def take_event(self, event: Mapping[str, Any]) -> Iterable[Delta]:
        """See ReplyReader.take_event."""
        return () if self._fails(event) else take_chunk(self.builder, event)

    def _fails(self, body: Mapping[str, Any]) -> bool:
        if error := error_in(body):
            self.failure = status_in(error), {"error": error}
        return bool(error)

    def complete(self, generation: Generation) -> Generation:
        """See ReplyReader.complete."""
        return complete_reply(generation, self._request, self._vendor)


def take_whole(builder: ReplyBuilder, body: Mapping[str, Any]) -> list[Delta]:
    """Reads a blocking reply; returns its deltas. `builder.finish` stays None where the vendor broke off."""
    deltas: list[Delta] = []
    for choice in (body.get("choices") or ())[:1]:
        deltas += _take_message(builder, choice.get("message") or {})
        _take_token_details(builder, choice)
        if (reason := choice.get("finish_reason")) not in _BROKEN:
            builder.finish = _FINISH.get(reason, FinishReason.UNKNOWN)
    _take_envelope(builder, body)
    return deltas


def take_chunk(builder: ReplyBuilder, chunk: Mapping[str, Any]) -> Iterator[Delta]:
    """Reads one chunk of a stream; yields what it adds."""
    for choice in (chunk.get("choices") or ())[:1]:
        yield from _take_message(builder, choice.get("delta") or {})
        _take_token_details(builder, choice)
        if (reason := choice.get("finish_reason")) and reason not in _BROKEN:
            builder.finish = _FINISH.get(reason, FinishReason.UNKNOWN)
        if usage := choice.get("usage"):  # Moonshot's
            builder.usage = usage_of(usage)
    _take_envelope(builder, chunk)


def error_in(body: Mapping[str, Any]) -> Any:
    """Returns the error that came as a reply or chunk, of the whole or of its choice; None where there is none."""
    choices = body.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    return body.get("error") or (choice.get("error") if isinstance(choice, dict) else None)


def _take_token_details(builder: ReplyBuilder, choice: Mapping[str, Any]) -> None:
    if logprobs := choice.get("logprobs"):
        builder.tokens.add_logprobs(logprobs)
    if ids := choice.get("token_ids"):
        builder.tokens.ids += ids


def _take_envelope(builder: ReplyBuilder, body: Mapping[str, Any]) -> None:
    if not builder.response_id:
        builder.response_id, builder.model = body.get("id") or "", body.get("model") or ""
    if usage := body.get("usage"):
        builder.usage = usage_of(usage)


def _take_message(builder: ReplyBuilder, message: Mapping[str, Any]) -> Iterator[Delta]:
    """Reads a whole message or a delta of one: they have the same fields."""
    if details := message.get("reasoning_details"):
        # They say all that `reasoning` says beside them.
        yield from take_details(builder, details)
    else:
        for name in _THOUGHTS:
            if isinstance(thoughts := message.get(name), str) and thoughts:
                yield builder.add_reasoning("reasoning", thoughts)
                break
    content = message.get("content")
    if isinstance(content, list):  # Mistral's
        for part in content:
            yield from _take_part(builder, part)
    elif content:
        yield builder.add_text("text", content)
    if refusal := message.get("refusal"):
        # What the model says to the user, in a field of its own.
        yield builder.add_text("text", refusal)
    for position, call in enumerate(message.get("tool_calls") or ()):
        yield from _take_call(builder, position, call)


def _take_part(builder: ReplyBuilder, part: Any) -> Iterator[Delta]:
    if isinstance(part, str):
        part = {"type": "text", "text": part}
    if part.get("type") == "thinking":
        thinking = part.get("thinking") or ()
        texts = [thinking] if isinstance(thinking, str) else [item.get("text") or "" for item in thinking]
        if any(texts):
            yield builder.add_reasoning("reasoning", "".join(texts))
    elif part.get("text"):
        yield builder.add_text("text", part["text"])


def _take_call(builder: ReplyBuilder, position: int, call: Mapping[str, Any]) -> Iterator[Delta]:
    function = call.get("function") or {}
    id, index = call.get("id") or "", call.get("index")
    key: object = ("call", position if index is None else index)
    known = builder.call_id(key)
    if known is not None and id and id != known:
        # Some compatible servers number every call 0 and tell them apart by id alone.
        key = ("call", id)
        known = builder.call_id(key)
    if known is None:
        yield builder.begin_call(key, id, function.get("name") or "")
    if arguments := function.get("arguments"):
        text = arguments if isinstance(arguments, str) else orjson.dumps(arguments).decode()
        yield builder.add_arguments(key, text)


def usage_of(usage: Mapping[str, Any]) -> Usage:
    """Returns usage in the neutral form.

    Cached tokens are told in the details, beside them (Moonshot), or as hits (DeepSeek). xAI counts reasoning beside
    the completion; its total tells.
    """
    prompt_details = usage.get("prompt_tokens_details") or {}
    reasoning = (usage.get("completion_tokens_details") or {}).get("reasoning_tokens")
    cached = prompt_details.get("cached_tokens")
    for name in ("cached_tokens", "prompt_cache_hit_tokens"):
        cached = usage.get(name) if cached is None else cached
    prompt, completion = usage.get("prompt_tokens") or 0, usage.get("completion_tokens") or 0
    if reasoning and usage.get("total_tokens") == prompt + completion + reasoning:
        completion += reasoning
    return Usage(
        prompt_tokens=prompt,
        completion_tokens=completion,
        cached_input_tokens=cached,
        cache_write_tokens=prompt_details.get("cache_write_tokens"),
        reasoning_tokens=reasoning,
    )


def read_refusal(status: int, body: Any) -> Refusal:
    """Returns the refusal in an error body. Beside OpenAI's `error` object there are a flat one (Cerebras, Mistral), a
    plain string (xAI, Hugging Face), a list of what is wrong (Mistral), and one with another vendor's inside
    (OpenRouter).
    """
    if not isinstance(body, dict):
        return Refusal(status, str(body or ""))
    error = body.get("error")
    if not isinstance(error, dict):
        error = {**body, "message": error or body.get("message") or body.get("detail") or ""}
    message = _sentence(error.get("message") or error.get("detail") or "")
    if inner := _upstream(error.get("metadata")):
        message = f"{message} ({inner})"
    kind, code = error.get("type"), error.get("code")
    return Refusal(status, message, "" if kind is None else str(kind), "" if code is None else str(code))


def _sentence(message: Any) -> str:
    """Returns a list of faults, each with the place, as a sentence."""
    if isinstance(message, dict):
        return _sentence(message.get("detail") or message.get("message") or orjson.dumps(message).decode())
    if isinstance(message, list):
        return "; ".join(map(_wrong, message))
    return str(message)


def _wrong(item: Any) -> str:
    if not isinstance(item, dict):
        return str(item)
    place = item.get("loc")
    where = ".".join(str(step) for step in place if step != "body") if isinstance(place, list) else ""
    return f"{where}: {item.get('msg') or ''}".strip(": ")


def _upstream(metadata: Any) -> str:
    """Returns the upstream vendor's name and message."""
    if not isinstance(metadata, dict):
        return ""
    raw = metadata.get("raw")
    try:
        inner = orjson.loads(raw) if isinstance(raw, str) else raw
    except orjson.JSONDecodeError:
        inner = raw
    text = read_refusal(0, inner).message if inner else _sentence(metadata.get("reasons") or "")
    return ": ".join(filter(None, (str(metadata.get("provider_name") or ""), text)))


def embeddings_of(body: Mapping[str, Any]) -> list[list[float]]:
    """Returns the vectors of an embeddings reply, in the order of the inputs."""
    return [item["embedding"] for item in sorted(body["data"], key=lambda item: item["index"])]
