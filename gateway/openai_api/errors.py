"""Failures as OpenAI's clients read them: {"error": {"message", "type", "param", "code"}}. Pure.

Which status a failure has is decided in errors/table.py for all routes; of these only a request that is wrong in itself
is told otherwise, as 400.
"""

from dataclasses import replace
from typing import Any

from starlette.types import Scope

from gateway.errors.problems import Problem, param_of

PREFIX = "/openai/v1"
_CHAT, _EMBEDDINGS, _MODELS, _RESPONSES = "/v1/chat/completions", "/v1/embeddings", "/v1/models", "/v1/responses"
# Codes that OpenAI's clients know; the others are our reasons in lower case.
_CODES = {
    "AGENT_NOT_FOUND": "model_not_found",
    "EMBEDDING_NOT_FOUND": "model_not_found",
    "LLM_CONTEXT_OVERFLOW": "context_length_exceeded",
    "LLM_QUOTA_EXHAUSTED": "insufficient_quota",
    "LLM_RATE_LIMIT": "rate_limit_exceeded",
    "MODEL_NOT_FOUND": "model_not_found",
    "PASSWORD_REQUIRED": "invalid_api_key",
}
_TYPES = {401: "authentication_error", 402: "insufficient_quota", 403: "permission_error", 429: "rate_limit_error"}


def speaks_openai(scope: Scope) -> bool:
    """Returns whether a request, its path in canonical form, is answered in OpenAI's shapes."""
    path = scope["path"]
    if path in (_CHAT, _EMBEDDINGS, _RESPONSES) or path.startswith((f"{PREFIX}/", f"{_RESPONSES}/")):
        return True
    return (path == _MODELS or path.startswith(f"{_MODELS}/")) and asks_openai(scope)


def asks_openai(scope: Scope) -> bool:
    """Returns whether the client is OpenAI's SDK, or says `format=openai` in its Accept header or query."""
    headers = dict(scope["headers"])
    by_name = headers.get(b"user-agent", b"").startswith((b"OpenAI/", b"AsyncOpenAI/"))
    return by_name or b"format=openai" in headers.get(b"accept", b"") or b"format=openai" in scope["query_string"]


def render(problem: Problem) -> Problem:
    """Returns the problem in OpenAI's form."""
    message, param = problem.sentence, param_of(problem.loc)
    if problem.reason == "AGENT_NOT_FOUND":
        which = f"The model `{problem.name}`" if problem.name else "The model"
        message = f"{which} does not exist: give an agent's id or its name; GET {_MODELS}?format=openai lists them"
        param = "model"
    code = _CODES.get(problem.reason) or problem.reason.lower() or None
    status = 404 if code == "model_not_found" else 400 if problem.status == 422 else problem.status
    return replace(problem, status=status, body=content(message, type_of(status), code, param))


def content(message: str, kind: str, code: str | None, param: str | None = None) -> dict[str, Any]:
    """Returns the body of an error."""
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


def type_of(status: int) -> str:
    """Returns the `type` of a failure with this status."""
    return _TYPES.get(status) or ("server_error" if status >= 500 else "invalid_request_error")
