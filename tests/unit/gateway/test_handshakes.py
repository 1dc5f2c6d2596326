"""Handshakes of WebSockets at the edge: who is let in, as whom, and how one is refused."""

from collections.abc import Mapping
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from starlette.types import Message, Receive, Scope, Send

from gateway.access.auth import DEFAULT_ORGANIZATION, Authenticator
from gateway.access.origin_check import OriginCheck
from gateway.server.middleware import RequestMiddleware
from services.common.context import Signer, current

DENIAL: Mapping[str, Any] = {"websocket.http.response": {}}


class App:
    """Takes every socket and notes what it was opened with."""

    scope: Scope | None = None
    organization_id: object = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.scope, self.organization_id = scope, current().organization_id
        await send({"type": "websocket.accept"})


async def opened(
    headers: Mapping[bytes, bytes] | None = None,
    *,
    password: str = "secret",
    query: bytes = b"",
    origins: tuple[str, ...] = (),
    extensions: Mapping[str, Any] = DENIAL,
) -> tuple[App, list[Message]]:
    app, sent = App(), list[Message]()
    signer = Signer(Ed25519PrivateKey.generate(), "k")
    edge = RequestMiddleware(
        app,
        authenticator=Authenticator(password, origin_check=OriginCheck(["loci.test"], origins)),
        signer=signer,
        max_body_bytes=1,
        max_upload_bytes=1,
        body_seconds=60,
    )

    async def receive() -> Message:
        return {"type": "websocket.connect"}

    async def send(message: Message) -> None:
        sent.append(message)

    scope = {
        "type": "websocket",
        "path": "/latest/agents/agent-1/ws/",
        "query_string": query,
        "headers": [(b"host", b"loci.test"), *(headers or {}).items()],
        "extensions": extensions,
    }
    await edge(scope, receive, send)
    return app, sent


@pytest.mark.parametrize(
    ("headers", "query"),
    [
        ({b"authorization": b"Bearer secret"}, b"a=1"),
        ({b"x-bare-password": b"password secret"}, b"a=1"),
        ({b"origin": b"https://elsewhere.test"}, b"token=secret&a=1"),
    ],
)
async def test_who_knows_the_password_is_let_in(headers: dict[bytes, bytes], query: bytes) -> None:
    app, sent = await opened(headers, query=query)
    assert [message["type"] for message in sent] == ["websocket.accept"]
    assert app.scope is not None
    # The token is not seen beyond the edge.
    assert (app.scope["path"], app.scope["query_string"]) == ("/v1/agents/agent-1/ws", b"a=1")
    assert app.organization_id == DEFAULT_ORGANIZATION
    assert app.scope["loci.caller"].context.role == "admin"


@pytest.mark.parametrize("query", [b"", b"token=wrong", b"token=%FF"])
async def test_who_does_not_is_refused(query: bytes) -> None:
    app, sent = await opened(query=query)
    assert app.scope is None
    assert sent[0]["type"] == "websocket.http.response.start"
    assert sent[0]["status"] == 401
    assert sent[1]["body"] == b'{"detail":"Unauthorized"}'


async def test_servers_that_cannot_answer_a_handshake_close_it() -> None:
    _, sent = await opened(extensions={})
    assert sent == [{"type": "websocket.close", "code": 1008, "reason": "Unauthorized"}]


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        (b"https://loci.test", None),
        (b"https://friend.test", None),
        (b"https://elsewhere.test", 403),
        (b"null", 403),
    ],
)
async def test_pages_of_other_origins_do_not_walk_in_where_nobody_is_asked(origin: bytes, status: int | None) -> None:
    for query in (b"", b"token=made-up"):
        _, sent = await opened({b"origin": origin}, password="", query=query, origins=("https://friend.test",))
        assert sent[0].get("status") == status
