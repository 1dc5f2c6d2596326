"""Replies of OpenAI's Responses, whole or as events, as the neutral chat. Pure.

The events of HTTP's stream and of the WebSocket are the same; only their errors differ in shape.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from services.llm_gateway.core.chat import ChatRequest, Delta, FinishReason, Generation, Usage
from services.llm_gateway.core.refusals import Refusal, retry_after
from services.llm_gateway.core.reply_builder import ReplyBuilder
from services.llm_gateway.core.reply_reader import ReplyReader
from services.llm_gateway.vendors.openai import replies as chat_completions
from services.llm_gateway.vendors.openai.translate import complete_reply
from services.llm_gateway.vendors.responses.translate import DIALECT
from services.llm_gateway.vendors.shared.origins import with_origin

_INCOMPLETE = {"max_output_tokens": FinishReason.LENGTH, "content_filter": FinishReason.CONTENT_FILTER}
_ENDS = frozenset({"response.completed", "response.incomplete", "response.failed", "response.cancelled"})
# Statuses of errors that come without one, by their code.
_STATUSES = {
    "rate_limit_exceeded": 429,
    "insufficient_quota": 429,
    "context_length_exceeded": 400,
    "content_filter": 400,
    "bio_policy": 400,
    "misalignment_policy_violation": 400,
    "previous_response_not_found": 400,
    "websocket_connection_limit_reached": 400,
    "server_error": 500,
}
# The code of a refusal of encrypted thoughts: another account's, or another vendor's after all.
THOUGHTS_REFUSED = "invalid_encrypted_content"
_SUMMARIES_APART = "\n\n"


def seal(origin: str, item: Mapping[str, Any]) -> str:
    """Returns what sends a reasoning item back unchanged: its id and encrypted content; empty without the latter."""
    encrypted = item.get("encrypted_content")
    return with_origin(origin, f"{item.get('id') or ''}:{encrypted}") if encrypted else ""


class Reader(ReplyReader):
    """Reads one reply into a builder.

    `completed`: the last event came, and said that nothing is missing.
    """

    def __init__(self, builder: ReplyBuilder, origin: str, request: ChatRequest | None = None) -> None:
        super().__init__(builder)
        self._request = request
        self._origin = origin
        self._summary_at: dict[int, int] = {}
        self._items_done = 0
        self.completed = False

    @property
    def is_complete(self) -> bool:
        """See ReplyReader.is_complete."""
        return self.ended

    def take_done(self) -> None:
        """See ReplyReader.take_done."""
        super().take_done()
        self.ended = self.builder.finish is not None

    def take_whole(self, reply: Mapping[str, Any]) -> Iterable[Delta]:
        """See ReplyReader.take_whole."""
        return list(self._take_end(reply))

    def complete(self, generation: Generation) -> Generation:
        """See ReplyReader.complete."""
        return generation if self._request is None else complete_reply(generation, self._request, DIALECT)

    def take_event(self, event: Mapping[str, Any]) -> Iterator[Delta]:
        """See ReplyReader.take_event. Those of other tools and media add nothing."""
        kind = event.get("type") or ""
        self.began = True
        match kind:
            case "response.output_text.delta" | "response.refusal.delta":
                yield from self._take_text(event, event.get("delta"), whole=False)
            case "response.reasoning_summary_text.delta":
                yield from self._take_summary(event)
            case "response.reasoning_text.delta":
                yield from self._take_thoughts(event.get("output_index", 0), event.get("delta"))
            case "response.function_call_arguments.delta":
                yield from self._take_arguments(event, event.get("delta"), whole=False)
            case "response.function_call_arguments.done":
                yield from self._take_arguments(event, event.get("arguments"), whole=True)
            case "response.output_text.done":
                yield from self._take_text(event, event.get("text"), whole=True)
            case "response.refusal.done":
                yield from self._take_text(event, event.get("refusal"), whole=True)
            case "response.output_item.added":
                item = event.get("item") or {}
                if item.get("type") == "function_call":
                    yield from self._begin_call(event.get("output_index", 0), item)
            case "response.output_item.done":
                yield from self._take_item(event.get("output_index", 0), event.get("item") or {})
            case "error":
                self._fail(event.get("error") or event, event.get("status"))
            case "" if error := event.get("error"):  # some compatible servers
                self._fail(error, event.get("status"))
            case _ if kind in _ENDS:
                yield from self._take_end(event.get("response") or {})
            case _ if response := event.get("response"):
                # Created, queued, in progress.
                self._take_envelope(response)

    def _take_text(self, event: Mapping[str, Any], text: Any, *, whole: bool) -> Iterator[Delta]:
        key = ("text", event.get("output_index", 0), event.get("content_index", 0))
        if not text or (whole and self.builder.has_pieces(key)):
            return
        if logprobs := event.get("logprobs"):
            self.builder.tokens.add_logprobs({"content": logprobs, "refusal": None})
        yield self.builder.add_text(key, text)

    def _take_summary(self, event: Mapping[str, Any]) -> Iterator[Delta]:
        """Reads a piece of a summary; its parts are paragraphs of one text."""
        index, part = event.get("output_index", 0), event.get("summary_index", 0)
        last = self._summary_at.setdefault(index, part)
        self._summary_at[index] = part
        text = event.get("delta") or ""
        yield from self._take_thoughts(index, f"{_SUMMARIES_APART}{text}" if part != last else text)

    def _take_thoughts(self, index: int, text: Any) -> Iterator[Delta]:
        if text:
            yield self.builder.add_reasoning(("reasoning", index), text)

    def _begin_call(self, index: int, item: Mapping[str, Any]) -> Iterator[Delta]:
        if self.builder.call_id(("call", index)) is None:
            yield self.builder.begin_call(("call", index), item.get("call_id") or "", item.get("name") or "")

    def _take_arguments(self, event: Mapping[str, Any], text: Any, *, whole: bool) -> Iterator[Delta]:
        key = ("call", event.get("output_index", 0))
        if self.builder.call_id(key) is None:  # nobody said whose they are: the whole item will
            return
        if text and not (whole and self.builder.has_pieces(key)):
            yield self.builder.add_arguments(key, text)

    def _take_item(self, index: int, item: Mapping[str, Any]) -> Iterator[Delta]:
        """Reads a whole item; parts of it that came as deltas are not taken again."""
        self._items_done += 1
        match item.get("type"):
            case "message":
                for place, part in enumerate(item.get("content") or ()):
                    text = part.get("text") or part.get("refusal")
                    where = {"output_index": index, "content_index": place, "logprobs": part.get("logprobs")}
                    yield from self._take_text(where, text, whole=True)
                    if (phase := item.get("phase")) and self.builder.has_pieces(("text", index, place)):
                        self.builder.sign(("text", index, place), with_origin(self._origin, phase))
            case "reasoning":
                yield from self._take_reasoning(index, item)
            case "function_call":
                yield from self._begin_call(index, item)
                yield from self._take_arguments({"output_index": index}, item.get("arguments"), whole=True)

    def _take_reasoning(self, index: int, item: Mapping[str, Any]) -> Iterator[Delta]:
        key, signature = ("reasoning", index), seal(self._origin, item)
        if not self.builder.has_pieces(key):
            parts = item.get("summary") or item.get("content") or ()
            yield from self._take_thoughts(index, _SUMMARIES_APART.join(part.get("text") or "" for part in parts))
        if not signature:
            return
        if self.builder.has_pieces(key):
            self.builder.sign(key, signature)
        else:
            self.builder.add_redacted(key, signature)

    def _take_end(self, response: Mapping[str, Any]) -> Iterator[Delta]:
        self._take_envelope(response)
        if not self._items_done:  # some servers send no events for items
            for index, item in enumerate(response.get("output") or ()):
                yield from self._take_item(index, item)
        if usage := response.get("usage"):
            self.builder.usage = usage_of(usage)
        status = response.get("status")
        if (error := response.get("error")) or status in ("failed", "cancelled"):
            self._fail(error or {"message": f"the response is {status}"}, None)
            return
        reason = (response.get("incomplete_details") or {}).get("reason")
        unfinished = FinishReason.STOP if status == "completed" else FinishReason.UNKNOWN
        self.builder.finish = _INCOMPLETE.get(reason or "", unfinished)
        self.ended, self.completed = True, status == "completed"

    def _take_envelope(self, response: Mapping[str, Any]) -> None:
        if not self.builder.response_id:
            self.builder.response_id = response.get("id") or ""
            self.builder.model = response.get("model") or ""

    def _fail(self, error: Any, status: Any) -> None:
        if not isinstance(error, Mapping):
            error = {"message": str(error)}
        self.failure = status if isinstance(status, int) else status_of(error), {"error": error}
        self.ended = True


def status_of(error: Mapping[str, Any]) -> int:
    """Returns the HTTP status that an error without one would have had, by its code."""
    code = str(error.get("code") or "")
    if code in _STATUSES:
        return _STATUSES[code]
    if code.isdigit() and 400 <= int(code) < 600:
        return int(code)
    return 400 if "image" in code or code.startswith("invalid_") else 500


def usage_of(usage: Mapping[str, Any]) -> Usage:
    """Returns usage in the neutral form."""
    read, written = usage.get("input_tokens_details") or {}, usage.get("output_tokens_details") or {}
    return Usage(
        prompt_tokens=usage.get("input_tokens") or 0,
        completion_tokens=usage.get("output_tokens") or 0,
        cached_input_tokens=read.get("cached_tokens"),
        cache_write_tokens=read.get("cache_write_tokens"),
        reasoning_tokens=written.get("reasoning_tokens"),
    )


def read_refusal(status: int, body: Any) -> Refusal:
    """Returns the refusal in an error body. A code that matters here is put into the message."""
    refusal = chat_completions.read_refusal(status, body)
    if refusal.code == THOUGHTS_REFUSED and THOUGHTS_REFUSED not in refusal.message:
        refusal = replace(refusal, message=f"{refusal.code}: {refusal.message}")
    # On a WebSocket an error brings the headers along.
    error = body.get("error") if isinstance(body, dict) else None
    headers = error.get("headers") if isinstance(error, dict) else None
    if not isinstance(headers, dict):
        return refusal
    return replace(refusal, retry_after=retry_after({name.lower(): str(value) for name, value in headers.items()}))
