"""A fake of any vendor that speaks Chat Completions, in the flavour of one of them (openai_vendors.py).

    async with CompatibleServer("mistral").running() as fake: ...

Beside what OpenAI's fake refuses it refuses what that vendor does: fields, forms of tool choice and reply formats that
it does not take, thoughts in a place that it does not know, calls without the thoughts that it demands, ids of a shape
that it does not make.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import orjson

from tests.fakes import openai_wire as wire
from tests.fakes.http import Request
from tests.fakes.openai_server import OpenAIServer, complain, fault, look
from tests.fakes.openai_vendors import ALWAYS, FLAVOURS, Flavour
from tests.fakes.script import DEFAULT_REPLY, Reply, Seen
from tests.fakes.server import JSON_HEADERS, Planned

_SAID = ("content", "refusal", "tool_calls")
_MESSAGE = frozenset({"role", "content", "tool_calls", "tool_call_id", "name"})


class CompatibleServer(OpenAIServer):
    """A fake compatible server."""

    def __init__(self, vendor: str, port: int = 0, *, record: bool = True) -> None:
        self.flavour = FLAVOURS[vendor]
        super().__init__(port, models=[item["id"] for item in self.flavour.models], record=record)

    def respond(self, request: Request, body: Any) -> tuple[Reply, Planned]:
        if (request.method, request.path) == ("GET", "/v1/models"):
            reply = self.script.choose(Seen("", "", "", 0, False, (), {}, "models"))
            return reply, self._fault(reply) or self._models()
        return super().respond(request, body)

    def _models(self) -> Planned:
        items = list(self.flavour.models)
        return Planned(200, JSON_HEADERS, orjson.dumps(items if self.flavour.lists_plainly else {"data": items}))

    def _chat(self, body: Any) -> tuple[Reply, Planned]:
        if (complaint := complain(body)) is not None:
            return DEFAULT_REPLY, self._error("bad_request", complaint[0])
        if (words := complain_as(self.flavour, body)) is not None:
            return DEFAULT_REPLY, self._error("bad_request", words)
        if body["model"] not in self.chat_models:
            return DEFAULT_REPLY, self._error("model_not_found", f"The model `{body['model']}` does not exist.")
        asked = {**body, "stream_options": {"include_usage": True}} if self.flavour.usage_in != "own" else body
        seen = look(asked)
        reply = self.script.choose(seen)
        self._count += 1
        return reply, self._fault(reply) or self.shaped(reply, wire.chat(reply, seen, self._count))

    def _embeddings(self, body: Any) -> tuple[Reply, Planned]:
        reply = self.script.choose(Seen(body.get("model", ""), "", "", 0, False, (), body, "embeddings"))
        size = self.flavour.embeddings.get(str(body.get("model")))
        if size is None:
            return DEFAULT_REPLY, self._error("model_not_found", "There is no such embedding model.")
        return reply, self._fault(reply) or wire.embeddings(body, size)

    def _fault(self, reply: Reply) -> Planned | None:
        if reply.error is None:
            return fault(reply)
        planned = self._error(reply.error, reply.message, reply.status)
        wait = {"retry-after": f"{reply.retry_after:g}"} if reply.retry_after is not None else {}
        return replace(planned, headers={**planned.headers, **wait, **reply.headers})

    def _error(self, kind: str, message: str | None = None, status: int | None = None) -> Planned:
        usual_status, error_type, usual_code, usual = wire.ERRORS[kind]
        own_status, code, text = self.flavour.texts.get(kind, (usual_status, usual_code, usual))
        body = self.flavour.error(message or text, code, error_type, status or own_status)
        return Planned(status or own_status, JSON_HEADERS, orjson.dumps(body))

    def shaped(self, reply: Reply, planned: Planned) -> Planned:
        """OpenAI's reply in this vendor's words."""
        if planned.frames is None:
            return replace(planned, body=orjson.dumps(_whole(self.flavour, reply, orjson.loads(planned.body))))
        parsed = [_parsed(frame) for frame in planned.frames]
        usage = next((chunk["usage"] for _, chunk, _ in parsed if chunk.get("choices") == []), None)
        frames, shaper = [], _Shaper(self.flavour, reply, usage)
        for start, chunk, end in parsed:
            if not chunk:
                frames.append(start)
            frames += [start + orjson.dumps(one) + end for one in shaper.chunks(chunk)]
        return replace(planned, frames=frames)


def _parsed(frame: bytes) -> tuple[bytes, dict[str, Any], bytes]:
    """Returns the bytes before the JSON of a frame, the JSON, and the bytes after it."""
    start, brace, rest = frame.partition(b"{")
    text = rest.rstrip(b"\r\n")
    return (start, orjson.loads(brace + text), rest[len(text) :]) if brace else (frame, {}, b"")


def _whole(flavour: Flavour, reply: Reply, body: dict[str, Any]) -> dict[str, Any]:
    message = body["choices"][0]["message"]
    thoughts = message.pop(reply.reasoning_field, "")
    if flavour.thoughts == "details":
        if thoughts or reply.redacted:
            message["reasoning"] = thoughts
            message["reasoning_details"] = [
                *(_details(thoughts, reply.signature) if thoughts else ()),
                *_encrypted(reply),
            ]
    elif flavour.thoughts == "parts":
        if thoughts:
            content = message["content"]
            message["content"] = [_thinking(thoughts), *([{"type": "text", "text": content}] if content else [])]
    elif thoughts:
        message[flavour.thoughts] = thoughts
    if "usage" in body:
        body["usage"] = flavour.usage(body["usage"])
    return body


class _Shaper:
    """Makes a vendor's chunks of OpenAI's; `usage` is the whole reply's."""

    def __init__(self, flavour: Flavour, reply: Reply, usage: dict[str, Any] | None) -> None:
        self._flavour, self._reply = flavour, reply
        self._usage = None if usage is None else flavour.usage(usage)
        self._has_thought = False

    def chunks(self, chunk: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """Yields this vendor's form of one of OpenAI's chunks."""
        chunk.pop("usage", None)
        if not chunk.get("choices"):
            if chunk and self._flavour.usage_in == "own":
                yield {**chunk, "usage": self._usage}
            return
        choice = chunk["choices"][0]
        if thoughts := choice["delta"].pop(self._reply.reasoning_field, ""):
            yield _with_delta(chunk, _thought_delta(self._flavour, thoughts))
            return
        if not self._has_thought and (choice["finish_reason"] or any(choice["delta"].get(n) for n in _SAID)):
            self._has_thought = True
            yield from _ends_of_thoughts(self._flavour, self._reply, chunk)
        if choice["finish_reason"] and self._usage is not None and self._flavour.usage_in != "own":
            (chunk if self._flavour.usage_in == "last" else choice)["usage"] = self._usage
        yield chunk


def _thought_delta(flavour: Flavour, thoughts: str) -> dict[str, Any]:
    if flavour.thoughts == "details":
        return {"reasoning": thoughts, "reasoning_details": _details(thoughts)}
    return {"content": [_thinking(thoughts)]} if flavour.thoughts == "parts" else {flavour.thoughts: thoughts}


def _ends_of_thoughts(flavour: Flavour, reply: Reply, chunk: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """A signature comes after the text that it is for."""
    if flavour.thoughts == "details" and (reply.reasoning or reply.redacted):
        details = [*(_details(None, reply.signature) if reply.reasoning else ()), *_encrypted(reply)]
        yield _with_delta(chunk, {"reasoning_details": details})


def _with_delta(chunk: dict[str, Any], delta: dict[str, Any]) -> dict[str, Any]:
    return {**chunk, "choices": [{**chunk["choices"][0], "delta": delta, "finish_reason": None}]}


def _details(text: str | None, signature: str = "") -> list[dict[str, Any]]:
    detail = {"type": "reasoning.text", "text": text, "format": "anthropic-claude-v1", "index": 0}
    return [detail | ({"signature": signature} if signature else {})]


def _encrypted(reply: Reply) -> list[dict[str, Any]]:
    detail = {"type": "reasoning.encrypted", "data": reply.redacted, "format": "anthropic-claude-v1", "index": 1}
    return [detail] if reply.redacted else []


def _thinking(text: str) -> dict[str, Any]:
    return {"type": "thinking", "thinking": [{"type": "text", "text": text}]}


def _thinks(body: Mapping[str, Any]) -> bool:
    """Returns whether a model that can think does so for this request: DeepSeek's do by default, but for one."""
    switched_off = (body.get("thinking") or {}).get("type") == "disabled"
    return not switched_off and not str(body.get("model")).endswith("-chat")


def complain_as(flavour: Flavour, body: Mapping[str, Any]) -> str | None:
    """Returns the refusal of this vendor, beyond OpenAI's."""
    extra = set() if flavour.fields is None else body.keys() - flavour.fields - ALWAYS
    if extra:
        return f"Extra inputs are not permitted: {', '.join(sorted(extra))}"
    allowed = (
        flavour.choices if flavour.choices_of_thinkers is None or not _thinks(body) else flavour.choices_of_thinkers
    )
    if (form := _choice(body.get("tool_choice"))) not in allowed:
        return f"tool_choice '{form}' is not supported"
    if (wanted := (body.get("response_format") or {}).get("type", "json_object")) not in flavour.formats:
        return f"This response_format type is unavailable now: {wanted}"
    if not flavour.strict and any("strict" in tool["function"] for tool in body.get("tools", ())):
        return "Extra inputs are not permitted: strict"
    return _complain_of_messages(flavour, body["messages"])


def _choice(value: Any) -> str:
    return "auto" if value is None else value if isinstance(value, str) else "named"


def _complain_of_messages(flavour: Flavour, messages: list[dict[str, Any]]) -> str | None:
    before = ""
    for index, message in enumerate(messages):
        calls = message.get("tool_calls") or ()
        if extra := message.keys() - _MESSAGE - (flavour.assistant if message["role"] == "assistant" else frozenset()):
            return f"messages.{index}: property '{min(extra)}' is unsupported"
        if calls and flavour.demands and not isinstance(message.get(flavour.demands), str):
            return (
                f"thinking is enabled but {flavour.demands} is missing in assistant tool call message at index {index}"
            )
        for id in (*(call["id"] for call in calls), *filter(None, (message.get("tool_call_id"),))):
            if not flavour.ids.fullmatch(id):
                return f"Tool call id was {id} but must be {flavour.ids.pattern}"
        if before == "tool" and message["role"] == "user" and not flavour.user_after_tool:
            return "Unexpected role 'user' after role 'tool'"
        before = message["role"]
    return None
