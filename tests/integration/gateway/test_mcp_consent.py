"""Attacks on users by OAuth of MCP servers: having them give leave to a stranger's tenant."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import httpx
import pytest

from loci.tool.v1 import mcp_service_pb2 as wire
from services.common.errors import InvalidArgument
from tests.integration.gateway.conftest import Edge, StartGateway
from tests.integration.gateway.scripted import Backend

TENANT, USER = f"org-{UUID(int=7)}", f"user-{UUID(int=8)}"
THERE = "https://login.example.com/authorize?client_id=loci&state=s1"
BEGIN, BACK = "/v1/tools/mcp/oauth/begin?state=s1", "/v1/tools/mcp/oauth/callback?state=s1&code=c1"


@pytest.fixture
def asked(backend: Backend) -> Backend:
    """One authorisation under way, `s1`."""

    def answer(request: Any) -> Any:
        if request.state != "s1":
            raise InvalidArgument("this authorisation is unknown", reason="MCP_OAUTH_STATE_INVALID")
        return wire.GetMcpAuthorizationResponse(
            url=THERE,
            server_name="<b>tickets</b>",
            server_url="https://mcp.example.com",
            organization_id=TENANT,
            user_id=USER,
        )

    backend.on("GetMcpAuthorization", answer)
    backend.on("FinishMcpAuthorization", lambda _: wire.FinishMcpAuthorizationResponse())
    return backend


def cookie_of(response: httpx.Response) -> dict[str, str]:
    """The header that a browser shows with the next request."""
    name_and_value, _, attributes = response.headers["set-cookie"].partition(";")
    assert {"httponly", "samesite=lax", "max-age=600", "path=/v1/tools/mcp/oauth"} <= {
        each.strip().lower() for each in attributes.split(";")
    }
    return {"cookie": name_and_value}


async def agree(edge: Edge, **headers: str) -> httpx.Response:
    return await edge.http.post(BEGIN, headers={name.replace("_", "-"): value for name, value in headers.items()})


async def test_a_user_reads_who_asks_agrees_and_comes_back(edge: Edge, asked: Backend) -> None:
    page = await edge.http.get(BEGIN)
    assert page.status_code == 200
    for text in (TENANT, USER, "https://mcp.example.com", "login.example.com", "&lt;b&gt;tickets"):
        assert text in page.text
    assert "<b>tickets" not in page.text
    assert "frame-ancestors 'none'" in page.headers["content-security-policy"]
    gone = await agree(edge, origin=edge.url, sec_fetch_site="same-origin")
    assert (gone.status_code, gone.headers["location"]) == (303, THERE)
    back = await edge.http.get(BACK, headers=cookie_of(gone))
    assert (back.status_code, "Authorised" in back.text) == (200, True)
    [finished] = asked.requests("FinishMcpAuthorization")
    assert (finished.state, finished.code) == ("s1", "c1")


@pytest.mark.parametrize("cookie", [None, "loci-mcp-x=y", "other"])
async def test_leave_comes_back_by_the_browser_that_agreed_alone(
    edge: Edge, asked: Backend, cookie: str | None
) -> None:
    """Attack: until now whoever was sent the address gave leave without knowing to whom."""
    headers = {} if cookie is None else {"cookie": cookie}
    if cookie == "other":  # agreed, to another authorisation
        headers = {"cookie": cookie_of(await agree(edge))["cookie"]}
        back = await edge.http.get(BACK.replace("s1", "s2"), headers=headers)
    else:
        back = await edge.http.get(BACK, headers=headers)
    assert (back.status_code, "not begun in this browser" in back.text) == (400, True)
    assert asked.requests("FinishMcpAuthorization") == []


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.example.com"},
        {"origin": "null"},
        {"sec_fetch_site": "cross-site"},
        {"sec_fetch_site": "same-site"},
    ],
)
async def test_no_other_page_agrees_for_the_user(edge: Edge, asked: Backend, headers: dict[str, str]) -> None:
    answer = await agree(edge, **headers)
    assert (answer.status_code, "set-cookie" in answer.headers) == (403, False)


async def test_what_is_not_under_way(edge: Edge, asked: Backend) -> None:
    for method in ("GET", "POST"):
        answer = await edge.http.request(method, "/v1/tools/mcp/oauth/begin?state=%3Cb%3E")
        assert (answer.status_code, "Not authorised" in answer.text) == (400, True)
    # Whoever answers for an MCP server chose the address.
    asked.on("GetMcpAuthorization", lambda _: wire.GetMcpAuthorizationResponse(url="javascript:alert(1)"))
    assert (await edge.http.get(BEGIN)).status_code == 400
    assert (await agree(edge)).status_code == 400


async def test_behind_a_proxy_with_https(start_gateway: StartGateway, asked: Backend) -> None:
    edge = await start_gateway(public_url="https://example.com/loci", password="geheim")
    answer = await agree(edge, origin="https://example.com")
    assert answer.status_code == 303
    assert {"Secure", "Path=/loci/v1/tools/mcp/oauth"} <= set(answer.headers["set-cookie"].split("; "))
    assert (await agree(edge, origin=edge.url)).status_code == 403


async def test_clients_are_given_our_address(edge: Edge, backend: Backend) -> None:
    async def events(_: Any) -> Any:
        event = wire.MCP_CONNECT_EVENT_AUTHORIZATION_URL
        yield wire.StreamConnectResponse(sequence=1, event=event, url=THERE, state="s 1", session_id="x")

    backend.on("StreamConnect", events)
    server = f"mcp_server-{UUID(int=1)}"
    text = (await edge.http.get(f"/v1/mcp-servers/connect/{server}")).text
    assert f'"url":"{edge.url}/v1/tools/mcp/oauth/begin?state=s%201"' in text
    assert "login.example.com" not in text
