"""OAuth with an authorization server of the official SDK, over two replicas of the tool runner."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit
from uuid import UUID, uuid4

import asyncpg
import httpx
import pytest

from loci.tool.v1 import execution_service_pb2 as execution_pb
from loci.tool.v1 import mcp_pb2 as mcp_pb
from loci.tool.v1 import mcp_service_pb2 as pb
from services.common.errors import FailedPrecondition, Internal, InvalidArgument
from tests.fakes.mcp_oauth import OAuthServer
from tests.integration.tool_runner.harness import Service, fails, tool_runner
from tests.integration.tool_runner.test_mcp_servers import SETTINGS

_CALLBACK = "http://127.0.0.1:8283"


@asynccontextmanager
async def _two(
    url: str, folder: Path, **given: Any
) -> AsyncIterator[tuple[Service, Service, OAuthServer, mcp_pb.McpServer]]:
    tenant = uuid4()
    async with (
        OAuthServer(**given).serving() as oauth,
        tool_runner(url, folder, mcp=SETTINGS, organization_id=tenant) as one,
        tool_runner(url, folder, mcp=SETTINGS, organization_id=tenant) as other,
    ):
        request = pb.CreateMcpServerRequest(name="closed", transport=_transport(oauth))
        yield one, other, oauth, (await one.mcp.CreateMcpServer(request)).server


def _transport(oauth: OAuthServer) -> mcp_pb.McpTransport:
    return mcp_pb.McpTransport(streamable_http=mcp_pb.HttpMcpTransport(server_url=oauth.mcp.url))


async def _say_yes(url: str) -> dict[str, str]:
    """Returns what the browser brings back to the callback."""
    async with httpx.AsyncClient(follow_redirects=False) as browser:
        location = (await browser.get(url)).headers["location"]
    assert location.startswith(f"{_CALLBACK}/v1/tools/mcp/oauth/callback?")
    return {name: values[0] for name, values in parse_qs(urlsplit(location).query).items()}


async def authorize(watching: Service, finishing: Service, request: pb.StreamConnectRequest) -> list[Any]:
    """Returns the events of a connection, to which the user says yes."""
    events = []
    async for event in watching.mcp.StreamConnect(request):
        events.append(event)
        if event.event == pb.MCP_CONNECT_EVENT_AUTHORIZATION_URL:
            asked = await watching.mcp.GetMcpAuthorization(pb.GetMcpAuthorizationRequest(state=event.state))
            assert (asked.url, bool(asked.server_name)) == (event.url, True)
            back = await _say_yes(event.url)
            finish = pb.FinishMcpAuthorizationRequest(state=back["state"], code=back["code"])
            # The callback comes without a tenant's key: any caller's context will do.
            with finishing.of(UUID(int=7)):
                await finishing.mcp.FinishMcpAuthorization(finish)
                with fails(InvalidArgument, "MCP_OAUTH_STATE_INVALID"):
                    await finishing.mcp.FinishMcpAuthorization(finish)
    return events


def _names(events: list[Any]) -> list[str]:
    return [pb.McpConnectEvent.Name(event.event).removeprefix("MCP_CONNECT_EVENT_") for event in events]


async def test_a_user_gives_leave_and_any_replica_takes_the_answer(tool_url: str, tmp_path: Path) -> None:
    async with _two(tool_url, tmp_path) as (one, other, oauth, server):
        assert server.status == mcp_pb.MCP_STATUS_OAUTH_REQUIRED
        with fails(FailedPrecondition, "MCP_OAUTH_REQUIRED"):
            await one.mcp.RefreshMcpServer(pb.RefreshMcpServerRequest(id=server.id))
        wanted = pb.StreamConnectRequest(id=server.id, callback_url=_CALLBACK)
        events = await authorize(one, other, wanted)
        assert _names(events) == [
            "CONNECTION_ATTEMPT",
            "OAUTH_REQUIRED",
            "AUTHORIZATION_URL",
            "WAITING_FOR_AUTH",
            "SUCCESS",
        ]
        assert events[2].session_id.startswith("mcp-oauth-")
        assert oauth.resources == [oauth.mcp.url]
        add = next(tool for tool in events[-1].tools if tool.name == "add")
        assert (await other.call(add.id, a=1, b=2)).tool_return == "3"
        # At rest nothing of it can be read.
        connection = await asyncpg.connect(tool_url)
        rows = await connection.fetch("SELECT oauth FROM tool_runner.mcp_servers")
        rows += await connection.fetch("SELECT attempt FROM tool_runner.mcp_authorizations")
        await connection.close()
        (token,) = oauth.access
        assert all(token.encode() not in (row[0] or b"") for row in rows)


async def test_tokens_are_renewed_once_for_all_replicas(tool_url: str, tmp_path: Path) -> None:
    async with _two(tool_url, tmp_path) as (one, other, oauth, server):
        wanted = pb.StreamConnectRequest(id=server.id, callback_url=_CALLBACK)
        *_, success = await authorize(one, other, wanted)
        add = next(tool for tool in success.tools if tool.name == "add")
        oauth.access.clear()  # they end before their time
        receipts = await asyncio.gather(
            *(service.call(add.id, a=number, b=1) for number, service in enumerate((one, other) * 4))
        )
        assert [receipt.tool_return for receipt in receipts] == [str(number + 1) for number in range(8)]
        assert oauth.refreshed == 1
        assert len(oauth.mcp.calls) == 8
        # Where they cannot be renewed, the model is told that nothing was done.
        oauth.access.clear()
        oauth.refresh.clear()
        over = await one.call(add.id, a=1, b=1)
        assert over.outcome == execution_pb.OUTCOME_RAISED
        assert "Nothing was done" in over.tool_return


async def test_tokens_that_are_about_to_end_are_renewed_before_they_are_used(tool_url: str, tmp_path: Path) -> None:
    async with _two(tool_url, tmp_path, lifetime=10) as (one, other, oauth, server):
        wanted = pb.StreamConnectRequest(id=server.id, callback_url=_CALLBACK)
        await authorize(one, other, wanted)
        assert oauth.refreshed >= 1


async def test_a_server_that_is_only_tried_is_authorised_for_the_one_who_watches(tool_url: str, tmp_path: Path) -> None:
    async with _two(tool_url, tmp_path) as (one, other, oauth, _):
        wanted = pb.StreamConnectRequest(name="tried", transport=_transport(oauth), callback_url=_CALLBACK)
        events = await authorize(one, other, wanted)
        assert _names(events)[-1] == "SUCCESS"
        assert len(events[-1].tools) == 6


async def test_a_refusal_is_told(tool_url: str, tmp_path: Path) -> None:
    async with _two(tool_url, tmp_path) as (one, other, _, server):
        events = []
        async for event in one.mcp.StreamConnect(pb.StreamConnectRequest(id=server.id, callback_url=_CALLBACK)):
            events.append(event)
            if event.event == pb.MCP_CONNECT_EVENT_AUTHORIZATION_URL:
                state = parse_qs(urlsplit(event.url).query)["state"][0]
                refusal = pb.FinishMcpAuthorizationRequest(state=state, error="access_denied")
                with fails(Internal, "MCP_FAILED"):
                    await other.mcp.FinishMcpAuthorization(refusal)
        assert _names(events)[-1] == "ERROR"
        assert "access_denied" in events[-1].message


async def test_a_server_that_registers_nobody_is_told(tool_url: str, tmp_path: Path) -> None:
    async with _two(tool_url, tmp_path, registrations=False) as (one, _, _, server):
        wanted = pb.StreamConnectRequest(id=server.id, callback_url=_CALLBACK)
        *_, last = [event async for event in one.mcp.StreamConnect(wanted)]
        assert last.event == pb.MCP_CONNECT_EVENT_ERROR
        assert "auth_token" in last.message


async def test_an_answer_of_another_issuer_is_refused(tool_url: str, tmp_path: Path) -> None:
    async with _two(tool_url, tmp_path) as (one, other, oauth, server):
        async for event in one.mcp.StreamConnect(pb.StreamConnectRequest(id=server.id, callback_url=_CALLBACK)):
            if event.event == pb.MCP_CONNECT_EVENT_AUTHORIZATION_URL:
                back = await _say_yes(event.url)
                mixed = pb.FinishMcpAuthorizationRequest(**back, issuer="https://evil.example")
                with fails(Internal, "MCP_FAILED"):
                    await other.mcp.FinishMcpAuthorization(mixed)
        assert not oauth.access


@pytest.mark.parametrize(
    ("methods", "silent", "asked"),
    [
        (("client_secret_post", "none"), True, "client_secret_post"),  # mcpAuthRouter of the TypeScript SDK
        (("client_secret_basic",), True, "client_secret_basic"),
        (("none",), False, "none"),
        (("private_key_jwt", "client_secret_basic"), False, "client_secret_basic"),
        ((), False, None),
    ],
)
async def test_loci_authenticates_as_the_server_can_take_it(
    tool_url: str, tmp_path: Path, methods: tuple[str, ...], silent: bool, asked: str | None
) -> None:
    async with _two(tool_url, tmp_path, methods=methods, silent=silent, lifetime=10) as (one, other, oauth, server):
        events = await authorize(one, other, pb.StreamConnectRequest(id=server.id, callback_url=_CALLBACK))
        assert _names(events)[-1] == "SUCCESS", events[-1].message
        assert oauth.asked == [asked]
        # To renew tokens it does the same.
        assert oauth.refreshed >= 1
