"""The bytes of vLLM's completion route and its count of tokens, made from a script's `Reply`.

A completion is plain text: thoughts and calls are written into it as models of the Hermes and Qwen families write them.
Each piece of it is a token; ids are 1000, 1001, ..., log probabilities -0.25, -0.5, ...
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import orjson

from tests.fakes.openai_wire import arguments, usage
from tests.fakes.script import Reply, Seen, Usage, words
from tests.fakes.server import JSON_HEADERS, SSE_HEADERS, Planned


def written(reply: Reply, prompt: str) -> list[str]:
    """The pieces of text in which the model writes the reply. What the prompt already ends with is not repeated."""
    pieces = words(f"<think>\n{reply.reasoning}\n</think>\n\n") if reply.reasoning else []
    pieces += reply.pieces()
    for call in reply.calls:
        text = f'<tool_call>\n{{"name": "{call.name}", "arguments": {arguments(call)}}}\n</tool_call>'
        if not pieces:
            text = _continued(text, prompt)
        pieces += words(text)
    return pieces


def _continued(text: str, prompt: str) -> str:
    opening = prompt[prompt.rfind("<tool_call>") :]
    return text.removeprefix(opening) if opening and prompt.endswith(opening) else text


def counts(reply: Reply, prompt: str, written: Sequence[str]) -> Usage:
    """Returns the counts of the script, or estimates."""
    return reply.usage or Usage(max(1, len(prompt) // 4), max(1, len(written)))


def completion(reply: Reply, seen: Seen, number: int) -> Planned:
    """The answer to POST /v1/completions."""
    maker = _Completion(reply, seen, number)
    if not seen.stream:
        return Planned(200, {**JSON_HEADERS, **reply.headers}, orjson.dumps(maker.whole()))
    end = reply.line_end.encode() * 2
    frames = [b"data: " + orjson.dumps(chunk) + end for chunk in maker.chunks()]
    frames.append(b"data: [DONE]" + end)
    if reply.keepalives:
        frames = [piece for frame in frames for piece in (b": keep-alive" + end, frame)]
    error = {"message": reply.message or "EngineCore encountered an issue.", "type": "InternalServerError", "code": 500}
    return Planned(200, SSE_HEADERS, frames=frames, error_frame=b"data: " + orjson.dumps({"error": error}) + end)


class _Completion:
    """One completion, whole or as chunks."""

    def __init__(self, reply: Reply, seen: Seen, number: int) -> None:
        self.reply, self.asked = reply, seen.body
        self.base = {"id": f"cmpl-fake{number}", "object": "text_completion", "created": 1, "model": seen.model}
        self.pieces = written(reply, str(seen.body["prompt"]))
        self.finish = reply.finish or "stop"
        self.usage = usage(counts(reply, str(seen.body["prompt"]), self.pieces))

    def whole(self) -> dict[str, Any]:
        choice = self._choice("".join(self.pieces), self.pieces, 0, self.finish)
        return {**self.base, "choices": [choice], "usage": self.usage}

    def chunks(self) -> Iterator[dict[str, Any]]:
        for number, piece in enumerate(self.pieces):
            yield {**self.base, "choices": [self._choice(piece, [piece], number, None)]}
        yield {**self.base, "choices": [self._choice("", [], len(self.pieces), self.finish)]}
        if (self.asked.get("stream_options") or {}).get("include_usage"):
            yield {**self.base, "choices": [], "usage": self.usage}

    def _choice(self, text: str, tokens: Sequence[str], first: int, finish: str | None) -> dict[str, Any]:
        choice: dict[str, Any] = {"index": 0, "text": text, "logprobs": None, "finish_reason": finish}
        if self.asked.get("logprobs") and tokens:
            values = [-0.25 * number for number, _ in enumerate(tokens, first + 1)]
            tops = [{token: value, "other": -9.5} for token, value in zip(tokens, values, strict=True)]
            choice["logprobs"] = {"tokens": list(tokens), "token_logprobs": values, "top_logprobs": tops}
        if self.asked.get("return_token_ids") and tokens:
            choice["token_ids"] = [1000 + number for number, _ in enumerate(tokens, first)]
        return {**choice, "stop_reason": None}


def tokenized(body: Mapping[str, Any], window: int | None) -> Planned:
    """The answer to POST /tokenize: four characters are a token."""
    text = body.get("prompt") or orjson.dumps([body.get("messages"), body.get("tools")]).decode()
    ids = list(range(max(1, len(text) // 4)))
    answer = {"count": len(ids), "max_model_len": window, "tokens": ids, "token_strs": None}
    return Planned(200, JSON_HEADERS, orjson.dumps(answer))
