"""The base of the fake providers: the script, the record of requests, the control endpoints, ways to run.

Control endpoints, for a test or benchmark in another process (JSON in and out):
    POST /_script    {"replies": [...], "rules": [...], "steps": [...], "default": {...}}, see
    `script.Script.load` GET  /_requests  what was received, oldest first
    POST /_reset     forget the script and the record
"""

import argparse
import asyncio
import json
import sys
import threading
import time
import zlib
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

import orjson
import uvloop

from tests.fakes.gate import Gate
from tests.fakes.http import LOOPBACK, ClientGone, Exchange, HttpServer, Request
from tests.fakes.script import Answer, Reply, Rule, Script

# How often a reply at a gate looks whether it is open.
_LOOK_SECONDS = 0.005
JSON_HEADERS = {"content-type": "application/json"}
SSE_HEADERS = {"content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache"}


@dataclass
class RequestRecord:
    """One request as it came in. `outcome` is open, done, cut (by the fake) or gone (the client went
    away).
    """

    method: str
    path: str
    headers: Mapping[str, str]
    body: Any
    at: float = field(default_factory=time.monotonic)
    outcome: str = "open"
    ended_at: float | None = None

    def end(self, outcome: str) -> None:
        self.outcome, self.ended_at = outcome, time.monotonic()


@dataclass(frozen=True, slots=True)
class HttpReply:
    """A reply on the wire: a status and either a whole body or the frames of a stream."""

    status: int
    headers: Mapping[str, str]
    body: bytes = b""
    frames: Sequence[bytes] | None = None
    error_frame: bytes = b""


def json_reply(value: Any) -> HttpReply:
    """Returns a reply of JSON."""
    return HttpReply(200, JSON_HEADERS, orjson.dumps(value))


def scripted_fault(
    reply: Reply, error: Callable[[str, str | None, int | None], HttpReply], encoding: str = "utf-8"
) -> HttpReply | None:
    """Returns the script's error or raw body in place of a proper answer; `error` gives it the vendor's shape."""
    if reply.raw_body is not None:
        return HttpReply(reply.status or 200, {"content-type": reply.content_type}, reply.raw_body.encode(encoding))
    if reply.error is None:
        return None
    planned = error(reply.error, reply.message, reply.status)
    wait = {"retry-after": f"{reply.retry_after:g}"} if reply.retry_after is not None else {}
    return HttpReply(planned.status, {**planned.headers, **wait, **reply.headers}, planned.body)


class FakeServer(ABC):
    """A fake provider. Subclasses say what their vendor's routes answer."""

    api_path = ""

    def __init__(self, port: int = 0, *, record: bool = True) -> None:
        self.script = Script()
        self.requests: list[RequestRecord] = []
        self._record = record
        self._gates: list[Gate] = []
        self._http = HttpServer(self._serve, port)

    @abstractmethod
    def respond(self, request: Request, body: Any) -> tuple[Reply, HttpReply]:
        """The reply to a request of the vendor's API: what the script says and its bytes on the wire."""

    def takes_key(self, key: str) -> None:  # noqa: B027 - most have nothing to do
        """Know this key, too. Most fakes take any; those that check signatures have to know it."""

    @property
    def port(self) -> int:
        return self._http.port

    @property
    def connections(self) -> int:
        """The number of connections that clients have made so far."""
        return self._http.accepted

    @property
    def open_connections(self) -> int:
        """The number of connections that are open now."""
        return self._http.open_connections

    def close_connections(self) -> None:
        """Close the connections that clients hold open, as servers do after a while."""
        self._http.close_connections()

    @property
    def base_url(self) -> str:
        """The value of the vendor's base URL setting, in the form the vendor documents."""
        return f"http://{LOOPBACK}:{self.port}{self.api_path}"

    def reply(self, *replies: Reply) -> None:
        """Queue replies, one for each coming request."""
        self.script.queue.extend(replies)

    def rules(self, *rules: Rule) -> None:
        """Replace the rules."""
        self.script.rules = list(rules)

    def answer(self, function: Answer) -> None:
        """Answer by a function of the request whatever neither the queue nor a rule answers."""
        self.script.answer = function

    def gate(self) -> Gate:
        """A gate for replies of this script; `reset` opens it, so that a test that fails leaves nothing hanging."""
        self._gates.append(Gate())
        return self._gates[-1]

    def reset(self) -> None:
        """Forget the script and the recorded requests, and open the gates."""
        self.script.clear()
        while self._gates:
            self._gates.pop().open()
        self.requests.clear()

    def bodies(self, path_end: str = "") -> list[Any]:
        """The decoded bodies of the requests whose path ends so."""
        return [received.body for received in self.requests if received.path.endswith(path_end)]

    async def start(self) -> Self:
        await self._http.start()
        return self

    async def stop(self) -> None:
        await self._http.stop()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Self]:
        """Serve in this event loop."""
        await self.start()
        try:
            yield self
        finally:
            await self.stop()

    @contextmanager
    def in_thread(self) -> Iterator[Self]:
        """Serve on a thread with an event loop of its own."""
        loop = asyncio.new_event_loop()
        thread = threading.Thread(target=loop.run_forever, name=type(self).__name__, daemon=True)
        thread.start()
        try:
            asyncio.run_coroutine_threadsafe(self.start(), loop).result(10)
            yield self
            asyncio.run_coroutine_threadsafe(self.stop(), loop).result(10)
        finally:
            loop.call_soon_threadsafe(loop.stop)
            thread.join(10)
            loop.close()

    async def _serve(self, request: Request, exchange: Exchange) -> None:
        if request.path.startswith("/_"):
            return await self._control(request, exchange)
        try:
            body = orjson.loads(request.body) if request.body else None
        except orjson.JSONDecodeError:
            body = None
        received = RequestRecord(request.method, request.path, request.headers, body)
        if self._record:
            self.requests.append(received)
        try:
            received.end(await play(exchange, *self.respond(request, body)))
        except (ClientGone, asyncio.CancelledError):
            received.end("gone")
            raise

    async def _control(self, request: Request, exchange: Exchange) -> None:
        status, answer = 200, b"{}"
        if request.path == "/_script":
            try:
                self.script.load(orjson.loads(request.body))
            except (ValueError, TypeError, KeyError) as error:
                status, answer = 400, orjson.dumps({"error": str(error)})
        elif request.path == "/_requests":
            answer = orjson.dumps([_public(received) for received in list(self.requests)])
        elif request.path == "/_reset":
            self.reset()
        else:
            status = 404
        await exchange.send(status, JSON_HEADERS, answer)


