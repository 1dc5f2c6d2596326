"""Error bodies of the compatible vendors, in the shapes that they document, and what each becomes."""

from typing import Any

import orjson
import pytest

from services.llm_gateway.core import errors
from services.llm_gateway.core.refusals import Caller, error_of
from services.llm_gateway.vendors.openai.replies import error_in, read_refusal

CALLER = Caller("vendor", "https://host/v1", "VENDOR_API_KEY", "VENDOR_BASE_URL")


def upstream(raw: Any, code: int = 400) -> dict[str, Any]:
    """OpenRouter's, around another vendor's."""
    metadata = {"raw": raw if isinstance(raw, str) else orjson.dumps(raw).decode(), "provider_name": "Moonshot AI"}
    return {"error": {"message": "Provider returned error", "code": code, "metadata": metadata}, "user_id": "u"}


CASES: dict[str, list[tuple[int, Any, type[errors.LlmError], str]]] = {
    "openrouter": [
        (
            400,
            upstream({"error": {"message": "reasoning_content is missing"}}),
            errors.LlmBadRequest,
            "Moonshot AI: reaso",
        ),
        (
            400,
            upstream({"error": {"message": "maximum context length is 8192 tokens"}}),
            errors.LlmContextOverflow,
            "8192",
        ),
        (502, upstream("upstream fell over", 502), errors.LlmServerError, "upstream fell over"),
        (
            404,
            {"error": {"message": "No endpoints found that support tool use.", "code": 404}},
            errors.LlmToolsUnsupported,
            "tool",
        ),
        (
            404,
            {"error": {"message": "No endpoints found that support image input", "code": 404}},
            errors.LlmImagesUnsupported,
            "",
        ),
        (404, {"error": {"message": "No endpoints found for x/y.", "code": 404}}, errors.ModelNotFound, "x/y"),
        (402, {"error": {"message": "Insufficient credits", "code": 402}}, errors.LlmQuotaExhausted, "billing"),
        (
            403,
            {
                "error": {
                    "message": "x requires moderation on y. Your input was flagged",
                    "code": 403,
                    "metadata": {"reasons": ["hate"]},
                }
            },
            errors.LlmBadRequest,
            "hate",
        ),
        (403, {"error": {"message": "Key lacks permission", "code": 403}}, errors.LlmAuthentication, "VENDOR_API_KEY"),
        (408, {"error": {"message": "timed out", "code": 408}}, errors.LlmTimeout, ""),
    ],
    "mistral": [
        (401, {"detail": "Unauthorized"}, errors.LlmAuthentication, "Unauthorized"),
        (
            422,
            {
                "detail": [
                    {
                        "type": "extra_forbidden",
                        "loc": ["body", "stream_options"],
                        "msg": "Extra inputs are not permitted",
                    }
                ]
            },
            errors.LlmBadRequest,
            "stream_options: Extra inputs are not permitted",
        ),
        (
            422,
            {
                "object": "error",
                "message": {"detail": [{"loc": ["body", "n"], "msg": "too small"}]},
                "type": "invalid_request_error",
                "code": None,
            },
            errors.LlmBadRequest,
            "n: too small",
        ),
        (
            400,
            {
                "object": "error",
                "message": "Prompt contains 140000 tokens, too large for model with 131072 maximum context length",
                "type": "invalid_request_error",
                "code": "3051",
            },
            errors.LlmContextOverflow,
            "131072",
        ),
        (
            400,
            {"message": "Function calling is not enabled for this model", "code": "3000"},
            errors.LlmToolsUnsupported,
            "",
        ),
        (
            400,
            {"message": "Image input is not enabled for this model", "code": "3000"},
            errors.LlmImagesUnsupported,
            "",
        ),
        (
            400,
            {"message": "Tool call id was x but must be a-z, A-Z, 0-9, with a length of 9.", "code": "3280"},
            errors.LlmBadRequest,
            "",
        ),
        (404, {"message": "Invalid model: x", "code": "1500"}, errors.ModelNotFound, ""),
    ],
    "groq": [
        (
            400,
            {
                "error": {
                    "message": "Failed to call a function. See 'failed_generation'.",
                    "code": "tool_use_failed",
                    "failed_generation": "<f>",
                }
            },
            errors.LlmServerError,
            "the model wrote",
        ),
        (
            400,
            {
                "error": {
                    "message": "Please reduce the length of the messages or completion.",
                    "code": "context_length_exceeded",
                }
            },
            errors.LlmContextOverflow,
            "",
        ),
        (
            413,
            {"error": {"message": "Request too large for model", "type": "tokens", "code": "rate_limit_exceeded"}},
            errors.LlmRequestTooLarge,
            "",
        ),
        (498, {"error": {"message": "Flex tier capacity exceeded"}}, errors.LlmServerError, ""),
        (400, {"error": {"message": "messages[0].content must be a string"}}, errors.LlmImagesUnsupported, ""),
    ],
    "xai": [
        (
            400,
            {"code": "Client specified an invalid argument", "error": "Incorrect API key provided: xa***"},
            errors.LlmAuthentication,
            "VENDOR_API_KEY",
        ),
        (
            400,
            {
                "code": "Client specified an invalid argument",
                "error": "This model's maximum prompt length is 131072 but the request contains 136973 tokens.",
            },
            errors.LlmContextOverflow,
            "131072",
        ),
        (
            403,
            {
                "code": "The caller does not have permission",
                "error": "Your newly created team doesn't have any credits yet.",
            },
            errors.LlmQuotaExhausted,
            "credits",
        ),
        (
            400,
            {"code": "invalid", "error": "Image inputs are not supported by this model."},
            errors.LlmImagesUnsupported,
            "",
        ),
    ],
    "cerebras": [
        (
            400,
            {
                "message": "reduce the length of the messages. Current length is 42328 while limit is 40000",
                "type": "invalid_request_error",
                "param": "messages",
                "code": "context_length_exceeded",
            },
            errors.LlmContextOverflow,
            "42328",
        ),
        (
            400,
            {"message": "messages.2.assistant.reasoning_content: property is unsupported", "code": "wrong_api_format"},
            errors.LlmBadRequest,
            "unsupported",
        ),
        (401, {"message": "Wrong API Key", "code": "wrong_api_key"}, errors.LlmAuthentication, ""),
        (404, {"message": "Model x does not exist", "code": "model_not_found"}, errors.ModelNotFound, ""),
        (429, {"message": "Tokens per minute limit exceeded", "code": "token_quota_exceeded"}, errors.LlmRateLimit, ""),
        (402, {"message": "Payment required", "code": "payment_required"}, errors.LlmQuotaExhausted, ""),
    ],
    "together": [
        (
            422,
            {
                "error": {
                    "message": "`inputs` tokens + `max_new_tokens` must be <= 8193. Given: 9000 `inputs` tokens",
                    "type": "invalid_request_error",
                }
            },
            errors.LlmContextOverflow,
            "8193",
        ),
        (402, {"error": {"message": "Credit limit exceeded"}}, errors.LlmQuotaExhausted, ""),
        (
            404,
            {"error": {"message": "Unable to access model x", "code": "model_not_available"}},
            errors.ModelNotFound,
            "",
        ),
        (400, {"error": {"message": "Invalid JSON schema: x"}}, errors.LlmSchemaRefused, ""),
    ],
    "zai": [
        (
            429,
            {"error": {"code": "1113", "message": "Insufficient balance or no resource package."}},
            errors.LlmQuotaExhausted,
            "",
        ),
        (429, {"error": {"code": "1302", "message": "High concurrency usage of this API."}}, errors.LlmRateLimit, ""),
        (429, {"error": {"code": "1308", "message": "Usage limit reached for 5 hour."}}, errors.LlmQuotaExhausted, ""),
        (400, {"error": {"code": "1261", "message": "Prompt exceeds max length"}}, errors.LlmContextOverflow, ""),
        (
            400,
            {"error": {"code": "1211", "message": "Unknown Model, please check the model code."}},
            errors.ModelNotFound,
            "",
        ),
        (400, {"error": {"code": "1301", "message": "unsafe or sensitive content"}}, errors.LlmBadRequest, ""),
        (401, {"error": {"code": "1000", "message": "Authentication Failed"}}, errors.LlmAuthentication, ""),
    ],
    "deepseek": [
        (
            402,
            {"error": {"message": "Insufficient Balance", "type": "unknown_error", "code": "invalid_request_error"}},
            errors.LlmQuotaExhausted,
            "",
        ),
        (
            400,
            {
                "error": {
                    "message": "The `reasoning_content` in the thinking mode must be passed back to the API.",
                    "code": "invalid_request_error",
                }
            },
            errors.LlmBadRequest,
            "passed back",
        ),
        (
            400,
            {
                "error": {
                    "message": "maximum context length is 8192 tokens (9000 in the messages, 80 in the completion)."
                }
            },
            errors.LlmContextOverflow,
            "",
        ),
        (
            422,
            {"error": {"message": "messages[0]: unknown variant `image_url`, expected `text`"}},
            errors.LlmImagesUnsupported,
            "",
        ),
    ],
    "moonshot": [
        (
            429,
            {"error": {"message": "suspended", "type": "exceeded_current_quota_error"}},
            errors.LlmQuotaExhausted,
            "",
        ),
        (429, {"error": {"message": "busy", "type": "engine_overloaded_error"}}, errors.LlmRateLimit, ""),
        (
            400,
            {
                "error": {
                    "message": "Invalid request: Your request exceeded model token limit: 262144 (requested: 269800)",
                    "type": "invalid_request_error",
                }
            },
            errors.LlmContextOverflow,
            "262144",
        ),
        (
            400,
            {"error": {"message": "tool_choice 'required' is incompatible with thinking enabled"}},
            errors.LlmBadRequest,
            "",
        ),
    ],
    "fireworks": [
        (
            400,
            {
                "error": {
                    "object": "error",
                    "type": "invalid_request_error",
                    "message": "The prompt is too long: 135000, model maximum context length: 131071",
                }
            },
            errors.LlmContextOverflow,
            "135000",
        ),
        (
            412,
            {"error": {"message": "Account is suspended, possibly due to reaching the monthly spending limit"}},
            errors.LlmQuotaExhausted,
            "",
        ),
        (
            400,
            {"error": {"message": "JSON Schema not supported: could not understand the instance"}},
            errors.LlmSchemaRefused,
            "",
        ),
    ],
    "hugging-face": [
        (402, {"error": "You have exceeded your monthly included credits"}, errors.LlmQuotaExhausted, ""),
        (
            400,
            {"error": {"message": "The requested model 'x' does not support tools", "code": "model_not_supported"}},
            errors.LlmToolsUnsupported,
            "",
        ),
    ],
    "any": [
        (
            400,
            {"error": {"message": '"auto" tool choice requires --enable-auto-tool-choice'}},
            errors.LlmToolsUnsupported,
            "",
        ),
        (404, {"detail": "Not Found"}, errors.ModelNotFound, "Not Found"),
        (413, "too large", errors.LlmRequestTooLarge, ""),
    ],
}


