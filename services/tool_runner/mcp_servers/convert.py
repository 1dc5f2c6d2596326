"""MCP servers: Protobuf to plain values and back."""

from collections.abc import Sequence
from dataclasses import fields
from typing import Any
from uuid import UUID

from loci.tool.v1 import mcp_pb2 as mcp_pb
from loci.tool.v1 import mcp_service_pb2 as service_pb
from services.common.codec import Codec
from services.common.core.refusals import Refused
from services.common.errors import InvalidArgument
from services.common.ids import from_public, uuid7
from services.tool_runner.core.schemas.json_fields import json_object
from services.tool_runner.mcp_servers import masks
from services.tool_runner.mcp_servers.connect import ConnectEvent
from services.tool_runner.mcp_servers.model import INVALID, Http, Kind, Server, Stdio, Transport
from services.tool_runner.mcp_servers.service import TransportChange
from services.tool_runner.tools.convert import tool_message

_SERVERS = Codec(Server, mcp_pb.McpServer, leave=("transport", "tool_problems"))
# Fields of the transports by their names in `servers`.
_HTTP = {
    "server_url": "url",
    "auth_header": "auth_header",
    "auth_token": "auth_token",
    "custom_headers": "headers",
}
_STDIO = {"command": "command", "args": "args", "env": "env", "network_json": "network", "paths": "paths"}
# What a server that is only tried is called.
_TRIED = "mcp"


def server_id(text: str) -> UUID:
    """Returns the UUID of `mcp_server-<uuid>`."""
    return from_public("mcp_server", text)


def new_server(request: service_pb.CreateMcpServerRequest) -> Server:
    """Raises InvalidArgument, Refused."""
    return Server(
        id=server_id(request.id) if request.id else uuid7(),
        name=request.name,
        transport=transport(request.transport),
        metadata=json_object(request.metadata_json or "{}", "metadata"),
    )


def unsaved_server(message: mcp_pb.McpTransport, name: str = "") -> Server:
    """Returns a server that is not stored. Raises Refused."""
    return Server(id=uuid7(), name=name or _TRIED, transport=transport(message))


def transport(message: mcp_pb.McpTransport) -> Transport:
    """Raises Refused."""
    kind, fields = _transport_of(message)
    names = _STDIO if kind is Kind.STDIO else _HTTP
    values = {ours: _plain(getattr(fields, theirs)) for theirs, ours in names.items()}
    return Stdio(**values) if kind is Kind.STDIO else Http(kind=kind, **values)


def change(request: service_pb.UpdateMcpServerRequest) -> tuple[str | None, TransportChange | None]:
    """Returns the new name, and what changes of the transport. Raises InvalidArgument, Refused."""
    paths = list(request.update_mask.paths)
    name = request.name if "name" in paths else None
    transport_paths = [path for path in paths if path != "name"]
    if not transport_paths:
        return name, None
    kind, fields = _transport_of(request.transport)
    names = _STDIO if kind is Kind.STDIO else _HTTP
    chosen = _changed_fields(transport_paths, names, [field.name for field, _ in fields.ListFields()])
    return name, TransportChange(kind, {names[field]: _plain(getattr(fields, field)) for field in chosen})


def _changed_fields(paths: Sequence[str], known: dict[str, str], set_fields: Sequence[str]) -> list[str]:
    chosen = dict.fromkeys(set_fields if "transport" in paths else ())
    for path in paths:
        field = path.removeprefix("transport.")
        if path != "transport" and (field == path or field not in known):
            raise InvalidArgument(f"an MCP server has no field {path!r} to update", reason="UPDATE_MASK_INVALID")
        if path != "transport":
            chosen[field] = None
    return list(chosen)


def _transport_of(
    message: mcp_pb.McpTransport,
) -> tuple[Kind, mcp_pb.HttpMcpTransport | mcp_pb.StdioMcpTransport]:
    which = message.WhichOneof("transport")
    if which is None:
        raise Refused(INVALID, "transport: say how the server is reached: streamable_http, sse or stdio")
    return Kind(which), getattr(message, which)


def _plain(value: Any) -> Any:
    if isinstance(value, str):
        return value
    return dict(value) if hasattr(value, "items") else tuple(value)


def transport_message(transport: Transport, *, show_secrets: bool = False) -> mcp_pb.McpTransport:
    """Returns the transport; its secrets are masked if nothing else is said."""
    visible = transport if show_secrets else masks.mask(transport)
    names = _STDIO if isinstance(visible, Stdio) else _HTTP
    field_names = {field.name for field in fields(visible)}
    values = {theirs: getattr(visible, ours) for theirs, ours in names.items() if ours in field_names}
    kind: Any = mcp_pb.StdioMcpTransport if isinstance(visible, Stdio) else mcp_pb.HttpMcpTransport
    return mcp_pb.McpTransport(**{visible.kind.value: kind(**values)})


def server_message(server: Server, *, show_secrets: bool = False) -> mcp_pb.McpServer:
    """Returns a stored server; see `transport_message`."""
    return _SERVERS.encode(
        server,
        transport=transport_message(server.transport, show_secrets=show_secrets),
        tool_problems=problem_messages(server.tool_problems),
    )


def problem_messages(problems: Sequence[tuple[str, str]]) -> list[mcp_pb.McpToolProblem]:
    """Tools that cannot be offered."""
    return [mcp_pb.McpToolProblem(name=name, problem=problem) for name, problem in problems]


def connect_event_message(event: ConnectEvent, sequence: int) -> service_pb.StreamConnectResponse:
    """Returns one event of a connection."""
    return service_pb.StreamConnectResponse(
        sequence=sequence,
        event=service_pb.McpConnectEvent.ValueType(event.event),
        message=event.message,
        url=event.url,
        session_id=event.session_id,
        state=event.state,
        tools=[tool_message(tool) for tool in event.tools],
    )
