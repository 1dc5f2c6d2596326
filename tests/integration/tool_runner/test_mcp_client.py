"""Sessions with real MCP servers of the official SDK, and with servers that do it wrong: no database."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

import pytest
from mcp.server.lowlevel import Server as SdkServer
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from services.tool_runner.mcp import session
from services.tool_runner.mcp.client import McpClient, Target, Times
from services.tool_runner.mcp.protocol import server_tools
from services.tool_runner.mcp.protocol.bearer import NoBearer
from services.tool_runner.mcp.protocol.errors import Kind, McpProblem, ServerError
from services.tool_runner.mcp.schema_check import SchemaCheck
from services.tool_runner.mcp_servers.model import Http, Server
from services.tool_runner.mcp_servers.model import Kind as Transport
from tests.fakes.http import HttpServer
from tests.fakes.mcp_hostile import HostileMcp
from tests.fakes.mcp_server import McpServer
from tests.polling import until

_TIMES = Times(connect=30, list=30, execute=30, idle=300)
_SHORT = Times(connect=0.5, list=0.5, execute=0.5, idle=300)


@asynccontextmanager
async def _client(times: Times = _TIMES, *, allow_private: bool = True) -> AsyncIterator[McpClient]:
    client = McpClient(allow_private=allow_private, programs=None, times=times)
    yield client
    await client.close()


def _target(url: str, kind: Transport = Transport.STREAMABLE_HTTP, *, stored: bool = True, **given: Any) -> Target:
    server = Server(id=uuid4(), name="test", transport=Http(kind=kind, url=url, **given))
    return Target(uuid4(), server, NoBearer(), stored)


async def _call(client: McpClient, target: Target, name: str, within: float = 30, **arguments: Any) -> Any:
    heard: list[str] = []
    answer = await client.call(target, name, arguments, schema={}, seconds=within, listener=heard.append)
    return {**answer, "heard": heard}


@asynccontextmanager
async def _hostile(times: Times = _TIMES) -> AsyncIterator[tuple[HostileMcp, McpClient, str]]:
    hostile = HostileMcp()
    async with HttpServer(hostile) as server, _client(times) as client:
        yield hostile, client, f"http://127.0.0.1:{server.port}"


@pytest.mark.parametrize("kind", [Transport.STREAMABLE_HTTP, Transport.SSE])
async def test_a_server_of_the_sdk_is_listed_and_called_over_one_session(kind: Transport) -> None:
    async with McpServer().serving() as server, _client() as client:
        target = _target(server.url if kind is Transport.STREAMABLE_HTTP else server.sse_url, kind)
        assert [tool["name"] for tool in await client.tools(target)][:2] == ["add", "echo"]
        assert (await _call(client, target, "add", a=1, b=2))["structuredContent"] == {"result": 3}
        answer = await _call(client, target, "slow", seconds=0.01)
        assert answer["heard"] == ["[progress 1/2] half", "[info] working"]
        greetings = [headers for headers in server.headers if "mcp-session-id" not in headers]
        assert len(greetings) == (1 if kind is Transport.STREAMABLE_HTTP else len(server.headers))


@pytest.mark.parametrize("kind", [Transport.STREAMABLE_HTTP, Transport.SSE])
async def test_a_large_answer_is_read_and_harms_no_call_beside_it(kind: Transport) -> None:
    async with McpServer().serving() as server, _client() as client:
        target = _target(server.url if kind is Transport.STREAMABLE_HTTP else server.sse_url, kind)
        beside = asyncio.create_task(_call(client, target, "slow", seconds=0.5))
        text = "x" * (3 << 20)
        assert (await _call(client, target, "echo", text=text))["content"][0]["text"] == text
        assert (await beside)["content"][0]["text"] == "done"


@pytest.mark.parametrize("kind", [Transport.STREAMABLE_HTTP, Transport.SSE])
async def test_a_server_that_asks_the_user_is_told_that_nobody_is_asked(kind: Transport) -> None:
    async with McpServer().serving() as server, _client() as client:
        target = _target(server.url if kind is Transport.STREAMABLE_HTTP else server.sse_url, kind)
        with pytest.raises(ServerError, match=r"asks the user \(Which colour\?\), and nobody is asked"):
            await _call(client, target, "ask", question="Which colour?")


async def test_a_server_without_tools_has_none() -> None:
    bare = McpServer()
    bare.server = SdkServer("bare")
    async with bare.serving() as server, _client() as client:
        assert await client.tools(_target(server.url)) == []


def _without_handshake(server: McpServer) -> ASGIApp:
    """A server of the newest protocol alone: whoever greets in the older way is refused."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        headers = dict(scope["headers"])
        if headers.get(b"mcp-protocol-version", b"").decode() in MODERN_PROTOCOL_VERSIONS:
            await server(scope, receive, send)
            return
        error = {"jsonrpc": "2.0", "id": None, "error": {"code": -32601, "message": "Method not found"}}
        await JSONResponse(error, 400)(scope, receive, send)

    return app


