"""The way of a turn to its handler past FastAPI, whose layers cost as much as all else that the gateway does for one.

Only what is in order goes here. A request in which anything is wrong or unusual goes to FastAPI with its whole body, so
that what a client is told is written in one place.
"""

import inspect
import re
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Any

from fastapi import FastAPI
from fastapi.routing import APIRoute
from pydantic import BaseModel, TypeAdapter
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.routing import BaseRoute, compile_path
from starlette.types import Message, Receive, Scope, Send

from gateway.errors.dialects import failed
from gateway.rest.json_body import JsonRequest
from gateway.rest.services import Services
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
        self._ways = [_Way.of(route, prefix) for route in own]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one request, or has it served."""
        if scope["type"] == "http" and scope["method"] == "POST" and _JSON in scope["headers"]:
            for way in self._ways:
                if (found := way.path.match(scope["path"])) is not None:
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
    path: re.Pattern[str]
    of_path: tuple[tuple[str, TypeAdapter[str]], ...]
    name: str
    body: type[BaseModel]

    @classmethod
    def of(cls, route: APIRoute, prefix: str) -> "_Way":
        hints = inspect.get_annotations(route.endpoint, eval_str=True)
        bodies = [name for name, hint in hints.items() if isinstance(hint, type) and issubclass(hint, BaseModel)]
        path, _, names = compile_path(prefix + route.path)
        if hints.keys() != {*names, *bodies, "request", "loci", "return"} or len(bodies) != 1:
            raise TypeError(f"{route.endpoint.__name__} takes what a shortcut does not give")
        of_path = tuple((name, TypeAdapter(hints[name])) for name in names)
        return cls(route, path, of_path, bodies[0], hints[bodies[0]])

    def arguments(self, place: dict[str, str], body: Any) -> dict[str, Any]:
        """What the handler is called with. Raises pydantic.ValidationError."""
        given: dict[str, Any] = {name: adapter.validate_python(place[name]) for name, adapter in self.of_path}
        given[self.name] = self.body.model_validate(body)
        return given


def _again(body: bytes, receive: Receive) -> Receive:
    """`receive` from the beginning of a body that was read."""
    first: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive_again() -> Message:
        return first.pop() if first else await receive()

    return receive_again
