"""Calls of tools."""

from gateway.openapi.schemas import ANY, TEXT, array, choice, maybe, of, record
from gateway.resources.agents.schemas import AGENT
from loci.tool.v1 import execution_service_pb2

EXECUTION_RESULT = record(
    "ToolExecutionResult",
    {
        "status": choice("success", "error"),
        "func_return": ANY,
        "agent_state": maybe(AGENT),
        "stdout": maybe(array(TEXT)),
        "stderr": maybe(array(TEXT)),
        "sandbox_config_fingerprint": maybe(TEXT),
    },
)
RECEIPT = of("Receipt", execution_service_pb2.Receipt.DESCRIPTOR)
_NOT_LISTED = ("result", "tool_return", "stdout", "stderr", "block_edits", "files")
EXECUTIONS = record(
    "Executions",
    {
        "executions": array(of("ListedReceipt", execution_service_pb2.Receipt.DESCRIPTOR, leave=_NOT_LISTED)),
        "next_page_token": maybe(TEXT),
    },
)
EXECUTION_FILE = of("ExecutionFile", execution_service_pb2.ExecutionFile.DESCRIPTOR)
EXECUTION_FILES = record("ExecutionFiles", {"files": array(EXECUTION_FILE), "next_page_token": maybe(TEXT)})