async def test_a_server_of_the_newest_protocol_alone_is_understood() -> None:
    async with McpServer().serving(app=_without_handshake) as server, _client() as client:
        target = _target(server.url)
        assert len(await client.tools(target)) == 6
        assert (await _call(client, target, "add", a=1, b=2))["structuredContent"] == {"result": 3}
        assert {headers.get("mcp-name") for headers in server.headers} == {None, "add"}


async def test_calls_at_the_same_time_hear_their_own() -> None:
    async with McpServer().serving() as server, _client() as client:
        target = _target(server.url)
        answers = await asyncio.gather(*(_call(client, target, "echo", text=str(number)) for number in range(20)))
        assert [answer["content"][0]["text"] for answer in answers] == [str(number) for number in range(20)]


async def test_headers_and_the_token_are_on_every_request() -> None:
    async with McpServer().serving() as server, _client() as client:
        server.token = "secret"
        target = _target(server.url, auth_header="Authorization", auth_token="secret", headers={"x-team": "blue"})
        await _call(client, target, "echo", text="hi")
        assert {headers.get("x-team") for headers in server.headers} == {"blue"}


async def test_a_server_that_wants_credentials_is_told_apart() -> None:
    async with McpServer().serving() as server, _client() as client:
        server.token = "secret"
        server.challenge = 'Bearer resource_metadata="https://example.com/meta"'
        with pytest.raises(McpProblem) as caught:
            await client.tools(_target(server.url))
        assert caught.value.kind is Kind.OAUTH_REQUIRED
        assert caught.value.challenge == server.challenge


@pytest.mark.parametrize("kind", [Transport.STREAMABLE_HTTP, Transport.SSE])
async def test_a_server_that_went_away_and_came_back_is_found_again(kind: Transport) -> None:
    fake = McpServer()
    async with _client() as client:
        async with fake.serving():
            port = fake.port
            target = _target(fake.url if kind is Transport.STREAMABLE_HTTP else fake.sse_url, kind)
            await _call(client, target, "echo", text="before")
        with pytest.raises(McpProblem) as caught:
            await client.tools(target)
        assert caught.value.kind is Kind.UNREACHABLE
        async with McpServer().serving(port):
            assert (await _call(client, target, "echo", text="after"))["content"][0]["text"] == "after"


async def test_a_server_that_dies_under_a_call_leaves_it_unknown_and_uncalled_again() -> None:
    fake = McpServer()
    async with _client() as client:
        async with fake.serving():
            call = asyncio.create_task(_call(client, _target(fake.url), "slow", seconds=30))
            await until(lambda: fake.calls)
        with pytest.raises(McpProblem) as caught:
            await call
        assert caught.value.arrived
        assert len(fake.calls) == 1


async def test_a_call_that_takes_too_long_ends_and_the_next_one_works() -> None:
    async with McpServer().serving() as server, _client() as client:
        target = _target(server.url)
        await client.tools(target)  # what follows is sent at once
        with pytest.raises(McpProblem) as caught:
            await _call(client, target, "slow", 0.5, seconds=30)
        assert (caught.value.kind, caught.value.arrived) == (Kind.TIMEOUT, True)
        assert (await _call(client, target, "echo", text="on"))["content"][0]["text"] == "on"


