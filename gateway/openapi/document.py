"""The OpenAPI document: FastAPI's, with what it cannot know: answers, errors, ways to authenticate, examples."""

import re
from collections.abc import Collection, Iterator
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute

from gateway.openapi.answers import JSON_TYPE, Answer, answer_of
from gateway.openapi.errors import INVALID, MODEL_PROBLEM, OPENAI_PROBLEM, PROBLEM
from gateway.openapi.examples import EXAMPLES
from gateway.openapi.schemas import COMPONENTS, Schema, some
from gateway.server.dispatcher import api_routes

_DESCRIPTIONS = {
    400: "An argument that cannot be: a name that is taken, a tool that does not parse, a request the model refuses.",
    401: "No key or password, or a wrong one; or the provider refuses its key.",
    402: "A budget or the provider's quota is exhausted.",
    403: "The key's role, or a restricted token, does not allow this.",
    404: "What the path or the body names is not there.",
    408: "An MCP server did not answer in time.",
    409: "It conflicts with what is stored or under way. `x-should-retry: false` where repeating is of no use.",
    410: "The stream is not kept any more.",
    413: "The body is larger than the operator allows.",
    415: "A file of a type that is not read.",
    422: "The request is wrong in itself. `examples`: ids of the right form.",
    429: "Too many requests, of this key or at the provider.",
    499: "The client has left.",
    500: "A failure that nobody foresaw; `x-trace-id` finds it in the logs.",
    501: "Not available yet; the sentence says what.",
    502: "A provider or an MCP server failed.",
    503: "A service cannot be reached, or is overloaded.",
    504: "A provider or a service did not answer in time.",
}
_SCHEMES = {
    "bearer": {"type": "http", "scheme": "bearer", "description": "An API key, a restricted token or the password."},
    "password": {
        "type": "apiKey",
        "in": "header",
        "name": "X-BARE-PASSWORD",
        "description": "`password <the server's password>`, the older form.",
    },
}


def document(app: FastAPI) -> Schema:
    """Returns the document of the routes of `app` that are not hidden."""
    schema: Schema = get_openapi(
        title=app.title,
        version=app.version,
        description=app.description,
        routes=app.routes,
        servers=app.servers or None,
    )
    schemas = schema.setdefault("components", {}).setdefault("schemas", {})
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    schema = _with_renamed(schema, schemas.keys() & COMPONENTS.keys())
    schema["components"]["schemas"] |= COMPONENTS
    schema["components"]["securitySchemes"] = _SCHEMES
    # None is asked for where the operator has set none.
    schema["security"] = [{}, *({name: []} for name in _SCHEMES)]
    schema["components"]["responses"] = {f"Problem{status}": _problem(status) for status in _DESCRIPTIONS}
    for method, path, route in routes(app):
        operation = schema["paths"][path][method.lower()]
        operation["operationId"] = _operation_id(method, path)
        _describe(operation, method, path, answer_of(route.endpoint) or Answer())
    return schema


def _with_renamed(value: Any, taken: Collection[str]) -> Any:
    """Returns the schemas with other names for parts of bodies that have the name of an answer."""
    if isinstance(value, list):
        return [_with_renamed(item, taken) for item in value]
    if not isinstance(value, dict):
        return value
    renamed = {key: _with_renamed(item, taken) for key, item in value.items()}
    name = str(renamed.get("$ref", "")).rpartition("/")[2]
    if name in taken:
        renamed["$ref"] += "Input"
    if isinstance(renamed.get("schemas"), dict):
        renamed["schemas"] = {f"{key}Input" if key in taken else key: item for key, item in renamed["schemas"].items()}
    return renamed


def routes(app: FastAPI) -> Iterator[tuple[str, str, APIRoute]]:
    """Yields method, path and route of every operation of the document."""
    for path, route, hidden in api_routes(app):
        if not hidden:
            for method in sorted(route.methods or ()):
                yield method, re.sub(r":\w+}", "}", path), route


def _operation_id(method: str, path: str) -> str:
    return f"{method.lower()}_{re.sub('[^a-zA-Z0-9]+', '_', path).strip('_')}"


def _describe(operation: dict[str, Any], method: str, path: str, answer: Answer) -> None:
    responses = operation.setdefault("responses", {})
    for usual in ("200", "204", "422"):
        responses.pop(usual, None)
    responses[str(answer.status)] = {"description": "As asked."}
    if content := answer.content():
        responses[str(answer.status)]["content"] = content
    for status in _DESCRIPTIONS:
        responses[str(status)] = {"$ref": f"#/components/responses/Problem{status}"}
    for status in answer.also:
        problem = _problem(status)
        responses[str(status)] = problem | {"content": problem["content"] | answer.content()}
    body = operation.get("requestBody", {}).get("content", {}).get(JSON_TYPE)
    if body is not None and (example := EXAMPLES.get(f"{method} {path}")):
        body["example"] = example


def _problem(status: int) -> Schema:
    schema = INVALID if status == 422 else some(PROBLEM, MODEL_PROBLEM)
    return {
        "description": _DESCRIPTIONS[status],
        "content": {JSON_TYPE: {"schema": some(schema, OPENAI_PROBLEM)}},
        "headers": {
            "x-trace-id": {"description": "By which the logs of every service are found.", "schema": {"type": "string"}}
        },
    }
