"""Errors of an endpoint: what failures of HTTP and of its replies mean for the caller."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import httpx2

from services.common.core.json_text import parse_json
from services.llm_gateway.core.errors import (
    LlmConnection,
    LlmError,
    LlmNotAnApi,
    LlmStreamIncomplete,
    LlmStreamMalformed,
    LlmTimeout,
)
from services.llm_gateway.core.refusals import Caller, Refusal, error_of, retry_after
from services.llm_gateway.http.client import BrokenHttp

# (HTTP status, decoded body) -> the refusal in it.
ReadRefusal = Callable[[int, Any], Refusal]


class EndpointErrors:
    """Makes the errors of one endpoint. `read_refusal` reads its error bodies."""

    def __init__(self, caller: Caller, read_refusal: ReadRefusal) -> None:
        self._caller = caller
        self._read_refusal = read_refusal

    def refusal(self, status: int, body: Any, handle: str) -> LlmError:
        """Returns the error for a refusal that came inside a stream."""
        return error_of(self._caller, self._read_refusal(status, body), handle)

    def incomplete(self, what: str, handle: str) -> LlmStreamIncomplete:
        """Returns the error for a reply that broke off."""
        return LlmStreamIncomplete(
            f"{self._caller.provider} {what}; the reply is incomplete. Try again.",
            provider=self._caller.provider,
            handle=handle,
        )

    def silence(self, patience: float, handle: str) -> LlmTimeout:
        """Returns the error for a provider that sent nothing for so many seconds."""
        name = self._caller.provider
        return LlmTimeout(f"{name} sent nothing for {patience:g} s. Try again later.", provider=name, handle=handle)

    def malformed(self, what: str, handle: str) -> LlmStreamMalformed:
        """Returns the error for a stream that makes no sense."""
        caller = self._caller
        return LlmStreamMalformed(
            f"{caller.provider} {what}. Is {caller.url_setting} ({caller.endpoint}) right? Try again.",
            provider=caller.provider,
            handle=handle,
        )

    def refusal_in(self, response: httpx2.Response, content: bytes, handle: str) -> LlmError:
        """Returns the error for a response that is no success."""
        try:
            body = parse_json(content)
        except ValueError:
            body = content.decode("utf-8", "replace")
        refusal, wait = self._read_refusal(response.status_code, body), retry_after(response.headers)
        return error_of(self._caller, refusal if wait is None else replace(refusal, retry_after=wait), handle)

    def not_the_api(self, response: httpx2.Response, handle: str) -> LlmNotAnApi:
        """Returns the error for an answer that is not the provider's API."""
        kind = response.headers.get("content-type", "no content type").partition(";")[0]
        caller = self._caller
        return LlmNotAnApi(
            f"{caller.provider} answered {response.status_code} with {kind} that is not its API. "
            f"Is {caller.url_setting} ({caller.endpoint}) right?",
            provider=caller.provider,
            handle=handle,
            status=response.status_code,
        )

    def redirect(self, response: httpx2.Response, handle: str) -> LlmNotAnApi:
        """Returns the error for a redirect: it is not followed, since the key was not meant for the server there."""
        caller, target = self._caller, response.headers["location"].partition("?")[0][:200]
        return LlmNotAnApi(
            f"{caller.provider} answered {response.status_code} and points to {target}, where the key is not sent. "
            f"If that is the API, {caller.url_setting} ({caller.endpoint}) should say so.",
            provider=caller.provider,
            handle=handle,
            status=response.status_code,
        )

    def of_http(self, error: Exception, handle: str, patience: float) -> LlmError:
        """Returns the error for a failure of HTTP."""
        caller = self._caller
        if isinstance(error, BrokenHttp):
            return LlmNotAnApi(
                f"What answers at {caller.endpoint} does not speak HTTP as it should ({type(error).__name__}). "
                f"Is {caller.url_setting} right?",
                provider=caller.provider,
                handle=handle,
            )
        if isinstance(error, httpx2.TimeoutException) and not isinstance(error, httpx2.ConnectTimeout):
            return self.silence(patience, handle)
        if isinstance(error, httpx2.ReadError | httpx2.RemoteProtocolError):
            return self.incomplete("closed the connection in the middle", handle)
        return LlmConnection(
            f"{caller.provider} cannot be reached at {caller.endpoint} ({_name(error)}). "
            f"Check {caller.url_setting} and the network.",
            provider=caller.provider,
            handle=handle,
        )


def _name(error: Exception) -> str:
    # Not the class beside it: below httpx2, whatever cannot be connected to is called a timeout.
    return str(error) or type(error).__name__
