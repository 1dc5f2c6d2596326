"""What each role may do: a decision about every route there is, and some looked at closely."""

from __future__ import annotations

import pytest

from gateway.access.roles import ADMIN, AGENT_ONLY, CLIENT, MAY, Right, Target, right_of, target_of
from tests.role_matrix import routes

A, B = "agent-00000000-0000-4000-8000-00000000000a", "agent-00000000-0000-4000-8000-00000000000b"
CONVERSATION = "conv-00000000-0000-4000-8000-00000000000c"

ROUTES = routes()


def test_somebody_decided_about_every_route() -> None:
    assert len(ROUTES) > 200
    undecided = {f"{method} {path}" for method, path in ROUTES if right_of(method, path) is None}
    assert undecided == set()


def may(role: str, method: str, path: str) -> bool:
    return right_of(method, path) in MAY[role]


@pytest.mark.parametrize("role", MAY)
def test_what_no_lesser_role_may(role: str) -> None:
    owned = [
        (method, path)
        for method, path in ROUTES
        if path.startswith(("/v1/api-keys", "/v1/users", "/v1/orgs", "/v1/admin"))
        or (path.startswith(("/v1/providers", "/v1/budgets")) and method not in ("GET", "HEAD"))
    ]
    assert len(owned) > 20
    assert {may(role, *route) for route in owned} == {role == ADMIN}


# A person's browser, which has no key.
ASKING = "/v1/tools/mcp/oauth/begin"


def test_who_only_reads_changes_nothing() -> None:
    searches = {
        "/v1/messages/search",
        "/v1/agents/messages/search",
        "/v1/passages/search",
        "/v1/tools/search",
        "/v1/runs/{run_id}/stream",
        "/v1/agents/{agent_id}/messages/preview-raw-payload",
        "/v1/conversations/{conversation_id}/messages/preview-raw-payload",
        ASKING,
    }
    changed = {
        path for method, path in ROUTES if method not in ("GET", "HEAD", "OPTIONS") and may("read-only", method, path)
    }
    assert changed <= searches


def test_who_only_talks_changes_nothing_but_by_talking() -> None:
    allowed = {
        f"{method} {path}" for method, path in ROUTES if method not in ("GET", "HEAD") and may(AGENT_ONLY, method, path)
    }
    assert {
        "POST /v1/agents/{agent_id}/messages",
        "POST /v1/agents/{agent_id}/messages/stream",
        "POST /v1/agents/{agent_id}/messages/async",
        "POST /v1/agents/{agent_id}/messages/cancel",
        "POST /v1/conversations",
        "POST /v1/conversations/{conversation_id}/messages",
        "POST /v1/conversations/{conversation_id}/stream",
        "POST /v1/chat/completions",
        "POST /mcp",
    } <= allowed | {"POST /mcp"}
    allowed.discard(f"POST {ASKING}")
    for word in ("core-memory", "attach", "detach", "archival-memory", "fork", "reset", "rewind", "tools", "schedule"):
        assert not [route for route in allowed if word in route], word


