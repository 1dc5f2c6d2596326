"""The bytes of OpenAI's Chat Completions, models and embeddings, made from a script's `Reply`.

Shapes as of the public API reference and the vendor's SDK types (version 3).
"""

import base64
import hashlib
import math
import struct
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import orjson

from tests.fakes.script import Reply, Seen, ToolCall, Usage, words
from tests.fakes.server import JSON_HEADERS, SSE_HEADERS, Planned

ERRORS: Mapping[str, tuple[int, str, str | None, str]] = {
    "authentication": (
        401,
        "invalid_request_error",
        "invalid_api_key",
        "Incorrect API key provided: sk-f*****ke.",
    ),
    "rate_limit": (429, "requests", "rate_limit_exceeded", "Rate limit reached for requests per min (RPM)."),
    "quota": (429, "insufficient_quota", "insufficient_quota", "You exceeded your current quota."),
    "context_overflow": (
        400,
        "invalid_request_error",
        "context_length_exceeded",
        "This model's maximum context length is 128000 tokens. However, your messages resulted in 130001 tokens.",
    ),
    "bad_request": (400, "invalid_request_error", None, "Invalid value for a parameter."),
    "model_not_found": (404, "invalid_request_error", "model_not_found", "The model does not exist."),
    "server": (500, "server_error", None, "The server had an error while processing your request."),
    "overloaded": (503, "server_error", None, "The engine is currently overloaded, please try again later."),
}


def error(
    kind: str,
    message: str | None = None,
    status: int | None = None,
    param: str | None = None,
    code: str | None = None,
) -> Planned:
    """An error reply in the vendor's shape."""
    default_status, error_type, usual_code, text = ERRORS[kind]
    headers = {**JSON_HEADERS, "x-request-id": "req_fake"}
    return Planned(
        status or default_status, headers, _error_body(error_type, code or usual_code, message or text, param)
    )


def _error_body(error_type: str, code: str | None, message: str, param: str | None = None) -> bytes:
    return orjson.dumps({"error": {"message": message, "type": error_type, "param": param, "code": code}})


def chat(reply: Reply, seen: Seen, number: int) -> Planned:
    """The answer to POST /chat/completions; `number` makes ids unique within one server."""
    maker = _Completion(reply, seen, number)
    headers = {"x-request-id": f"req_{number}", **reply.headers}
    if not seen.stream:
        return Planned(200, {**JSON_HEADERS, **headers}, orjson.dumps(maker.whole()))
    end = reply.line_end.encode()
    frames = [b"data: " + orjson.dumps(chunk) + end + end for chunk in maker.chunks()]
    frames.append(b"data: [DONE]" + end + end)
    if reply.keepalives:
        frames = [piece for frame in frames for piece in (b": keep-alive" + end + end, frame)]
    broken = b"data: " + _error_body("server_error", None, reply.message or "The server had an error.") + b"\n\n"
    return Planned(200, {**SSE_HEADERS, **headers}, frames=frames, error_frame=broken)


