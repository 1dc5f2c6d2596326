"""Failures as Anthropic's clients read them: {"type": "error", "error": {"type", "message"}}. Pure.

Which status a failure has is decided in errors/table.py for all routes; only what is wrong in itself is 400 here.
"""

from dataclasses import replace

from starlette.types import Scope

from gateway.errors.problems import Problem
from gateway.vendors.keys import vendor_of

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
    """Returns whether a request, its path in canonical form, is answered in Anthropic's form."""
    return bool(vendor_of(scope["path"]))


def render(problem: Problem) -> Problem:
    """Returns the problem in Anthropic's form."""
    status = 400 if problem.status == 422 else problem.status
    kind = _TYPES.get(status) or ("api_error" if status >= 500 else "invalid_request_error")
    return replace(problem, status=status, body={"type": "error", "error": {"type": kind, "message": problem.sentence}})
