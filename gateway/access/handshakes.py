"""WebSocket handshakes at the edge: how browsers show who they are, and how one is refused."""

from urllib.parse import parse_qsl, urlencode

from starlette.types import Receive, Scope, Send

from gateway.errors.problems import Problem

# What stands for the method of a handshake where routes are judged: it may do all that its socket can.
METHOD = "WEBSOCKET"
_POLICY_VIOLATION = 1008
_DENIAL = "websocket.http.response"


def credential_headers(scope: Scope) -> dict[bytes, bytes]:
    """Returns the headers of a handshake; `?token=` is the bearer of browsers, which cannot send a header.

    The token is taken out of the scope's query, so that nothing further on shows or stores it.
    """
    headers: dict[bytes, bytes] = dict(scope["headers"])
    fields = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
    tokens = [value for name, value in fields if name == "token"]
    if tokens:
        scope["query_string"] = urlencode([field for field in fields if field[0] != "token"]).encode()
        headers.setdefault(b"authorization", f"Bearer {tokens[0]}".encode(errors="replace"))
    return headers


async def refuse(problem: Problem, scope: Scope, receive: Receive, send: Send) -> None:
    """Denies a handshake: with the problem's own status and body where the server can, else with 403 and code 1008."""
    await receive()
    if _DENIAL in scope.get("extensions", {}):
        await problem.response()(scope, receive, send)
        return
    await send(
        {"type": "websocket.close", "code": _POLICY_VIOLATION, "reason": str(problem.body.get("detail", ""))[:100]}
    )
