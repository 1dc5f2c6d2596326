"""The same attacks on routes that are not in the OpenAPI document, sockets included."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import httpx
import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from tests.e2e.tenants.party import UUIDS, Party
from tests.gateway_document import openapi
from tests.role_matrix import routes

Answered = tuple[int, str]
_ACCEPT = {"accept": "application/json, text/event-stream"}
_SAID: Mapping[str, Any] = {"request_messages": [{"role": "user", "content": "Hello."}]}
_TALK: Mapping[str, Any] = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "Hello."}]}
# They hold nothing of a tenant, or are a documented route under another address.
_NO_IDS = re.compile(
    r"GET (/|/assets/.*|/docs.*|/redoc|/openapi\.json)|\w+ /openai/.*|\w+ /v1/(anthropic|zai)/v1/{endpoint.*}"
)


def _http(method: str, path: str, **options: Any) -> Callable[[Party, str], Answered]:
    """Returns what asks a route; `{id}` in the path and "{id}" in headers and JSON stand for the id."""

    def ask(party: Party, value: str) -> Answered:
        given = {name: _replaced(each, value) for name, each in options.items()}
        answer: httpx.Response = party.http.request(method, path.replace("{id}", value), **given)
        return answer.status_code, answer.text

    return ask


def _socket(path: str) -> Callable[[Party, str], Answered]:
    def ask(party: Party, value: str) -> Answered:
        url = str(party.http.base_url).replace("http", "ws", 1).rstrip("/")
        try:
            with connect(
                f"{url}{path.replace('{id}', value)}", additional_headers=dict(party.http.headers), open_timeout=20
            ):
                return 101, ""
        except InvalidStatus as refused:
            return refused.response.status_code, (refused.response.body or b"").decode()

    return ask


def _replaced(value: Any, found: str) -> Any:
    if isinstance(value, dict):
        return {key: _replaced(each, found) for key, each in value.items()}
    return value.replace("{id}", found) if isinstance(value, str) else value


def _tool(name: str, **arguments: str) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments}}


# By route: what asks it, and the thing whose id it takes.
_ASKED: Mapping[str, tuple[Callable[[Party, str], Answered], str]] = {
    "POST /v1/agents/{agent_id}/messages/capture": (
        _http("POST", "/v1/agents/{id}/messages/capture", json=_SAID),
        "agent_id",
    ),
    "* /v1/git/{path:path}": (
        _http("GET", "/v1/git/{id}/state.git/info/refs", params={"service": "git-upload-pack"}),
        "agent_id",
    ),
    "* /v1/anthropic/v1/messages": (
        _http("POST", "/v1/anthropic/v1/messages", json=_TALK, headers={"x-letta-agent-id": "{id}"}),
        "agent_id",
    ),
    "* /v1/zai/v1/messages": (
        _http("POST", "/v1/zai/v1/messages", json=_TALK, headers={"x-letta-agent-id": "{id}"}),
        "agent_id",
    ),
    "* /mcp": (_http("POST", "/mcp", json=_tool("read_memory", agent="{id}"), headers=_ACCEPT), "agent_id"),
    "WEBSOCKET /v1/agents/{agent_id}/ws": (_socket("/v1/agents/{id}/ws"), "agent_id"),
    "WEBSOCKET /v1/conversations/{conversation_id}/ws": (_socket("/v1/conversations/{id}/ws"), "conversation_id"),
    "WEBSOCKET /v1/groups/{group_id}/ws": (_socket("/v1/groups/{id}/ws"), "group_id"),
    "WEBSOCKET /v1/environments/{connection_id}/ws": (_socket("/v1/environments/{id}/ws"), "connection_id"),
}
# What says in its answer that there is no such thing.
_SAID_INSIDE = ("* /mcp",)


def _bare(path: str) -> str:
    return re.sub(r"{(\w+):\w+}", r"{\1}", path).rstrip("/") or "/"


def test_each_hidden_route_is_asked() -> None:
    documented = {(method.upper(), _bare(path)) for path, found in openapi()["paths"].items() for method in found}
    hidden = {f"{method} {path}" for method, path in routes() if (method, _bare(path)) not in documented}
    known = {each for each in hidden if each in _ASKED or f"* {each.partition(' ')[2]}" in _ASKED}
    assert [each for each in hidden - known if not _NO_IDS.fullmatch(each)] == []
    assert len(known) >= len(_ASKED)


@pytest.mark.parametrize("label", _ASKED)
def test_a_foreign_id_is_as_good_as_none(parties: tuple[Party, Party], label: str) -> None:
    attacker, victim = parties
    ask, thing = _ASKED[label]
    foreign, nobodys = victim.has[thing], victim.nobodys(thing)
    status, text = ask(attacker, foreign)
    assert victim.shown_in(text, foreign) == []
    assert (status, _plain(text, foreign)) == (ask(attacker, nobodys)[0], _plain(ask(attacker, nobodys)[1], nobodys))
    assert status == (200 if label in _SAID_INSIDE else 404)
    assert "not found" in text.lower() or "no device" in text.lower()
    assert ask(attacker, attacker.has[thing])[0] not in (404, 422)


def _plain(text: str, value: str) -> str:
    return UUIDS.sub("", text.replace(value, ""))
