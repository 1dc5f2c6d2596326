"""The chain of handles that are asked one after another when one cannot answer. Pure.

A handle is left for the next where another can do better: it is down, busy, refuses the key, or is not there. A request
that would be refused everywhere (a bad schema) is not tried again, and a request that does not fit goes only where
there is more room.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from services.llm_gateway.core.chat import ChatRequest, FailedTry
from services.llm_gateway.core.errors import (
    CredentialsUnreadable,
    LlmAuthentication,
    LlmCircuitOpen,
    LlmConnection,
    LlmContextOverflow,
    LlmEmptyResponse,
    LlmError,
    LlmImagesUnsupported,
    LlmNotAnApi,
    LlmQueueFull,
    LlmQuotaExhausted,
    LlmRateLimit,
    LlmSdkMissing,
    LlmServerError,
    LlmStreamIncomplete,
    LlmStreamMalformed,
    LlmTimeout,
    LlmToolsUnsupported,
    ModelNotFound,
)
from services.llm_gateway.core.models import ChatModel

_ANOTHER_MAY = (
    CredentialsUnreadable,
    LlmAuthentication,
    LlmCircuitOpen,
    LlmConnection,
    LlmContextOverflow,
    LlmEmptyResponse,
    LlmImagesUnsupported,
    LlmNotAnApi,
    LlmQueueFull,
    LlmQuotaExhausted,
    LlmRateLimit,
    LlmSdkMissing,
    LlmServerError,
    LlmStreamIncomplete,
    LlmStreamMalformed,
    LlmTimeout,
    LlmToolsUnsupported,
    ModelNotFound,
)


class FallbackChain:
    """The handles of one request in the order in which they are asked, each once. `failed` are those that could not
    answer.
    """

    def __init__(self, request: ChatRequest, operators: Mapping[str, Sequence[str]]) -> None:
        chosen = request.fallbacks or operators.get(request.handle, ())
        self._request = request
        self._handles = list(dict.fromkeys((request.handle, *chosen)))
        self._window = 0
        self._first: LlmError | None = None
        self.failed: list[FailedTry] = []

    @property
    def handle(self) -> str:
        """Returns the handle that is asked now."""
        return self._handles[len(self.failed)]

    @property
    def is_last(self) -> bool:
        """Returns whether there is none after it."""
        return len(self.failed) + 1 == len(self._handles)

    def request_to(self, model: ChatModel) -> ChatRequest:
        """Returns the request as `model` is asked. Raises LlmContextOverflow where it has no more room than one before
        it, for which the request was too large.
        """
        if not self.failed:
            return self._request
        if self._window and (model.context_window or 0) <= self._window:
            raise LlmContextOverflow(
                f"The request did not fit {self._window} tokens, and the window of {model.handle} is no larger.",
                provider=model.provider_name,
                handle=model.handle,
                limit=model.context_window,
            )
        limit, most = self._request.max_output_tokens, model.max_output_tokens
        # The first model's own limit; another's may be lower.
        fitting = min(limit, most) if limit and most else limit
        return replace(self._request, handle=model.handle, max_output_tokens=fitting)

    def goes_on(self, error: LlmError, model: ChatModel | None, remaining: float | None) -> bool:
        """Returns whether the next handle is asked after this one's `error`; from then on it is `handle`."""
        self._first = self._first or error
        last = self.is_last
        self.failed.append(FailedTry(self.handle, error.reason, error.message))
        if isinstance(error, LlmContextOverflow):
            window = (model.context_window if model else None) or int(error.metadata.get("limit", 0))
            self._window = max(self._window, window)
        in_time = remaining is None or remaining > 0
        return not last and in_time and isinstance(error, _ANOTHER_MAY)

    def failure(self) -> LlmError:
        """Returns the error for the caller when none could answer: that of the handle it asked for, and which others
        were tried.
        """
        assert self._first is not None
        error, others = self._first, self.failed[1:]
        if others:
            tried = ", ".join(f"{one.handle} ({one.reason})" for one in others)
            error.message = f"{error.message} Its fallbacks could not answer either: {tried}."
            error.args = (error.message,)
            error.metadata["fallbacks"] = tried
        return error
