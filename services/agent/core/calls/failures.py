"""From an error of a model call to what the run says of it. Pure."""

import re

from services.agent.core.facts import Failure, StopReason
from services.common.core.storable import storable
from services.common.errors import LociError, ResourceExhausted

# As providers speak of a picture that they cannot read, or that is too large.
_PICTURE = re.compile(r"image|picture|media_type|mime type", re.IGNORECASE)
# ErrorInfo.reason -> (stop reason, the reference's error_type)
_FAILURES = {
    "LLM_AUTHENTICATION": (StopReason.LLM_API_ERROR, "llm_authentication"),
    "LLM_RATE_LIMIT": (StopReason.LLM_API_ERROR, "llm_rate_limit"),
    "LLM_TIMEOUT": (StopReason.LLM_API_ERROR, "llm_timeout"),
    "LLM_BAD_REQUEST": (StopReason.LLM_API_ERROR, "llm_bad_request"),
    "LLM_BUDGET_EXHAUSTED": (StopReason.INSUFFICIENT_CREDITS, "llm_insufficient_credits"),
    "LLM_CONTEXT_OVERFLOW": (StopReason.LLM_API_ERROR, "llm_bad_request"),
    "LLM_IMAGES_UNSUPPORTED": (StopReason.LLM_API_ERROR, "llm_bad_request"),
    "LLM_QUOTA_EXHAUSTED": (StopReason.LLM_API_ERROR, "llm_insufficient_credits"),
    "LLM_REQUEST_TOO_LARGE": (StopReason.LLM_API_ERROR, "llm_bad_request"),
    "LLM_SCHEMA_REFUSED": (StopReason.LLM_API_ERROR, "llm_bad_request"),
    "LLM_STREAM_MALFORMED": (StopReason.INVALID_LLM_RESPONSE, "stream_incomplete"),
    "LLM_TOOLS_UNSUPPORTED": (StopReason.LLM_API_ERROR, "llm_bad_request"),
    "LLM_EMPTY_RESPONSE": (StopReason.INVALID_LLM_RESPONSE, "llm_empty_response"),
    "LLM_STREAM_INCOMPLETE": (StopReason.INVALID_LLM_RESPONSE, "stream_incomplete"),
    "MODEL_NOT_FOUND": (StopReason.LLM_API_ERROR, "llm_not_found"),
}


def failure_of(error: LociError) -> Failure:
    """Returns what the run says of a failed model call."""
    of_the_model = error.reason.startswith(("LLM_", "MODEL_"))
    unlisted = (StopReason.LLM_API_ERROR, "llm_error") if of_the_model else (StopReason.ERROR, "internal_error")
    stop_reason, error_type = _FAILURES.get(error.reason, unlisted)
    detail = ", ".join(f"{name}={value}" for name, value in sorted(error.metadata.items()))
    return Failure(stop_reason, error_type, storable(error.message), storable(detail), error.reason)


def overflows(error: LociError) -> bool:
    """Returns whether what was sent is too much for the model's window."""
    return error.reason in ("LLM_CONTEXT_OVERFLOW", "LLM_REQUEST_TOO_LARGE")


def is_blind(error: LociError) -> bool:
    """Returns whether the model takes no pictures."""
    return error.reason == "LLM_IMAGES_UNSUPPORTED"


def refuses_pictures(error: LociError) -> bool:
    """Returns whether a provider refuses what it was sent because of a picture in it."""
    return is_blind(error) or (error.reason == "LLM_BAD_REQUEST" and _PICTURE.search(error.message) is not None)


def refuses_history(error: LociError) -> bool:
    """Returns whether another history may do: this one is too long or heavy, or holds parts that the model refuses."""
    if isinstance(error, ResourceExhausted):
        # A rate limit has an LLM_ reason; without one it is the size of the message.
        return not error.reason.startswith("LLM_")
    return overflows(error) or is_blind(error) or error.reason == "LLM_BAD_REQUEST"
