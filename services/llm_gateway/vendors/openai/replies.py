"""Replies of Chat Completions, whole or as chunks, as the neutral chat. Pure.

All vendors' words are read from whoever says them: they do not contradict each other.
"""

from array import array
from base64 import b64decode
from collections.abc import Iterable, Iterator, Mapping
from sys import byteorder
from typing import Any

import orjson

from services.llm_gateway.core.chat import ChatRequest, Delta, FinishReason, Generation, Usage
from services.llm_gateway.core.refusals import Refusal, status_in
from services.llm_gateway.core.reply_builder import ReplyBuilder
from services.llm_gateway.core.reply_reader import ReplyReader
from services.llm_gateway.vendors.openai.calls import CallReader
from services.llm_gateway.vendors.openai.details import take_details
from services.llm_gateway.vendors.openai.profiles import VendorProfile
from services.llm_gateway.vendors.openai.translate import complete_reply
from services.llm_gateway.vendors.shared.text_thoughts import OFF, TextThoughts

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
    """Reads one reply to `request`. `text` reads its text, where thoughts may be in that."""

    def __init__(
        self, builder: ReplyBuilder, request: ChatRequest, vendor: VendorProfile, text: TextThoughts | None = None
    ) -> None:
        super().__init__(builder)
        self._text = TextThoughts(builder, OFF) if text is None else text
        self._request = request
        self._vendor = vendor
        self._calls = CallReader(builder, [tool.name for tool in request.tools])

    def take_whole(self, reply: Mapping[str, Any]) -> Iterable[Delta]:
        """See ReplyReader.take_whole. Some servers send errors as 200."""
        if self._fails(reply):
            return ()
        deltas: list[Delta] = []
        self.builder.finish = None if reply.get("choices") else FinishReason.UNKNOWN
        for choice in (reply.get("choices") or ())[:1]:
            deltas += self._take_message(choice.get("message") or {}, whole=True)
            _take_token_details(self.builder, choice)
            self._take_finish(choice.get("finish_reason") or "")
        _take_envelope(self.builder, reply)
        return deltas

    def take_event(self, event: Mapping[str, Any]) -> Iterator[Delta]:
        """See ReplyReader.take_event."""
        if self._fails(event):
            return
        for choice in (event.get("choices") or ())[:1]:
            self.began = True
            yield from self._take_message(choice.get("delta") or choice.get("message") or {}, whole=False)
            _take_token_details(self.builder, choice)
            if reason := choice.get("finish_reason"):
                self._take_finish(reason)
            if usage := choice.get("usage"):  # Moonshot's
                self.builder.usage = usage_of(usage)
        _take_envelope(self.builder, event)

    def close(self) -> Iterable[Delta]:
        """See ReplyReader.close."""
        return [*self._text.end(), *self._calls.close()]

    def complete(self, generation: Generation) -> Generation:
        """See ReplyReader.complete."""
        return complete_reply(generation, self._request, self._vendor)

    def _fails(self, body: Mapping[str, Any]) -> bool:
        if error := error_in(body):
            self.failure = status_in(error), {"error": error}
        return bool(error)

    def _take_finish(self, reason: Any) -> None:
        self.is_broken = reason in _BROKEN
        self.builder.finish = None if self.is_broken else _FINISH.get(reason, FinishReason.UNKNOWN)

    def _take_message(self, message: Mapping[str, Any], *, whole: bool) -> Iterator[Delta]:
        """Reads a whole message or a delta of one: they have the same fields."""
        builder = self.builder
        if details := message.get("reasoning_details"):
            # They say all that `reasoning` says beside them.
            self._text.leave()
            yield from take_details(builder, details)
        else:
            for name in _THOUGHTS:
                if isinstance(thoughts := message.get(name), str) and thoughts:
                    self._text.leave()
                    yield builder.add_reasoning("reasoning", thoughts)
                    break
        content = message.get("content")
        if isinstance(content, list):  # Mistral's
            for part in content:
                yield from self._take_part(part)
        elif content:
            yield from self._text.add(content)
        if refusal := message.get("refusal"):
            # What the model says to the user, in a field of its own.
            yield from self._text.add(refusal)
        calls = message.get("tool_calls") or ()
        if not calls and (call := message.get("function_call")):  # the older name, of one call
            calls = [{"index": "function_call", "function": call}]
        if calls:
            yield from self._text.end()
            yield from self._calls.take(calls, whole=whole)

    def _take_part(self, part: Any) -> Iterator[Delta]:
        if isinstance(part, str):
            part = {"type": "text", "text": part}
        if part.get("type") == "thinking":
            thinking = part.get("thinking") or ()
            texts = [thinking] if isinstance(thinking, str) else [item.get("text") or "" for item in thinking]
            if any(texts):
                self._text.leave()
                yield self.builder.add_reasoning("reasoning", "".join(texts))
        elif part.get("text"):
            yield from self._text.add(part["text"])


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
    """Returns the vectors of an embeddings reply, in the order of the inputs: that of their indexes, where each has one
    of its own, else as they stand. Some servers send base64 whatever they are asked for.
    """
    items = list(body["data"])
    indexes = [item.get("index") for item in items]
    if sorted(index for index in indexes if isinstance(index, int)) == list(range(len(items))):
        items.sort(key=lambda item: int(item["index"]))
    return [_vector(item["embedding"]) for item in items]


def _vector(value: Any) -> list[float]:
    """Returns the numbers of a vector: a list, or the base64 of its 32-bit floats, little-endian."""
    if not isinstance(value, str):
        return [*value]
    floats = array("f", b64decode(value, validate=True))
    if byteorder == "big":
        floats.byteswap()
    return floats.tolist()
