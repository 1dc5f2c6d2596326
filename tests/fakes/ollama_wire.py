"""The bytes of Ollama's own API, made from a script's `Reply`. Shapes as of its public API reference."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import orjson

from tests.fakes.openai_wire import vector_of
from tests.fakes.script import Reply, RequestView, ToolCall, Usage, words
from tests.fakes.server import JSON_HEADERS, HttpReply

NDJSON_HEADERS = {"content-type": "application/x-ndjson"}
_AT = "2026-11-21T12:00:00.000000Z"
ERRORS: Mapping[str, tuple[int, str]] = {
    "authentication": (401, "unauthorized"),
    "rate_limit": (429, "too many concurrent requests"),
    "quota": (402, "you have reached your usage limit, please upgrade to continue"),
    "context_overflow": (400, "the input length exceeds the context length"),
    "bad_request": (400, "invalid options: temperature"),
    "model_not_found": (404, "model 'absent' not found"),
    "server": (500, "llama runner process has terminated: exit status 2"),
    "overloaded": (503, "server busy, please try again.  maximum pending requests exceeded"),
}


def error(kind: str, message: str | None = None, status: int | None = None) -> HttpReply:
    """An error reply in the vendor's shape."""
    default_status, text = ERRORS[kind]
    return HttpReply(status or default_status, JSON_HEADERS, orjson.dumps({"error": message or text}))


def chat(reply: Reply, seen: RequestView) -> HttpReply:
    """The answer to POST /api/chat."""
    maker = _Chat(reply, seen)
    if not seen.stream:
        return HttpReply(200, {**JSON_HEADERS, **reply.headers}, orjson.dumps(maker.whole()))
    end = reply.line_end.encode()
    frames = [orjson.dumps(line) + end for line in maker.lines()]
    broken = orjson.dumps({"error": reply.message or "an error was encountered while running the model"}) + end
    return HttpReply(200, {**NDJSON_HEADERS, **reply.headers}, frames=frames, error_frame=broken)


class _Chat:
    """One reply, whole or in lines."""

    def __init__(self, reply: Reply, seen: RequestView) -> None:
        self.reply, self.seen = reply, seen
        self.counts = reply.usage or Usage(max(1, len(orjson.dumps(seen.body["messages"])) // 4), 7)
        self.logprobs = bool(seen.body.get("logprobs"))
        self.top = seen.body.get("top_logprobs", 0)

    def whole(self) -> dict[str, Any]:
        reply = self.reply
        message = {"role": "assistant", "content": reply.whole_text()}
        if reply.reasoning:
            message["thinking"] = reply.reasoning
        said = self._line({**message, **self._calls(reply.calls)}, **self._last())
        pieces = list(reply.pieces())
        return {**said, "logprobs": self._tokens(pieces, 0)} if self.logprobs and pieces else said

    def lines(self) -> Iterator[dict[str, Any]]:
        for piece in words(self.reply.reasoning):
            yield self._line({"role": "assistant", "content": "", "thinking": piece})
        for number, piece in enumerate(self.reply.pieces()):
            line = self._line({"role": "assistant", "content": piece})
            yield {**line, "logprobs": self._tokens([piece], number)} if self.logprobs else line
        for call in self.reply.calls:
            yield self._line({"role": "assistant", "content": "", **self._calls([call])})
        yield self._line({"role": "assistant", "content": ""}, **self._last())

    def _line(self, message: Mapping[str, Any], **last: Any) -> dict[str, Any]:
        return {"model": self.seen.model, "created_at": _AT, "message": message, "done": bool(last), **last}

    def _last(self) -> dict[str, Any]:
        counted = {"prompt_eval_count": self.counts.input, "eval_count": self.counts.output}
        durations = {"total_duration": 4_883_583_458, "load_duration": 1_334_875}
        return {"done_reason": self.reply.finish or "stop", **durations, **(counted if self.reply.send_usage else {})}

    def _calls(self, calls: Sequence[ToolCall]) -> dict[str, Any]:
        if not calls:
            return {}
        first = list(self.reply.calls).index(calls[0])
        made = [
            {"id": call.id or f"call_fake{number}", "function": {"index": number, **_function(call)}}
            for number, call in enumerate(calls, first)
        ]
        return {"tool_calls": made}

    def _tokens(self, pieces: Sequence[str], first: int) -> list[dict[str, Any]]:
        tokens = []
        for number, piece in enumerate(pieces, first):
            token = {"token": piece, "logprob": -0.25 * (number + 1), "bytes": list(piece.encode())}
            others = [{"token": f"other{rank}", "logprob": -9.5 - rank, "bytes": []} for rank in range(1, self.top)]
            tokens.append({**token, "top_logprobs": [token, *others][: self.top]} if self.top else token)
        return tokens


def _function(call: ToolCall) -> dict[str, Any]:
    """Arguments are an object; what is none, Ollama does not take for a call."""
    arguments = orjson.loads(call.raw_arguments) if call.raw_arguments is not None else dict(call.arguments)
    return {"name": call.name, "arguments": arguments}


def embeddings(body: Mapping[str, Any], dimensions: int) -> HttpReply:
    """The answer to POST /api/embed."""
    inputs = body["input"] if isinstance(body["input"], list) else [body["input"]]
    vectors = [vector_of(str(text), body.get("dimensions") or dimensions) for text in inputs]
    tokens = sum(max(1, len(str(text)) // 4) for text in inputs)
    answer = {"model": body["model"], "embeddings": vectors, "total_duration": 14_143_917, "prompt_eval_count": tokens}
    return HttpReply(200, JSON_HEADERS, orjson.dumps(answer))