@pytest.mark.parametrize(
    ("status", "body", "cls", "told"),
    [
        pytest.param(*case, id=f"{vendor}-{number}")
        for vendor, cases in CASES.items()
        for number, case in enumerate(cases)
    ],
)
def test_what_each_becomes(status: int, body: Any, cls: type[errors.LlmError], told: str) -> None:
    error = error_of(CALLER, read_refusal(status, body), "vendor/m")
    assert type(error) is cls, error.message
    assert told in error.message


@pytest.mark.parametrize(
    ("message", "limit", "requested"),
    [
        ("reduce the length of the messages. Current length is 42328 while limit is 40000", 40_000, 42_328),
        ("maximum prompt length is 131072 but the request contains 136973 tokens", 131_072, 136_973),
        ("[input_too_large] Current message (1149677 tokens) exceeds budget (975424 tokens)", 975_424, 1_149_677),
        ("Your request exceeded model token limit: 262144 (requested: 269800)", 262_144, 269_800),
        ("The prompt is too long: 135000, model maximum context length: 131071", 131_071, 135_000),
        ("Prompt contains 140000 tokens, too large for model with 131072 maximum context length", 131_072, 140_000),
        ("`inputs` tokens + `max_new_tokens` must be <= 8193. Given: 9000 `inputs` tokens", 8_193, 9_000),
    ],
)
def test_an_overflow_tells_its_sizes(message: str, limit: int, requested: int) -> None:
    error = error_of(CALLER, read_refusal(400, {"error": {"message": message}}), "vendor/m")
    assert isinstance(error, errors.LlmContextOverflow)
    assert (error.metadata["limit"], error.metadata["requested"]) == (str(limit), str(requested))


def test_an_error_in_a_reply_that_says_all_is_well() -> None:
    inside = {"code": 502, "message": "lost"}
    assert error_in({"choices": [{"error": inside, "finish_reason": "error"}]}) == inside
    assert error_in({"error": inside, "choices": []}) == inside
    assert error_in({"choices": [{"delta": {}}]}) is None
    assert error_in({}) is None
