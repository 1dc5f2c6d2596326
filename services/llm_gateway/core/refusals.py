"""Refusals of providers as errors of ours, decided in one place for every vendor. Pure.

By HTTP status first, then by the vendor's machine-readable code. What most servers answer as a plain 400 is told by
its text: a context overflow, tools or images for a model that takes none, a schema that is refused.
"""

import email.utils
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from services.llm_gateway.core.errors import (
    LlmAuthentication,
    LlmBadRequest,
    LlmContextOverflow,
    LlmEmptyResponse,
    LlmError,
    LlmImagesUnsupported,
    LlmQuotaExhausted,
    LlmRateLimit,
    LlmRequestTooLarge,
    LlmSchemaRefused,
    LlmServerError,
    LlmTimeout,
    LlmToolsUnsupported,
    ModelNotFound,
)

_OVERFLOW = re.compile(
    r"maximum (context|model) length|context[ _](length|window|size|limit)|prompt is too long|too many input tokens"
    r"|exceeds? the (available )?context|input length and `max_tokens`|input token count.* (exceeds|only supports)"
    r"|maximum prompt length|input_too_large|prompt exceeds max|exceeded model token limit"
    r"|`inputs` tokens \+ `max_new_tokens` must be|reduce the length of the messages",
    re.IGNORECASE,
)
# Numbers in the sentences of OpenAI, Anthropic, Google, vLLM, SGLang, llama.cpp, Mistral, xAI, Cerebras, Moonshot,
# Fireworks and Together, with or without commas.
_N = r"(\d[\d,]*)"
_LIMIT = re.compile(
    rf"(?:context|model) (?:length|window|size|limit)(?: is only| is| of)? \(?{_N}|tokens > {_N}"
    rf"|tokens allowed \(?{_N}|only supports up to {_N}"
    rf"|(?:prompt length is|while limit is|token limit:|context length:|must be <=|exceeds budget) \(?{_N}"
    rf"|model with {_N} maximum context",
    re.IGNORECASE,
)
_REQUESTED = re.compile(
    rf"(?:resulted in|requested(?: a total of)?|too long:|passed|contains(?: at least)?) {_N}"
    rf"|(?:input|request|prompt)(?:(?: length| token count)? \((?:length )?| token count is ){_N}"
    rf"|(?:current length is|requested:|given:) {_N}|current message \({_N}",
    re.IGNORECASE,
)
_SUM = re.compile(rf"context limit: {_N} \+ {_N} > {_N}", re.IGNORECASE)
_PARTS = re.compile(rf"{_N} in the messages.*?{_N} in the completion", re.IGNORECASE)
# The numbers are Z.ai's.
_OVERFLOW_CODES = frozenset({"context_length_exceeded", "exceed_context_size_error", "1261"})
_MODEL_CODES = frozenset({"model_not_found", "1211"})
# The model wrote a call or JSON that is none (Groq): another try may go well.
_MISWRITTEN_CODES = frozenset({"tool_use_failed", "json_validate_failed", "output_parse_failed"})
# Vendors that answer a wrong key as a plain 400 say it so.
_KEY_CODES = frozenset({"API_KEY_INVALID", "API_KEY_EXPIRED", "invalid_api_key"})
_KEY = re.compile(r"(incorrect|invalid) api key", re.IGNORECASE)
# Refused for what it says, though the key is right.
_FLAGGED = re.compile(r"moderation|was flagged|content (policy|filter|exists risk)|usage guidelines", re.IGNORECASE)
_QUOTA_CODES = frozenset(
    {"insufficient_quota", "billing_error", "billing_hard_limit_reached", "QUOTA_EXHAUSTED", "BILLING_DISABLED"}
    | {"exceeded_current_quota_error", "1113", "1308", "1309", "1310"}
)
_QUOTA = re.compile(
    r"credit balance|insufficient (credit|balance|quota)|spending (cap|limit)|credits are depleted"
    r"|(doesn't|does not) have any credits|run out of credits",
    re.IGNORECASE,
)
_SCHEMA_CODES = frozenset({"invalid_function_parameters", "invalid_json_schema"})
_SCHEMA = re.compile(
    r"invalid (json )?schema|schema (is|must be|has|contains) (invalid|unsupported|too)|input_schema"
    r"|response_?(json_?)?schema|function_declarations.*parameters|unsupported (json )?schema|schema produces"
    r"|schema (is )?not supported",
    re.IGNORECASE,
)
_NO_TOOLS = re.compile(
    r"(does not|doesn't|not) support(ed)? (the use of )?(tool|function)"
    r"|(tool|function)[ _-]?(use|call|calling|choice|s)?( is| are)? not (supported|enabled)"
    r"|no endpoints found that support (tool|the provided 'tool_choice')|tool choice requires --",
    re.IGNORECASE,
)
_NO_IMAGES = re.compile(
    r"(does not|doesn't|not) support(ed)? (the )?(image|vision|multimodal)"
    r"|(image|vision)( input| inputs|_url)?s?( modality)?( is| are)? (not|only) (supported|enabled|allowed)"
    r"|not a multimodal model|missing data required for image input"
    r"|no endpoints found that support image|unknown variant `image_url`|content must be a string",
    re.IGNORECASE,
)
_LONGEST_QUOTE = 600
_LONGEST_READ = 4_000


