"""Puts the tool runner together. Tests do it with this, too."""

from dataclasses import dataclass

from loci.tool.v1 import execution_service_pb2 as execution_pb
from loci.tool.v1 import tool_service_pb2 as tool_pb
from loci.tool.v1.execution_service_pb2_grpc import add_ExecutionServiceServicer_to_server
from loci.tool.v1.tool_service_pb2_grpc import add_ToolServiceServicer_to_server
from services.common.context import Verifier
from services.common.server import Server, make_server
from services.tool_runner.catalogue import Catalogue
from services.tool_runner.execution import Executor, Parts, Sandboxes
from services.tool_runner.job import Limits
from services.tool_runner.limited import Limited
from services.tool_runner.ports import Lists, ReceiptStore, ToolStore
from services.tool_runner.servicer import ExecutionServicer, ToolServicer

AUDIENCE = "tool_runner"


@dataclass(frozen=True, slots=True)
class ToolRunner:
    """The server, bound and not started, and what is to be closed after it stopped."""

    server: Server
    executor: Executor


def build(
    *,
    listen: str,
    verifier: Verifier,
    tools: ToolStore,
    lists: Lists,
    receipts: ReceiptStore,
    sandboxes: Sandboxes,
    limits: Limits | None = None,
    at_once: int = 8,
) -> ToolRunner:
    """The service, bound to `listen`. Raises SettingsError."""
    limited = Limited()
    parts = Parts(
        tools=tools,
        receipts=receipts,
        sandboxes=sandboxes,
        limited=limited,
        limits=limits or Limits(),
        at_once=at_once,
    )
    executor = Executor(parts)
    server = make_server(
        listen,
        servicers=[
            (add_ToolServiceServicer_to_server, ToolServicer(Catalogue(tools, limited), lists)),
            (add_ExecutionServiceServicer_to_server, ExecutionServicer(executor)),
        ],
        service_names=[
            tool_pb.DESCRIPTOR.services_by_name["ToolService"].full_name,
            execution_pb.DESCRIPTOR.services_by_name["ExecutionService"].full_name,
        ],
        audience=AUDIENCE,
        verifier=verifier,
    )
    return ToolRunner(server, executor)
