"""The SDK's HTTP on our own way out: checked addresses, bounded answers, failures told to who waits for them.

The SDK speaks httpx2. A request that fails below the protocol is answered here with 202 ("accepted, nothing follows"),
by which the SDK's transports live on, and its failure goes to `watch.PendingRequests`.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator, Mapping

import httpx
import httpx2

from services.common.core.private_hosts import Private
from services.common.safe_http import SafeTransport
from services.tool_runner.mcp.pending import PendingRequests, id_in
from services.tool_runner.mcp.protocol.bearer import Bearer
from services.tool_runner.mcp.protocol.errors import Kind, McpProblem
from services.tool_runner.mcp.throttle import Throttle, too_much

MOST_BODY = 16 * 1024 * 1024
# Of one stream of events, in all.
MOST_STREAM = 256 * 1024 * 1024
MOST_EVENT = MOST_BODY
_MOST_PLAIN = 1024 * 1024
_QUOTE_CHARS = 300
_NOTIFYING = 5.0
_SESSION = "mcp-session-id"


class OutwardMcp(httpx2.AsyncBaseTransport):
    """Requests of one session with one server. Raises nothing for a request of the protocol.

    `reads_events`: whether the answer to the first GET is the session itself (the older transport).
    """

    def __init__(
        self,
        watch: PendingRequests,
        bearer: Bearer,
        *,
        allow_private: Private,
        seconds: float,
        reads_events: bool,
        trusted: ssl.SSLContext | None = None,
    ) -> None:
        self._watch = watch
        self._bearer = bearer
        self._seconds = seconds
        self._reads_events = reads_events
        self._inner = SafeTransport(allow_private=allow_private, trusted=trusted)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        content = await request.aread()
        # The SDK sends nothing else until a notification is taken, and ends no session before it took leave.
        waited_for = request.method == "GET" or (request.method == "POST" and id_in(content) is not None)
        longest = None if waited_for else _NOTIFYING
        try:
            async with asyncio.timeout(longest):
                return await self._read_answer(request, content)
        except McpProblem as problem:
            return self._fail(request, content, problem)
        except TimeoutError:
            return httpx2.Response(202, request=request)

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def _read_answer(self, request: httpx2.Request, content: bytes) -> httpx2.Response:
        token = await self._bearer.token()
        response = await self._send(request, content, token)
        # One that was refused did nothing.
        if response.status_code == 401 and token and (other := await self._bearer.renew_after(token)):
            await response.aclose()
            response = await self._send(request, content, other)
        return await self._read(request, response)

    async def _send(self, request: httpx2.Request, content: bytes, token: str) -> httpx.Response:
        headers = [(name, value) for name, value in request.headers.multi_items() if name != "accept-encoding"]
        if token:
            headers = [(name, value) for name, value in headers if name != "authorization"]
            headers.append(("authorization", f"Bearer {token}"))
        # What is packed could unpack to anything.
        headers.append(("accept-encoding", "identity"))
        outgoing = httpx.Request(
            request.method,
            str(request.url),
            headers=headers,
            content=content,
            extensions={"timeout": request.extensions.get("timeout", {})},
        )
        return await send(self._inner, outgoing)

    async def _read(self, request: httpx2.Request, response: httpx.Response) -> httpx2.Response:
        """Returns it with its body, or with a stream of events that is still to come. Raises McpProblem."""
        headers = {name: value for name, value in response.headers.items() if name not in _FRAMING}
        streams = response.headers.get("content-type", "").lower().startswith("text/event-stream")
        if response.status_code == 200 and streams and "content-encoding" not in response.headers:
            return httpx2.Response(200, headers=headers, stream=_Events(response), request=request)
        try:
            async with asyncio.timeout(self._seconds):
                body = await read_body(response, MOST_BODY)
        except TimeoutError:
            raise McpProblem(Kind.TIMEOUT, "the MCP server did not end its answer in time", arrived=True) from None
        _judge(request, response, body)
        return httpx2.Response(response.status_code, headers=headers, content=body, request=request)

    def _fail(self, request: httpx2.Request, content: bytes, problem: McpProblem) -> httpx2.Response:
        if request.method == "POST":
            self._watch.fail(content, problem)
            return httpx2.Response(202, request=request)
        if request.method == "GET" and self._reads_events:
            self._watch.end(problem)
        # "Not offered", which ends what the SDK tries on the side.
        return httpx2.Response(405, request=request)


_FRAMING = frozenset({"content-length", "content-encoding", "transfer-encoding", "connection"})


async def send(transport: httpx.AsyncBaseTransport, request: httpx.Request) -> httpx.Response:
    """Returns the answer, its body unread. Raises McpProblem."""
    try:
        return await transport.handle_async_request(request)
    except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout) as error:
        raise McpProblem(Kind.UNREACHABLE, f"the MCP server cannot be reached: {_words(error)}", fresh=True) from None
    except httpx.TimeoutException:
        raise McpProblem(Kind.TIMEOUT, "the MCP server did not answer in time", arrived=True) from None
    except (httpx.HTTPError, httpx.StreamError, OSError) as error:
        raise _broken_connection(error) from None


async def read_body(response: httpx.Response, most: int) -> bytes:
    """Returns the whole body of an answer that is not packed. Raises McpProblem."""
    try:
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            raise McpProblem(Kind.FAILED, "the MCP server packed its answer, which it was asked not to", arrived=True)
        body = bytearray()
        async for chunk in response.aiter_raw():
            body += chunk
            if len(body) > most:
                raise too_much(most)
        return bytes(body)
    except httpx.TimeoutException:
        raise McpProblem(Kind.TIMEOUT, "the MCP server stopped in the middle of its answer", arrived=True) from None
    except (httpx.HTTPError, httpx.StreamError, OSError) as error:
        raise _broken_connection(error) from None
    finally:
        await response.aclose()


def _judge(request: httpx2.Request, response: httpx.Response, body: bytes) -> None:
    """Raises McpProblem for an answer of HTTP that is none of the protocol."""
    status = response.status_code
    if status < 400 or (request.method == "GET" and status == 405):
        return
    if status == 401:
        raise McpProblem(
            Kind.OAUTH_REQUIRED,
            f"the MCP server refused the credentials, or wants some (HTTP 401){_body_text(body)}",
            challenge=response.headers.get("www-authenticate", ""),
        )
    if _SESSION in request.headers and _session_is_gone(status, body):
        raise McpProblem(Kind.FAILED, "the MCP server no longer knows the session", fresh=True)
    if not _is_message(response):
        # Who answers 4xx says that it did nothing; a gateway that answers 5xx does not know.
        raise McpProblem(Kind.FAILED, f"the MCP server answered HTTP {status}{_body_text(body)}", arrived=status >= 500)


def _session_is_gone(status: int, body: bytes) -> bool:
    # By the protocol it is 404; servers made after the TypeScript SDK's examples say 400 and why.
    return status == 404 or (status == 400 and b"session" in body.lower())


def _is_message(response: httpx.Response) -> bool:
    return str(response.headers.get("content-type", "")).lower().startswith("application/json")


class _Events(httpx2.AsyncByteStream):
    """A stream of events, at a bounded rate."""

    def __init__(self, response: httpx.Response) -> None:
        self._response = response
        self._throttle = Throttle(MOST_STREAM)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for chunk in self._response.aiter_raw():
                await self._throttle.wait_for_bytes(chunk)
                yield chunk
        except (McpProblem, httpx.HTTPError, httpx.StreamError, OSError) as error:
            raise httpx2.ReadError(str(error)) from None

    async def aclose(self) -> None:
        await self._response.aclose()


def _broken_connection(error: Exception) -> McpProblem:
    text = f"the connection to the MCP server broke: {_words(error)}"
    return McpProblem(Kind.UNREACHABLE, text, arrived=True, fresh=True)


def _words(error: Exception) -> str:
    return str(error)[:_QUOTE_CHARS] or type(error).__name__


def _body_text(body: bytes) -> str:
    text = body[:_QUOTE_CHARS].decode("utf-8", "replace").strip()
    printable = "".join(character if character.isprintable() else " " for character in text)
    return f": {printable}" if printable and not printable.startswith("<") else ""


def mcp_client(transport: httpx2.AsyncBaseTransport, headers: Mapping[str, str], connect: float) -> httpx2.AsyncClient:
    """Returns the SDK's client on such a transport. Reading takes as long as whoever waits."""
    timeout = httpx2.Timeout(connect, read=None)
    return httpx2.AsyncClient(transport=transport, headers=dict(headers), timeout=timeout, trust_env=False)


