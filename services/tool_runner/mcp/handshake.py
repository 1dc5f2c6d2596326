"""The beginning of the SDK's session, its request headers in each version of the protocol, and its end."""

from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any

import anyio
from mcp.client.session import ClientRequestContext, ClientSession
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import (
    MCP_METHOD_HEADER,
    MCP_NAME_HEADER,
    NAME_BEARING_METHODS,
    encode_header_value,
    find_invalid_x_mcp_header,
    mcp_param_headers,
    x_mcp_header_map,
)
from mcp.shared.message import SessionMessage
from mcp_types import (
    CLIENT_CAPABILITIES_META_KEY,
    CLIENT_INFO_META_KEY,
    CONNECTION_CLOSED,
    INVALID_REQUEST,
    PROTOCOL_VERSION_META_KEY,
    ElicitRequest,
    ErrorData,
    Implementation,
    InputRequest,
    InputResponse,
)

from services.tool_runner.mcp.protocol.results import unanswerable

JsonObject = dict[str, Any]
US = Implementation(name="loci", version="1")
# The SDK's own words for a session that ended under a request; servers use its number for other things, too.
_ENDED = ("Connection closed", "SSE stream ended", "SSE stream failed")


class Session(ClientSession):
    """The SDK's session. It offers no elicitation, and tells servers that ask all the same what to say to the model."""

    async def dispatch_input_request(
        self, ctx: ClientRequestContext, request: InputRequest
    ) -> InputResponse | ErrorData:
        """Answers a request of the server."""
        if isinstance(request, ElicitRequest):
            return ErrorData(code=INVALID_REQUEST, message=unanswerable(request.params.message))
        return await super().dispatch_input_request(ctx, request)


def has_ended(error: MCPError) -> bool:
    """Returns whether it is the SDK that says so: no answer can come."""
    return error.code == CONNECTION_CLOSED and error.message.startswith(_ENDED)


async def greet(session: ClientSession) -> str:
    """Returns the version that both speak: by a handshake, or, with servers that know none, by asking."""
    try:
        await session.initialize()
    except MCPError as error:
        if has_ended(error):
            raise
        try:
            await session.discover()
        except MCPError:
            raise error from None
    return session.protocol_version or ""


def introduction(version: str) -> JsonObject:
    info = US.model_dump(by_alias=True, mode="json", exclude_none=True)
    return {PROTOCOL_VERSION_META_KEY: version, CLIENT_INFO_META_KEY: info, CLIENT_CAPABILITIES_META_KEY: {}}


def routing(method: str, params: JsonObject, schema: Mapping[str, Any]) -> dict[str, str]:
    headers = {MCP_METHOD_HEADER: method}
    if name := NAME_BEARING_METHODS.get(method):
        headers[MCP_NAME_HEADER] = encode_header_value(params[name])
    if method == "tools/call" and find_invalid_x_mcp_header(schema) is None:
        headers |= mcp_param_headers(x_mcp_header_map(schema), params.get("arguments") or {})
    return headers


class NotedEnd:
    """A stream of the SDK that says when it ends: the SDK keeps that to itself."""

    def __init__(self, inner: Any, on_end: Callable[[], None]) -> None:
        self._inner = inner
        self._on_end = on_end

    @property
    def last_context(self) -> Any:
        return getattr(self._inner, "last_context", None)

    async def receive(self) -> SessionMessage | Exception:
        try:
            received: SessionMessage | Exception = await self._inner.receive()
        except (anyio.EndOfStream, anyio.ClosedResourceError):
            self._on_end()
            raise
        return received

    async def aclose(self) -> None:
        await self._inner.aclose()

    def __aiter__(self) -> "NotedEnd":
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> "NotedEnd":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()
