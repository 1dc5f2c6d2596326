"""Routes that are not in the OpenAPI document, sockets included: what asks them, and with what."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import httpx
from websockets.exceptions import ConnectionClosed, InvalidStatus
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
        url = str(party.http.base_url).replace("http", "ws", 1).rstrip("/") + path.replace("{id}", value)
        key = {"authorization": party.http.headers["authorization"]}
        try:
            with connect(url, additional_headers=key, open_timeout=20) as socket:
                socket.send('{"type": "ping"}')
                return 101, str(socket.recv(timeout=20))
        except ConnectionClosed as closed:
            return closed.rcvd.code if closed.rcvd else 0, closed.rcvd.reason if closed.rcvd else ""
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
ASKED: Mapping[str, tuple[Callable[[Party, str], Answered], str]] = {
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
    "WEBSOCKET /v1/environments/{connection_id}/ws": (_socket("/v1/environments/{id}/ws"), "spare_connection_id"),
}
# What says so otherwise than by a 404.
_STATUSES: Mapping[str, int] = {"* /mcp": 200, "WEBSOCKET /v1/environments/{connection_id}/ws": 1008}


def unasked() -> set[str]:
    """Returns the routes that are neither here nor in the document, and that take ids."""
    documented = {(method.upper(), _bare(path)) for path, found in openapi()["paths"].items() for method in found}
    hidden = {f"{method} {path}" for method, path in routes() if (method, _bare(path)) not in documented}
    return {each for each in hidden if not _NO_IDS.fullmatch(each) and not _is_asked(each)}


def problems(label: str, attacker: Party, victim: Party) -> Iterator[str]:
    """Asks a route with an id of the victim's; yields what is wrong with the answer."""
    ask, thing = ASKED[label]
    own, foreign, nobodys = attacker.has[thing], victim.has[thing], victim.nobodys(thing)
    status, text = ask(attacker, foreign)
    answer = _plain((status, text), foreign)
    said = f"{label}: {status} {text[:200]!r}"
    if status != _STATUSES.get(label, 404) or not re.search("not found|no device", text, re.IGNORECASE):
        yield f"{said} does not say that it is not there"
    if (other := _plain(ask(attacker, nobodys), nobodys)) != answer:
        yield f"{said}, but of an id that is nobody's {other}"
    if _plain(ask(attacker, own), own) == answer:
        yield f"{said}, of the caller's own, too"
    yield from (f"{said} shows {each}" for each in victim.shown_in(text, foreign))


def _is_asked(label: str) -> bool:
    return label in ASKED or f"* {label.partition(' ')[2]}" in ASKED


def _bare(path: str) -> str:
    return re.sub(r"{(\w+):\w+}", r"{\1}", path).rstrip("/") or "/"


def _plain(answer: Answered, value: str) -> Answered:
    return answer[0], UUIDS.sub("", answer[1].replace(value, ""))