@pytest.mark.parametrize(
    ("route", "roles"),
    [
        ("GET /v1/health", {"developer", "agent-only", "read-only", "client"}),
        ("GET /docs/assets/x.js", {"developer", "agent-only", "read-only", "client"}),
        ("GET /v1/agents", {"developer", "agent-only", "read-only", "client"}),
        (f"GET /v1/agents/{A}", {"developer", "agent-only", "read-only", "client"}),
        (f"GET /v1/agents/{A}/export", {"developer"}),
        (f"PATCH /v1/agents/{A}", {"developer", "client"}),
        (f"DELETE /v1/agents/{A}", {"developer"}),
        (f"POST /v1/agents/{A}/fork", {"developer"}),
        (f"POST /v1/agents/{A}/tools/roll/run", {"developer"}),
        (f"POST /v1/agents/{A}/messages", {"developer", "agent-only", "client"}),
        (f"POST /v1/agents/{A}/generate", {"developer", "client"}),
        (f"POST /v1/agents/{A}/messages/preview-raw-payload", {"developer", "agent-only", "read-only", "client"}),
        ("POST /v1/agents/import\n", set()),
        (f"DELETE /v1/agents/{A}\n", set()),
        (f"GET /v1/agents/{A}/\x7f", set()),
        (f"PATCH /v1/agents/{A}/messages/message-1", {"developer", "client"}),
        (f"WEBSOCKET /v1/agents/{A}/ws", {"developer", "agent-only", "client"}),
        (f"WEBSOCKET /v1/conversations/{CONVERSATION}/ws", {"developer", "agent-only", "client"}),
        ("WEBSOCKET /v1/groups/group-1/ws", {"developer", "agent-only", "client"}),
        ("POST /v1/groups/group-1/messages/stream", {"developer", "agent-only", "client"}),
        (f"DELETE /v1/conversations/{CONVERSATION}", {"developer", "client"}),
        ("GET /v1/runs/run-1", {"developer", "agent-only", "read-only", "client"}),
        ("DELETE /v1/runs/run-1", {"developer"}),
        (f"POST /v1/agents/{A}/schedule", {"developer"}),
        (f"DELETE /v1/agents/{A}/schedule/schedule-1", {"developer"}),
        ("POST /v1/agents", {"developer"}),
        ("POST /v1/agents/import", {"developer"}),
        ("POST /v1/_internal_templates/agents", {"developer"}),
        ("GET /v1/_internal_templates/deployment/deployment-1", {"developer", "read-only"}),
        ("DELETE /v1/_internal_templates/deployment/deployment-1", {"developer"}),
        ("GET /v1/blocks", {"developer", "read-only"}),
        ("POST /v1/blocks", {"developer"}),
        ("POST /v1/passages/search", {"developer", "read-only"}),
        ("GET /v1/tools/tool-1/environment-variables", {"developer"}),
        ("GET /v1/sandbox-config/sandbox-1/environment-variable", {"developer"}),
        ("GET /v1/mcp-servers/connect/mcp_server-1", {"developer"}),
        ("GET /v1/mcp-servers/mcp_server-1/resources/read", {"developer"}),
        ("POST /v1/mcp-servers/mcp_server-1/prompts/get", {"developer"}),
        ("GET /v1/providers", {"developer", "read-only"}),
        ("POST /v1/providers", set()),
        ("PUT /v1/budgets/day", set()),
        ("GET /v1/budgets", {"developer", "read-only"}),
        ("POST /v1/client-side-access-tokens", {"developer"}),
        ("GET /v1/api-keys", set()),
        ("POST /mcp", {"developer", "agent-only", "client"}),
        ("GET /v1/invented", set()),
        ("POST /v1/agents/x/\nmessages", set()),
    ],
)
def test_who_may(route: str, roles: set[str]) -> None:
    method, path = route.split(" ", 1)
    assert {role for role in MAY if may(role, method, path)} - {ADMIN} == roles - {ADMIN}
    assert CLIENT in MAY


def of_one(agent: str) -> Target:
    return Target(frozenset({agent}))


@pytest.mark.parametrize(
    ("route", "query", "target"),
    [
        (f"GET /v1/agents/{A}", b"", of_one(A)),
        (f"POST /v1/agents/{A.upper().replace('AGENT', 'agent')}/messages", b"", of_one(A)),
        (f"WEBSOCKET /v1/agents/{A}/ws", b"", of_one(A)),
        ("GET /v1/agents", b"", None),
        ("POST /v1/agents/messages/search", b"", None),
        (f"GET /v1/conversations/{CONVERSATION}/messages", b"", Target(kind="conversation", id=CONVERSATION)),
        (f"GET /v1/conversations/{A}/messages", b"", of_one(A)),
        ("GET /v1/conversations/default/messages", b"", None),
        ("GET /v1/conversations/default/messages", f"agent_id={A}".encode(), of_one(A)),
        # The body says whose it is.
        ("POST /v1/conversations/default/messages", f"agent_id={A}".encode(), None),
        ("GET /v1/conversations", f"agent_id={A}".encode(), of_one(A)),
        # A field that the route does not know.
        ("GET /v1/conversations", f"agent_ids={A}".encode(), None),
        ("GET /v1/runs", f"agent_ids={A},{B}&agent_id={A}".encode(), Target(frozenset({A, B}))),
        ("GET /v1/runs", f"agent_ids={A}&agent_id=".encode(), None),
        ("GET /v1/runs", b"", None),
        ("GET /v1/runs/run-1/messages", b"", Target(kind="run", id="run-1")),
        ("GET /v1/steps/step-1", b"", Target(kind="step", id="step-1")),
        ("POST /v1/chat/completions", b"", None),
        (f"POST /v1/voice-beta/{A}/chat/completions", b"", of_one(A)),
        ("POST /mcp", b"", None),
    ],
)
def test_whose_it_is(route: str, query: bytes, target: Target | None) -> None:
    method, path = route.split(" ", 1)
    assert target_of(method, path, query) == target


def test_rights_of_agents_are_those_of_policies() -> None:
    assert MAY[CLIENT] == {
        Right.OPEN,
        Right.ANYBODY,
        Right.READ_AGENT,
        Right.WRITE_AGENT,
        Right.READ_MESSAGES,
        Right.WRITE_MESSAGES,
    }
