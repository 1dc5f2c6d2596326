"""Puts the tool runner together. Tests do it with this, too."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import asyncpg
import grpc

from loci.tool.v1 import execution_service_pb2 as execution_pb
from loci.tool.v1 import mcp_service_pb2 as mcp_pb
from loci.tool.v1 import sandbox_config_service_pb2 as sandbox_config_pb
from loci.tool.v1 import tool_service_pb2 as tool_pb
from loci.tool.v1.execution_service_pb2_grpc import add_ExecutionServiceServicer_to_server
from loci.tool.v1.mcp_service_pb2_grpc import add_McpServiceServicer_to_server
from loci.tool.v1.sandbox_config_service_pb2_grpc import add_SandboxConfigServiceServicer_to_server
from loci.tool.v1.tool_service_pb2_grpc import add_ToolServiceServicer_to_server
from services.common.context import Verifier
from services.common.embedder import GatewayEmbedder
from services.common.encryption import Sealer
from services.common.own_connection import OwnConnection
from services.common.server import Server, make_server
from services.tool_runner.child_processes.source_parser import SourceParser
from services.tool_runner.core.job import Limits
from services.tool_runner.core.model import ToolType
from services.tool_runner.core.ports import Layers, Runner, Sandboxes
from services.tool_runner.egress.egress import Egress, EgressSettings
from services.tool_runner.executions.files.inputs import Inputs
from services.tool_runner.executions.files.service import Files
from services.tool_runner.executions.files.store import PostgresFiles
from services.tool_runner.executions.list_store import PostgresReceiptLists, PostgresRetention
from services.tool_runner.executions.output_store import PostgresOutputs
from services.tool_runner.executions.ports import FileStore, OutputStore, ReceiptLists, ReceiptStore, Retention
from services.tool_runner.executions.prepare import CallPreparation
from services.tool_runner.executions.sandbox_runner import NoLayers, SandboxRunner
from services.tool_runner.executions.service import ExecutionParts, ExecutionService
from services.tool_runner.executions.servicer import ExecutionServicer
from services.tool_runner.executions.store import PostgresReceipts
from services.tool_runner.executions.sweep import RetentionSweeper
from services.tool_runner.mcp_servers.ports import McpStore, Programs, TokenStore
from services.tool_runner.mcp_servers.servicer import McpServicer
from services.tool_runner.mcp_servers.store import PostgresMcpServers
from services.tool_runner.mcp_servers.token_store import PostgresMcpTokens
from services.tool_runner.mcp_servers.wiring import Mcp, McpSettings, wire_mcp
from services.tool_runner.sandbox_configs.call_environments import TenantEnvironments
from services.tool_runner.sandbox_configs.packages import Packages
from services.tool_runner.sandbox_configs.ports import SandboxConfigStore
from services.tool_runner.sandbox_configs.service import SandboxConfigService
from services.tool_runner.sandbox_configs.servicer import SandboxConfigServicer
from services.tool_runner.sandbox_configs.store import PostgresSandboxConfigs
from services.tool_runner.sandbox_configs.vault import Vault
from services.tool_runner.tools.list_store import PostgresToolLists
from services.tool_runner.tools.missing_packages import MissingPackages
from services.tool_runner.tools.ports import Lists, ToolStore
from services.tool_runner.tools.search.ports import Embedder, SearchStore
from services.tool_runner.tools.search.service import ToolSearch
from services.tool_runner.tools.search.store import PostgresToolSearch
from services.tool_runner.tools.search.vectors import VectorFiller
from services.tool_runner.tools.service import ToolCatalogue
from services.tool_runner.tools.servicer import ToolServicer
from services.tool_runner.tools.store import PostgresTools

AUDIENCE = "tool_runner"


_SOURCE_TYPES = (ToolType.CUSTOM, ToolType.EXTERNAL_LANGCHAIN, ToolType.EXTERNAL_COMPOSIO)

# Who runs types of tools that are not source, given who runs those that are.
MakeRunners = Callable[[Runner], Mapping[ToolType, Runner]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stores:
    """All that the tool runner keeps."""

    tools: ToolStore
    lists: Lists
    search: SearchStore
    sandbox_configs: SandboxConfigStore
    mcp_servers: McpStore
    mcp_tokens: TokenStore
    receipts: ReceiptStore
    receipt_lists: ReceiptLists
    outputs: OutputStore
    files: FileStore
    retention: Retention


@dataclass(frozen=True, slots=True)
class ToolRunner:
    """The server, bound and not started, what runs beside it, and what is to be closed after it stopped."""

    server: Server
    executor: ExecutionService
    sweeper: RetentionSweeper
    search: ToolSearch


def postgres_stores(pool: asyncpg.Pool, sealer: Sealer, beats: OwnConnection | None = None) -> Stores:
    """Returns the stores on one pool; leases are beaten by `beats`, where that is given."""
    return Stores(
        tools=PostgresTools(pool),
        lists=PostgresToolLists(pool),
        search=PostgresToolSearch(pool),
        sandbox_configs=PostgresSandboxConfigs(pool),
        mcp_servers=PostgresMcpServers(pool, sealer),
        mcp_tokens=PostgresMcpTokens(pool, sealer),
        receipts=PostgresReceipts(pool, beats),
        receipt_lists=PostgresReceiptLists(pool),
        outputs=PostgresOutputs(pool),
        files=PostgresFiles(pool),
        retention=PostgresRetention(pool),
    )


def gateway_embedder(channel: grpc.aio.Channel) -> Embedder:
    """Returns the embedder of the llm gateway behind a channel."""
    return GatewayEmbedder(channel)


def build_mcp(settings: McpSettings, stores: Stores, programs: Programs, *, shows_secrets: bool = False) -> Mcp:
    """Returns the client and the registry of MCP servers."""
    return wire_mcp(
        settings,
        store=stores.mcp_servers,
        tokens=stores.mcp_tokens,
        tools=stores.tools,
        programs=programs,
        shows_secrets=shows_secrets,
    )


def build(
    *,
    listen: str,
    verifier: Verifier,
    stores: Stores,
    mcp: Mcp,
    sealer: Sealer,
    sandboxes: Sandboxes,
    sandbox_type: str = "local",
    embedder: Embedder | None = None,
    embedding: str = "loci/hash",
    egress: Egress | None = None,
    layers: Layers = NoLayers(),  # noqa: B008  # it has no state
    runners: MakeRunners = lambda sandboxed: {},
    sessions: bool = False,
    limits: Limits | None = None,
    at_once: int = 8,
    receipt_days: int = 0,
    shows_secrets: bool = False,
) -> ToolRunner:
    """Returns the service, bound to `listen`. Without an embedder tools are found by words. Raises SettingsError."""
    limited, vault = SourceParser(), Vault(sealer)
    sandboxed = SandboxRunner(sandboxes, egress or Egress(EgressSettings()), layers, sessions=sessions)
    environments = TenantEnvironments(stores.sandbox_configs, vault, sandbox_type)
    missing = MissingPackages(sandboxes, environments)
    preparation = CallPreparation(
        stores.tools,
        environments,
        Inputs(stores.files),
        limited,
        limits or Limits(),
        {
            **dict.fromkeys(_SOURCE_TYPES, sandboxed),
            ToolType.EXTERNAL_MCP: mcp.runner,
            **runners(sandboxed),
        },
    )
    executor = ExecutionService(
        ExecutionParts(preparation=preparation, receipts=stores.receipts, outputs=stores.outputs, at_once=at_once)
    )
    catalogue = ToolCatalogue(stores.tools, limited)
    filler = VectorFiller(stores.search, embedder, embedding) if embedder is not None else None
    search = ToolSearch(stores.search, embedder, filler, embedding)
    server = make_server(
        listen,
        servicers=[
            (add_ToolServiceServicer_to_server, ToolServicer(catalogue, stores.lists, search, missing)),
            (
                add_ExecutionServiceServicer_to_server,
                ExecutionServicer(executor, stores.receipt_lists, Files(stores.files), catalogue),
            ),
            (
                add_SandboxConfigServiceServicer_to_server,
                SandboxConfigServicer(
                    SandboxConfigService(stores.sandbox_configs, vault, Packages(layers), shows_values=shows_secrets),
                    mcp.client.forget,
                ),
            ),
            (add_McpServiceServicer_to_server, McpServicer(mcp, executor, catalogue, shows_secrets=shows_secrets)),
        ],
        service_names=[
            tool_pb.DESCRIPTOR.services_by_name["ToolService"].full_name,
            execution_pb.DESCRIPTOR.services_by_name["ExecutionService"].full_name,
            sandbox_config_pb.DESCRIPTOR.services_by_name["SandboxConfigService"].full_name,
            mcp_pb.DESCRIPTOR.services_by_name["McpService"].full_name,
        ],
        audience=AUDIENCE,
        verifier=verifier,
    )
    return ToolRunner(server, executor, RetentionSweeper(stores.retention, receipt_days), search)