@dataclass(frozen=True, slots=True)
class Caller:
    """The provider that was called, for messages. Settings are the environment variables an operator would look
    at.
    """

    provider: str
    endpoint: str
    key_setting: str
    url_setting: str


@dataclass(frozen=True, slots=True)
class Refusal:
    """A refusal as the provider gave it; `kind` and `code` are its machine-readable words, where it has
    them.
    """

    status: int
    message: str
    kind: str = ""
    code: str = ""
    retry_after: float | None = None


def status_in(error: object) -> int:
    """Returns the HTTP status that an error inside a stream would have had; servers give it as `code`, or not
    at all.
    """
    code = error.get("code") if isinstance(error, Mapping) else None
    if code == "rate_limit_exceeded":
        return 429
    if code == "context_length_exceeded":
        return 400
    number = int(str(code)) if str(code).isdigit() else 0
    return number if 400 <= number < 600 else 500


def error_of(caller: Caller, refusal: Refusal, handle: str) -> LlmError:
    """Returns the error for a refusal, with advice."""
    # What a server says in earnest is short; the patterns take long over what is not.
    refusal = replace(refusal, message=refusal.message[:_LONGEST_READ])
    status, quote = refusal.status, _quote(refusal.message)
    codes = {refusal.kind, refusal.code}
    name = f"{caller.provider} ({status})"

    def make(cls: type[LlmError], sentence: str, *, retryable: bool | None = None, **sizes: int | None) -> LlmError:
        return cls(
            sentence,
            provider=caller.provider,
            handle=handle,
            status=status,
            retry_after=refusal.retry_after,
            retryable=retryable,
            **sizes,
        )

    if _is_about_the_key(refusal, codes):
        return make(LlmAuthentication, f"{name} refuses the key: {quote}. Check {caller.key_setting}.")
    if status == 402 or codes & _QUOTA_CODES or _QUOTA.search(refusal.message):
        advice = "Look at the plan and billing of that account."
        return make(LlmQuotaExhausted, f"{name}: the quota is used up: {quote}. {advice}")
    if status == 429:
        return make(LlmRateLimit, f"{name} limits the rate: {quote}. Try again later.")
    if codes & _OVERFLOW_CODES or (status < 500 and _OVERFLOW.search(refusal.message)):
        advice = "Send less, or choose a model with a larger window."
        sentence = f"{name}: the request does not fit the context window: {quote}. {advice}"
        limit, requested, output = sizes_in(refusal.message)
        return make(LlmContextOverflow, sentence, limit=limit, requested=requested, output=output)
    if status == 413:
        advice = "Send fewer or smaller images and messages."
        return make(LlmRequestTooLarge, f"{name}: the request has too many bytes: {quote}. {advice}")
    if codes & _MISWRITTEN_CODES:
        sentence = f"{name}: the model wrote a call or JSON that is none: {quote}. Try again."
        return make(LlmServerError, sentence)
    if status in (400, 404, 422) and (error := _of_what_it_lacks(make, name, refusal, quote)):
        return error
    if status == 404 or codes & _MODEL_CODES:
        advice = f"Is the model's name right, and {caller.url_setting} ({caller.endpoint})?"
        return make(ModelNotFound, f"{name} does not know what was asked for: {quote}. {advice}")
    if status in (408, 504):
        return make(LlmTimeout, f"{name} gave up waiting: {quote}. Try again.", retryable=True)
    if status >= 498 or status == 424:  # Groq's 498: no capacity; Bedrock's 424: the model behind it failed
        return make(LlmServerError, f"{name} failed: {quote}. Try again later.")
    return _of_a_bad_request(make, name, refusal, quote)


