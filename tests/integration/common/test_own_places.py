"""Attacks on Loci's own ports, where private addresses are allowed: by providers, callbacks, pages and MCP servers."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass, field
from ipaddress import ip_address

import aiohttp
import httpx
import httpx2
import pytest

from services.agent.adapters import posting
from services.agent.resources.callbacks.ports import PostFailed
from services.common.own_places import OWN, OwnPlaces, places_of
from services.common.safe_http import SafeTransport
from services.common.settings import Env
from services.llm_gateway.core.provider_config import ProviderConfig
from services.llm_gateway.http.client import PrivateAddress, WebSockets, http_client
from services.tool_runner.mcp.http import plain_client
from services.tool_runner.mcp.protocol.errors import McpProblem
from services.tool_runner.web.errors import WebError
from services.tool_runner.web.fetch import Fetcher

SPELLINGS = ["127.0.0.1", "localhost", "127.1", "2130706433", "0x7f000001", "127.0.0.2", "[::ffff:127.0.0.1]"]


@dataclass
class Part:
    """A part of Loci that listens, and counts who comes."""

    port: int
    came: list[None] = field(default_factory=list)


@pytest.fixture
async def part(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Part]:
    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        made.came.append(None)
        await reader.readuntil(b"\r\n\r\n{}")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\ncontent-type: text/plain\r\n\r\nsecret")
        with suppress(OSError):
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(take, ["127.0.0.1", "127.0.0.2"], socket_port())
    made = Part(server.sockets[0].getsockname()[1])
    monkeypatch.setattr(OWN, "_places", (("127.0.0.1", made.port),))
    yield made
    server.close()
    await server.wait_closed()


def socket_port() -> int:
    """A port that is free on both addresses, as far as anybody can say."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@pytest.mark.parametrize("host", SPELLINGS)
async def test_no_address_that_somebody_supplies_leads_to_a_part_of_loci(part: Part, host: str) -> None:
    url = f"http://{host}:{part.port}/metrics"
    async with httpx.AsyncClient(transport=SafeTransport(allow_private=True)) as client:
        with pytest.raises((httpx.ConnectError, httpx.InvalidURL), match=r"part of Loci|Invalid"):
            await client.get(url)
    with pytest.raises(PostFailed, match=r"part of Loci|Invalid|not a URL"):
        await posting.post(url, b"{}", {}, allow_private=True)
    fetcher = Fetcher(allow_private=True)
    with pytest.raises(WebError, match=r"part of Loci|not a URL"):
        await fetcher.fetch(url)
    await fetcher.close()
    async with plain_client(allow_private=True, seconds=10) as oauth:
        with pytest.raises((McpProblem, httpx.HTTPError), match=r"part of Loci|not a URL|cannot be reached"):
            await oauth.get(url)
    config = ProviderConfig("mine", "vllm", url, "k", key_setting="k", url_setting="u", is_vendor=False)
    async with http_client(config) as provider:
        with pytest.raises(httpx2.TransportError, match="part of Loci"):
            await provider.get(url)
    opener = WebSockets(config)
    with pytest.raises((aiohttp.ClientConnectorError, PrivateAddress)):
        await opener.open(url.replace("http", "ws"), {})
    await opener.close()
    assert part.came == []


async def test_other_ports_of_this_machine_are_open_where_the_operator_says_so(
    part: Part, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(OWN, "_places", (("127.0.0.1", part.port + 1),))
    assert await posting.post(f"http://127.0.0.1:{part.port}/hook", b"{}", {}, allow_private=True) == 200


async def test_what_a_service_learns_of_its_environment() -> None:
    env = Env(
        {
            "LOCI_LISTEN": "unix:///run/loci/agent.sock",
            "LOCI_GATEWAY_URL": "http://127.0.0.1:8283",
            "LOCI_TOOL_RUNNER_ADDR": "dns:///127.0.0.1:50054",
            "LOCI_DATABASE_URL": "postgresql://loci@127.0.0.1:5433/loci",
        }
    )
    assert places_of(env) == [("127.0.0.1", 8283), ("127.0.0.1", 50054), ("127.0.0.1", 5433)]
    own = OwnPlaces()
    own.learn(places_of(env))
    assert [await own.hold(ip_address("::1"), port) for port in (8283, 50054, 5433, 8284)] == [True, True, True, False]