class _Completion:
    """One chat completion, whole or as chunks."""

    def __init__(self, reply: Reply, seen: Seen, number: int) -> None:
        self.reply = reply
        self.asked = seen.body
        self.base = {
            "id": f"chatcmpl-fake{number}",
            "created": int(time.time()),
            "model": seen.model,
            "service_tier": "default",
            "system_fingerprint": "fp_fake",
        }
        self.calls = [(call, call.id or f"call_fake{number}_{index}") for index, call in enumerate(reply.calls)]
        self.finish = reply.finish or ("tool_calls" if reply.calls else "stop")
        self.usage = usage(reply.usage or _estimate(reply, seen))
        options = seen.body.get("stream_options") or {}
        self.with_usage = reply.send_usage and (not seen.stream or bool(options.get("include_usage")))

    def whole(self) -> dict[str, Any]:
        reply = self.reply
        message: dict[str, Any] = {
            "role": "assistant",
            "content": reply.whole_text() or (None if self.calls or reply.refusal else ""),
            "refusal": reply.refusal or None,
            "annotations": [],
        }
        if reply.reasoning:
            message[reply.reasoning_field] = reply.reasoning
        if self.calls:
            message["tool_calls"] = [
                {"id": id, "type": "function", "function": {"name": call.name, "arguments": arguments(call)}}
                for call, id in self.calls
            ]
        pieces = list(reply.pieces())
        details = {"logprobs": None, **self._token_details(pieces, 0)}
        choice = {"index": 0, "message": message, **details, "finish_reason": self.finish}
        body = {**self.base, "object": "chat.completion", "choices": [choice]}
        if self.asked.get("return_token_ids"):
            body["prompt_token_ids"] = [1, 2, 3]
        return {**body, "usage": self.usage} if self.with_usage else body

    def chunks(self) -> Iterator[dict[str, Any]]:
        reply = self.reply
        yield self._chunk({"role": "assistant", "content": None if self.calls else "", "refusal": None})
        for piece in words(reply.reasoning):
            yield self._chunk({reply.reasoning_field: piece})
        for number, piece in enumerate(reply.pieces()):
            yield self._chunk({"content": piece}, **self._token_details([piece], number))
        for piece in words(reply.refusal):
            yield self._chunk({"refusal": piece})
        for index, (call, id) in enumerate(self.calls):
            yield from self._call_chunks(index, call, id)
        yield self._chunk({}, self.finish)
        if self.with_usage:
            yield {**self.base, "object": "chat.completion.chunk", "choices": [], "usage": self.usage}

    def _call_chunks(self, index: int, call: ToolCall, id: str) -> Iterator[dict[str, Any]]:
        head = {
            "index": index,
            "id": id,
            "type": "function",
            "function": {"name": call.name, "arguments": ""},
        }
        yield self._chunk({"tool_calls": [head]})
        text, size = arguments(call), self.reply.argument_chunk
        for start in range(0, len(text), size):
            piece = {"index": index, "function": {"arguments": text[start : start + size]}}
            yield self._chunk({"tool_calls": [piece]})

    def _token_details(self, pieces: Sequence[str], first: int) -> dict[str, Any]:
        """Returns the requested details of the tokens, one for each piece of the text; ids are 1000, 1001, ..."""
        details: dict[str, Any] = {}
        if self.asked.get("logprobs") and pieces:
            top = self.asked.get("top_logprobs", 0)
            content = [token(piece, first + offset, top) for offset, piece in enumerate(pieces)]
            details["logprobs"] = {"content": content, "refusal": None}
        if self.asked.get("return_token_ids") and pieces:
            details["token_ids"] = [1000 + first + offset for offset in range(len(pieces))]
        return details

    def _chunk(self, delta: Mapping[str, Any], finish: str | None = None, **details: Any) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "logprobs": None, **details, "finish_reason": finish}
        chunk: dict[str, Any] = {**self.base, "object": "chat.completion.chunk", "choices": [choice]}
        return {**chunk, "usage": None} if self.with_usage else chunk


def token(text: str, number: int, top: int) -> dict[str, Any]:
    """A token of a reply with its log probability, the `top` likeliest ones beside it."""
    made = {"token": text, "logprob": -0.25 * (number + 1), "bytes": list(text.encode())}
    others = [{"token": f"other{rank}", "logprob": -9.5 - rank, "bytes": None} for rank in range(1, top)]
    return {**made, "top_logprobs": [made, *others][:top]}


def arguments(call: ToolCall) -> str:
    """A call's arguments as the wire's JSON text."""
    return call.raw_arguments if call.raw_arguments is not None else orjson.dumps(dict(call.arguments)).decode()


def usage(counts: Usage) -> dict[str, Any]:
    """Usage in the vendor's shape; prompt tokens include the cached ones."""
    return {
        "prompt_tokens": counts.input,
        "completion_tokens": counts.output,
        "total_tokens": counts.input + counts.output,
        "prompt_tokens_details": {"cached_tokens": counts.cached, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": counts.reasoning, "audio_tokens": 0},
    }


def _estimate(reply: Reply, seen: Seen) -> Usage:
    texts = sum(len(str(message.get("content") or "")) for message in seen.body.get("messages", ()))
    return Usage(input=max(1, texts // 4), output=max(1, len(reply.text) // 4 + 8 * len(reply.calls)))


def embeddings(body: Mapping[str, Any], dimensions: int) -> Planned:
    """The answer to POST /embeddings: vectors that depend on the text alone, as floats or base64 of
    float32.
    """
    inputs = body["input"] if isinstance(body["input"], list) else [body["input"]]
    size = body.get("dimensions") or dimensions
    data = []
    for index, text in enumerate(inputs):
        vector = vector_of(str(text), size)
        packed = base64.b64encode(struct.pack(f"<{size}f", *vector)).decode()
        value = packed if body.get("encoding_format") == "base64" else vector
        data.append({"object": "embedding", "index": index, "embedding": value})
    tokens = sum(max(1, len(str(text)) // 4) for text in inputs)
    counts = {"prompt_tokens": tokens, "total_tokens": tokens}
    answer = {"object": "list", "data": data, "model": body["model"], "usage": counts}
    return Planned(200, JSON_HEADERS, orjson.dumps(answer))


def vector_of(text: str, size: int) -> list[float]:
    """A unit vector made from the text's hash: equal texts have equal vectors, others point elsewhere."""
    stream = hashlib.shake_256(text.encode()).digest(size)
    values = [byte - 127.5 for byte in stream]
    length = math.sqrt(sum(value * value for value in values))
    return [value / length for value in values]


def models(names: tuple[str, ...]) -> Planned:
    """The answer to GET /models."""
    data = [{"id": name, "object": "model", "created": 1700000000, "owned_by": "system"} for name in names]
    return Planned(200, JSON_HEADERS, orjson.dumps({"object": "list", "data": data}))
