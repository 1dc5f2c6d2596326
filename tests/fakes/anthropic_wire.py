"""The bytes of Anthropic's Messages API and its models list, made from a script's `Reply`.

Shapes as of API version 2026-10-21 and the vendor's SDK types (version 2).
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import orjson

from tests.fakes.script import Reply, Seen, ToolCall, Usage, words
from tests.fakes.server import JSON_HEADERS, SSE_HEADERS, Planned

ERRORS: Mapping[str, tuple[int, str, str]] = {
    "authentication": (401, "authentication_error", "invalid x-api-key"),
    "rate_limit": (429, "rate_limit_error", "This request would exceed your organization's rate limit."),
    "quota": (400, "invalid_request_error", "Your credit balance is too low to access the Anthropic API."),
    "context_overflow": (400, "invalid_request_error", "prompt is too long: 208310 tokens > 200000 maximum"),
    "bad_request": (400, "invalid_request_error", "max_tokens: Field required"),
    "model_not_found": (404, "not_found_error", "model: not found"),
    "server": (500, "api_error", "Internal server error"),
    "overloaded": (529, "overloaded_error", "Overloaded"),
}


def error(kind: str, message: str | None = None, status: int | None = None) -> Planned:
    """An error reply in the vendor's shape."""
    default_status, error_type, text = ERRORS[kind]
    headers = {**JSON_HEADERS, "request-id": "req_fake"}
    return Planned(status or default_status, headers, orjson.dumps(_error_body(error_type, message or text)))


def _error_body(error_type: str, message: str) -> dict[str, Any]:
    return {"type": "error", "error": {"type": error_type, "message": message}, "request_id": "req_fake"}


def counted(tokens: int) -> Planned:
    """The answer to POST /v1/messages/count_tokens."""
    return Planned(200, JSON_HEADERS, orjson.dumps({"input_tokens": tokens}))


def message(reply: Reply, seen: Seen, number: int, usage: Usage) -> Planned:
    """The answer to POST /v1/messages; `number` makes ids unique within one server."""
    maker = _Message(reply, seen, number, usage)
    headers = {"request-id": f"req_{number}", **reply.headers}
    if not seen.stream:
        return Planned(200, {**JSON_HEADERS, **headers}, orjson.dumps(maker.whole()))
    frames = [frame(event, reply.line_end) for event in maker.events()]
    kind = _error_body("overloaded_error", reply.message or "Overloaded")
    return Planned(200, {**SSE_HEADERS, **headers}, frames=frames, error_frame=frame(kind))


def frame(event: Mapping[str, Any], line_end: str = "\n") -> bytes:
    """One named server-sent event."""
    end = line_end.encode()
    name: str = event["type"]
    return b"event: " + name.encode() + end + b"data: " + orjson.dumps(event) + end + end


