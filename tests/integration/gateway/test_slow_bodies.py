"""A body that does not come holds nobody: 408, and the connection is closed."""

import asyncio

import orjson
import pytest

from tests.integration.gateway.conftest import Edge, StartGateway
from tests.integration.gateway.samples import AGENT_ID


async def _answer(edge: Edge, head: str, pieces: list[bytes], pause: float) -> tuple[str, bytes]:
    """Sends a request piece by piece; its status line and what comes until the gateway closes."""
    host, _, port = edge.url.removeprefix("http://").partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    try:
        writer.write(f"{head}\r\nhost: localhost\r\n\r\n".encode())
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(pause)
        whole = await asyncio.wait_for(reader.read(), 20)
    finally:
        writer.close()
    head_, _, body = whole.partition(b"\r\n\r\n")
    return head_.decode(), body


@pytest.mark.parametrize(
    ("path", "headers", "pieces"),
    [
        ("/v1/agents", "content-length: 100\r\ncontent-type: application/json", [b"{"]),
        # A piece now and then does not help a body that is read as a whole.
        ("/v1/agents", "content-length: 100\r\ncontent-type: application/json", [b"{", b" ", b" ", b" "]),
        (f"/v1/agents/{AGENT_ID}/messages", "content-length: 100\r\ncontent-type: application/json", []),
    ],
)
async def test_a_body_that_does_not_come(
    start_gateway: StartGateway, path: str, headers: str, pieces: list[bytes]
) -> None:
    edge = await start_gateway(body_seconds=0.6)
    head, body = await _answer(edge, f"POST {path} HTTP/1.1\r\n{headers}", pieces, 0.15)
    assert head.startswith("HTTP/1.1 408")
    assert "connection: close" in head.lower()
    assert "x-should-retry: false" in head.lower()
    assert "LOCI_BODY_SECONDS" in orjson.loads(body)["detail"]


async def test_a_body_that_is_too_large_and_does_not_come(start_gateway: StartGateway) -> None:
    edge = await start_gateway(body_seconds=0.3, max_body_bytes=1_000)
    headers = "content-length: 5000\r\ncontent-type: application/json\r\nconnection: close"
    head, _ = await _answer(edge, f"POST /v1/agents HTTP/1.1\r\n{headers}", [b"{"], 0)
    assert head.startswith("HTTP/1.1 413")