def _public(received: RequestRecord) -> dict[str, Any]:
    return {**vars(received), "headers": dict(received.headers)}


async def play(exchange: Exchange, reply: Reply, planned: HttpReply) -> str:
    """Send a planned reply with the script's delays and faults; returns how it ended: done, cut or gone."""
    if reply.hang:
        await exchange.wait_gone()
        return "gone"
    if reply.gzip:
        planned = _compressed(planned)
    if reply.first_delay:
        await asyncio.sleep(reply.first_delay)
    held = 0 if reply.gate is None or planned.frames is None else reply.gate_after
    if not held and not await _passes(reply.gate, exchange):
        return "gone"
    if planned.frames is None:
        return await _play_body(exchange, reply, planned)
    await exchange.start(planned.status, planned.headers)
    stops = (reply.stall_after, reply.truncate_after, reply.end_after, reply.error_after)
    frames = planned.frames[: min((stop for stop in stops if stop is not None), default=len(planned.frames))]
    await _write_frames(exchange, frames[:held], reply.delta_delay)
    if held and not await _passes(reply.gate, exchange):
        return "gone"
    await _write_frames(exchange, frames[held:], reply.delta_delay)
    if reply.stall_after is not None:
        await exchange.wait_gone()
        return "gone"
    if reply.truncate_after is not None:
        exchange.cut()
        return "cut"
    if reply.error_after is not None:
        await exchange.write(planned.error_frame)
    await exchange.end()
    return "done"


async def _passes(gate: Gate | None, exchange: Exchange) -> bool:
    """Waits until the gate is open, if there is one; returns False if the client leaves before that."""
    if gate is None:
        return True
    gate.reach()
    while not gate.is_open:
        with suppress(TimeoutError):
            async with asyncio.timeout(_LOOK_SECONDS):
                await exchange.wait_gone()
                return False
    return True


def _compressed(planned: HttpReply) -> HttpReply:
    """The same reply in gzip, each frame of a stream readable as soon as it came."""
    packer = zlib.compressobj(wbits=31)
    headers = {**planned.headers, "content-encoding": "gzip"}
    if planned.frames is None:
        return replace(planned, headers=headers, body=packer.compress(planned.body) + packer.flush())
    frames = [packer.compress(frame) + packer.flush(zlib.Z_SYNC_FLUSH) for frame in planned.frames]
    return replace(planned, headers=headers, frames=[*frames, packer.flush()])


async def _play_body(exchange: Exchange, reply: Reply, planned: HttpReply) -> str:
    if reply.truncate_after is None:
        await exchange.send(planned.status, planned.headers, planned.body)
        return "done"
    await exchange.start(planned.status, planned.headers)
    await exchange.write(planned.body[: len(planned.body) // 2])
    exchange.cut()
    return "cut"


async def _write_frames(exchange: Exchange, frames: Sequence[bytes], delay: float) -> None:
    if not delay:
        if frames:
            await exchange.write(*frames)
        return
    for frame in frames:
        await exchange.write(frame)
        await asyncio.sleep(delay)


def serve_forever(server_class: type[FakeServer]) -> None:
    """The command line of a fake: prints its base URL, then serves until it is killed."""
    parser = argparse.ArgumentParser(description=server_class.__doc__)
    parser.add_argument("--port", type=int, default=0, help="default: a free one")
    parser.add_argument("--script", type=Path, help="a JSON file as POST /_script takes it")
    parser.add_argument("--no-record", action="store_true", help="keep no requests, for long benchmarks")
    options = parser.parse_args()
    server = server_class(options.port, record=not options.no_record)
    if options.script:
        server.script.load(json.loads(options.script.read_text()))
    uvloop.run(_serve_until_killed(server))


async def _serve_until_killed(server: FakeServer) -> None:
    async with server.running():
        sys.stdout.write(f"{server.base_url}\n")
        sys.stdout.flush()
        await asyncio.Event().wait()
