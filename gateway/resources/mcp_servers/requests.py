"""Creating and changing MCP servers: by id, with the transport in `config`, and (older) by name, with it beside."""

from typing import Annotated, Any, Literal

from google.protobuf.field_mask_pb2 import FieldMask
from pydantic import Field, model_validator

from gateway.errors.invalid import InvalidRequest
from gateway.rest.body import Body, Json, dump
from loci.tool.v1 import mcp_pb2, mcp_service_pb2
from services.common.ids import to_public, uuid7

Kind = Literal["streamable_http", "sse", "stdio"]
# pydantic would show the value of one that is wrong.
Secret = Annotated[str | None, Field(repr=False)]
Secrets = Annotated[dict[str, str] | None, Field(repr=False)]

_HTTP = ("server_url", "auth_header", "auth_token", "custom_headers")
_STDIO = ("command", "args", "env", "network", "paths")


class McpConfig(Body):
    """How a server is reached. Without a type it is the one that the fields are of."""

    mcp_server_type: Kind | None = None
    server_url: str | None = None
    auth_header: str | None = None
    auth_token: Secret = None
    custom_headers: Secrets = None
    command: str | None = None
    args: list[str] | None = None
    env: Secrets = None
    network: Json | None = None
    paths: list[str] | None = None

    @property
    def kind(self) -> Kind:
        """The type, given or meant."""
        if self.mcp_server_type:
            return self.mcp_server_type
        return "stdio" if self.command is not None else "streamable_http"


class CreateMcpServer(Body):
    """Body of mcp_servers.create."""

    server_name: str
    config: McpConfig


class UpdateMcpServer(Body):
    """Body of mcp_servers.update: only what is sent changes; null counts as not sent, "" and {} empty a field."""

    config: McpConfig
    server_name: str | None = None


class GetPrompt(Body):
    """Body of Loci's own route for a prompt."""

    name: Annotated[str, Field(min_length=1, max_length=1024)]
    arguments: dict[str, str] = Field(default_factory=dict)


class NamedMcpServer(McpConfig):
    """Body of the older routes: name, type and fields side by side, or those of a program in `stdio_config`."""

    server_name: str = ""

    @model_validator(mode="before")
    @classmethod
    def _older_names(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        program = data.get("stdio_config")
        flat = {**data, **program} if isinstance(program, dict) else dict(data)
        if "type" in flat and "mcp_server_type" not in flat:
            flat["mcp_server_type"] = flat["type"]
        return flat


class RunTool(Body):
    """Body of mcp_servers.tools.run, and of the older execute."""

    args: dict[str, Any] = Field(default_factory=dict)


def transport(config: McpConfig) -> mcp_pb2.McpTransport:
    """Returns the fields that were sent. Raises InvalidRequest where they are not enough."""
    needed = "command" if config.kind == "stdio" else "server_url"
    if not getattr(config, needed):
        raise _missing(config.kind, needed)
    return _transport(config, _sent(config))


def check_whole(config: McpConfig) -> None:
    """Raises InvalidRequest for a program without the list of its arguments, as the reference does."""
    if config.mcp_server_type == "stdio" and config.args is None:
        raise _missing(config.kind, "args")


def _missing(kind: Kind, name: str) -> InvalidRequest:
    return InvalidRequest(f"`{name}`: a server of type {kind} needs it", "body", "config", kind, name, kind="missing")


def create_request(name: str, config: McpConfig) -> mcp_service_pb2.CreateMcpServerRequest:
    """With an id, so that it may be repeated."""
    return mcp_service_pb2.CreateMcpServerRequest(
        id=to_public("mcp_server", uuid7()), name=name, transport=transport(config)
    )


def update_request(
    server: mcp_pb2.McpServer, config: McpConfig | None, name: str | None
) -> mcp_service_pb2.UpdateMcpServerRequest | None:
    """Returns the request of UpdateMcpServer; None when nothing changes."""
    # Who sends no type means the one there is.
    if config is not None and config.mcp_server_type is None:
        kind: Any = server.transport.WhichOneof("transport")
        config = config.model_copy(update={"mcp_server_type": kind})
    fields = _sent(config) if config else ()
    paths = [f"transport.{'network_json' if field == 'network' else field}" for field in fields]
    if name is not None:
        paths.append("name")
    if not paths:
        return None
    return mcp_service_pb2.UpdateMcpServerRequest(
        id=server.id,
        name=name or "",
        transport=_transport(config, fields) if config else None,
        update_mask=FieldMask(paths=paths),
    )


def _sent(config: McpConfig) -> tuple[str, ...]:
    names = _STDIO if config.kind == "stdio" else _HTTP
    return tuple(name for name in names if getattr(config, name) is not None)


def _transport(config: McpConfig, fields: tuple[str, ...]) -> mcp_pb2.McpTransport:
    values: dict[str, Any] = {name: getattr(config, name) for name in fields}
    if config.kind == "stdio":
        if "network" in values:
            network = values.pop("network")
            values["network_json"] = dump(network) if network else ""
        return mcp_pb2.McpTransport(stdio=mcp_pb2.StdioMcpTransport(**values))
    http = mcp_pb2.HttpMcpTransport(**values)
    return mcp_pb2.McpTransport(sse=http) if config.kind == "sse" else mcp_pb2.McpTransport(streamable_http=http)
