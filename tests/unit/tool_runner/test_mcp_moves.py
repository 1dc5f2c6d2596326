"""Attacks by moving an MCP server: whoever may change its address, and sees no secrets, has them sent to another."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from services.common.core.refusals import Refused
from services.common.core.secret_names import MASK
from services.tool_runner.mcp.oauth import Grant
from services.tool_runner.mcp_servers.model import Http, Kind, Stdio
from services.tool_runner.mcp_servers.service import TransportChange
from services.tool_runner.mcp_servers.tokens import TokenKeeper

OLD, NEW = "https://mcp.example.com/mcp", "https://evil.example.com/mcp"
PRESENT = Http(
    kind=Kind.STREAMABLE_HTTP, url=OLD, auth_header="Authorization", auth_token="hush", headers={"X-Key": "hush"}
)
TENANT, SERVER = UUID(int=7), UUID(int=8)


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({}, "auth_token"),
        ({"auth_token": MASK, "headers": {}}, "auth_token"),
        ({"auth_token": "mine"}, "custom_headers"),
        ({"auth_token": "mine", "headers": {"X-Key": MASK}}, "custom_headers"),
    ],
)
def test_secrets_do_not_go_along(fields: dict[str, Any], named: str) -> None:
    change = TransportChange(Kind.STREAMABLE_HTTP, {"url": NEW} | fields)
    with pytest.raises(Refused, match=named):
        change.check_secrets_are_new(PRESENT)


@pytest.mark.parametrize("fields", [{"auth_token": "", "headers": {}}, {"auth_token": "x", "headers": {"X-Key": "y"}}])
def test_new_ones_and_none_do(fields: dict[str, Any]) -> None:
    TransportChange(Kind.STREAMABLE_HTTP, {"url": NEW} | fields).check_secrets_are_new(PRESENT)


@pytest.mark.parametrize("present", [Http(kind=Kind.SSE, url=OLD), Stdio(command="x", env={"A": "b"})])
def test_where_there_are_none_nothing_is_asked(present: Any) -> None:
    TransportChange(present.kind, {"url": NEW}).check_secrets_are_new(present)


class Stored:
    """One grant, given for the server while it was at OLD; `released` counts leases that ended."""

    released = 0

    async def read(self, organization_id: UUID, server_id: UUID) -> str:
        client = {"client_id": "loci", "redirect_uris": ["http://localhost/"]}
        tokens = {"access_token": "hush", "refresh_token": "hush too", "token_type": "Bearer"}
        return Grant.model_validate({"server_url": OLD, "client": client, "tokens": tokens}).model_dump_json()

    async def lease(self, organization_id: UUID, server_id: UUID, seconds: float) -> bool:
        return True

    async def release(self, organization_id: UUID, server_id: UUID) -> None:
        self.released += 1


async def test_a_token_goes_to_the_origin_that_it_was_given_for() -> None:
    """It may come after the move: the user was at the authorization server meanwhile."""
    store: Any = Stored()
    keeper = TokenKeeper(store, allow_private=False)
    moved = keeper.bearer(TENANT, SERVER, NEW)
    there = keeper.bearer(TENANT, SERVER, "HTTPS://MCP.example.com/other")
    assert (await moved.token(), await moved.renew_after("other")) == ("", "")
    assert await keeper.renew_after(TENANT, SERVER, NEW, "other") == ""
    assert store.released == 1
    assert (await there.token(), await there.renew_after("other")) == ("hush", "hush")
