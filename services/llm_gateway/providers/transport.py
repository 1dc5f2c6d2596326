"""HTTP to a provider through its vendor's SDK, the short way.

The SDK says where to and how: address, authentication, headers, proxies, connection pool. What it says is read
once for each route; calls then go out on the SDK's own HTTP client as bytes and come back as bytes, because the
way through the SDK's request costs as much again as the call, its models 0.14 ms per message and 0.1 ms per
streamed chunk. Retries are ours (retry.py). Lists of models take the SDK's whole way.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Mapping
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import replace
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
from services.llm_gateway.providers.trace import Trace
from services.llm_gateway.sse import SseEvent, SseParser

_CONNECT_SECONDS = 10.0
_LINGER_SECONDS = 0.2
# People think longer than the SDKs' 5 s between two messages, and a new connection costs them a handshake. Where the
# server closes one earlier, a new one is made.
LIMITS = httpx2.Limits(max_connections=1_000, max_keepalive_connections=100, keepalive_expiry=60.0)

# (HTTP status, decoded body) -> the refusal in it.
ReadRefusal = Callable[[int, Any], Refusal]


class Transport:
    """One SDK client, the HTTP client it was given, and what its failures mean.

    `sdk` is the vendor's module, for its error classes.
    """

    def __init__(
        self, client: Any, http: httpx2.AsyncClient, sdk: ModuleType, caller: Caller, read_refusal: ReadRefusal
    ) -> None:
        self._client = client
        self._http = http
        self._sdk = sdk
        self._caller = caller
        self._read_refusal = read_refusal
        self._templates: dict[str, httpx2.Request] = {}
        self._draining: set[asyncio.Task[None]] = set()

    async def post(
        self, path: str, body: bytes, *, handle: str, patience: float, trace: Trace | None = None
    ) -> dict[str, Any]:
        """The JSON object of a whole reply; `patience` is the longest wait for it, in seconds."""
        async with self._sent(path, body, handle, patience, trace) as response:
            reply = self._decode(response, await _content(response, trace), handle)
        if not isinstance(reply, dict):
            raise self._not_the_api(response, handle)
        return reply

    async def get(self, path: str, query: Mapping[str, object], *, timeout: float) -> Any:
        """The decoded JSON behind `path`."""
        options = {"timeout": _timeout(timeout), "max_retries": 0, "params": query}
        try:
            response = await self._client.get(path, cast_to=httpx2.Response, options=options)
        except (self._sdk.APIError, httpx2.HTTPError) as error:
            raise self._explain(error, "", timeout) from error
        return self._decode(response, response.content, "")

    async def stream(
        self, path: str, body: bytes, *, handle: str, patience: float, trace: Trace | None = None
    ) -> AsyncGenerator[SseEvent, None]:
        """The events of a streamed reply; `patience` is the longest wait for the first byte and between
        chunks.

        Closing the generator closes the connection.
        """
        async with self._sent(path, body, handle, patience, trace) as response:
            await self._check_is_stream(response, handle, trace)
            parser = SseParser()
            async for chunk in _chunks(response):
                for event in parser.feed(chunk):
                    yield event
            for event in parser.close():
                yield event

    async def leave(self, events: AsyncGenerator[SseEvent, None], *, ended: bool) -> None:
        """Have done with a stream. Where its last event has come (`ended`), the end of its body is waited for in the
        background, for a moment: only a connection that was read to the end is used again, and a new one costs a
        handshake. Else its connection is closed.
        """
        if not ended:
            await events.aclose()
            return
        task = asyncio.create_task(_drain(events))
        self._draining.add(task)
        task.add_done_callback(self._draining.discard)

    async def close(self) -> None:
        """Close the client's connections."""
        await asyncio.gather(*self._draining)
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

    def parse(self, data: bytes, handle: str, trace: Trace | None = None) -> dict[str, Any]:
        """The JSON object of one event."""
        if trace is not None:
            trace.events.append(data)
        try:
            value = orjson.loads(data)
        except orjson.JSONDecodeError:
            value = None
        if not isinstance(value, dict):
            raise self.incomplete("sent an event that is not a JSON object", handle)
        return value

    @asynccontextmanager
    async def _sent(
        self, path: str, body: bytes, handle: str, patience: float, trace: Trace | None
    ) -> AsyncGenerator[httpx2.Response, None]:
        """The response to a POST once its head is there, closed at the end. Raises LlmError for a refusal, and for
        whatever HTTP fails while it is read.
        """
        response = None
        template = self._templates.get(path) or self._prepare(path)
        extensions = {"timeout": _timeout(patience).as_dict()}
        request = httpx2.Request("POST", template.url, headers=template.headers, content=body, extensions=extensions)
        try:
            response = await self._http.send(request, stream=True)
            if not response.is_success:
                raise self._refusal_in(response, await _content(response, trace), handle)
            yield response
        except httpx2.HTTPError as error:
            raise self._explain(error, handle, patience) from error
        finally:
            if response is not None:
                await response.aclose()

    def _prepare(self, path: str) -> httpx2.Request:
        """The SDK's own address and headers of a route, without a body."""
        client = self._client
        said = {**client.default_headers, **client.auth_headers}
        # What is left out on purpose is there as a value that is no text.
        headers = {name: value for name, value in said.items() if isinstance(value, str)}
        url = f"{str(client.base_url).rstrip('/')}{path}"
        template = self._http.build_request("POST", url, headers=headers)
        del template.headers["content-length"]
        self._templates[path] = template
        return template

    def _refusal_in(self, response: httpx2.Response, content: bytes, handle: str) -> LlmError:
        try:
            body = orjson.loads(content)
        except orjson.JSONDecodeError:
            body = content.decode("utf-8", "replace")
        return self._refused(response.status_code, body, response.headers, handle)

    def _refused(self, status: int, body: Any, headers: Mapping[str, str], handle: str) -> LlmError:
        refusal = replace(self._read_refusal(status, body), retry_after=retry_after(headers))
        return error_of(self._caller, refusal, handle)

    async def _check_is_stream(self, response: httpx2.Response, handle: str, trace: Trace | None) -> None:
        kind = response.headers.get("content-type", "")
        if kind.startswith("text/event-stream"):
            return
        content = await _content(response, trace)
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
            return self._refused(error.status_code, error.body, error.response.headers, handle)
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


def _chunks(response: httpx2.Response) -> AsyncIterable[bytes]:
    """The body as it comes. The response's own iterators cost more than all else that is done with a chunk."""
    if "content-encoding" in response.headers or not isinstance(response.stream, httpx2.AsyncByteStream):
        return response.aiter_bytes()
    return response.stream


async def _content(response: httpx2.Response, trace: Trace | None) -> bytes:
    content = b"".join([chunk async for chunk in _chunks(response)])
    if trace is not None:
        trace.response = content
    return content


async def _drain(events: AsyncGenerator[SseEvent, None]) -> None:
    with suppress(LlmError, TimeoutError):
        async with asyncio.timeout(_LINGER_SECONDS), aclosing(events):
            async for _ in events:
                pass


def _timeout(patience: float) -> httpx2.Timeout:
    return httpx2.Timeout(patience, connect=min(patience, _CONNECT_SECONDS))


def _name(cause: BaseException | None) -> str:
    return f"{type(cause).__name__}: {cause}" if str(cause or "") else type(cause).__name__
