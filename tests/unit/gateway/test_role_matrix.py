"""The table of docs/access.md, held to the routes there are and to what the gateway does: every route, every role."""

from __future__ import annotations

import re
from typing import Any, cast

import pytest

from gateway.access.authorizer import Authorizer, Grant
from gateway.access.roles import ACCESS, ADMIN, CLIENT, Right
from services.common.errors import PermissionDenied
from tests.role_matrix import PAGE, ROLES, read, routes, row_of

AGENT = "agent-00000000-0000-4000-8000-00000000000a"
ROUTES = routes()
TABLE = read(PAGE.read_text())


class Conversations:
    """All conversations are the agent's."""

    async def place(self, name: str) -> Any:
        return type("Place", (), {"agent_id": AGENT})


class Peers:
    """All runs and steps are the agent's."""

    runs = steps = type("Stub", (), {"GetRun": None, "GetStep": None})

    async def call(self, rpc: Any, request: Any) -> Any:
        of_agent = type("Of", (), {"agent_id": AGENT})
        return type("Answer", (), {"run": of_agent, "step": of_agent})


AUTHORIZER = Authorizer(cast(Any, Peers()), cast(Any, Conversations()))
_IDS = {"agent_id": AGENT, "conversation_id": "conv-1", "run_id": "run-1", "step_id": "step-1"}


def concrete(path: str) -> str:
    """A path as a request has it."""
    return re.sub(r"{(\w+)(:\w+)?}", lambda match: _IDS.get(match[1], "x"), path)


async def may(grant: Grant, method: str, path: str) -> bool:
    try:
        await AUTHORIZER.check(grant, method, path, f"agent_id={AGENT}".encode(), "")
    except PermissionDenied:
        return False
    return True


def test_every_route_has_a_row() -> None:
    assert len(ROUTES) > 200
    missing = {f"{method} {path}" for method, path in ROUTES} - {f"{method} {path}" for method, path in TABLE}
    assert missing == set(), "say in gateway/access/roles.py who may, then run `python -m tests.role_matrix`"


def test_every_row_is_that_of_a_route() -> None:
    assert {route: row for route, row in TABLE.items() if route not in ROUTES or row != row_of(*route)} == {}


@pytest.mark.parametrize("role", [ADMIN, *ROLES])
async def test_a_role_may_what_its_column_says(role: str) -> None:
    wrong = [
        (method, path)
        for (method, path), row in TABLE.items()
        if await may(Grant(role), method, concrete(path)) != (role == ADMIN or role in row.roles)
    ]
    assert wrong == []


@pytest.mark.parametrize("access", [*ACCESS, "none"])
async def test_a_token_may_at_most_what_its_column_says(access: str) -> None:
    rights: frozenset[Right] = frozenset() if access == "none" else frozenset({ACCESS[access]})
    grant = Grant(CLIENT, {AGENT: rights})
    wrong = [
        (method, path)
        for (method, path), row in TABLE.items()
        if await may(grant, method, concrete(path)) and row.access not in (access, "anything")
    ]
    assert wrong == []


@pytest.mark.parametrize("access", ACCESS)
async def test_a_token_reaches_its_agent(access: str) -> None:
    grant = Grant(CLIENT, {AGENT: frozenset({ACCESS[access]})})
    named = [route for route, row in TABLE.items() if row.access == access and "{agent_id}" in route[1]]
    assert len(named) > 2
    assert [route for route in named if not await may(grant, route[0], concrete(route[1]))] == []
