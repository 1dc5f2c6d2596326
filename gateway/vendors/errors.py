"""Failures as Anthropic's clients read them: {"type": "error", "error": {"type", "message"}}. Pure.

Which status a failure has is decided in errors/table.py for all routes; only what is wrong in itself is 400 here.
"""

from dataclasses import replace
from typing import Any

from starlette.types import Scope

from gateway.errors.table import UNKNOWN_ERROR, Problem, problem_of
from gateway.vendors.keys import vendor_of
from services.common.errors import LociError

_TYPES = {
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
    504: "timeout_error",
}


def speaks_anthropic(scope: Scope) -> bool:
    """Whether a request, its path in canonical form, is answered in Anthropic's form."""
    return bool(vendor_of(scope["path"]))


def failed(error: LociError) -> Problem:
    """A call that failed."""
    problem = problem_of(error)
    return told(problem, UNKNOWN_ERROR if problem.status == 500 else error.message)


def told(problem: Problem, message: str) -> Problem:
    """A problem in this form."""
    status = 400 if problem.status == 422 else problem.status
    return replace(problem, status=status, body=content(status, message))


def content(status: int, message: str) -> dict[str, Any]:
    """The body of an error."""
    kind = _TYPES.get(status) or ("api_error" if status >= 500 else "invalid_request_error")
    return {"type": "error", "error": {"type": kind, "message": message}}