async def test_private_addresses_are_refused_unless_allowed() -> None:
    async with McpServer().serving() as server, _client(allow_private=False) as client:
        with pytest.raises(McpProblem, match=r"must begin with https|not a public address"):
            await client.tools(_target(server.url))
        assert server.headers == []


@pytest.mark.parametrize(
    ("way", "kind", "words"),
    [
        ("hang", Kind.TIMEOUT, "did not answer within"),
        ("hang-later", Kind.TIMEOUT, "did not"),
        ("dribble", Kind.TIMEOUT, "did not"),
        ("html", Kind.FAILED, ""),
        ("garbage", Kind.FAILED, ""),
        ("not-http", Kind.UNREACHABLE, "broke"),
        ("error", Kind.FAILED, "HTTP 503: out of order"),
        ("huge", Kind.FAILED, "more than 16 MiB"),
        ("bomb", Kind.FAILED, "packed"),
        ("flood", Kind.TIMEOUT, "did not"),
        ("too-deep", Kind.FAILED, ""),
        ("redirect", Kind.FAILED, "not followed"),
        ("nowhere", Kind.FAILED, ""),
    ],
)
async def test_a_server_that_does_it_wrong_ends_in_time_and_is_told(way: str, kind: Kind, words: str) -> None:
    async with _hostile(_SHORT if kind is Kind.TIMEOUT else _TIMES) as (_, client, url):
        async with asyncio.timeout(20):
            with pytest.raises(McpProblem) as caught:
                await client.tools(_target(f"{url}/{way}"))
        assert caught.value.kind is kind, caught.value
        assert words in caught.value.message
        # Nobody else is harmed.
        client.times = _TIMES
        assert len(await client.tools(_target(f"{url}/well"))) == 1


async def test_endless_pages_end() -> None:
    async with _hostile() as (_, client, url):
        listed = await client.tools(_target(f"{url}/pages"))
        assert len(listed) == 2_000
        listing = server_tools.read(listed)
        assert (len(listing.offers), len(listing.problems)) == (500, 500)


async def test_bad_tools_are_problems_and_the_others_are_offered() -> None:
    async with _hostile() as (_, client, url):
        listing = await SchemaCheck().check(server_tools.read(await client.tools(_target(f"{url}/bad-tools"))))
        assert [offer.name for offer in listing.offers] == ["good", "null schema", "also/good"]
        assert [name for name, _ in listing.problems] == [
            "a list",
            "elsewhere",
            "(tool 6)",
            "(tool 7)",
            "deep",
            "no bound",
        ]


async def test_a_forgotten_session_is_begun_anew_and_nothing_is_done_twice() -> None:
    async with _hostile() as (hostile, client, url):
        target = _target(f"{url}/forgetful")
        for number in range(1, 4):
            await _call(client, target, "act")
            assert (hostile.calls, hostile.sessions) == (number, number)


async def test_a_dropped_call_is_not_made_again() -> None:
    async with _hostile() as (hostile, client, url):
        with pytest.raises(McpProblem) as caught:
            await _call(client, _target(f"{url}/drop"), "act")
        assert (caught.value.arrived, hostile.calls) == (True, 1)


async def test_a_session_that_began_slowly_is_not_idle_yet() -> None:
    async with _hostile(Times(30, 30, 30, idle=2)) as (hostile, client, url):
        assert len(await client.tools(_target(f"{url}/late"))) == 1
        assert hostile.sessions == 1


async def test_an_idle_session_ends_and_one_that_is_not_stored_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "_LOOK_SECONDS", 0.1)
    async with McpServer().serving() as server, _client(Times(30, 30, 30, idle=0.5)) as client:
        await client.tools(_target(server.url, stored=False))
        target = _target(server.url)
        await client.tools(target)
        await until(lambda: not any(one.alive for one in client._lines.values()))
        await client.tools(target)
        ended = [headers for headers in server.headers if headers.get(":method") == "DELETE"]
        greetings = [headers for headers in server.headers if "mcp-session-id" not in headers]
        assert (len(greetings), ended) == (3, [])
