"""How a request gets to its handler: FastAPI declares routes and their parameters, this calls the handlers.

FastAPI's own way there (two routers, six middlewares, the solving of dependencies) costs two fifths of what the gateway
does for a turn. So what FastAPI knows of a handler's parameters, its `Dependant`, is read once, and the functions with
which FastAPI checks them are called directly. What is wrong with a request is raised as FastAPI raises it.

What is no API route (pages, /mcp), and what no route takes (404, 405), goes on to FastAPI's router, and a socket to its
application.
"""

import email.message
import inspect
import json
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from fastapi import FastAPI
from fastapi.dependencies.models import Dependant
from fastapi.dependencies.utils import request_body_to_args, request_params_to_args
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic_core import PydanticUndefined
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.routing import compile_path
from starlette.types import Receive, Scope, Send

from gateway.rest.json_body import JsonRequest

_JSON = (b"content-type", b"application/json")


class Dispatcher:
    """The ASGI application of a FastAPI one: calls the handlers of its API routes. Raises what they raise."""

    def __init__(self, app: FastAPI) -> None:
        """Reads the routes of `app`. Raises TypeError for a handler with parameters that are not understood here."""
        self._app = app
        # By method and noun, in FastAPI's order.
        self._routes: dict[tuple[str, str], list[_Route]] = defaultdict(list)
        for path, route, _ in api_routes(app):
            entry = _Route(re.compile(compile_path(path)[0]), route)
            _check(route.dependant)
            for method in route.methods or ():
                self._routes[method, _noun(path)].append(entry)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one request or one socket."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        scope["app"] = self._app
        for entry in self._routes.get((scope["method"], _noun(scope["path"])), ()):
            if match := entry.path.match(scope["path"]):
                # The middleware names the span after it.
                scope["route"], scope["path_params"] = entry.route, match.groupdict()
                try:
                    response = await _respond(entry.route, JsonRequest(scope, receive))
                except ClientDisconnect:
                    response = Response(status_code=499)
                await response(scope, receive, send)
                return
        await self._app.router(scope, receive, send)


@dataclass(frozen=True, slots=True)
class _Route:
    path: re.Pattern[str]
    route: APIRoute


def api_routes(app: FastAPI) -> Iterator[tuple[str, APIRoute, bool]]:
    """Yields the API routes in FastAPI's order: the whole path, the route, whether the document leaves it out."""
    return _walk(app.routes, "", hidden=False)


def _walk(routes: Any, prefix: str, *, hidden: bool) -> Iterator[tuple[str, APIRoute, bool]]:
    for route in routes:
        if isinstance(route, APIRoute):
            yield prefix + route.path, route, hidden or not route.include_in_schema
        elif hasattr(route, "original_router"):
            context = route.include_context
            within = prefix + (context.prefix or "")
            yield from _walk(route.original_router.routes, within, hidden=hidden or not context.include_in_schema)


def _noun(path: str) -> str:
    """Returns the second segment of a path: `agents` of /v1/agents/{agent_id}."""
    return f"{path}//".split("/", 3)[2]


def _check(dependant: Dependant) -> None:
    """Raises TypeError for parameters that a handler or a dependency is not given here."""
    extras = ("websocket", "background_tasks", "response", "security_scopes")
    if (
        any(getattr(dependant, f"{name}_param_name") for name in extras)
        or dependant.cookie_params
        or len(dependant.body_params) > 1
        or inspect.isgeneratorfunction(dependant.call)
        or inspect.isasyncgenfunction(dependant.call)
    ):
        raise TypeError(f"{dependant.call} takes what the dispatcher does not give")
    for dependency in dependant.dependencies:
        _check(dependency)


async def _respond(route: APIRoute, request: JsonRequest) -> Response:
    """Raises RequestValidationError, and what the handler raises."""
    body = await _body(request) if route.body_field else PydanticUndefined
    values, errors = await _arguments(route.dependant, request, body)
    if errors:
        raise RequestValidationError(errors, body=body)
    response: Response = await route.endpoint(**values)
    return response


async def _body(request: JsonRequest) -> Any:
    """Returns the JSON of a body; its bytes where it is not said to be JSON, undefined where it is empty."""
    body = await request.body()
    if not body:
        return PydanticUndefined
    if _JSON not in request.scope["headers"] and not _is_json(request.headers.get("content-type", "")):
        return body
    try:
        return await request.json()
    except json.JSONDecodeError as error:
        problem = {"type": "json_invalid", "loc": ("body", error.pos), "msg": "JSON decode error", "input": {}}
        raise RequestValidationError([problem | {"ctx": {"error": error.msg}}], body=error.doc) from error


def _is_json(content_type: str) -> bool:
    message = email.message.Message()
    message["content-type"] = content_type
    subtype = message.get_content_subtype()
    is_json = subtype == "json" or subtype.endswith("+json")
    return bool(content_type) and message.get_content_maintype() == "application" and is_json


async def _arguments(dependant: Dependant, request: JsonRequest, body: Any) -> tuple[dict[str, Any], list[Any]]:
    """Returns what a handler or a dependency is called with, and what is wrong with the request."""
    values: dict[str, Any] = {}
    errors: list[Any] = []
    for dependency in dependant.dependencies:
        arguments, problems = await _arguments(dependency, request, body)
        errors += problems
        if not problems and dependency.call is not None and dependency.name is not None:
            value = dependency.call(**arguments)
            values[dependency.name] = await value if inspect.isawaitable(value) else value
    for fields, source in (
        (dependant.path_params, "path_params"),
        (dependant.query_params, "query_params"),
        (dependant.header_params, "headers"),
    ):
        if fields:
            arguments, problems = request_params_to_args(fields, getattr(request, source))
            values |= arguments
            errors += problems
    if dependant.body_params:
        arguments, problems = await request_body_to_args(dependant.body_params, body, embed_body_fields=False)
        values |= arguments
        errors += problems
    if dependant.request_param_name:
        values[dependant.request_param_name] = request
    if dependant.http_connection_param_name:
        values[dependant.http_connection_param_name] = request
    return values, errors
