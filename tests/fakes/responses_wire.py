"""The bytes of OpenAI's Responses, made from a script's `Reply`: whole, as server-sent events, as messages.

Shapes as of the vendor's SDK types (version 3.54) and developers.openai.com/api/docs/guides/websocket-mode.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import orjson

from tests.fakes import openai_wire
from tests.fakes.script import Reply, RequestView, ToolCall, Usage, words
from tests.fakes.server import JSON_HEADERS, SSE_HEADERS, HttpReply

_INCOMPLETE = {"length": "max_output_tokens", "content_filter": "content_filter"}


def response(reply: Reply, seen: RequestView, number: int) -> HttpReply:
    """The answer to POST /responses; `number` makes ids unique within one server."""
    made = Made(reply, seen, number)
    headers = {"x-request-id": f"req_{number}", **reply.headers}
    if not seen.stream:
        return HttpReply(200, {**JSON_HEADERS, **headers}, orjson.dumps(made.whole()))
    end = reply.line_end.encode()
    frames = [b"event: " + event["type"].encode() + end + b"data: " + orjson.dumps(event) + end + end
              for event in made.events()]  # fmt: skip
    if reply.keepalives:
        frames = [piece for frame in frames for piece in (b": keep-alive" + end + end, frame)]
    broken = b"event: error\ndata: " + orjson.dumps(broken_off(reply)) + b"\n\n"
    return HttpReply(200, {**SSE_HEADERS, **headers}, frames=frames, error_frame=broken)


def broken_off(reply: Reply) -> dict[str, Any]:
    """The event of an error in the middle of a stream."""
    message = reply.message or "The server had an error."
    return {"type": "error", "code": "server_error", "message": message, "param": None, "sequence_number": 99}


def error_event(planned: HttpReply) -> dict[str, Any]:
    """The WebSocket's event for what HTTP would have answered as an error."""
    headers = {name: value for name, value in planned.headers.items() if name.startswith(("retry-", "x-"))}
    error = orjson.loads(planned.body)["error"]
    return {"type": "error", "status": planned.status, "error": {**error, "headers": headers}}


