"""Errors of providers' refusals."""

import email.utils
import time

import pytest

from services.common.errors import LociError, to_status
from services.llm_gateway.core import errors
from services.llm_gateway.core.refusals import Caller, Refusal, error_of, retry_after

CALLER = Caller("openai", "http://host/v1", "OPENAI_API_KEY", "OPENAI_BASE_URL")


@pytest.mark.parametrize(
    ("refusal", "cls", "retryable", "advice"),
    [
        (Refusal(401, "bad key"), errors.LlmAuthentication, False, "OPENAI_API_KEY"),
        (Refusal(403, "no access"), errors.LlmAuthentication, False, "OPENAI_API_KEY"),
        (Refusal(429, "slow down", "requests", "rate_limit_exceeded"), errors.LlmRateLimit, True, "Try again"),
        (Refusal(429, "quota", "insufficient_quota"), errors.LlmQuotaExhausted, False, "billing"),
        (Refusal(400, "Your credit balance is too low"), errors.LlmQuotaExhausted, False, "billing"),
        (Refusal(402, "pay"), errors.LlmQuotaExhausted, False, "billing"),
        (Refusal(400, "x", "", "context_length_exceeded"), errors.LlmContextOverflow, False, "larger window"),
        (Refusal(400, "prompt is too long: 208310 tokens > 200000"), errors.LlmContextOverflow, False, ""),
        (Refusal(400, "the request exceeds the available context size"), errors.LlmContextOverflow, False, ""),
        (Refusal(422, "This model's maximum context length is 4096"), errors.LlmContextOverflow, False, ""),
        (Refusal(413, "too large", "request_too_large"), errors.LlmRequestTooLarge, False, "bytes"),
        (Refusal(400, "temperature: Extra inputs are not permitted"), errors.LlmBadRequest, False, "refuses"),
        (Refusal(400, "Invalid schema for function 'x'"), errors.LlmSchemaRefused, False, "Simplify"),
        (Refusal(400, "x", "", "invalid_function_parameters"), errors.LlmSchemaRefused, False, "strict"),
        (Refusal(400, "tiny does not support tools"), errors.LlmToolsUnsupported, False, "Detach"),
        (Refusal(400, "This model does not support image input"), errors.LlmImagesUnsupported, False, "Choose"),
        (Refusal(404, "model x not found"), errors.ModelNotFound, False, "http://host/v1"),
        (Refusal(408, ""), errors.LlmTimeout, True, "no reason"),
        (Refusal(500, "oops"), errors.LlmServerError, True, "Try again later"),
        (Refusal(529, "Overloaded", "overloaded_error"), errors.LlmServerError, True, ""),
        (Refusal(503, "the context window is loading"), errors.LlmServerError, True, ""),
    ],
)
def test_refusals(refusal: Refusal, cls: type[errors.LlmError], retryable: bool, advice: str) -> None:
    error = error_of(CALLER, refusal, "openai/m")
    assert type(error) is cls
    assert error.retryable is retryable
    assert advice in error.message
    sizes = {"limit", "requested"} if cls is errors.LlmContextOverflow else set()
    told = {name: text for name, text in error.metadata.items() if name not in sizes}
    assert told == {"provider": "openai", "handle": "openai/m", "status": str(refusal.status)}


@pytest.mark.parametrize(
    ("message", "limit", "requested"),
    [
        (
            "This model's maximum context length is 128000 tokens. However, your messages resulted in 130001 tokens.",
            128_000,
            130_001,
        ),
        (
            "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens (4000 in the "
            "messages, 1000 in the completion).",
            4_096,
            4_000,
        ),
        ("prompt is too long: 208310 tokens > 200000 maximum", 200_000, 208_310),
        ("input length and `max_tokens` exceed context limit: 198000 + 21000 > 200000", 200_000, 198_000),
        ("Input length (9000) exceeds model's maximum context length (8192).", 8_192, 9_000),
        ("The decoder prompt (length 9000) is longer than the maximum model length of 8192.", 8_192, 9_000),
        ("The input (9,000 tokens) is longer than the model's context length (8,192 tokens).", 8_192, 9_000),
        (
            "Requested token count exceeds the model's maximum context length of 8192 tokens. You requested a total "
            "of 9000 tokens.",
            8_192,
            9_000,
        ),
        ("You passed 9000 input tokens. However, the model's context length is only 8192 tokens.", 8_192, 9_000),
        ("request (9000 tokens) exceeds the available context size (8192 tokens), try increasing it", 8_192, 9_000),
        ("Your input exceeds the context window of this model.", None, None),
        ("context_length_exceeded", None, None),
    ],
)
def test_an_overflow_tells_the_window_and_what_was_asked(
    message: str, limit: int | None, requested: int | None
) -> None:
    error = error_of(CALLER, Refusal(400, message), "openai/m")
    assert isinstance(error, errors.LlmContextOverflow)
    expected = {name: str(n) for name, n in (("limit", limit), ("requested", requested)) if n is not None}
    assert {name: error.metadata[name] for name in ("limit", "requested") if name in error.metadata} == expected


@pytest.mark.parametrize(
    ("cls", "code", "reason"),
    [
        (errors.LlmAuthentication, 9, "LLM_AUTHENTICATION"),
        (errors.LlmRateLimit, 8, "LLM_RATE_LIMIT"),
        (errors.LlmTimeout, 4, "LLM_TIMEOUT"),
        (errors.LlmContextOverflow, 11, "LLM_CONTEXT_OVERFLOW"),
        (errors.LlmBadRequest, 3, "LLM_BAD_REQUEST"),
        (errors.LlmServerError, 14, "LLM_SERVER_ERROR"),
        (errors.LlmConnection, 14, "LLM_CONNECTION"),
        (errors.LlmEmptyResponse, 15, "LLM_EMPTY_RESPONSE"),
        (errors.LlmStreamIncomplete, 15, "LLM_STREAM_INCOMPLETE"),
        (errors.ModelNotFound, 5, "MODEL_NOT_FOUND"),
        (errors.ModelWindowUnknown, 9, "MODEL_WINDOW_UNKNOWN"),
    ],
)
def test_statuses_and_reasons(cls: type[errors.LlmError], code: int, reason: str) -> None:
    error = cls("sentence", handle="a/b")
    assert isinstance(error, LociError)
    assert (error.reason, to_status(error).code) == (reason, code)


def test_retry_after_in_all_its_forms() -> None:
    assert retry_after({"retry-after-ms": "1500", "retry-after": "9"}) == 1.5
    assert retry_after({"retry-after": "2.5"}) == 2.5
    date = email.utils.formatdate(time.time() + 3_600, usegmt=True)
    assert retry_after({"retry-after": date}) == pytest.approx(3_600, abs=60)
    assert retry_after({"retry-after": "soon"}) is None
    assert retry_after({}) is None


def test_long_messages_are_cut() -> None:
    assert len(error_of(CALLER, Refusal(500, "x" * 10_000), "h").message) < 900
