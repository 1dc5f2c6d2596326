"""HTTP to a provider through its vendor's SDK, the short way.

The SDK gives the client: authentication, proxies, connection pool, error classes. Bodies go in as bytes and
come out as bytes, because the SDK's models cost 0.14 ms per message and 0.1 ms per streamed chunk; retries
are ours (retry.py).
"""

from collections.abc import AsyncGenerator, Callable, Mapping
from types import ModuleType
from typing import Any

import httpx2
import orjson

from services.llm_gateway.errors import (
    LlmConnection,
    LlmError,
    LlmServerError,
    LlmStreamIncomplete,
    LlmTimeout,
)
from services.llm_gateway.providers.faults import Caller, Refusal, error_of, retry_after
from services.llm_gateway.sse import SseEvent, SseParser

_CONNECT_SECONDS = 10.0
_HEADERS = {"content-type": "application/json"}

# (HTTP status, decoded body) -> the refusal in it.
ReadRefusal = Callable[[int, Any], Refusal]


class Transport:
    """One SDK client and what its failures mean. `sdk` is the vendor's module, for its error classes."""

    def __init__(self, client: Any, sdk: ModuleType, caller: Caller, read_refusal: ReadRefusal) -> None:
        self._client = client
        self._sdk = sdk
        self._caller = caller
        self._read_refusal = read_refusal

    async def post(self, path: str, body: bytes, *, handle: str, patience: float) -> dict[str, Any]:
        """The JSON object of a whole reply; `patience` is the longest wait for it, in seconds."""
        try:
            response = await self._client.post(path, content=body, cast_to=httpx2.Response, options=_options(patience))
        except (self._sdk.APIError, httpx2.HTTPError) as error:
            raise self._explain(error, handle, patience) from error
        reply = self._decode(response, response.content, handle)
        if not isinstance(reply, dict):
            raise self._not_the_api(response, handle)
        return reply

    async def get(self, path: str, query: Mapping[str, object], *, timeout: float) -> Any:
        """The decoded JSON behind `path`."""
        options = {**_options(timeout), "params": query}
        try:
            response = await self._client.get(path, cast_to=httpx2.Response, options=options)
        except (self._sdk.APIError, httpx2.HTTPError) as error:
            raise self._explain(error, "", timeout) from error
        return self._decode(response, response.content, "")

    async def stream(self, path: str, body: bytes, *, handle: str, patience: float) -> AsyncGenerator[SseEvent, None]:
        """The events of a streamed reply; `patience` is the longest wait for the first byte and between
        chunks.

        Closing the generator closes the connection.
        """
        response = None
        try:
            response = await self._client.post(
                path, content=body, cast_to=httpx2.Response, options=_options(patience), stream=True
            )
            await self._check_is_stream(response, handle)
            parser = SseParser()
            async for chunk in response.aiter_bytes():
                for event in parser.feed(chunk):
                    yield event
            for event in parser.close():
                yield event
        except (self._sdk.APIError, httpx2.HTTPError) as error:
            raise self._explain(error, handle, patience) from error
        finally:
            if response is not None:
                await response.aclose()

    async def close(self) -> None:
        """Close the client's connections."""
        await self._client.close()

    def refused(self, status: int, body: Any, handle: str) -> LlmError:
        """The error for a refusal that came inside a stream."""
        return error_of(self._caller, self._read_refusal(status, body), handle)

    def incomplete(self, what: str, handle: str) -> LlmStreamIncomplete:
        """The error for a stream that broke off or made no sense."""
        return LlmStreamIncomplete(
            f"{self._caller.provider} {what}; the reply is incomplete. Try again.",
            provider=self._caller.provider,
            handle=handle,
        )

    def parse(self, data: bytes, handle: str) -> dict[str, Any]:
        """The JSON object of one event."""
        try:
            value = orjson.loads(data)
        except orjson.JSONDecodeError:
            value = None
        if not isinstance(value, dict):
            raise self.incomplete("sent an event that is not a JSON object", handle)
        return value

    async def _check_is_stream(self, response: httpx2.Response, handle: str) -> None:
        kind = response.headers.get("content-type", "")
        if kind.startswith("text/event-stream"):
            return
        content = await response.aread()
        if kind.startswith("application/json"):
            raise error_of(self._caller, self._read_refusal(502, self._decode(response, content, handle)), handle)
        raise self._not_the_api(response, handle)

    def _decode(self, response: httpx2.Response, content: bytes, handle: str) -> Any:
        try:
            return orjson.loads(content)
        except orjson.JSONDecodeError:
            raise self._not_the_api(response, handle) from None

    def _not_the_api(self, response: httpx2.Response, handle: str) -> LlmServerError:
        kind = response.headers.get("content-type", "no content type").partition(";")[0]
        caller = self._caller
        return LlmServerError(
            f"{caller.provider} answered {response.status_code} with {kind} that is not its API. "
            f"Is {caller.url_setting} ({caller.endpoint}) right?",
            provider=caller.provider,
            handle=handle,
            status=response.status_code,
            retryable=False,
        )

    def _explain(self, error: Exception, handle: str, patience: float) -> LlmError:
        caller = self._caller
        if isinstance(error, self._sdk.APIStatusError):
            refusal = self._read_refusal(error.status_code, error.body)
            wait = retry_after(error.response.headers)
            complete = Refusal(refusal.status, refusal.message, refusal.kind, refusal.code, wait)
            return error_of(caller, complete, handle)
        cause = error.__cause__ if isinstance(error, self._sdk.APIConnectionError) else error
        if isinstance(cause, httpx2.TimeoutException) and not isinstance(cause, httpx2.ConnectTimeout):
            return LlmTimeout(
                f"{caller.provider} sent nothing for {patience:g} s. Try again later.",
                provider=caller.provider,
                handle=handle,
            )
        if isinstance(cause, httpx2.ReadError | httpx2.RemoteProtocolError):
            return self.incomplete("closed the connection in the middle", handle)
        return LlmConnection(
            f"{caller.provider} cannot be reached at {caller.endpoint} ({_name(cause)}). "
            f"Check {caller.url_setting} and the network.",
            provider=caller.provider,
            handle=handle,
        )


def _options(patience: float) -> dict[str, Any]:
    timeout = httpx2.Timeout(patience, connect=min(patience, _CONNECT_SECONDS))
    return {"timeout": timeout, "max_retries": 0, "headers": _HEADERS}


def _name(cause: BaseException | None) -> str:
    return f"{type(cause).__name__}: {cause}" if str(cause or "") else type(cause).__name__
