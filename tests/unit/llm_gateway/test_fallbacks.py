"""The chain of fallbacks."""

from dataclasses import replace

import pytest

from services.llm_gateway.core import errors
from services.llm_gateway.core.errors import LlmContextOverflow, LlmError, LlmServerError, ModelNotFound
from services.llm_gateway.core.fallbacks import FallbackChain
from tests.unit.llm_gateway.builders import model, request, user

FIRST, SECOND, THIRD = "openai/gpt-4", "openai/gpt-4o", "openai/gpt-4.1"


def route(*fallbacks: str, **options: object) -> FallbackChain:
    return FallbackChain(request(user("hi"), handle=FIRST, fallbacks=fallbacks, **options), {FIRST: [THIRD]})


@pytest.mark.parametrize(
    ("name", "goes_on"),
    [
        ("LlmAuthentication", True),
        ("LlmBadRequest", False),
        ("LlmBudgetExhausted", False),
        ("LlmCircuitOpen", True),
        ("LlmConnection", True),
        ("LlmContextOverflow", True),
        ("LlmEmptyResponse", True),
        ("LlmImagesUnsupported", True),
        ("LlmNotAnApi", True),
        ("LlmQueueFull", True),
        ("LlmQuotaExhausted", True),
        ("LlmRateLimit", True),
        ("LlmReplayMissing", False),
        ("LlmRequestTooLarge", False),
        ("LlmSchemaRefused", False),
        ("LlmSdkMissing", True),
        ("LlmServerError", True),
        ("LlmStreamIncomplete", True),
        ("LlmStreamMalformed", True),
        ("LlmTimeout", True),
        ("LlmToolsUnsupported", True),
        ("ModelNotFound", True),
    ],
)
def test_errors_that_another_handle_may_not_have(name: str, goes_on: bool) -> None:
    error: LlmError = getattr(errors, name)("no")
    assert route(SECOND).goes_on(error, model(FIRST), None) is goes_on
    # With nobody left, or no time, it is the end in any case.
    assert not FallbackChain(request(user("hi"), handle=SECOND), {}).goes_on(error, model(SECOND), None)
    assert not route(SECOND).goes_on(error, model(FIRST), 0.0)


def test_each_handle_once_and_the_requests_own_before_the_operators() -> None:
    asked = route(SECOND, FIRST, SECOND)
    assert (asked.handle, asked.is_last) == (FIRST, False)
    assert asked.goes_on(LlmServerError("down"), model(FIRST), None)
    assert (asked.handle, asked.is_last) == (SECOND, True)
    assert [(one.handle, one.reason, one.message) for one in asked.failed] == [(FIRST, "LLM_SERVER_ERROR", "down")]
    assert not asked.goes_on(LlmServerError("down"), model(SECOND), None)
    operators = route()
    operators.goes_on(LlmServerError("down"), model(FIRST), None)
    assert operators.handle == THIRD


def test_an_overflow_goes_only_where_there_is_more_room() -> None:
    asked = route("openai/gpt-4", SECOND, THIRD)
    asked.goes_on(LlmContextOverflow("too long"), model(FIRST, window=200_000), None)
    with pytest.raises(LlmContextOverflow, match="did not fit 200000 tokens") as caught:
        asked.request_to(model(SECOND))
    assert asked.goes_on(caught.value, model(SECOND), None)
    assert asked.request_to(model(THIRD)).handle == THIRD
    assert [one.handle for one in asked.failed] == [FIRST, SECOND]


def test_the_endpoints_own_word_counts_where_the_window_is_unknown() -> None:
    asked = route(SECOND)
    nameless = replace(model(FIRST), context_window=None)
    asked.goes_on(LlmContextOverflow("too long", limit=128_000), nameless, None)
    with pytest.raises(LlmContextOverflow):
        asked.request_to(model(SECOND))


def test_a_fallback_is_asked_for_no_more_than_it_can() -> None:
    asked = route(SECOND, max_output_tokens=100_000)
    assert asked.request_to(model(FIRST)).max_output_tokens == 100_000
    asked.goes_on(LlmServerError("down"), model(FIRST), None)
    assert asked.request_to(model(SECOND)).max_output_tokens == 16_384
    assert route(SECOND).request_to(model(SECOND)).max_output_tokens is None


def test_the_first_error_is_told_with_who_else_was_asked() -> None:
    asked = route(SECOND, THIRD)
    asked.goes_on(LlmServerError("openai is down.", provider="openai"), model(FIRST), None)
    asked.goes_on(ModelNotFound("none"), None, None)
    asked.goes_on(errors.LlmBadRequest("no"), model(THIRD), None)
    failure = asked.failure()
    assert isinstance(failure, LlmServerError)
    tried = "openai/gpt-4o (MODEL_NOT_FOUND), openai/gpt-4.1 (LLM_BAD_REQUEST)"
    assert str(failure) == failure.message == f"openai is down. Its fallbacks could not answer either: {tried}."
    assert failure.metadata == {"provider": "openai", "fallbacks": tried}


def test_without_fallbacks_the_error_stays_as_it_is() -> None:
    asked, error = FallbackChain(request(user("hi"), handle=FIRST), {}), LlmServerError("down")
    asked.goes_on(error, None, None)
    assert asked.failure() is error
    assert error.message == "down"