class _Message:
    """One message, whole or as events."""

    def __init__(self, reply: Reply, seen: Seen, number: int, usage: Usage) -> None:
        self.reply = reply
        self.number = number
        self.stop_reason = reply.finish or ("tool_use" if reply.calls else "end_turn")
        self.output_tokens = usage.output
        self.input_usage = {
            "input_tokens": usage.input,
            "cache_creation_input_tokens": usage.cache_write,
            "cache_read_input_tokens": usage.cached,
        }
        self.base = {"id": f"msg_fake{number}", "type": "message", "role": "assistant", "model": seen.model}

    def whole(self) -> dict[str, Any]:
        return {
            **self.base,
            "content": [block for block, _ in self._blocks()],
            "stop_reason": self.stop_reason,
            "stop_sequence": None,
            "usage": {**self.input_usage, "output_tokens": self.output_tokens, "service_tier": "standard"},
        }

    def events(self) -> Iterator[dict[str, Any]]:
        start: dict[str, Any] = {**self.base, "content": [], "stop_reason": None, "stop_sequence": None}
        yield {
            "type": "message_start",
            "message": {**start, "usage": {**self.input_usage, "output_tokens": 1}},
        }
        for index, (block, deltas) in enumerate(self._blocks()):
            yield {"type": "content_block_start", "index": index, "content_block": _emptied(block)}
            if index == 0 or self.reply.keepalives:
                yield {"type": "ping"}
            for delta in deltas:
                yield {"type": "content_block_delta", "index": index, "delta": delta}
            yield {"type": "content_block_stop", "index": index}
        stop = {"stop_reason": self.stop_reason, "stop_sequence": None}
        yield {"type": "message_delta", "delta": stop, "usage": {"output_tokens": self.output_tokens}}
        yield {"type": "message_stop"}

    def _blocks(self) -> Iterator[tuple[dict[str, Any], list[dict[str, Any]]]]:
        """Each content block whole, beside the deltas that make it."""
        reply = self.reply
        if reply.reasoning:
            deltas = [{"type": "thinking_delta", "thinking": piece} for piece in words(reply.reasoning)]
            deltas.append({"type": "signature_delta", "signature": reply.signature})
            yield {"type": "thinking", "thinking": reply.reasoning, "signature": reply.signature}, deltas
        if reply.redacted:
            yield {"type": "redacted_thinking", "data": reply.redacted}, []
        if text := reply.whole_text():
            pieces = [{"type": "text_delta", "text": piece} for piece in reply.pieces()]
            yield {"type": "text", "text": text}, pieces
        for index, call in enumerate(reply.calls):
            id = call.id or f"toolu_fake{self.number}_{index}"
            block = {"type": "tool_use", "id": id, "name": call.name, "input": dict(call.arguments)}
            yield block, list(self._input_deltas(call))

    def _input_deltas(self, call: ToolCall) -> Iterator[dict[str, Any]]:
        raw = call.raw_arguments
        text = raw if raw is not None else orjson.dumps(dict(call.arguments)).decode()
        yield {"type": "input_json_delta", "partial_json": ""}
        for start in range(0, len(text), self.reply.argument_chunk):
            piece = text[start : start + self.reply.argument_chunk]
            yield {"type": "input_json_delta", "partial_json": piece}


def _emptied(block: Mapping[str, Any]) -> dict[str, Any]:
    """A block as `content_block_start` shows it, before its deltas."""
    empty: dict[str, Any] = {"text": "", "thinking": "", "signature": "", "input": {}}
    return {key: empty.get(key, value) for key, value in block.items()}


def _capabilities(name: str) -> dict[str, Any]:
    """Returns the capabilities of a model that clients ask for; the vendor lists more."""
    adaptive = not name.endswith("4-5")
    types = {"adaptive": adaptive, "enabled": not adaptive, "disabled": "haiku" in name}
    return {
        "image_input": {"supported": True},
        "structured_outputs": {"supported": True},
        "thinking": {"supported": True, "types": {kind: {"supported": yes} for kind, yes in types.items()}},
    }


def models(names: Sequence[str], limits: tuple[int, int], query: Mapping[str, str]) -> Planned:
    """The answer to GET /v1/models: one page of `limit` after `after_id`, each with its window and output
    limit.
    """
    start = names.index(query["after_id"]) + 1 if query.get("after_id") in names else 0
    page = names[start : start + int(query.get("limit", 20))]
    data = [
        {
            "type": "model",
            "id": name,
            "display_name": name.replace("-", " ").title(),
            "created_at": "2025-10-01T00:00:00Z",
            "lifecycle": "active",
            "max_input_tokens": limits[0],
            "max_tokens": limits[1],
            "capabilities": _capabilities(name),
        }
        for name in page
    ]
    ends = {"first_id": page[0] if page else None, "last_id": page[-1] if page else None}
    more = start + len(page) < len(names)
    return Planned(200, JSON_HEADERS, orjson.dumps({"data": data, "has_more": more, **ends}))
