"""Broken HTTP, and errors that take long to read: over a real socket, with the real client."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from services.llm_gateway.core.errors import LlmError, LlmNotAnApi, LlmRateLimit, LlmStreamMalformed
from services.llm_gateway.core.refusals import Caller, Refusal, error_of
from services.llm_gateway.vendors.openai.client import OpenAIProvider
from tests.unit.llm_gateway.builders import config, model, request, user

_OK = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


@asynccontextmanager
async def _answering(*pieces: bytes) -> AsyncIterator[str]:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        try:
            for piece in pieces:
                writer.write(piece)
                await writer.drain()
        except ConnectionError:
            pass
        finally:
            writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        host, port = server.sockets[0].getsockname()
        yield f"http://{host}:{port}/v1"


async def _error(*pieces: bytes) -> LlmError:
    async with _answering(*pieces) as url:
        provider = OpenAIProvider(config("openai", url, stall_seconds=30.0))
        asked = provider.generate(request(user("hello")), model("openai/gpt-4o-mini"), stream=True)
        try:
            with pytest.raises(LlmError) as caught:
                [event async for event in asked]
        finally:
            await provider.close()
    return caught.value


@pytest.mark.parametrize(
    "pieces",
    [
        [b"SSH-2.0-OpenSSH_9.9\r\n"],
        [b"HTTP/1.1 two-hundred OK\r\n\r\n"],
        [b"HTTP/1.1 200 OK\r\nx: ", *[b"y" * 4_096] * 20],
        [b"HTTP/1.1 200 OK\r\n", *[b"x-a: b\r\n"] * 10_000],
        [_OK, b"zzzz\r\n"],
    ],
    ids=["another protocol", "a broken head", "a long header", "many headers", "a broken chunk"],
)
async def test_what_is_no_http_is_no_api(pieces: list[bytes]) -> None:
    assert isinstance(await _error(*pieces), LlmNotAnApi)


@pytest.mark.parametrize("data", [b'{"choices":[{"delta":{"content":"', b"[" * 100_000, b'{"choices":5}'])
async def test_events_that_make_no_sense(data: bytes) -> None:
    event = b"data: " + data + b"\n\n"
    assert isinstance(await _error(_OK, b"%x\r\n%b\r\n" % (len(event), event)), LlmStreamMalformed)


@pytest.mark.parametrize(
    "wait", ["31536000", "-5", "1e999", "nan", "9" * 400, "Mon, 01 Jan 0001 00:00:00 -0000", "soon"]
)
async def test_odd_wishes_of_how_long_to_wait(wait: str) -> None:
    head = f"HTTP/1.1 429 Slow\r\nRetry-After: {wait}\r\nContent-Length: 2\r\n\r\n"
    error = await _error(head.encode(), b"{}")
    assert isinstance(error, LlmRateLimit)
    assert error.retry_after is None or error.retry_after >= 0


@pytest.mark.parametrize("repeated", ["input token count ", "function_declarations", "context limit: 1 + ", "9"])
def test_a_long_error_is_read_at_once(repeated: str) -> None:
    """Patterns that go back and forth over 250 KB take ten seconds, in which nobody else is served."""
    message: Any = repeated * (250_000 // len(repeated))
    began = time.process_time()
    error_of(Caller("p", "e", "k", "u"), Refusal(400, message), "h")
    assert time.process_time() - began < 0.5


async def test_a_redirect_is_told_and_not_followed() -> None:
    asked: list[bytes] = []

    async def elsewhere(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readuntil(b"\r\n\r\n"))
        writer.close()

    async with await asyncio.start_server(elsewhere, "127.0.0.1", 0) as server:
        host, port = server.sockets[0].getsockname()
        target = f"http://{host}:{port}/v1?key=secret"
        head = f"HTTP/1.1 307 Temporary Redirect\r\nLocation: {target}\r\nContent-Length: 0\r\n\r\n"
        error = await _error(head.encode())
    assert isinstance(error, LlmNotAnApi)
    assert f"points to http://{host}:{port}/v1, where the key is not sent" in error.message
    assert "OPENAI_BASE_URL" in error.message
    assert "secret" not in error.message
    assert asked == []
