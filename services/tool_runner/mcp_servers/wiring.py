"""Puts together what serves MCP servers."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from services.common.core.private_hosts import Private
from services.tool_runner.core.job import MIB, HostView
from services.tool_runner.core.network_policy import Host
from services.tool_runner.mcp.client import McpClient, Times
from services.tool_runner.mcp.runner import McpRunner
from services.tool_runner.mcp.schema_check import SchemaCheck
from services.tool_runner.mcp_servers.connect import ConnectFlow
from services.tool_runner.mcp_servers.ports import McpStore, Programs, TokenStore
from services.tool_runner.mcp_servers.resource_tools import ResourceTools
from services.tool_runner.mcp_servers.resources import McpResources
from services.tool_runner.mcp_servers.service import McpServerParts, McpServerService
from services.tool_runner.mcp_servers.tokens import TokenKeeper
from services.tool_runner.tools.ports import ToolStore


@dataclass(frozen=True, slots=True)
class McpSettings:
    """The operator's settings. `stdio`: whether servers may be programs; `allow_private`: at private addresses, too.

    host: what programs see of the machine. tcp: hosts that they reach by TCP. home_dir, home_bytes: where each keeps
    what it writes, and how much; "" for nowhere. on_host: the environment of programs that run on the machine itself;
    None: they run in sandboxes.
    """

    stdio: bool = False
    host: HostView = field(default_factory=HostView)
    tcp: tuple[Host, ...] = ()
    on_host: Mapping[str, str] | None = None
    home_dir: str = ""
    home_bytes: int = 256 * MIB
    allow_private: Private = False
    times: Times = field(default_factory=Times)


@dataclass(frozen=True, slots=True)
class Mcp:
    """The parts of it; whoever made it closes `client`."""

    registry: McpServerService
    connecting: ConnectFlow
    client: McpClient
    runner: McpRunner
    resources: McpResources
    resource_tools: ResourceTools


def wire_mcp(
    settings: McpSettings,
    *,
    store: McpStore,
    tokens: TokenStore,
    tools: ToolStore,
    programs: Programs,
    shows_secrets: bool = False,
) -> Mcp:
    """Makes the parts. `programs` start servers that are programs, where the settings allow that; `shows_secrets`:
    whether whoever changes a server is shown its secrets.
    """
    client = McpClient(
        allow_private=settings.allow_private,
        programs=programs if settings.stdio else None,
        times=settings.times,
    )
    wallet = TokenKeeper(tokens, allow_private=settings.allow_private)
    registry = McpServerService(
        McpServerParts(
            store=store,
            tools=tools,
            client=client,
            wallet=wallet,
            check=SchemaCheck(),
            allow_private=settings.allow_private,
            stdio=settings.stdio,
            shows_secrets=shows_secrets,
        )
    )
    client.changes.refresh = registry.refresh_for_server
    resources = McpResources(registry, client)
    return Mcp(
        registry,
        ConnectFlow(registry, wallet),
        client,
        McpRunner(registry, client),
        resources,
        ResourceTools(registry, resources),
    )
