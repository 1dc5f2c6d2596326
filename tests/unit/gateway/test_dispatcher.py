"""Requests come to their handlers past FastAPI, and what is wrong with one is told as FastAPI tells it."""

from collections.abc import AsyncIterator
from typing import Annotated, Any

import httpx
import pytest
from fastapi import APIRouter, BackgroundTasks, Depends, FastAPI, Header, Query
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import Message

from gateway.rest.params import AgentId
from gateway.rest.services import Loci
from gateway.server.dispatcher import Dispatcher
from services.common.errors import NotFound

AGENT_ID = "agent-00000000-0000-4000-8000-000000000001"
PATH = f"/v1/agents/{AGENT_ID}/say"
JSON = {"content-type": "application/json"}

router = APIRouter()


class Text(BaseModel):
    """What the handler takes."""

    text: str
    times: int = 1


def page(limit: Annotated[int | None, Query(ge=1)] = None, tags: Annotated[list[str] | None, Query()] = None) -> Any:
    """A dependency with parameters of its own."""
    return limit, tags


@router.post("/agents/{agent_id}/say")
async def say(agent_id: AgentId, body: Text, request: Request, loci: Loci) -> Response:
    """Says what came to it."""
    if body.text == "nobody":
        raise NotFound("there is nobody", reason="AGENT_NOT_FOUND")
    return JSONResponse([agent_id, body.text * body.times, str(loci), len(await request.body()), request.app.title])


@router.post("/agents/{agent_id}/count")
async def count(
    agent_id: AgentId,
    page: Annotated[Any, Depends(page)],
    body: Text | None = None,
    unit: Annotated[str, Header()] = "GB",
    deep: bool = False,
) -> Response:
    """Takes what there is."""
    return JSONResponse([page, None if body is None else body.text, unit, deep])


@router.get("/agents/{name:path}")
async def find(name: str) -> Response:
    """Takes the rest of the path."""
    return JSONResponse(name)


def make() -> FastAPI:
    app = FastAPI(title="inside")
    app.state.services = "services"
    app.include_router(router, prefix="/v1")
    return app


async def ask(app: Any, method: str, path: str, body: bytes, headers: dict[str, str]) -> Any:
    """What is answered, or raised: its type and what it says."""
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://loci") as client:
        try:
            answer = await client.request(method, path, content=body, headers=headers)
        except RequestValidationError as error:
            return error.errors()
        except HTTPException as error:
            return error.status_code, error.detail
    return answer.status_code, answer.json()


async def raising(_: Request, error: Exception) -> Response:
    raise error


def fastapi_itself() -> FastAPI:
    """Its own way to the handlers, with errors that are raised."""
    app = make()
    for kind in (RequestValidationError, HTTPException):
        app.add_exception_handler(kind, raising)
    return app


@pytest.mark.parametrize(
    ("method", "path", "body", "headers"),
    [
        ("POST", PATH, b'{"text": "hi", "times": 2}', JSON),
        ("POST", PATH, b'{"text": "hi"}', {"content-type": "application/json; charset=utf-8"}),
        ("POST", PATH, b'{"text": "hi"}', {"content-type": "application/vnd.loci+json"}),
        ("POST", PATH, b'{"text": "hi"}', {"content-type": "text/plain"}),
        ("POST", PATH, b'{"text": "hi"}', {}),
        ("POST", PATH, b"", JSON),
        ("POST", PATH, b"null", JSON),
        ("POST", PATH, b"[]", JSON),
        ("POST", PATH, b'{"text": 1, "times": "x"}', JSON),
        ("POST", "/v1/agents/agent-1/say", b'{"text": 1}', JSON),
        ("POST", "/v1/agents/a/b/say", b'{"text": "hi"}', JSON),
        ("POST", PATH.removeprefix("/v1"), b'{"text": "hi"}', JSON),
        ("POST", f"/v1/agents/{AGENT_ID}/count", b"", {}),
        ("POST", f"/v1/agents/{AGENT_ID}/count?limit=2&tags=a&tags=b&deep=yes", b'{"text": "x"}', JSON | {"unit": "B"}),
        ("POST", "/v1/agents/agent-1/count?limit=0&deep=maybe", b'{"text": 1}', JSON),
        ("GET", "/v1/agents/a/b%20c", b"", {}),
        ("PUT", PATH, b'{"text": "hi"}', JSON),
        ("GET", "/v1/nothing", b"", {}),
        ("GET", "/", b"", {}),
    ],
)
async def test_what_is_answered_and_raised_is_what_fastapi_does(
    method: str, path: str, body: bytes, headers: dict[str, str]
) -> None:
    got = await ask(Dispatcher(make()), method, path, body, headers)
    assert got == await ask(fastapi_itself(), method, path, body, headers)


@pytest.mark.parametrize(
    "body", [b'{"text": "hi"', b'{"text": "\\u0000"}', b'{"text": "a", "text": "b"}', b'{"text": NaN}']
)
async def test_json_is_read_strictly(body: bytes) -> None:
    [error] = await ask(Dispatcher(make()), "POST", PATH, body, JSON)
    assert error["type"] == "json_invalid"


async def test_a_handlers_error_is_raised() -> None:
    with pytest.raises(NotFound):
        await ask(Dispatcher(make()), "POST", PATH, b'{"text": "nobody"}', JSON)


async def test_a_client_that_leaves_in_its_body_is_left_alone() -> None:
    sent: list[Message] = []

    async def messages() -> AsyncIterator[Message]:
        yield {"type": "http.request", "body": b'{"te', "more_body": True}
        yield {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        sent.append(message)

    coming = messages()
    headers = [(b"content-type", b"application/json")]
    scope = {"type": "http", "method": "POST", "path": PATH, "headers": headers, "query_string": b""}
    await Dispatcher(make())(scope, lambda: anext(coming), send)
    assert [message.get("status") for message in sent] == [499, None]


def test_a_handler_that_takes_more_is_refused() -> None:
    app = make()

    @app.get("/v1/more")
    async def more(tasks: BackgroundTasks) -> Response:
        return JSONResponse(str(tasks))

    with pytest.raises(TypeError, match="takes what"):
        Dispatcher(app)
