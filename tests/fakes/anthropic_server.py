"""A fake Anthropic: the Messages API (whole and streamed) and the models list, as the `anthropic` SDK expects
them.

    with AnthropicServer().in_thread() as fake:
        fake.reply(Reply(text="Hi"), Reply(calls=[ToolCall("roll_dice", {"num_sides": 6})]))
        client = AsyncAnthropic(base_url=fake.base_url, api_key="any")

It refuses what the vendor refuses: no key, unknown models and routes, missing or unknown parameters,
histories whose tool uses and results do not match, empty text. It caches prompts as the vendor does: what is
marked is counted as written the first time and as read after that.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import orjson

from tests.fakes import anthropic_wire as wire
from tests.fakes.anthropic_rules import blocks_of, cacheable, complain, signature_for
from tests.fakes.http import Request
from tests.fakes.script import DEFAULT_REPLY, Reply, Seen, Usage
from tests.fakes.server import FakeServer, Planned, scripted_fault, serve_forever

CHAT_MODELS = (
    "claude-fable-5-1",
    "claude-opus-5-5",
    "claude-sonnet-5-5",
    "claude-haiku-5-5",
    "claude-sonnet-4-6",
    "claude-haiku-4-5",
)

_fault = partial(scripted_fault, error=wire.error)


class AnthropicServer(FakeServer):
    """A fake Anthropic server."""

    def __init__(
        self,
        port: int = 0,
        *,
        models: Sequence[str] = CHAT_MODELS,
        window: int = 200_000,
        max_output: int = 64_000,
        record: bool = True,
        counts_tokens: bool = True,
    ) -> None:
        super().__init__(port, record=record)
        self.chat_models = tuple(models)
        self.limits = (window, max_output)
        self.counts_tokens = counts_tokens
        self._cached: set[int] = set()
        self._count = 0

    def respond(self, request: Request, body: Any) -> tuple[Reply, Planned]:
        headers = request.headers
        if not (headers.get("x-api-key") or headers.get("authorization", "").startswith("Bearer ")):
            return DEFAULT_REPLY, wire.error("authentication", "x-api-key header is required")
        if "anthropic-version" not in headers:
            return DEFAULT_REPLY, wire.error("bad_request", "anthropic-version: header is required")
        match request.method, request.path:
            case "POST", "/v1/messages/count_tokens":
                return self._count_only(body, headers)
            case "POST", "/v1/messages":
                return self._message(body, headers)
            case "GET", "/v1/models":
                reply = self.script.choose(Seen("", "", "", 0, False, (), {}, "models"))
                return reply, _fault(reply) or wire.models(self.chat_models, self.limits, request.query)
            case _:
                return DEFAULT_REPLY, wire.error("model_not_found", "Not found")

    def complaint(self, body: Any, headers: Mapping[str, str]) -> str | None:
        """Returns the fault of a request, or None."""
        return complain(body, headers["anthropic-version"], headers.get("anthropic-beta", ""))

    def _message(self, body: Any, headers: Mapping[str, str]) -> tuple[Reply, Planned]:
        if (complaint := self.complaint(body, headers)) is not None:
            return DEFAULT_REPLY, wire.error("bad_request", complaint)
        if body["model"] not in self.chat_models:
            return DEFAULT_REPLY, wire.error("model_not_found", f"model: {body['model']}")
        if body["max_tokens"] > self.limits[1]:
            message = f"max_tokens: {body['max_tokens']} > {self.limits[1]}, which is the maximum allowed"
            return DEFAULT_REPLY, wire.error("bad_request", message)
        seen = look(body)
        reply = self.script.choose(seen)
        reply = replace(reply, signature=signature_for(body, reply.signature))
        self._count += 1
        usage = reply.usage or self._count_tokens(body, reply)
        return reply, _fault(reply) or wire.message(reply, seen, self._count, usage)

    def _count_only(self, body: Any, headers: Mapping[str, str]) -> tuple[Reply, Planned]:
        """Counting takes what a message takes, without what says how to reply."""
        if isinstance(body, dict) and (unknown := body.keys() & {"max_tokens", "stream", "metadata"}):
            return DEFAULT_REPLY, wire.error("bad_request", f"{min(unknown)}: Extra inputs are not permitted")
        whole = {**body, "max_tokens": self.limits[1]} if isinstance(body, dict) else body
        complaint = self.complaint(whole, headers)
        if complaint is not None:
            return DEFAULT_REPLY, wire.error("bad_request", complaint)
        reply = self.script.choose(Seen(body["model"], "", "", 0, False, (), body, "count"))
        if not self.counts_tokens:
            return reply, wire.error("model_not_found", "Not found")
        return reply, _fault(reply) or wire.counted(self._count_tokens(body, reply).input)

    def _count_tokens(self, body: Mapping[str, Any], reply: Reply) -> Usage:
        """A rough count, with the part before the last cache marker counted as cached."""
        total = max(1, len(orjson.dumps(body["messages"])) // 4)
        output = max(1, len(reply.text) // 4 + 8 * len(reply.calls))
        marked = [block for block in cacheable(body) if block.get("cache_control")]
        if not marked:
            return Usage(total, output)
        prefix = orjson.dumps([body.get("tools"), body.get("system")])
        known = hash(prefix) in self._cached
        self._cached.add(hash(prefix))
        size = len(prefix) // 4
        return Usage(total, output, cached=size if known else 0, cache_write=0 if known else size)


def look(body: Mapping[str, Any]) -> Seen:
    """Returns a script's view of a Messages request."""
    messages = body["messages"]
    step, question = 0, ""
    for message in reversed(messages):
        results = _of_type(message, "tool_result")
        if message["role"] == "user" and not results:
            question = text_of(message)
            break
        step += bool(results)
    last = messages[-1]
    results = _of_type(last, "tool_result")
    return Seen(
        model=body["model"],
        last_role="tool" if results else last["role"],
        last_text=text_of(results or last),
        step=step,
        stream=bool(body.get("stream")),
        tools=tuple(tool["name"] for tool in body.get("tools", ())),
        body=body,
        question=question,
    )


def text_of(source: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> str:
    """The text of a message, or of tool results."""
    blocks = blocks_of(source) if isinstance(source, Mapping) else source
    texts = (block.get("text", block.get("content", "")) for block in blocks)
    return "".join(text if isinstance(text, str) else text_of(text) for text in texts)


def _of_type(message: Mapping[str, Any], kind: str) -> list[dict[str, Any]]:
    return [block for block in blocks_of(message) if block["type"] == kind]


if __name__ == "__main__":
    serve_forever(AnthropicServer)
