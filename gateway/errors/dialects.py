"""The one place where a failure becomes an answer, in the form that its client reads, by where it asked.

The reference's form is that of errors/problems.py; other dialects render it anew. Pure.
"""

from collections.abc import Callable, Sequence

from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.types import Scope

from gateway.errors.problems import UNKNOWN_ERROR, Problem, invalid, problem_of
from gateway.openai_api import errors as openai
from gateway.vendors import errors as anthropic
from services.common.errors import LociError

_DIALECTS: Sequence[tuple[Callable[[Scope], bool], Callable[[Problem], Problem]]] = (
    (anthropic.speaks_anthropic, anthropic.render),
    (openai.speaks_openai, openai.render),
)
_NOT_JSON = "the body is not JSON: send it with the header `content-type: application/json`"


def answer(failure: Exception | Problem, scope: Scope) -> Problem:
    """Returns the answer to a request that failed; `scope`: its path in canonical form."""
    problem = _problem(failure)
    return next((render(problem) for speaks, render in _DIALECTS if speaks(scope)), problem)


def _problem(failure: Exception | Problem) -> Problem:
    match failure:
        case Problem():
            return failure
        case LociError():
            return problem_of(failure)
        case RequestValidationError():
            errors = failure.errors()
            prefix = next((one["ctx"]["prefix"] for one in errors if "prefix" in one.get("ctx", {})), None)
            if any(isinstance(one.get("input"), bytes) for one in errors):
                errors = [{"type": "not_json", "loc": ("body",), "msg": _NOT_JSON}]
            return invalid(errors, prefix)
        case HTTPException():
            return Problem(failure.status_code, {"detail": failure.detail}, failure.headers or {})
        case _:
            return Problem(500, {"detail": UNKNOWN_ERROR})
