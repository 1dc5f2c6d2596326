"""Replies of Bedrock's Converse API, whole or as events, as the neutral chat; and its refusals. Pure."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import orjson

from services.llm_gateway.core.chat import Delta, FinishReason, Usage
from services.llm_gateway.core.refusals import Refusal
from services.llm_gateway.core.reply_builder import ReplyBuilder
from services.llm_gateway.core.reply_reader import ReplyReader
from services.llm_gateway.vendors.shared.origins import ANTHROPIC, BEDROCK, with_origin
from services.llm_gateway.vendors.shared.text_thoughts import OFF, TextThoughts

_FINISH = {
    "end_turn": FinishReason.STOP,
    "stop_sequence": FinishReason.STOP,
    "tool_use": FinishReason.TOOL_CALLS,
    "max_tokens": FinishReason.LENGTH,
    "model_context_window_exceeded": FinishReason.LENGTH,
    "content_filtered": FinishReason.CONTENT_FILTER,
    "guardrail_intervened": FinishReason.CONTENT_FILTER,
}
# The statuses of the exceptions that come inside a stream.
_STATUSES = {
    "validationexception": 400,
    "accessdeniedexception": 403,
    "resourcenotfoundexception": 404,
    "modeltimeoutexception": 408,
    "modelstreamerrorexception": 424,
    "throttlingexception": 429,
    "modelnotreadyexception": 429,
    "internalserverexception": 500,
    "serviceunavailableexception": 503,
}
_TOO_LONG = re.compile(r"input is too long|input tokens? exceed|number of input tokens exceeds", re.IGNORECASE)
_NO_MODEL = re.compile(r"model identifier is invalid|could not resolve the foundation model", re.IGNORECASE)
_SPENT = re.compile(r"tokens per day", re.IGNORECASE)


class Reader(ReplyReader):
    """Reads one reply into a builder. The input of a call of `reply_tool` is text to it; without `may_call` other
    calls are left out. `signed_by`: whose its signatures are. `text` reads the first text, where thoughts may be in
    that.
    """

    def __init__(
        self,
        builder: ReplyBuilder,
        signed_by: str = ANTHROPIC,
        reply_tool: str = "",
        *,
        may_call: bool = True,
        text: TextThoughts | None = None,
    ) -> None:
        super().__init__(builder)
        self._text = TextThoughts(builder, OFF) if text is None else text
        self._text_at: int | None = None
        self._signed_by = signed_by
        self._reply_tool = reply_tool
        self._may_call = may_call
        # The blocks that are calls of it, and those that are left out.
        self._replies: set[int] = set()
        self._left_out: set[int] = set()
        self._signed: set[int] = set()
        self._has_finished = False

    @property
    def is_complete(self) -> bool:
        """See ReplyReader.is_complete. `ended` says more: the usage, which comes last, has come, too."""
        return self._has_finished

    def take_headers(self, headers: Mapping[str, str]) -> None:
        """See ReplyReader.take_headers."""
        self.builder.response_id = headers.get("x-amzn-requestid", "")

    def take_whole(self, reply: Mapping[str, Any]) -> Iterable[Delta]:
        """See ReplyReader.take_whole."""
        message = (reply.get("output") or {}).get("message") or {}
        blocks = enumerate(message.get("content") or ())
        deltas = [delta for index, block in blocks for delta in self._take_block(index, block)]
        self._take_stop(reply.get("stopReason"))
        self._take_usage(reply.get("usage"))
        return deltas

    def take_event(self, event: Mapping[str, Any]) -> Iterator[Delta]:
        """See ReplyReader.take_event; an event is {its name: what it says}. Unknown ones are passed over."""
        for name, fields in event.items():
            match name:
                case "contentBlockDelta":
                    yield from self._take_delta(fields["contentBlockIndex"], fields["delta"])
                case "contentBlockStart":
                    if call := fields["start"].get("toolUse"):
                        yield from self._begin_call(fields["contentBlockIndex"], call)
                case "messageStop":
                    self._take_stop(fields.get("stopReason"))
                case "metadata":
                    self._take_usage(fields.get("usage"))
                    self.ended = True
                case "exception":
                    kind = str(event["__type"])
                    self.failure = status_of(kind), {"__type": kind, **fields}
                case "error":
                    self.failure = 500, fields

    def _take_block(self, index: int, block: Mapping[str, Any]) -> Iterator[Delta]:
        if call := block.get("toolUse"):
            yield from self._begin_call(index, call)
            if call.get("input") or index in self._replies:
                yield from self._take_input(index, orjson.dumps(call.get("input") or {}).decode())
        elif thoughts := block.get("reasoningContent"):
            yield from self._take_thoughts(index, {**thoughts, **(thoughts.get("reasoningText") or {})})
        elif text := block.get("text"):
            yield from self._take_text(index, text)
        for cited in (block.get("citationsContent") or {}).get("content") or ():
            if text := cited.get("text"):
                yield self.builder.add_text(index, text)

    def _take_delta(self, index: int, delta: Mapping[str, Any]) -> Iterator[Delta]:
        if text := delta.get("text"):
            yield from self._take_text(index, text)
        if piece := (delta.get("toolUse") or {}).get("input"):
            yield from self._take_input(index, piece)
        if thoughts := delta.get("reasoningContent"):
            yield from self._take_thoughts(index, thoughts)

    def _take_text(self, index: int, text: str) -> Iterator[Delta]:
        if self._text_at is None:
            self._text_at = index
        return self._text.add(text) if index == self._text_at else iter((self.builder.add_text(index, text),))

    def close(self) -> Iterable[Delta]:
        """See ReplyReader.close."""
        return self._text.end()

    def _take_thoughts(self, index: int, thoughts: Mapping[str, Any]) -> Iterator[Delta]:
        if text := thoughts.get("text"):
            self._text.leave()
            yield self.builder.add_reasoning(index, text)
        if signature := thoughts.get("signature"):
            self.builder.sign(index, signature if index in self._signed else with_origin(self._signed_by, signature))
            self._signed.add(index)
        if data := thoughts.get("redactedContent"):
            self.builder.add_redacted(index, data if self.builder.has_pieces(index) else with_origin(BEDROCK, data))

    def _begin_call(self, index: int, call: Mapping[str, Any]) -> Iterator[Delta]:
        yield from self._text.end()
        if self._reply_tool and call["name"] == self._reply_tool:
            self._replies.add(index)
        elif self._may_call:
            yield self.builder.begin_call(index, call["toolUseId"], call["name"])
        else:
            self._left_out.add(index)

    def _take_input(self, index: int, piece: str) -> Iterator[Delta]:
        if index in self._replies:
            yield self.builder.add_text(index, piece)
        elif index not in self._left_out:
            yield self.builder.add_arguments(index, piece)

    def _take_stop(self, reason: str | None) -> None:
        self._has_finished = True
        made_up = reason == "tool_use" and bool(self._replies or self._left_out)
        # The builder itself sees whether there are calls.
        self.builder.finish = FinishReason.STOP if made_up else _FINISH.get(reason or "", FinishReason.UNKNOWN)

    def _take_usage(self, usage: Mapping[str, Any] | None) -> None:
        if usage:
            self.builder.usage = usage_of(usage)


def usage_of(usage: Mapping[str, Any]) -> Usage:
    """Returns usage in the neutral form: this wire counts cached input apart, ours includes it."""
    cached, written = usage.get("cacheReadInputTokens"), usage.get("cacheWriteInputTokens")
    return Usage(
        prompt_tokens=usage.get("inputTokens", 0) + (cached or 0) + (written or 0),
        completion_tokens=usage.get("outputTokens", 0),
        cached_input_tokens=cached,
        cache_write_tokens=written,
    )


def read_refusal(status: int, body: Any) -> Refusal:
    """Returns the refusal in an error body; it names its kind only inside a stream, elsewhere the status tells it."""
    if not isinstance(body, dict):
        return Refusal(status, str(body or ""))
    kind = str(body.get("__type") or "").rpartition("#")[2]
    message = str(body.get("message") or body.get("Message") or "")
    if _TOO_LONG.search(message):
        code = "context_length_exceeded"
    elif _NO_MODEL.search(message):
        code = "model_not_found"
    elif _SPENT.search(message) or "ServiceQuotaExceeded" in kind or "service quota" in message.lower():
        code = "insufficient_quota"
    else:
        code = ""
    return Refusal(status, message, kind, code)


def status_of(exception: str) -> int:
    """Returns the HTTP status that an exception inside a stream would have had."""
    return _STATUSES.get(exception.lower(), 500)
