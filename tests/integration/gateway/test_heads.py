"""Heads of requests, which come before any credential: too large ones and slow ones end their connection.

A client that still sends gets to read why: its connection is not reset under the answer.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest
from websockets.asyncio.client import connect

from gateway.server import http_protocol, lingering
from gateway.server.http_protocol import MOST_BYTES
from tests.integration.gateway.conftest import Edge
from tests.integration.gateway.samples import AGENT_ID
from tests.integration.gateway.scripted import settled

GET = b"GET /v1/health HTTP/1.1\r\nhost: localhost\r\n"
CHUNKED = (
    b"POST /v1/agents HTTP/1.1\r\nhost: localhost\r\n"
    b"content-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n"
)
# More than any connection holds on the way.
ENOUGH = 64 * 1024 * 1024


@asynccontextmanager
async def connected(edge: Edge) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    host, _, port = edge.url.removeprefix("http://").partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    try:
        yield reader, writer
    finally:
        writer.close()


async def status(reader: asyncio.StreamReader) -> bytes:
    """Of the next answer, which is read whole."""
    head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 10)
    length = next(int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
    await reader.readexactly(length)
    return head.split()[1]


async def flood(writer: asyncio.StreamWriter, some: bytes) -> None:
    """Sends until the connection breaks."""
    with suppress(ConnectionError):
        for _ in range(ENOUGH // len(some)):
            writer.write(some)
            await writer.drain()


async def stopped(sending: asyncio.Task[None]) -> None:
    sending.cancel()
    await asyncio.gather(sending, return_exceptions=True)


@pytest.mark.parametrize(
    ("begin", "more"),
    [
        (GET, b"x-some: " + b"a" * 1_000 + b"\r\n"),
        (GET + b"x-one: ", b"a" * 1_000),
        (b"GET /v1/agents?", b"a" * 1_000),
        (CHUNKED + b"0\r\n", b"x-some: " + b"a" * 1_000 + b"\r\n"),
        (CHUNKED + b"1;", b"a" * 1_000),
    ],
    ids=["headers", "a header", "a query", "trailers", "an extension of a chunk"],
)
async def test_a_head_without_an_end_is_not_held(edge: Edge, begin: bytes, more: bytes) -> None:
    async with connected(edge) as (reader, writer):
        writer.write(begin)
        sending = asyncio.create_task(flood(writer, more * 100))
        # The answer is whole, and the client reads it to its end, while it sends on.
        whole = await asyncio.wait_for(reader.read(), 20)
        await stopped(sending)
    assert whole.startswith(b"HTTP/1.1 400 "), whole
    assert whole.endswith(b"The head of the request is larger than 128 KiB.")


async def test_who_sends_on_after_the_answer_is_cut_off(edge: Edge, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lingering, "LINGER_SECONDS", 0.2)
    async with connected(edge) as (_, writer):
        writer.write(GET + b"x-one: ")
        # Which ends where the connection breaks.
        await asyncio.wait_for(drip(writer, b"a" * 100_000), 20)


async def test_who_goes_away_after_the_answer_is_not_waited_for(edge: Edge, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lingering, "LINGER_SECONDS", 60.0)
    async with connected(edge) as (reader, writer):
        writer.write(GET + b"x-one: " + b"a" * 2 * MOST_BYTES)
        assert (await asyncio.wait_for(reader.read(), 20)).startswith(b"HTTP/1.1 400 ")
        assert running_timers("abort")
    await settled(lambda: not running_timers("abort"))


async def test_what_is_no_request_is_told_so_while_its_client_sends_on(edge: Edge) -> None:
    async with connected(edge) as (reader, writer):
        writer.write(b"\x16\x03\x01\x00")
        sending = asyncio.create_task(flood(writer, bytes(100_000)))
        assert (await asyncio.wait_for(reader.read(), 20)).endswith(b"Invalid HTTP request received.")
        await stopped(sending)


async def test_what_is_as_large_as_it_may_be(edge: Edge) -> None:
    async with connected(edge) as (reader, writer):
        for _ in range(2):
            writer.write(GET + b"x-some: " + b"a" * (MOST_BYTES - 200) + b"\r\n\r\n")
            assert await status(reader) == b"200"
        # Bodies are bounded elsewhere.
        body = b'{"name": 1, "metadata": {"a": "' + b"a" * (3 * MOST_BYTES) + b'"}}'
        writer.write(CHUNKED + b"%x\r\n%b\r\n0\r\nx-trailer: a\r\n\r\n" % (len(body), body))
        assert await status(reader) == b"422"
        writer.write(GET + b"\r\n")
        assert await status(reader) == b"200"


async def drip(writer: asyncio.StreamWriter, piece: bytes) -> None:
    """Sends a piece now and then: none of them wins time for the rest."""
    with suppress(ConnectionError):
        while piece:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0.05)


@pytest.mark.parametrize(("begin", "piece"), [(b"", b""), (b"GET", b""), (b"\r\n", b"\r\n"), (GET, b"a: b\r\n")])
async def test_a_head_that_does_not_come(
    edge: Edge, monkeypatch: pytest.MonkeyPatch, begin: bytes, piece: bytes
) -> None:
    monkeypatch.setattr(http_protocol, "MOST_SECONDS", 0.3)
    async with connected(edge) as (reader, writer):
        writer.write(begin)
        sending = asyncio.create_task(drip(writer, piece))
        answer = await asyncio.wait_for(reader.read(), 20)
        await stopped(sending)
    # Of what does not even begin nothing is said.
    assert answer[:13] == (b"HTTP/1.1 408 " if begin else b"")


async def test_a_second_head_that_does_not_come(edge: Edge, monkeypatch: pytest.MonkeyPatch) -> None:
    async with connected(edge) as (reader, writer):
        writer.write(GET + b"\r\n")
        assert await status(reader) == b"200"
        # The connection is kept for the next; but not for one that never is whole.
        monkeypatch.setattr(http_protocol, "MOST_SECONDS", 0.3)
        writer.write(b"GET")
        assert (await asyncio.wait_for(reader.read(), 20)).startswith(b"HTTP/1.1 408 ")


async def test_what_is_whole_has_its_time(edge: Edge, monkeypatch: pytest.MonkeyPatch) -> None:
    async with (
        connect(f"{edge.url.replace('http', 'ws')}/v1/agents/{AGENT_ID}/ws") as socket,
        connected(edge) as (reader, writer),
    ):
        writer.write(GET + b"\r\n")
        assert await status(reader) == b"200"
        # Nothing waits for a head on either, however long it takes until the next comes.
        assert not running_timers("_give_up")
        await socket.send('{"type": "ping"}')
        assert b"pong" in await socket.recv(decode=False)
        writer.write(GET + b"\r\n")
        assert await status(reader) == b"200"


def running_timers(name: str) -> list[asyncio.TimerHandle]:
    """The loop's timers that will call a method of this name."""
    scheduled: list[asyncio.TimerHandle] = asyncio.get_running_loop()._scheduled  # type: ignore[attr-defined]
    calls = [(timer, getattr(timer, "_callback", None)) for timer in scheduled if not timer.cancelled()]
    return [timer for timer, callback in calls if getattr(callback, "__name__", "") == name]
