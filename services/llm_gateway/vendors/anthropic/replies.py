"""Anthropic's replies, whole or as events, as the neutral chat. Pure."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import orjson

from services.llm_gateway.core.chat import Delta, FinishReason, Usage
from services.llm_gateway.core.refusals import Refusal
from services.llm_gateway.core.reply_builder import ReplyBuilder
from services.llm_gateway.core.reply_reader import ReplyReader
from services.llm_gateway.vendors.shared.origins import ANTHROPIC, with_origin

_FINISH = {
    "end_turn": FinishReason.STOP,
    "stop_sequence": FinishReason.STOP,
    "pause_turn": FinishReason.STOP,
    "tool_use": FinishReason.TOOL_CALLS,
    "max_tokens": FinishReason.LENGTH,
    "model_context_window_exceeded": FinishReason.LENGTH,
    "refusal": FinishReason.CONTENT_FILTER,
}
# The statuses of the error types, for errors that come inside a stream.
STATUSES = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}


class Reader(ReplyReader):
    """Reads one reply into a builder. The input of a call of `reply_tool` is text to it; `origin`: whose its thoughts
    are.
    """

    def __init__(self, builder: ReplyBuilder, reply_tool: str = "", origin: str = ANTHROPIC) -> None:
        super().__init__(builder)
        self._reply_tool = reply_tool
        self._origin = origin
        self._signed: set[int] = set()
        # The blocks that are calls of it.
        self._replies: set[int] = set()
        self._usage: dict[str, Any] = {}
        self._inputs: dict[int, Any] = {}
        # Blocks in the order of their beginnings, and those that have not ended by their index.
        self._started = 0
        self._open: dict[Any, int] = {}

    @property
    def is_complete(self) -> bool:
        """See ReplyReader.is_complete."""
        return self.ended or (self.builder.finish is not None and not self._open)

    def take_whole(self, reply: Mapping[str, Any]) -> Iterable[Delta]:
        """See ReplyReader.take_whole."""
        self._take_envelope(reply)
        deltas: list[Delta] = []
        for index, block in enumerate(reply.get("content") or ()):
            deltas += self._take_block(index, block)
            deltas += self._end_block(index)
        deltas += self._take_stop(reply)
        self.ended = True
        return deltas

    def take_event(self, event: Mapping[str, Any]) -> Iterator[Delta]:
        """See ReplyReader.take_event. Types it does not know are passed over."""
        match event.get("type"):
            case "content_block_delta":
                yield from self._take_delta(self._block_at(event), event["delta"])
            case "content_block_start":
                self._started += 1
                self._open[event.get("index")] = self._started
                yield from self._take_block(self._started, event["content_block"])
            case "content_block_stop":
                yield from self._end_block(self._open.pop(event.get("index"), self._started))
            case "message_start":
                self._take_envelope(event["message"])
            case "message_delta":
                yield from self._take_stop({**event["delta"], "usage": event.get("usage")})
            case "message_stop":
                self.ended = True
            case "error":
                self.failure = STATUSES.get(read_refusal(500, event).kind, 500), event

    def close(self) -> Iterable[Delta]:
        """See ReplyReader.close. Blocks that nobody ended may have their input, too."""
        return [delta for index in list(self._inputs) for delta in self._end_block(index)]

    def _block_at(self, event: Mapping[str, Any]) -> int:
        """Returns the block that an event is of. Some servers give every block the same index, or begin none."""
        return self._open.setdefault(event.get("index"), self._started)

    def _take_envelope(self, message: Mapping[str, Any]) -> None:
        self.builder.response_id, self.builder.model = message.get("id") or "", message.get("model") or ""
        self._count(message.get("usage"))

    def _take_stop(self, fields: Mapping[str, Any]) -> Iterator[Delta]:
        if reason := fields.get("stop_reason"):
            # The builder itself sees whether there are calls.
            done = reason == "tool_use" and bool(self._replies)
            self.builder.finish = FinishReason.STOP if done else _FINISH.get(reason, FinishReason.UNKNOWN)
        self._count(fields.get("usage"))
        explanation = (fields.get("stop_details") or {}).get("explanation")
        if explanation and self.builder.is_empty:
            # Why it was declined is all that came.
            yield self.builder.add_text("explanation", explanation)

    def _count(self, usage: Mapping[str, Any] | None) -> None:
        # Later figures replace earlier ones: they are cumulative.
        self._usage |= {name: value for name, value in (usage or {}).items() if value is not None}
        if self._usage:
            self.builder.usage = usage_of(self._usage)

    def _take_block(self, index: int, block: Mapping[str, Any]) -> Iterator[Delta]:
        match block.get("type"):
            case "text" if block["text"]:
                yield self.builder.add_text(index, block["text"])
            case "thinking":
                begun = self.builder.add_reasoning(index, block["thinking"])
                if begun.text:
                    yield begun
                if signature := block.get("signature"):
                    self._sign(index, signature)
            case "redacted_thinking":
                self.builder.add_redacted(index, with_origin(self._origin, block["data"]))
            case "tool_use":
                self._inputs[index] = block.get("input")
                if self._reply_tool and block.get("name") == self._reply_tool:
                    self._replies.add(index)
                    return
                yield self.builder.begin_call(index, block.get("id") or "", block.get("name") or "")

    def _take_delta(self, index: int, delta: Mapping[str, Any]) -> Iterator[Delta]:
        match delta.get("type"):
            case "text_delta":
                yield self.builder.add_text(index, delta["text"])
            case "input_json_delta" if delta["partial_json"]:
                yield self._add_input(index, delta["partial_json"])
            case "thinking_delta":
                yield self.builder.add_reasoning(index, delta["thinking"])
            case "signature_delta":
                self._sign(index, delta["signature"])

    def _sign(self, index: int, piece: str) -> None:
        """Adds to a signature; its first piece takes the origin along."""
        if not piece:
            return
        self.builder.sign(index, piece if index in self._signed else with_origin(self._origin, piece))
        self._signed.add(index)

    def _end_block(self, index: int) -> Iterator[Delta]:
        """Whole replies, and some compatible servers' streams, give the input at once instead of in
        deltas.
        """
        value = self._inputs.pop(index, None)
        if (value or index in self._replies) and not self.builder.has_pieces(index):
            return iter((self._add_input(index, orjson.dumps(value or {}).decode()),))
        return iter(())

    def _add_input(self, index: int, piece: str) -> Delta:
        if index in self._replies:
            return self.builder.add_text(index, piece)
        return self.builder.add_arguments(index, piece)


def usage_of(usage: Mapping[str, Any]) -> Usage:
    """Returns usage in the neutral form: this wire counts cached input apart, ours includes it."""
    cached, written = usage.get("cache_read_input_tokens"), usage.get("cache_creation_input_tokens")
    details = usage.get("output_tokens_details") or {}
    return Usage(
        prompt_tokens=usage.get("input_tokens", 0) + (cached or 0) + (written or 0),
        completion_tokens=usage.get("output_tokens", 0),
        cached_input_tokens=cached,
        cache_write_tokens=written,
        reasoning_tokens=details.get("thinking_tokens"),
    )


def read_refusal(status: int, body: Any) -> Refusal:
    """Returns the refusal in an error body."""
    error = body.get("error", body) if isinstance(body, dict) else body
    if not isinstance(error, dict):
        return Refusal(status, str(error or ""))
    kind = str(error.get("type") or "")
    details = error.get("details")
    code = details.get("error_code") if isinstance(details, dict) else ""
    return Refusal(status, str(error.get("message") or ""), kind, str(code or ""))
