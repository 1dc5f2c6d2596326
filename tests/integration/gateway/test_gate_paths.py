"""Attacks of tools by the spelling of an address: what is closed to them is closed under all its names."""

from __future__ import annotations

import base64
from uuid import UUID

import pytest

from services.common.context import RUN_TOKEN_PREFIX, CallContext
from tests.integration.gateway.conftest import StartGateway
from tests.integration.gateway.samples import AGENT_ID
from tests.integration.gateway.scripted import Backend

CLOSED = [
    ("PATCH", f"agents/{AGENT_ID}/tools/approval/refund"),
    ("POST", "agents/import"),
    ("POST", f"agents/{AGENT_ID}/schedule"),
    ("GET", f"agents/{AGENT_ID}/secrets"),
    ("POST", "mcp-servers/mcp_server-00000000-0000-4000-8000-000000000001/tools/"
             "tool-00000000-0000-4000-8000-000000000002/run"),
    ("POST", "tools/mcp/servers/tickets/tools/refund/execute"),
    ("PATCH", "tools/tool-00000000-0000-4000-8000-000000000002"),
    ("POST", "tools"),
]  # fmt: skip
SPELLINGS = [
    "/v1/{}", "/v1/{}/", "/v1/{}//", "/latest/{}", "/latest/{}/", "/v1/{}%0A", "/v1/{}%0a/", "/v1/{}%0D", "/v1/{}%20",
    "/v1/%0A{}", "/v1//{}", "//v1/{}", "/latest//{}", "/v1/./{}", "/v1/../v1/{}", "/latest/latest/{}", "/V1/{}",
    "/v1/{}?x", "/v1/{}%3F", "/v1/{}%2F", "/v1%2F{}", "/v1/{}%23",
]  # fmt: skip


@pytest.mark.parametrize("spelling", SPELLINGS)
async def test_what_is_closed_is_closed_under_all_its_names(
    start_gateway: StartGateway, backend: Backend, spelling: str
) -> None:
    edge = await start_gateway()
    run = CallContext(UUID(int=7), UUID(int=8), "run", ("gateway",), UUID(int=9), (), 2e9)
    token = RUN_TOKEN_PREFIX + base64.urlsafe_b64encode(backend.signer.sign(run)).decode()
    for method, path in CLOSED:
        url = edge.url + spelling.format(path)
        answer = await edge.http.request(method, url, headers={"authorization": f"Bearer {token}"}, json={})
        assert answer.status_code in (403, 404, 405), (method, url, answer.text)
    assert backend.asked == []
