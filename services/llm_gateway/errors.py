"""What can go wrong with a provider, as errors of our own: each has a reason, a gRPC status and advice.

`retryable` says whether the same call may succeed a moment later. Messages quote the provider, never the
prompt.
"""

from typing import ClassVar

from services.common.errors import (
    DataLoss,
    DeadlineExceeded,
    FailedPrecondition,
    InvalidArgument,
    LociError,
    NotFound,
    OutOfRange,
    ResourceExhausted,
    Unavailable,
)


class LlmError(LociError):
    """A failed model call. `status` is the provider's HTTP status, `retry_after` the seconds it asks to
    wait; `limit`, `requested` and `output` are tokens, of an overflow whose size is known: the window, the
    input, and what was wanted beside it.
    """

    reason_name: ClassVar[str]
    # A trace of the call may be among it (providers/trace.py).
    longest_value = 4_096
    retryable_by_default: ClassVar[bool] = False

    def __init__(
        self,
        message: str,
        *,
        provider: str = "",
        handle: str = "",
        status: int | None = None,
        retry_after: float | None = None,
        retryable: bool | None = None,
        limit: int | None = None,
        requested: int | None = None,
        output: int | None = None,
    ) -> None:
        numbers = {"status": status, "limit": limit, "requested": requested, "output": output}
        texts = {name: str(number) for name, number in numbers.items() if number is not None}
        metadata = {"provider": provider, "handle": handle, **texts}
        super().__init__(
            message, reason=self.reason_name, metadata={name: value for name, value in metadata.items() if value}
        )
        self.retry_after = retry_after
        self.retryable = self.retryable_by_default if retryable is None else retryable


class LlmAuthentication(LlmError, FailedPrecondition):
    """The provider refuses the key."""

    reason_name = "LLM_AUTHENTICATION"


class LlmRateLimit(LlmError, ResourceExhausted):
    """Too many requests or tokens, or a quota that is used up (then not retryable)."""

    reason_name = "LLM_RATE_LIMIT"
    retryable_by_default = True


class LlmTimeout(LlmError, DeadlineExceeded):
    """The provider sent nothing for too long."""

    reason_name = "LLM_TIMEOUT"


class LlmContextOverflow(LlmError, OutOfRange):
    """The request does not fit the model's context window."""

    reason_name = "LLM_CONTEXT_OVERFLOW"


class LlmBadRequest(LlmError, InvalidArgument):
    """The provider, or we on its behalf, refuse what was asked."""

    reason_name = "LLM_BAD_REQUEST"


class LlmServerError(LlmError, Unavailable):
    """The provider failed or is overloaded."""

    reason_name = "LLM_SERVER_ERROR"
    retryable_by_default = True


class LlmConnection(LlmError, Unavailable):
    """The provider cannot be reached."""

    reason_name = "LLM_CONNECTION"
    retryable_by_default = True


class LlmEmptyResponse(LlmError, DataLoss):
    """The provider answered without an answer."""

    reason_name = "LLM_EMPTY_RESPONSE"


class LlmStreamIncomplete(LlmError, DataLoss):
    """The stream broke off before its end."""

    reason_name = "LLM_STREAM_INCOMPLETE"
    retryable_by_default = True


class ModelNotFound(LlmError, NotFound):
    """No such handle."""

    reason_name = "MODEL_NOT_FOUND"


class ModelWindowUnknown(LlmError, FailedPrecondition):
    """Nobody says how large the model's context window is."""

    reason_name = "MODEL_WINDOW_UNKNOWN"
