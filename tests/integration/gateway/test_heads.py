"""Heads of requests, which come before any credential: too large ones and slow ones end their connection."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from websockets.asyncio.client import connect

from gateway.server import http_protocol
from gateway.server.http_protocol import MOST_BYTES
from tests.integration.gateway.conftest import Edge
from tests.integration.gateway.samples import AGENT_ID

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
    for _ in range(ENOUGH // len(some)):
        writer.write(some)
        await writer.drain()


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
    async with connected(edge) as (_, writer):
        writer.write(begin)
        with pytest.raises(ConnectionError):
            await flood(writer, more * 100)


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


@pytest.mark.parametrize("pieces", [[], [b"GET"], [b"\r\n", b"\r\n", b"\r\n"], [GET, b"a: b\r\n", b"c: d\r\n"]])
async def test_a_head_that_does_not_come(edge: Edge, monkeypatch: pytest.MonkeyPatch, pieces: list[bytes]) -> None:
    monkeypatch.setattr(http_protocol, "MOST_SECONDS", 0.3)
    async with connected(edge) as (reader, writer):
        for piece in pieces:
            writer.write(piece)
            await asyncio.sleep(0.05)
        assert await asyncio.wait_for(reader.read(), 5) == b""
    async with connected(edge) as (reader, writer):
        writer.write(GET + b"\r\n")
        assert await status(reader) == b"200"
        # The connection is kept for the next; but not for one that never is whole.
        writer.write(b"GET")
        assert await asyncio.wait_for(reader.read(), 5) == b""


async def test_what_is_whole_has_its_time(edge: Edge, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_protocol, "MOST_SECONDS", 0.1)
    async with (
        connect(f"{edge.url.replace('http', 'ws')}/v1/agents/{AGENT_ID}/ws") as socket,
        connected(edge) as (reader, writer),
    ):
        writer.write(GET + b"\r\n")
        assert await status(reader) == b"200"
        await asyncio.sleep(0.3)
        await socket.send('{"type": "ping"}')
        assert b"pong" in await socket.recv(decode=False)
        writer.write(GET + b"\r\n")
        assert await status(reader) == b"200"
