"""Google's sentences and reasons, each as what it is."""

from typing import Any

import pytest

from services.llm_gateway.core import errors
from services.llm_gateway.core.refusals import Caller, error_of, sizes_in
from services.llm_gateway.vendors.google.replies import read_refusal

CALLER = Caller("google_ai", "https://host", "GEMINI_API_KEY", "GEMINI_BASE_URL")


def refusal(status: int, message: str, word: str = "INVALID_ARGUMENT", reason: str = "") -> errors.LlmError:
    info = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": reason, "domain": "googleapis.com"}
    body: dict[str, Any] = {"error": {"code": status, "message": message, "status": word, "details": [info]}}
    return error_of(CALLER, read_refusal(status, body), "google_ai/m")


@pytest.mark.parametrize(
    ("error", "cls"),
    [
        (refusal(400, "API key not valid.", reason="API_KEY_INVALID"), errors.LlmAuthentication),
        (refusal(400, "API key expired.", reason="API_KEY_EXPIRED"), errors.LlmAuthentication),
        (refusal(403, "Permission denied.", "PERMISSION_DENIED"), errors.LlmAuthentication),
        (refusal(403, "Billing is off.", "PERMISSION_DENIED", "BILLING_DISABLED"), errors.LlmQuotaExhausted),
        (refusal(429, "Resource exhausted.", "RESOURCE_EXHAUSTED"), errors.LlmRateLimit),
        (refusal(429, "Your prepayment credits are depleted.", "RESOURCE_EXHAUSTED"), errors.LlmQuotaExhausted),
        (refusal(429, "The project has exceeded its spending cap.", "RESOURCE_EXHAUSTED"), errors.LlmQuotaExhausted),
        (refusal(400, "Function calling is not enabled for models/gemma-3-1b-it"), errors.LlmToolsUnsupported),
        (refusal(400, "Image input modality is not enabled for models/gemma-3-1b-it"), errors.LlmImagesUnsupported),
        (
            refusal(400, "Unknown name \"if\" at 'tools[0].function_declarations[0].parameters'"),
            errors.LlmSchemaRefused,
        ),
        (refusal(400, "generation_config.response_json_schema: is not valid"), errors.LlmSchemaRefused),
        (refusal(400, "The specified schema produces a constraint with too many states."), errors.LlmSchemaRefused),
        (refusal(400, "User location is not supported.", "FAILED_PRECONDITION"), errors.LlmBadRequest),
        (refusal(404, "models/m is not found for API version v1beta", "NOT_FOUND"), errors.ModelNotFound),
        (refusal(503, "The model is overloaded.", "UNAVAILABLE"), errors.LlmServerError),
        (refusal(504, "Deadline expired.", "DEADLINE_EXCEEDED"), errors.LlmTimeout),
    ],
)
def test_refusals(error: errors.LlmError, cls: type[errors.LlmError]) -> None:
    assert type(error) is cls


@pytest.mark.parametrize(
    "message",
    [
        "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
        "Unable to submit request because the input token count is 1200000 but model only supports up to 1048576.",
    ],
)
def test_overflows(message: str) -> None:
    assert type(refusal(400, message)) is errors.LlmContextOverflow
    assert sizes_in(message) == (1_048_576, 1_200_000, None)


def test_an_overflow_without_figures() -> None:
    message = "The input token count exceeds the maximum number of tokens allowed (1048575)."
    assert type(refusal(400, message)) is errors.LlmContextOverflow
    assert sizes_in(message) == (1_048_575, None, None)
