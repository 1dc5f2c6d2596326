"""Puts the tool runner together. Tests do it with this, too."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import asyncpg

from loci.tool.v1 import environment_service_pb2 as environment_pb
from loci.tool.v1 import execution_service_pb2 as execution_pb
from loci.tool.v1 import mcp_service_pb2 as mcp_pb
from loci.tool.v1 import tool_service_pb2 as tool_pb
from loci.tool.v1.environment_service_pb2_grpc import add_EnvironmentServiceServicer_to_server
from loci.tool.v1.execution_service_pb2_grpc import add_ExecutionServiceServicer_to_server
from loci.tool.v1.mcp_service_pb2_grpc import add_McpServiceServicer_to_server
from loci.tool.v1.tool_service_pb2_grpc import add_ToolServiceServicer_to_server
from services.common.context import Verifier
from services.common.sealing import Sealer
from services.common.server import Server, make_server
from services.tool_runner.child_processes.source_parser import Limited
from services.tool_runner.core.call_stores import FileStore, OutputStore, ReceiptLists, Retention
from services.tool_runner.core.job import Limits
from services.tool_runner.core.model import ToolType
from services.tool_runner.core.ports import Lists, ReceiptStore, Runner, ToolStore
from services.tool_runner.egress.egress import Egress, EgressSettings
from services.tool_runner.environments.call_environments import TenantEnvironments
from services.tool_runner.environments.packages import Packages
from services.tool_runner.environments.ports import EnvironmentStore
from services.tool_runner.environments.service import EnvironmentAdmin
from services.tool_runner.environments.servicer import EnvironmentServicer
from services.tool_runner.environments.vault import Vault
from services.tool_runner.executions.files.inputs import Inputs
from services.tool_runner.executions.files.service import Files
from services.tool_runner.executions.files.store import PostgresFiles
from services.tool_runner.executions.list_store import PostgresReceiptLists, PostgresRetention
from services.tool_runner.executions.output_store import PostgresOutputs
from services.tool_runner.executions.prepare import Preparation
from services.tool_runner.executions.sandbox_runner import Layers, NoLayers, Sandboxes, SandboxRunner
from services.tool_runner.executions.service import Executor, Parts
from services.tool_runner.executions.servicer import ExecutionServicer
from services.tool_runner.executions.store import PostgresReceipts
from services.tool_runner.executions.sweep import Sweeper
from services.tool_runner.mcp_servers.servicer import McpServicer
from services.tool_runner.mcp_servers.wiring import McpRoom
from services.tool_runner.tools.search.ports import Embedder, Finder
from services.tool_runner.tools.search.service import ToolSearch
from services.tool_runner.tools.search.vectors import Filler
from services.tool_runner.tools.service import Catalogue
from services.tool_runner.tools.servicer import ToolServicer

AUDIENCE = "tool_runner"


_SOURCE_TYPES = (ToolType.CUSTOM, ToolType.EXTERNAL_LANGCHAIN, ToolType.EXTERNAL_COMPOSIO)

# Who runs types of tools that are not source, given who runs those that are.
MakeRunners = Callable[[Runner], Mapping[ToolType, Runner]]


@dataclass(frozen=True, slots=True)
class CallStores:
    """Where calls are kept."""

    receipts: ReceiptStore
    outputs: OutputStore
    files: FileStore
    lists: ReceiptLists
    retention: Retention


@dataclass(frozen=True, slots=True)
class ToolRunner:
    """The server, bound and not started, what runs beside it, and what is to be closed after it stopped."""

    server: Server
    executor: Executor
    sweeper: Sweeper
    search: ToolSearch


def postgres_calls(pool: asyncpg.Pool) -> CallStores:
    """On one pool."""
    return CallStores(
        PostgresReceipts(pool),
        PostgresOutputs(pool),
        PostgresFiles(pool),
        PostgresReceiptLists(pool),
        PostgresRetention(pool),
    )


def build(
    *,
    listen: str,
    verifier: Verifier,
    tools: ToolStore,
    lists: Lists,
    calls: CallStores,
    environments: EnvironmentStore,
    sealer: Sealer,
    sandboxes: Sandboxes,
    sandbox_type: str = "local",
    finder: Finder,
    embedder: Embedder | None = None,
    embedding: str = "loci/hash",
    egress: Egress | None = None,
    layers: Layers | None = None,
    runners: MakeRunners = lambda sandboxed: {},
    mcp: McpRoom | None = None,
    sessions: bool = False,
    limits: Limits | None = None,
    at_once: int = 8,
    receipt_days: int = 0,
) -> ToolRunner:
    """The service, bound to `listen`. Without an embedder tools are found by words. Raises SettingsError."""
    limited, vault, layers = Limited(), Vault(sealer), layers or NoLayers()
    sandboxed = SandboxRunner(sandboxes, egress or Egress(EgressSettings()), layers, sessions=sessions)
    preparation = Preparation(
        tools,
        TenantEnvironments(environments, vault, sandbox_type),
        Inputs(calls.files),
        limited,
        limits or Limits(),
        {
            **dict.fromkeys(_SOURCE_TYPES, sandboxed),
            **({ToolType.EXTERNAL_MCP: mcp.runner} if mcp else {}),
            **runners(sandboxed),
        },
    )
    executor = Executor(Parts(preparation=preparation, receipts=calls.receipts, outputs=calls.outputs, at_once=at_once))
    catalogue = Catalogue(tools, limited)
    filler = Filler(finder, embedder, embedding) if embedder is not None else None
    search = ToolSearch(finder, embedder, filler, embedding)
    server = make_server(
        listen,
        servicers=[
            (add_ToolServiceServicer_to_server, ToolServicer(catalogue, lists, search)),
            (
                add_ExecutionServiceServicer_to_server,
                ExecutionServicer(executor, calls.lists, Files(calls.files), catalogue),
            ),
            (
                add_EnvironmentServiceServicer_to_server,
                EnvironmentServicer(EnvironmentAdmin(environments, vault, Packages(layers))),
            ),
            *([(add_McpServiceServicer_to_server, McpServicer(mcp, executor, catalogue))] if mcp else []),
        ],
        service_names=[
            tool_pb.DESCRIPTOR.services_by_name["ToolService"].full_name,
            execution_pb.DESCRIPTOR.services_by_name["ExecutionService"].full_name,
            environment_pb.DESCRIPTOR.services_by_name["EnvironmentService"].full_name,
            *([mcp_pb.DESCRIPTOR.services_by_name["McpService"].full_name] if mcp else []),
        ],
        audience=AUDIENCE,
        verifier=verifier,
    )
    return ToolRunner(server, executor, Sweeper(calls.retention, receipt_days), search)
