"""Replies in wrong shapes: whatever a vendor sends, a call ends with a reply that can be sent on, or an LlmError."""

from __future__ import annotations

import asyncio
import json
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import httpx2
import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from services.llm_gateway.calls.convert import event_message
from services.llm_gateway.core.chat import Completed
from services.llm_gateway.core.errors import LlmError
from services.llm_gateway.core.provider_types import base_url
from services.llm_gateway.http import client as http
from tests.contract.llm_gateway.conftest import WORLDS, World, framed_by
from tests.fakes import script
from tests.fakes.script import Reply
from tests.unit.llm_gateway.builders import tool

# What may stand where something else is expected; _GONE: nothing at all.
_GONE = object()
_DEEP: Any = "end"
for _ in range(300):
    _DEEP = {"detail": [_DEEP]}
_VALUES = [_GONE, None, 0, 5, -1, 1.5, 2**63, 2**64 - 1, True, "", "x", "12", "\0", "\ud7ff", [], [None], ["x"], {}]
_VALUES += [{"x": 1}, [[]], [{}], _DEEP, "x" * 3_000]
_REPLY = Reply(
    text="four of them",
    reasoning="two and two",
    redacted="opaque",
    calls=[script.ToolCall("roll_dice", {"num_sides": 20, "who": {"name": "me"}})],
    usage=script.Usage(100, 7, cached=40, cache_write=10, reasoning=3),
)


@dataclass
class _Wire(httpx2.AsyncBaseTransport):
    """Keeps what the fake answers, then answers that with `bend` put between."""

    real: httpx2.AsyncClient
    kept: dict[tuple[str, str], httpx2.Response] = field(default_factory=dict)
    bend: Callable[[bytes, str], bytes] | None = None

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        key = request.method, request.url.path
        if self.bend is None:
            sent = httpx2.Request(*key[:1], request.url, headers=request.headers, content=await request.aread())
            self.kept[key] = await self.real.send(sent)
        was = self.kept[key]
        kind = was.headers.get("content-type", "")
        body = was.content if self.bend is None else self.bend(was.content, kind)
        headers = {name: value for name, value in was.headers.items() if name.startswith(("content-type", "x-"))}
        return httpx2.Response(was.status_code, headers=headers, content=body)


def _cut(body: bytes, kind: str) -> list[bytes]:
    """The JSON in a body, one after the other, each where it can be bent."""
    if kind.startswith("text/event-stream"):
        return [line.removeprefix(b"data: ") for line in body.splitlines() if line.startswith(b"data: {")]
    if kind.startswith("application/x-ndjson"):
        return body.splitlines()
    return [payload for _, payload in _frames(body)] if "eventstream" in kind else [body]


def _replaced(body: bytes, kind: str, number: int, new: bytes) -> bytes:
    if "eventstream" in kind:
        frames = list(_frames(body))
        return b"".join(_frame(head, new if at == number else old) for at, (head, old) in enumerate(frames))
    return body.replace(_cut(body, kind)[number], new, 1)


def _frames(body: bytes) -> Iterator[tuple[bytes, bytes]]:
    while body:
        total, heads = int.from_bytes(body[:4], "big"), int.from_bytes(body[4:8], "big")
        yield body[12 : 12 + heads], body[12 + heads : total - 4]
        body = body[total:]


def _frame(head: bytes, payload: bytes) -> bytes:
    lengths = (len(head) + len(payload) + 16).to_bytes(4, "big") + len(head).to_bytes(4, "big")
    message = lengths + zlib.crc32(lengths).to_bytes(4, "big") + head + payload
    return message + zlib.crc32(message).to_bytes(4, "big")


def _places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if path:
        yield path
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, child in children:
        yield from _places(child, (*path, step))


def _bent(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    *way, last = path
    place = value
    for step in way:
        place = place[step]
    if new is _GONE:
        del place[last]
    else:
        place[last] = new
    return value


class _Bench:
    """One world whose fake answered once; its answers are bent from then on."""

    def __init__(self, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self.spec = WORLDS[name]
        self.runner = asyncio.Runner()
        self.wires: list[_Wire] = []
        # What the fake answered, by whether it was streamed, for each wire.
        self._kept: dict[bool, list[dict[tuple[str, str], httpx2.Response]]] = {}
        make = http._client

        def wired(config: Any) -> httpx2.AsyncClient:
            self.wires.append(_Wire(make(config)))
            return httpx2.AsyncClient(transport=self.wires[-1])

        monkeypatch.setattr(http, "_client", wired)
        fake = self.spec.fake and self.spec.fake()
        assert fake is not None
        with fake.in_thread():
            config = self.spec.config(base_url(self.spec.handle.partition("/")[0], fake.base_url))
            self.world = World(self.spec.make(config), self.spec.model(), fake, self.spec)
            self.world.script(*[_REPLY] * 3)
            for stream in (False, True):
                assert self.runner.run(self.call(stream=stream)) is None
                self._kept[stream] = [dict(wire.kept) for wire in self.wires]
            for wire in self.wires:
                self.runner.run(wire.real.aclose())

    async def call(self, *, stream: bool) -> LlmError | None:
        """Ends with a reply that can be sent on (None), or an LlmError."""
        asked = self.world.ask("2 + 2", tools=[tool("roll_dice", num_sides="integer")])
        try:
            events = await self.world.events(asked, stream=stream)
        except LlmError as error:
            return error
        for sequence, event in enumerate(events):
            assert len(event_message(event, sequence).SerializeToString()) < 2**25
        assert isinstance(events[-1], Completed)
        usage = events[-1].generation.usage
        assert usage.prompt_tokens >= 0
        assert usage.completion_tokens >= 0
        return None

    def bend(self, stream: bool, choose: Any) -> None:
        """From now on one value of one answer is another."""
        for wire, kept in zip(self.wires, self._kept[stream], strict=False):
            wire.kept = kept
        bodies = [(key, was) for wire in self.wires for key, was in sorted(wire.kept.items(), key=str)]
        _, was = choose(st.sampled_from(bodies))
        kind = was.headers.get("content-type", "")
        pieces = _cut(was.content, kind)
        number = choose(st.integers(0, len(pieces) - 1))
        places = list(_places(orjson.loads(pieces[number])))
        value = _bent(orjson.loads(pieces[number]), choose(st.sampled_from(places)), choose(st.sampled_from(_VALUES)))
        bent = _replaced(was.content, kind, number, _dumped(value))
        for wire in self.wires:
            wire.bend = lambda body, kind: bent if body == was.content else body

    def close(self) -> None:
        self.runner.run(self.world.provider.close())
        self.runner.close()


def _dumped(value: Any) -> bytes:
    """As orjson does it, which refuses what is deeper than 254."""
    return json.dumps(value, separators=(",", ":")).encode()


@pytest.fixture(params=framed_by("sse", "ndjson", "eventstream"))
def bench(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[_Bench]:
    """Each vendor over HTTP; a WebSocket carries the same events as `responses`."""
    made = _Bench(request.param, monkeypatch)
    yield made
    made.close()


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), stream=st.booleans())
def test_a_reply_of_any_shape(bench: _Bench, data: st.DataObject, stream: bool) -> None:
    bench.bend(stream, data.draw)
    bench.runner.run(bench.call(stream=stream))
