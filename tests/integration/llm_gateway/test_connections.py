"""The gate of a provider limits its calls, not the HTTP client."""

import asyncio

from services.llm_gateway.core.provider_config import ProviderConfig
from services.llm_gateway.http.client import http_client

# More than aiohttp's and httpx's own limits.
CALLS = 250


async def test_as_many_calls_run_at_once_as_are_made() -> None:
    there, everybody = 0, asyncio.Event()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal there
        await reader.readuntil(b"\r\n\r\n")
        there += 1
        if there == CALLS:
            everybody.set()
        await everybody.wait()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0, backlog=CALLS)
    port = server.sockets[0].getsockname()[1]
    config = ProviderConfig(
        name="openai",
        type="openai",
        base_url=f"http://127.0.0.1:{port}/v1",
        api_key="sk-test",
        key_setting="OPENAI_API_KEY",
        url_setting="OPENAI_BASE_URL",
        is_vendor=False,
    )
    async with server, http_client(config) as http, asyncio.timeout(20):
        answers = await asyncio.gather(*(http.get(config.base_url) for _ in range(CALLS)))
    assert [one.text for one in answers] == ["ok"] * CALLS
