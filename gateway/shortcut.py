"""The way of a turn to its handler past FastAPI, whose layers cost as much as all else that the gateway does for one.

Only what is in order goes here. A request in which anything is wrong or unusual goes to FastAPI with its whole body, so
that what a client is told is written in one place.
"""

import inspect
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Any

from fastapi import FastAPI
from fastapi.routing import APIRoute
from pydantic import BaseModel, TypeAdapter
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import BaseRoute
from starlette.types import Message, Receive, Scope, Send

from gateway.body import JsonRequest
from gateway.error_forms import failed
from gateway.services import Loci, Services
from services.common.errors import LociError

_JSON = (b"content-type", b"application/json")

Handler = Callable[..., Any]


class Shortcut:
    """An ASGI application before FastAPI's; `handlers` are those that it calls itself, of these `routes`."""

    def __init__(self, app: FastAPI, routes: Iterable[BaseRoute], handlers: Collection[Handler], prefix: str) -> None:
        """Handlers take strings of the path, one model as the body, the request and the services, nothing else."""
        self._app = app
        self._services: Services = app.state.services
        own = [route for route in routes if isinstance(route, APIRoute) and route.endpoint in handlers]
        self._prefix = prefix
        self._ways = [_Way.of(route) for route in own]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one request, or has it served."""
        if scope["type"] == "http" and scope["method"] == "POST" and _JSON in scope["headers"]:
            path = scope["path"].removeprefix(self._prefix)
            for way in self._ways:
                if (found := way.route.path_regex.match(path)) is not None:
                    await self._serve(way, found.groupdict(), scope, receive, send)
                    return
        await self._app(scope, receive, send)

    async def _serve(self, way: "_Way", place: dict[str, str], scope: Scope, receive: Receive, send: Send) -> None:
        request = JsonRequest({**scope, "app": self._app}, receive)
        try:
            arguments = way.arguments(place, await request.json())
        except ValueError:  # no JSON, or not what the handler takes: both derive from it
            await self._app(scope, _again(await request.body(), receive), send)
            return
        except ClientDisconnect:
            await Response(status_code=499)(scope, receive, send)
            return
        # The edge names the span after it.
        scope["route"] = way.route
        try:
            response = await way.route.endpoint(**arguments, request=request, loci=self._services)
        except LociError as error:
            response = failed(error, scope).response()
        await response(scope, receive, send)


@dataclass(frozen=True, slots=True)
class _Way:
    """A route, and how its handler's arguments are checked."""

    route: APIRoute
    of_path: tuple[tuple[str, TypeAdapter[str]], ...]
    name: str
    body: type[BaseModel]

    @classmethod
    def of(cls, route: APIRoute) -> "_Way":
        hints = inspect.get_annotations(route.endpoint, eval_str=True)
        ((name, body),) = ((name, hint) for name, hint in hints.items() if _is_body(hint))
        of_path = {each: hint for each, hint in hints.items() if each not in (name, "request", "loci", "return")}
        if (hints["request"], hints["loci"]) != (Request, Loci) or route.param_convertors.keys() != of_path.keys():
            raise TypeError(f"{route.endpoint.__name__} takes what a shortcut does not give")
        return cls(route, tuple((each, TypeAdapter(hint)) for each, hint in of_path.items()), name, body)

    def arguments(self, place: dict[str, str], body: Any) -> dict[str, Any]:
        """What the handler is called with. Raises pydantic.ValidationError."""
        given: dict[str, Any] = {name: adapter.validate_python(place[name]) for name, adapter in self.of_path}
        given[self.name] = self.body.model_validate(body)
        return given


def _is_body(hint: Any) -> bool:
    return isinstance(hint, type) and issubclass(hint, BaseModel)


def _again(body: bytes, receive: Receive) -> Receive:
    """`receive` from the beginning of a body that was read."""
    first: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive_again() -> Message:
        return first.pop() if first else await receive()

    return receive_again
