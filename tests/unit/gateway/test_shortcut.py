"""Which requests take the shortcut, and that the others are answered by FastAPI, with all that they brought."""

from collections.abc import AsyncIterator, Mapping
from typing import Any

import httpx
import pytest
from fastapi import APIRouter, FastAPI
from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import Message, Receive, Scope, Send

from gateway.rest.json_body import JsonRoute
from gateway.rest.params import AgentId
from gateway.rest.services import Loci
from gateway.server.dispatcher import Shortcut
from services.common.errors import NotFound

AGENT_ID = "agent-00000000-0000-4000-8000-000000000001"
PATH = f"/v1/agents/{AGENT_ID}/say"
JSON = {"content-type": "application/json"}

router = APIRouter(route_class=JsonRoute)


class Said(BaseModel):
    """What the handler takes."""

    text: str
    times: int = 1


@router.post("/agents/{agent_id}/say")
async def say(agent_id: AgentId, body: Said, request: Request, loci: Loci) -> Response:
    """Says what came to it."""
    if body.text == "nobody":
        raise NotFound("there is nobody", reason="AGENT_NOT_FOUND")
    seen = (agent_id, body.text * body.times, str(loci), len(await request.body()), request.app.title)
    return JSONResponse(seen)


@router.post("/agents/{agent_id}/count")
async def count(agent_id: AgentId, request: Request, loci: Loci, many: int = 1) -> Response:
    """Takes what a shortcut does not give."""
    return JSONResponse([agent_id, many])


class Counting(FastAPI):
    """Counts the requests that come to it."""

    passed = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one."""
        self.passed += 1
        await super().__call__(scope, receive, send)


def make() -> tuple[Counting, Shortcut]:
    app = Counting(title="inside")
    app.state.services = "services"
    app.include_router(router, prefix="/v1")
    return app, Shortcut(app, router.routes, {say}, prefix="/v1")


async def ask(
    body: bytes, path: str = PATH, headers: Mapping[str, str] = JSON, method: str = "POST"
) -> tuple[int, Any, int]:
    """Status, body, and how many came to FastAPI."""
    app, shortcut = make()
    transport = httpx.ASGITransport(shortcut)
    async with httpx.AsyncClient(transport=transport, base_url="http://loci") as client:
        answer = await client.request(method, path, content=body, headers=headers)
    return answer.status_code, answer.json(), app.passed


async def test_what_is_in_order_comes_to_its_handler() -> None:
    body = b'{"text": "hi", "times": 2}'
    assert await ask(body) == (200, [AGENT_ID, "hihi", "services", len(body), "inside"], 0)


async def test_an_error_of_the_handler_is_told() -> None:
    assert await ask(b'{"text": "nobody"}') == (404, {"detail": "Agent not found"}, 0)


@pytest.mark.parametrize(
    ("body", "path", "headers", "method", "status"),
    [
        (b'{"text": "hi"}', PATH, {"content-type": "application/json; charset=utf-8"}, "POST", 200),
        (b'{"text": "hi"}', PATH, {"content-type": "text/plain"}, "POST", 422),
        (b'{"text": "hi"', PATH, JSON, "POST", 422),
        (b'{"text": "\\u0000"}', PATH, JSON, "POST", 422),
        (b"", PATH, JSON, "POST", 422),
        (b'{"text": 1}', PATH, JSON, "POST", 422),
        (b"[]", PATH, JSON, "POST", 422),
        (b'{"text": "hi"}', "/v1/agents/agent-1/say", JSON, "POST", 422),
        (b'{"text": "hi"}', "/v1/agents/a/b/say", JSON, "POST", 404),
        (b'{"text": "hi"}', PATH.removeprefix("/v1"), JSON, "POST", 404),
        (b'{"text": "hi"}', PATH, JSON, "PUT", 405),
        (b"{}", f"/v1/agents/{AGENT_ID}/count", JSON, "POST", 200),
    ],
)
async def test_all_else_is_fastapis(
    body: bytes, path: str, headers: Mapping[str, str], method: str, status: int
) -> None:
    got, _, passed = await ask(body, path, headers, method)
    assert (got, passed) == (status, 1)


async def test_what_is_wrong_is_told_as_without_a_shortcut() -> None:
    body = b'{"text": 1, "times": "x"}'
    async with httpx.AsyncClient(transport=httpx.ASGITransport(make()[0]), base_url="http://loci") as client:
        plain = await client.post(PATH, content=body, headers=JSON)
    assert await ask(body) == (plain.status_code, plain.json(), 1)


async def test_a_client_that_leaves_in_its_body_is_left_alone() -> None:
    app, shortcut = make()
    sent: list[Message] = []

    async def messages() -> AsyncIterator[Message]:
        yield {"type": "http.request", "body": b'{"te', "more_body": True}
        yield {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        sent.append(message)

    coming = messages()
    headers = [(b"content-type", b"application/json")]
    scope = {"type": "http", "method": "POST", "path": PATH, "headers": headers, "query_string": b""}
    await shortcut(scope, lambda: anext(coming), send)
    assert [message.get("status") for message in sent] == [499, None]
    assert app.passed == 0


def test_a_handler_that_takes_more_is_none_of_a_shortcut() -> None:
    with pytest.raises(TypeError, match="count takes what"):
        Shortcut(make()[0], router.routes, {count}, prefix="/v1")
