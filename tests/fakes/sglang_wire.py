"""The bytes of SGLang's own routes, made from a script's `Reply`. What the model writes is as in vllm_wire.py."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from tests.fakes.script import Reply, RequestView
from tests.fakes.server import JSON_HEADERS, SSE_HEADERS, HttpReply
from tests.fakes.vllm_wire import counts, written

ERRORS: Mapping[str, tuple[int, str]] = {
    "authentication": (401, "Unauthorized"),
    "rate_limit": (429, "Too many requests"),
    "quota": (402, "insufficient balance"),
    "context_overflow": (400, "The input (130001 tokens) is longer than the model's context length (128000 tokens)."),
    "bad_request": (400, "temperature must be non-negative, got -1."),
    "model_not_found": (404, "Not Found"),
    "server": (500, "Internal Server Error"),
    "overloaded": (503, "The request queue is full."),
}
_CALL = re.compile(r"<tool_call>\s*(\{.*?\})\s*</tool_call>", re.DOTALL)


def error(kind: str, message: str | None = None, status: int | None = None) -> HttpReply:
    """An error reply in the vendor's shape."""
    default_status, text = ERRORS[kind]
    return HttpReply(status or default_status, JSON_HEADERS, orjson.dumps({"error": {"message": message or text}}))


def generated(reply: Reply, seen: RequestView, number: int, *, incremental: bool) -> HttpReply:
    """The answer to POST /generate; `incremental`: events hold what is new alone."""
    maker = _Generated(reply, seen, number)
    if not seen.stream:
        return HttpReply(200, {**JSON_HEADERS, **reply.headers}, orjson.dumps(maker.event(0, len(maker.pieces), True)))
    end = reply.line_end.encode() * 2
    frames = [b"data: " + orjson.dumps(event) + end for event in maker.events(incremental=incremental)]
    frames.append(b"data: [DONE]" + end)
    if reply.keepalives:
        frames = [piece for frame in frames for piece in (b": keep-alive" + end, frame)]
    broken = orjson.dumps({"error": {"message": reply.message or "Internal Server Error"}})
    return HttpReply(200, SSE_HEADERS, frames=frames, error_frame=b"data: " + broken + end)


class _Generated:
    """One reply, whole or as events."""

    def __init__(self, reply: Reply, seen: RequestView, number: int) -> None:
        self.reply, self.asked, self.id = reply, seen.body, f"fake{number}"
        self.pieces = written(reply, str(seen.body["text"]))
        self.counts = counts(reply, str(seen.body["text"]), self.pieces)

    def events(self, *, incremental: bool) -> Iterator[dict[str, Any]]:
        for number in range(len(self.pieces)):
            yield self.event(number if incremental else 0, number + 1, False)
        yield self.event(len(self.pieces) if incremental else 0, len(self.pieces), True)

    def event(self, first: int, last: int, is_last: bool) -> dict[str, Any]:
        """The tokens from `first` to before `last`."""
        ids = [1000 + number for number in range(first, last)]
        meta: dict[str, Any] = {
            "id": self.id,
            "finish_reason": {"type": self.reply.finish or "stop", "matched": 151_645} if is_last else None,
            "prompt_tokens": self.counts.input,
            "cached_tokens": self.counts.cached,
            # As scripted at the end, so that a test knows it; before, what was written.
            "completion_tokens": self.counts.output if is_last and self.reply.usage else last,
        }
        if self.asked.get("return_logprob"):
            meta["output_token_logprobs"] = [self._row(number) for number in range(first, last)]
            if self.asked.get("top_logprobs_num"):
                others = [[-9.5, 7, "other"]][: self.asked["top_logprobs_num"] - 1]
                meta["output_top_logprobs"] = [[self._row(number), *others] for number in range(first, last)]
        return {"text": "".join(self.pieces[first:last]), "output_ids": ids, "meta_info": meta}

    def _row(self, number: int) -> list[Any]:
        text = self.pieces[number] if self.asked.get("return_text_in_logprobs") else None
        return [-0.25 * (number + 1), 1000 + number, text]


def calls_in(body: Mapping[str, Any]) -> HttpReply:
    """The answer to POST /parse_function_call by the parsers of the Hermes family."""
    text = str(body["text"])
    calls: list[dict[str, Any]] = []
    names = {tool["function"]["name"] for tool in body["tools"]}
    for written_call in _CALL.findall(text):
        call = orjson.loads(written_call)
        if call["name"] in names:
            parameters = orjson.dumps(call["arguments"]).decode()
            calls.append({"tool_index": len(calls), "name": call["name"], "parameters": parameters})
    answer = {"normal_text": _CALL.split(text)[0].rstrip() if calls else text, "calls": calls}
    return HttpReply(200, JSON_HEADERS, orjson.dumps(answer))


def separated(body: Mapping[str, Any]) -> HttpReply:
    """The answer to POST /separate_reasoning."""
    thoughts, mark, text = str(body["text"]).partition("</think>")
    if not mark:
        thoughts, text = "", thoughts
    answer = {"reasoning_text": thoughts.removeprefix("<think>").strip(), "text": text.lstrip() if mark else text}
    return HttpReply(200, JSON_HEADERS, orjson.dumps(answer))
