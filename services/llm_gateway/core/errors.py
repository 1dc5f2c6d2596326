"""Errors of providers, of our own making: each has a reason, a gRPC status and advice.

`retryable` says whether the same call may succeed a moment later. Messages quote the provider, never the
prompt.
"""

from typing import ClassVar

from services.common.errors import (
    Aborted,
    AlreadyExists,
    DataLoss,
    DeadlineExceeded,
    FailedPrecondition,
    InvalidArgument,
    LociError,
    NotFound,
    OutOfRange,
    PermissionDenied,
    ResourceExhausted,
    Unavailable,
)


class LlmError(LociError):
    """A failed model call. `status` is the provider's HTTP status, `retry_after` the seconds it asks to
    wait; `limit`, `requested` and `output` are tokens, of an overflow whose size is known: the window, the
    input, and what was wanted beside it.
    """

    reason_name: ClassVar[str]
    # A trace of the call may be among it (trace.py).
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
    """Too many requests or tokens at this moment."""

    reason_name = "LLM_RATE_LIMIT"
    retryable_by_default = True


class LlmTimeout(LlmError, DeadlineExceeded):
    """The provider sent nothing for too long."""

    reason_name = "LLM_TIMEOUT"


class LlmContextOverflow(LlmError, OutOfRange):
    """The request does not fit the model's context window."""

    reason_name = "LLM_CONTEXT_OVERFLOW"


class LlmBadRequest(LlmError, InvalidArgument):
    """The provider, or we on its behalf, refuse the request."""

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


class LlmStreamMalformed(LlmError, DataLoss):
    """The stream is not what its protocol says."""

    reason_name = "LLM_STREAM_MALFORMED"
    retryable_by_default = True


class LlmQuotaExhausted(LlmError, ResourceExhausted):
    """The account at the provider has no quota or credit left."""

    reason_name = "LLM_QUOTA_EXHAUSTED"


class LlmToolsUnsupported(LlmError, InvalidArgument):
    """Tools for a model that takes none."""

    reason_name = "LLM_TOOLS_UNSUPPORTED"


class LlmImagesUnsupported(LlmError, InvalidArgument):
    """Images for a model that takes none."""

    reason_name = "LLM_IMAGES_UNSUPPORTED"


class LlmSchemaRefused(LlmError, InvalidArgument):
    """The provider refuses the schema of a tool or of the reply."""

    reason_name = "LLM_SCHEMA_REFUSED"


class LlmRequestTooLarge(LlmError, OutOfRange):
    """More bytes than the provider takes."""

    reason_name = "LLM_REQUEST_TOO_LARGE"


class LlmNotAnApi(LlmError, FailedPrecondition):
    """The server at the base URL does not speak the provider's API."""

    reason_name = "LLM_NOT_AN_API"


class LlmCircuitOpen(LlmError, Unavailable):
    """The endpoint failed again and again, and is left alone for a while."""

    reason_name = "LLM_CIRCUIT_OPEN"


class LlmQueueFull(LlmError, Unavailable):
    """Too many calls wait for this provider."""

    reason_name = "LLM_QUEUE_FULL"


class LlmBudgetExhausted(LlmError, ResourceExhausted):
    """The tenant's budget is spent."""

    reason_name = "LLM_BUDGET_EXHAUSTED"


class LlmSdkMissing(LlmError, FailedPrecondition):
    """The vendor's SDK is not installed."""

    reason_name = "LLM_SDK_MISSING"


class LlmReplayMissing(LlmError, FailedPrecondition):
    """The recording does not hold this call."""

    reason_name = "LLM_REPLAY_MISSING"


class ModelNotFound(LlmError, NotFound):
    """No such handle."""

    reason_name = "MODEL_NOT_FOUND"


class EmbeddingNotFound(ModelNotFound):
    """No such handle of an embedding model."""

    reason_name = "EMBEDDING_NOT_FOUND"


class ModelWindowUnknown(LlmError, FailedPrecondition):
    """Nobody says how large the model's context window is."""

    reason_name = "MODEL_WINDOW_UNKNOWN"


class ForwardNotPermitted(LlmError, PermissionDenied):
    """This part of the operator's account at a vendor is not for tenants."""

    reason_name = "FORWARD_NOT_PERMITTED"


class ProviderNotFound(LlmError, NotFound):
    """No such provider of this tenant."""

    reason_name = "PROVIDER_NOT_FOUND"


class ProviderNameTaken(LlmError, AlreadyExists):
    """The tenant or the operator has a provider of this name."""

    reason_name = "PROVIDER_NAME_TAKEN"


class ProviderInvalid(LlmError, InvalidArgument):
    """A provider's name, type, base URL, key or option is wrong."""

    reason_name = "PROVIDER_INVALID"


class ProviderChanged(LlmError, Aborted):
    """The provider was changed meanwhile."""

    reason_name = "PROVIDER_CHANGED"


class ProviderReadOnly(LlmError, FailedPrecondition):
    """The provider is the operator's."""

    reason_name = "PROVIDER_READ_ONLY"


class CredentialsUnreadable(LlmError, FailedPrecondition):
    """Stored credentials were encrypted with another key."""

    reason_name = "CREDENTIALS_UNREADABLE"


class BudgetInvalid(LlmError, InvalidArgument):
    """A budget without a limit, or with one that is not above zero."""

    reason_name = "BUDGET_INVALID"


class BudgetNotFound(LlmError, NotFound):
    """The tenant has no budget of this period."""

    reason_name = "BUDGET_NOT_FOUND"


class UsageQueryInvalid(LlmError, InvalidArgument):
    """A usage report of an impossible span or grouping."""

    reason_name = "USAGE_QUERY_INVALID"