def _of_a_bad_request(make: Callable[..., LlmError], name: str, refusal: Refusal, quote: str) -> LlmError:
    if {refusal.kind, refusal.code} & _SCHEMA_CODES or _SCHEMA.search(refusal.message):
        advice = "Simplify the schema of that tool or response_format, or turn its strict mode off."
        return make(LlmSchemaRefused, f"{name} refuses a schema: {quote}. {advice}")
    return make(LlmBadRequest, f"{name} refuses the request: {quote}.")


def _of_what_it_lacks(make: Callable[..., LlmError], name: str, refusal: Refusal, quote: str) -> LlmError | None:
    """Returns the error for tools or images that a model does not take; routers say so as if there were no such
    model.
    """
    if _NO_TOOLS.search(refusal.message):
        advice = "Detach the agent's tools or choose another model."
        return make(LlmToolsUnsupported, f"{name}: the model takes no tools: {quote}. {advice}")
    if _NO_IMAGES.search(refusal.message):
        return make(LlmImagesUnsupported, f"{name}: the model takes no images: {quote}. Choose another model.")
    return None


def _is_about_the_key(refusal: Refusal, codes: set[str]) -> bool:
    """Some answer a wrong key as a plain 400, and an empty account or a prompt they dislike as 403."""
    if codes & _KEY_CODES or refusal.status == 401 or (refusal.status == 400 and _KEY.search(refusal.message)):
        return True
    others = (_QUOTA, _FLAGGED, _OVERFLOW)
    return (
        refusal.status == 403
        and not codes & _QUOTA_CODES
        and not any(pattern.search(refusal.message) for pattern in others)
    )


def wrong_count(provider: str, handle: str, *, vectors: int, texts: int) -> LlmError:
    """Returns the error for an embedding that has not a vector for each text."""
    message = f"{provider} returned {vectors} vectors for {texts} texts."
    return LlmEmptyResponse(message, provider=provider, handle=handle)


def sizes_in(message: str) -> tuple[int | None, int | None, int | None]:
    """Returns tokens as the message of an overflow says them, None where it does not: the window's limit, the input,
    and the output that was asked for beside it.
    """
    if match := _SUM.search(message):
        requested, output, limit = map(_number, match.groups())
        return limit, requested, output
    if match := _PARTS.search(message):
        requested, output = map(_number, match.groups())
        return _first_number(_LIMIT, message), requested, output
    return _first_number(_LIMIT, message), _first_number(_REQUESTED, message), None


def _first_number(pattern: re.Pattern[str], message: str) -> int | None:
    match = pattern.search(message)
    return None if match is None else next(_number(group) for group in match.groups() if group)


def _number(text: str) -> int:
    return int(text.replace(",", ""))


def _quote(message: str) -> str:
    text = " ".join(message.split()).rstrip(".") or "it gave no reason"
    return text if len(text) <= _LONGEST_QUOTE else f"{text[:_LONGEST_QUOTE]}..."


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Returns the seconds to wait by `retry-after-ms` or `retry-after` (seconds or a date, RFC 9110); None without
    either.
    """
    try:
        if milliseconds := headers.get("retry-after-ms"):
            return max(0.0, float(milliseconds) / 1000)
        value = headers.get("retry-after", "")
        if not value:
            return None
        if value.replace(".", "", 1).isdigit():
            return float(value)
        date = email.utils.parsedate_to_datetime(value)
        return max(0.0, date.timestamp() - time.time())
    except (OverflowError, ValueError):
        return None