class OutwardPlain(httpx2.AsyncBaseTransport):
    """Requests to authorization servers: whole, small answers. Raises McpProblem."""

    def __init__(self, *, allow_private: Private, seconds: float) -> None:
        self._inner = SafeTransport(allow_private=allow_private)
        self._seconds = seconds

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        headers = [(name, value) for name, value in request.headers.multi_items() if name != "accept-encoding"]
        headers.append(("accept-encoding", "identity"))
        content = await request.aread()
        outgoing = httpx.Request(request.method, str(request.url), headers=headers, content=content)
        try:
            async with asyncio.timeout(self._seconds):
                response = await send(self._inner, outgoing)
                body = await read_body(response, _MOST_PLAIN)
        except TimeoutError:
            host = request.url.host
            raise McpProblem(Kind.TIMEOUT, f"{host} did not answer within {self._seconds:g} s") from None
        kept = {name: value for name, value in response.headers.items() if name not in _FRAMING}
        return httpx2.Response(response.status_code, headers=kept, content=body, request=request)

    async def aclose(self) -> None:
        await self._inner.aclose()


def plain_client(*, allow_private: Private, seconds: float) -> httpx2.AsyncClient:
    """Returns a client for authorization servers."""
    transport = OutwardPlain(allow_private=allow_private, seconds=seconds)
    return httpx2.AsyncClient(transport=transport, trust_env=False, max_redirects=5)
