"""In which form a client is told of a failure: OpenAI's, Anthropic's or the reference's, by where it asked. Pure."""

from starlette.types import Scope

from gateway.errors.table import UNKNOWN_ERROR, Problem, problem_of
from gateway.openai_api import errors as openai_errors
from gateway.vendors import errors as anthropic_errors
from services.common.errors import LociError


def failed(error: LociError, scope: Scope) -> Problem:
    """A call that failed."""
    if anthropic_errors.speaks_anthropic(scope):
        return anthropic_errors.failed(error)
    return (openai_errors.failed if openai_errors.speaks_openai(scope) else problem_of)(error)


def refused(problem: Problem, scope: Scope) -> Problem:
    """A request that was refused before a route saw it."""
    if anthropic_errors.speaks_anthropic(scope):
        return anthropic_errors.told(problem, str(problem.body.get("detail", UNKNOWN_ERROR)))
    return openai_errors.refused(problem, scope)