class Made:
    """One response, whole or as events."""

    def __init__(self, reply: Reply, seen: RequestView, number: int) -> None:
        self.reply = reply
        self.asked = seen.body
        self.number = number
        self.include = seen.body.get("include") or ()
        self.id = f"resp_fake{number}"
        self.model = seen.model
        self.usage = usage(reply.usage or _estimate(reply, seen))
        self.items = list(self._items())
        self._sequence = 0

    def whole(self, status: str = "") -> dict[str, Any]:
        """The response object; `status` in_progress for one that begins."""
        reason = _INCOMPLETE.get(self.reply.finish or "")
        done = status != "in_progress"
        return {
            "id": self.id,
            "object": "response",
            "created_at": int(time.time()),
            "status": status or ("incomplete" if reason else "completed"),
            "error": None,
            "incomplete_details": {"reason": reason} if done and reason else None,
            "instructions": self.asked.get("instructions"),
            "max_output_tokens": self.asked.get("max_output_tokens"),
            "metadata": {},
            "model": self.model,
            "output": self.items if done else [],
            "parallel_tool_calls": self.asked.get("parallel_tool_calls", True),
            "previous_response_id": self.asked.get("previous_response_id"),
            "reasoning": self.asked.get("reasoning"),
            "store": self.asked.get("store", True),
            "temperature": self.asked.get("temperature"),
            "text": self.asked.get("text") or {"format": {"type": "text"}},
            "tool_choice": self.asked.get("tool_choice", "auto"),
            "tools": self.asked.get("tools") or [],
            "top_p": self.asked.get("top_p"),
            "truncation": "disabled",
            "usage": self.usage if done and self.reply.send_usage else None,
        }

    def events(self) -> Iterator[dict[str, Any]]:
        """The events of the stream."""
        yield self._event("response.created", response=self.whole("in_progress"))
        yield self._event("response.in_progress", response=self.whole("in_progress"))
        for index, item in enumerate(self.items):
            yield from self._item_events(index, item)
        whole = self.whole()
        yield self._event(f"response.{whole['status']}", response=whole)

    def _items(self) -> Iterator[dict[str, Any]]:
        reply, hidden = self.reply, "reasoning.encrypted_content" in self.include
        thoughts = [(reply.reasoning, reply.signature)] if reply.reasoning else []
        thoughts += [("", reply.redacted)] if reply.redacted else []
        for place, (text, encrypted) in enumerate(thoughts):
            summary = [{"type": "summary_text", "text": part} for part in text.split("\n\n") if part]
            item = {"id": f"rs_fake{place}", "type": "reasoning", "summary": summary}
            yield {**item, **({"encrypted_content": encrypted} if hidden else {})}
        if content := list(self._content()):
            id = f"msg_fake{self.number}"
            yield {"id": id, "type": "message", "role": "assistant", "status": "completed", "content": content}
        for place, call in enumerate(reply.calls):
            yield self._call(call, place)

    def _content(self) -> Iterator[dict[str, Any]]:
        if text := self.reply.whole_text():
            logprobs = self._logprobs(list(self.reply.pieces()), 0)
            yield {"type": "output_text", "text": text, "annotations": [], "logprobs": logprobs}
        if self.reply.refusal:
            yield {"type": "refusal", "refusal": self.reply.refusal}

    def _call(self, call: ToolCall, place: int) -> dict[str, Any]:
        id = f"fake{self.number}_{place}"
        item = {"id": f"fc_{id}", "type": "function_call", "status": "completed", "call_id": call.id or f"call_{id}"}
        return {**item, "name": call.name, "arguments": openai_wire.arguments(call)}

    def _item_events(self, index: int, item: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        where = {"output_index": index, "item_id": item["id"]}
        empty: Mapping[str, Mapping[str, Any]] = {
            "reasoning": {"summary": []},
            "message": {"status": "in_progress", "content": []},
            "function_call": {"status": "in_progress", "arguments": ""},
        }
        begun = {name: value for name, value in item.items() if name != "encrypted_content"}
        begun |= empty[item["type"]]
        yield self._event("response.output_item.added", output_index=index, item=begun)
        match item["type"]:
            case "reasoning":
                yield from self._summary_events(where, item["summary"])
            case "message":
                for place, part in enumerate(item["content"]):
                    yield from self._part_events({**where, "content_index": place}, part)
            case "function_call":
                text, size, name = item["arguments"], self.reply.argument_chunk, "response.function_call_arguments"
                for start in range(0, len(text), size):
                    yield self._event(f"{name}.delta", **where, delta=text[start : start + size])
                yield self._event(f"{name}.done", **where, arguments=text, name=item["name"])
        yield self._event("response.output_item.done", output_index=index, item=item)

    def _summary_events(self, where: Mapping[str, Any], summary: Sequence[Any]) -> Iterator[dict[str, Any]]:
        for place, part in enumerate(summary):
            at, name = {**where, "summary_index": place}, "response.reasoning_summary"
            yield self._event(f"{name}_part.added", **at, part={"type": "summary_text", "text": ""})
            for piece in words(part["text"]):
                yield self._event(f"{name}_text.delta", **at, delta=piece)
            yield self._event(f"{name}_text.done", **at, text=part["text"])
            yield self._event(f"{name}_part.done", **at, part=part)

    def _part_events(self, where: Mapping[str, Any], part: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        kind = part["type"]
        empty: dict[str, Any] = {"type": kind, "text" if kind == "output_text" else "refusal": ""}
        empty |= {"annotations": [], "logprobs": []} if kind == "output_text" else {}
        yield self._event("response.content_part.added", **where, part=empty)
        if kind == "output_text":
            for number, piece in enumerate(self.reply.pieces()):
                logprobs = self._logprobs([piece], number)
                yield self._event("response.output_text.delta", **where, delta=piece, logprobs=logprobs)
            yield self._event("response.output_text.done", **where, text=part["text"], logprobs=part["logprobs"])
        else:
            for piece in words(part["refusal"]):
                yield self._event("response.refusal.delta", **where, delta=piece)
            yield self._event("response.refusal.done", **where, refusal=part["refusal"])
        yield self._event("response.content_part.done", **where, part=part)

    def _logprobs(self, pieces: Sequence[str], first: int) -> list[dict[str, Any]]:
        if "message.output_text.logprobs" not in self.include:
            return []
        top = self.asked.get("top_logprobs") or 0
        return [openai_wire.token(piece, first + offset, top) for offset, piece in enumerate(pieces)]

    def _event(self, type: str, **fields: Any) -> dict[str, Any]:
        self._sequence += 1
        return {"type": type, "sequence_number": self._sequence - 1, **fields}


def usage(counts: Usage) -> dict[str, Any]:
    """Usage in the vendor's shape; input tokens include the cached ones."""
    return {
        "input_tokens": counts.input,
        "input_tokens_details": {"cached_tokens": counts.cached, "cache_write_tokens": counts.cache_write},
        "output_tokens": counts.output,
        "output_tokens_details": {"reasoning_tokens": counts.reasoning},
        "total_tokens": counts.input + counts.output,
    }


def _estimate(reply: Reply, seen: RequestView) -> Usage:
    size = len(orjson.dumps(seen.body.get("input"))) + len(seen.body.get("instructions") or "")
    return Usage(input=max(1, size // 4), output=max(1, len(reply.text) // 4 + 8 * len(reply.calls)))
