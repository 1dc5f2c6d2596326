"""The gRPC methods: parse, call, convert. The tenant and the user come from the verified call context."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from loci.tool.v1 import execution_service_pb2 as execution_pb
from loci.tool.v1 import execution_service_pb2_grpc as execution_grpc
from loci.tool.v1 import tool_service_pb2 as tool_pb
from loci.tool.v1 import tool_service_pb2_grpc as tool_grpc
from services.common.context import CallContext, current
from services.common.errors import InvalidArgument
from services.common.ids import uuid7
from services.tool_runner import convert
from services.tool_runner.catalogue import Catalogue
from services.tool_runner.execution import Executor
from services.tool_runner.model import Refused
from services.tool_runner.ports import Lists


@contextmanager
def _refusals() -> Iterator[None]:
    """What breaks a rule is the caller's fault."""
    try:
        yield
    except Refused as refused:
        raise InvalidArgument(refused.message, reason=refused.reason) from None


class ToolServicer(tool_grpc.ToolServiceServicer):
    """loci.tool.v1.ToolService."""

    def __init__(self, catalogue: Catalogue, lists: Lists) -> None:
        self._catalogue = catalogue
        self._lists = lists

    async def GetTool(self, request: tool_pb.GetToolRequest, context: Any) -> tool_pb.GetToolResponse:
        caller = await self._caller()
        tool = await self._catalogue.get(caller.organization_id, convert.tool_id(request.tool_id))
        return tool_pb.GetToolResponse(tool=convert.tool_message(tool))

    async def ListTools(self, request: tool_pb.ListToolsRequest, context: Any) -> tool_pb.ListToolsResponse:
        caller = await self._caller()
        with _refusals():
            wanted, page = convert.tool_filter(request), convert.page(request)
            found = await self._lists.tools(caller.organization_id, wanted, page)
        return tool_pb.ListToolsResponse(
            tools=[convert.tool_message(tool) for tool in found.items], next_page_token=found.next_token
        )

    async def BatchGetTools(self, request: tool_pb.BatchGetToolsRequest, context: Any) -> tool_pb.BatchGetToolsResponse:
        caller = await self._caller()
        with _refusals():
            ids, names = convert.batch(request)
        tools, missing_ids, missing_names = await self._catalogue.batch(caller.organization_id, ids, names)
        return tool_pb.BatchGetToolsResponse(
            tools=[convert.tool_message(tool) for tool in tools],
            missing_tool_ids=[f"tool-{tool_id}" for tool_id in missing_ids],
            missing_names=missing_names,
        )

    async def CreateTool(self, request: tool_pb.CreateToolRequest, context: Any) -> tool_pb.CreateToolResponse:
        caller = await self._caller()
        tool_id = convert.tool_id(request.tool_id) if request.tool_id else uuid7()
        with _refusals():
            draft = convert.draft(request.tool)
            tool = await self._catalogue.create(caller.organization_id, caller.user_id, tool_id, draft)
        return tool_pb.CreateToolResponse(tool=convert.tool_message(tool))

    async def UpsertTool(self, request: tool_pb.UpsertToolRequest, context: Any) -> tool_pb.UpsertToolResponse:
        caller = await self._caller()
        with _refusals():
            draft = convert.draft(request.tool)
            tool = await self._catalogue.upsert(caller.organization_id, caller.user_id, uuid7(), draft)
        return tool_pb.UpsertToolResponse(tool=convert.tool_message(tool))

    async def UpdateTool(self, request: tool_pb.UpdateToolRequest, context: Any) -> tool_pb.UpdateToolResponse:
        caller = await self._caller()
        tool_id = convert.tool_id(request.tool_id)
        with _refusals():
            changes = convert.changes(request.tool, request.update_mask.paths)
            tool = await self._catalogue.update(caller.organization_id, caller.user_id, tool_id, changes)
        return tool_pb.UpdateToolResponse(tool=convert.tool_message(tool))

    async def DeleteTool(self, request: tool_pb.DeleteToolRequest, context: Any) -> tool_pb.DeleteToolResponse:
        caller = await self._caller()
        await self._catalogue.delete(caller.organization_id, convert.tool_id(request.tool_id))
        return tool_pb.DeleteToolResponse()

    async def _caller(self) -> CallContext:
        """Who calls; their tenant has the built-in tools from here on."""
        caller = current()
        await self._catalogue.ensure(caller.organization_id, caller.user_id)
        return caller


class ExecutionServicer(execution_grpc.ExecutionServiceServicer):
    """loci.tool.v1.ExecutionService."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor

    async def ExecuteTool(
        self, request: execution_pb.ExecuteToolRequest, context: Any
    ) -> execution_pb.ExecuteToolResponse:
        receipt = await self._executor.execute(current().organization_id, convert.call(request))
        return execution_pb.ExecuteToolResponse(receipt=convert.receipt_message(receipt))

    async def CancelExecution(
        self, request: execution_pb.CancelExecutionRequest, context: Any
    ) -> execution_pb.CancelExecutionResponse:
        call_key = convert.call_key(request.call_key)
        receipt = await self._executor.cancel(current().organization_id, call_key)
        return execution_pb.CancelExecutionResponse(receipt=convert.receipt_message(receipt))

    async def GetReceipt(
        self, request: execution_pb.GetReceiptRequest, context: Any
    ) -> execution_pb.GetReceiptResponse:
        call_key = convert.call_key(request.call_key)
        receipt = await self._executor.receipt(current().organization_id, call_key)
        return execution_pb.GetReceiptResponse(receipt=convert.receipt_message(receipt))

    async def PurgeReceipts(
        self, request: execution_pb.PurgeReceiptsRequest, context: Any
    ) -> execution_pb.PurgeReceiptsResponse:
        agent_id = convert.agent_id(request.agent_id)
        erased = await self._executor.purge(current().organization_id, agent_id)
        return execution_pb.PurgeReceiptsResponse(erased=erased)
