"""HTTP to a provider, the short way.

`Routes` say where a request goes and with which headers, most often as the vendor's SDK would; calls go out on
our HTTP client as bytes and come back as bytes, because the way through an SDK's request costs as much again as the
call, its models 0.14 ms per message and 0.1 ms per streamed chunk. Retries are ours (retry.py).
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from typing import Any, Protocol, TypeVar

import httpx2

from services.common.core.json_text import parse_json, parse_pieces
from services.llm_gateway.core.errors import LlmError
from services.llm_gateway.core.refusals import Caller
from services.llm_gateway.core.trace import Trace
from services.llm_gateway.http.bodies import (
    MOST_LISTED,
    MOST_OF_LIST,
    MOST_OF_REPLY,
    MOST_OF_STREAM,
    beginning_of,
    chunks_of,
    content_of,
)
from services.llm_gateway.http.client import BrokenHttp
from services.llm_gateway.http.errors import EndpointErrors, ReadRefusal
from services.llm_gateway.http.routes import Routes

_CONNECT_SECONDS = 10.0
_LINGER_SECONDS = 0.2

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
OnHeaders = Callable[[Mapping[str, str]], None]


class Parser(Protocol[T_co]):
    """The parser of one streamed body: chunks become events."""

    # What the response's content type begins with.
    media_type: str

    def feed(self, chunk: bytes) -> Sequence[T_co]:
        """Returns the events that are complete with this chunk. Raises ValueError for bytes that are none."""
        ...

    def close(self) -> Sequence[T_co]:
        """Returns the events that the end of the body completes."""
        ...


class Transport:
    """An HTTP client, the routes of an endpoint, and what its failures mean."""

    def __init__(self, http: httpx2.AsyncClient, routes: Routes, caller: Caller, read_refusal: ReadRefusal) -> None:
        self._http = http
        self._routes = routes
        self.errors = EndpointErrors(caller, read_refusal)
        self._draining: set[asyncio.Task[None]] = set()

    async def post(
        self,
        path: str,
        body: bytes,
        *,
        handle: str,
        patience: float,
        trace: Trace | None = None,
        on_headers: OnHeaders | None = None,
    ) -> dict[str, Any]:
        """Returns the JSON object of a whole reply; `patience` is the longest wait for it, in seconds. `on_headers`
        gets the response's.
        """
        async with self._send("POST", path, body, handle, patience, trace, on_headers) as response:
            content = await self._content(response, trace, handle, MOST_OF_REPLY)
            reply = self._decode(response, content, handle, parse_pieces)
        if not isinstance(reply, dict):
            raise self.errors.not_the_api(response, handle)
        return reply

    async def get(self, path: str, query: Mapping[str, object], *, timeout: float) -> Any:
        """Returns the decoded JSON behind `path`."""
        if query:
            path = f"{path}?{httpx2.QueryParams({name: str(value) for name, value in query.items()})}"
        async with self._send("GET", path, b"", "", timeout, None) as response:
            reply = self._decode(response, await self._content(response, None, "", MOST_OF_LIST), "")
        for value in (reply, *(reply.values() if isinstance(reply, dict) else ())):
            if isinstance(value, list) and len(value) > MOST_LISTED:
                raise self.errors.malformed(f"sent a list of {len(value):,}, which is more than {MOST_LISTED:,}", "")
        return reply

    async def events(
        self,
        path: str,
        body: bytes,
        parser: Parser[T],
        *,
        handle: str,
        patience: float,
        trace: Trace | None = None,
        on_headers: OnHeaders | None = None,
    ) -> AsyncGenerator[T, None]:
        """Yields the events of a streamed reply as `parser` reads them; `patience` is the longest wait for the first
        byte and between chunks. `on_headers` gets the response's.

        Closing the generator closes the connection.
        """
        async with self._send("POST", path, body, handle, patience, trace, on_headers) as response:
            await self._check_is_stream(response, parser.media_type, handle, trace)
            size = 0
            try:
                async for chunk in chunks_of(response):
                    size += len(chunk)
                    if size > MOST_OF_STREAM:
                        raise ValueError(f"it is longer than {MOST_OF_STREAM:,} bytes")
                    for event in parser.feed(chunk):
                        yield event
                for event in parser.close():
                    yield event
            except ValueError as error:
                raise self.errors.malformed(f"sent a stream that breaks its protocol ({error})", handle) from error

    async def leave(self, events: AsyncGenerator[Any, None], *, ended: bool) -> None:
        """Leaves a stream. Where its last event has come (`ended`), the end of its body is awaited in the background,
        for a moment: only a connection that was read to the end is used again, and a new one costs a handshake. Else
        its connection is closed.
        """
        if not ended:
            await events.aclose()
            return
        task = asyncio.create_task(_drain(events))
        self._draining.add(task)
        task.add_done_callback(self._draining.discard)

    async def close(self) -> None:
        """Closes the client's connections."""
        await asyncio.gather(*self._draining)
        await self._http.aclose()

    def parse(self, data: bytes, handle: str, trace: Trace | None = None) -> dict[str, Any]:
        """Returns the JSON object of one event."""
        if trace is not None:
            trace.events.append(data)
        try:
            value = parse_pieces(data)
        except ValueError:
            value = None
        if not isinstance(value, dict):
            raise self.errors.malformed("sent an event that is not a JSON object", handle)
        return value

    @asynccontextmanager
    async def _send(
        self,
        method: str,
        path: str,
        body: bytes,
        handle: str,
        patience: float,
        trace: Trace | None,
        on_headers: OnHeaders | None = None,
    ) -> AsyncGenerator[httpx2.Response, None]:
        """Yields the response to a request once its head is there, closed at the end. Raises LlmError for a refusal,
        and for failures of HTTP while it is read.
        """
        response = None
        route = await self._routes.find(method, path, body)
        extensions = {"timeout": _timeout(patience).as_dict()}
        request = httpx2.Request(method, route.url, headers=route.headers, content=body or None, extensions=extensions)
        try:
            response = await self._http.send(request, stream=True)
            if response.has_redirect_location:
                raise self.errors.redirect(response, handle)
            if not response.is_success:
                content = await beginning_of(response)
                if trace is not None:
                    trace.response = content
                raise self.errors.refusal_in(response, content, handle)
            if on_headers is not None:
                on_headers(response.headers)
            yield response
        except (httpx2.HTTPError, OSError, BrokenHttp) as error:
            raise self.errors.of_http(error, handle, patience) from error
        finally:
            if response is not None:
                await response.aclose()

    async def _check_is_stream(
        self, response: httpx2.Response, media_type: str, handle: str, trace: Trace | None
    ) -> None:
        kind = response.headers.get("content-type", "")
        if kind.startswith(media_type):
            return
        content = await beginning_of(response)
        if trace is not None:
            trace.response = content
        if kind.startswith("application/json"):
            raise self.errors.refusal(502, self._decode(response, content, handle), handle)
        raise self.errors.not_the_api(response, handle)

    async def _content(self, response: httpx2.Response, trace: Trace | None, handle: str, most: int) -> bytes:
        try:
            content = await content_of(response, most)
        except ValueError as error:
            raise self.errors.malformed(f"sent a reply that cannot be read ({error})", handle) from error
        if trace is not None:
            trace.response = content
        return content

    def _decode(
        self, response: httpx2.Response, content: bytes, handle: str, parse: Callable[[bytes], Any] = parse_json
    ) -> Any:
        """Returns the JSON; `parse` keeps halves of characters where a reader joins them."""
        try:
            return parse(content)
        except ValueError:
            raise self.errors.not_the_api(response, handle) from None


async def _drain(events: AsyncGenerator[Any, None]) -> None:
    with suppress(LlmError, TimeoutError):
        async with asyncio.timeout(_LINGER_SECONDS), aclosing(events):
            async for _ in events:
                pass


def _timeout(patience: float) -> httpx2.Timeout:
    return httpx2.Timeout(patience, connect=min(patience, _CONNECT_SECONDS))
