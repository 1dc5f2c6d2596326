"""Failures as OpenAI's clients read them: {"error": {"message", "type", "param", "code"}}. Pure.

Which status a failure has is decided in errors/table.py for all routes; of these only a request that is wrong in itself
is told otherwise, as 400.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from starlette.types import Scope

from gateway.errors.table import UNKNOWN_ERROR, InvalidRequest, Problem, problem_of, problem_of_turn
from loci.agent.v1 import message_service_pb2
from services.common.errors import LociError

PREFIX = "/openai/v1"
_CHAT, _MODELS = "/v1/chat/completions", "/v1/models"
# Codes that OpenAI's clients know; the others are our reasons in lower case.
_CODES = {
    "AGENT_NOT_FOUND": "model_not_found",
    "LLM_CONTEXT_OVERFLOW": "context_length_exceeded",
    "LLM_QUOTA_EXHAUSTED": "insufficient_quota",
    "LLM_RATE_LIMIT": "rate_limit_exceeded",
    "PASSWORD_REQUIRED": "invalid_api_key",
}
_TYPES = {401: "authentication_error", 402: "insufficient_quota", 403: "permission_error", 429: "rate_limit_error"}


def speaks_openai(scope: Scope) -> bool:
    """Whether a request, its path in canonical form, is answered in OpenAI's shapes."""
    path = scope["path"]
    if path == _CHAT or path.startswith(f"{PREFIX}/"):
        return True
    return (path == _MODELS or path.startswith(f"{_MODELS}/")) and asks_openai(scope)


def asks_openai(scope: Scope) -> bool:
    """Whether the client is OpenAI's SDK, or says `format=openai` in its Accept header or query."""
    headers = dict(scope["headers"])
    by_name = headers.get(b"user-agent", b"").startswith((b"OpenAI/", b"AsyncOpenAI/"))
    return by_name or b"format=openai" in headers.get(b"accept", b"") or b"format=openai" in scope["query_string"]


def failed(error: LociError) -> Problem:
    """A call that failed."""
    problem = problem_of(error)
    message = UNKNOWN_ERROR if problem.status == 500 else error.message
    param = _param(error.loc) if isinstance(error, InvalidRequest) else None
    if error.reason == "AGENT_NOT_FOUND":
        return _no_such_model(error.metadata.get("name", ""))
    return _told(problem, message, code_of(error.reason), param)


def failed_turn(error: message_service_pb2.TurnError) -> Problem:
    """A turn that failed."""
    code = code_of(error.reason or error.error_type)
    return _told(problem_of_turn(error), error.message or UNKNOWN_ERROR, code, None)


def invalid(errors: Sequence[Mapping[str, Any]]) -> Problem:
    """A body that is none."""
    first = errors[0] if errors else {}
    param = _param(first.get("loc", ()))
    message = f"{param}: {first.get('msg')}" if param else str(first.get("msg", "the body is not valid"))
    return _told(Problem(400, {}), message, "invalid_request", param)


def refused(problem: Problem, scope: Scope) -> Problem:
    """A request that was refused before a route saw it, in the shape that its client reads."""
    if not speaks_openai(scope):
        return problem
    return _told(problem, str(problem.body.get("detail", UNKNOWN_ERROR)), None, None)


def content(message: str, kind: str, code: str | None, param: str | None = None) -> dict[str, Any]:
    """The body of an error."""
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


def code_of(reason: str) -> str | None:
    """The `code` of a failure with this reason."""
    return _CODES.get(reason) or reason.lower() or None


def type_of(status: int) -> str:
    """The `type` of a failure with this status."""
    return _TYPES.get(status) or ("server_error" if status >= 500 else "invalid_request_error")


def _no_such_model(name: str) -> Problem:
    which = f"The model `{name}`" if name else "The model"
    message = f"{which} does not exist: give an agent's id or its name; GET {_MODELS}?format=openai lists them"
    return _told(Problem(404, {}), message, "model_not_found", "model")


def _told(problem: Problem, message: str, code: str | None, param: str | None) -> Problem:
    status = 400 if problem.status == 422 else problem.status
    return replace(problem, status=status, body=content(message, type_of(status), code, param))


def _param(loc: Sequence[Any]) -> str | None:
    return ".".join(str(step) for step in loc if step != "body") or None
