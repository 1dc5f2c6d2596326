"""Calls of tools over gRPC."""

from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

from loci.tool.v1 import execution_service_pb2 as execution_pb
from loci.tool.v1 import execution_service_pb2_grpc as execution_grpc
from services.common.context import current
from services.common.errors import InvalidArgument
from services.tool_runner.executions import convert
from services.tool_runner.executions.files.service import Files
from services.tool_runner.executions.ports import ReceiptLists
from services.tool_runner.executions.service import ExecutionService
from services.tool_runner.executions.source_tools import Maker, tool_of
from services.tool_runner.tools.convert import draft

_CHUNK_BYTES = 512 * 1024


class ExecutionServicer(execution_grpc.ExecutionServiceServicer):
    """loci.tool.v1.ExecutionService."""

    def __init__(self, executor: ExecutionService, lists: ReceiptLists, files: Files, maker: Maker) -> None:
        self._executor = executor
        self._lists = lists
        self._files = files
        self._maker = maker

    async def ExecuteTool(
        self, request: execution_pb.ExecuteToolRequest, context: Any
    ) -> execution_pb.ExecuteToolResponse:
        call = convert.call(request)
        receipt = await self._executor.execute(current().organization_id, call)
        return execution_pb.ExecuteToolResponse(receipt=convert.receipt_message(receipt))

    async def CancelExecution(
        self, request: execution_pb.CancelExecutionRequest, context: Any
    ) -> execution_pb.CancelExecutionResponse:
        call_key = convert.call_key(request.call_key)
        receipt = await self._executor.cancel(current().organization_id, call_key)
        return execution_pb.CancelExecutionResponse(receipt=convert.receipt_message(receipt))

    async def FenceRun(self, request: execution_pb.FenceRunRequest, context: Any) -> execution_pb.FenceRunResponse:
        caller = current()
        if caller.run_id is not None:
            await self._executor.fence(caller.organization_id, caller.run_id, caller.fence)
        return execution_pb.FenceRunResponse()

    async def GetReceipt(
        self, request: execution_pb.GetReceiptRequest, context: Any
    ) -> execution_pb.GetReceiptResponse:
        call_key = convert.call_key(request.call_key)
        receipt = await self._executor.receipt(current().organization_id, call_key)
        return execution_pb.GetReceiptResponse(receipt=convert.receipt_message(receipt))

    async def ListReceipts(
        self, request: execution_pb.ListReceiptsRequest, context: Any
    ) -> execution_pb.ListReceiptsResponse:
        page = await self._lists.receipts(current().organization_id, convert.receipt_filter(request))
        return execution_pb.ListReceiptsResponse(
            receipts=map(convert.receipt_message, page.items), next_page_token=page.next_token
        )

    async def StreamExecution(
        self, request: execution_pb.StreamExecutionRequest, context: Any
    ) -> AsyncIterator[execution_pb.StreamExecutionResponse]:
        call_key, after = convert.call_key(request.call_key), max(0, request.after_sequence)
        async with aclosing(self._executor.watch(current().organization_id, call_key, after)) as events:
            async for sequence, event in events:
                yield convert.event_message(sequence, event)

    async def RunSource(self, request: execution_pb.RunSourceRequest, context: Any) -> execution_pb.RunSourceResponse:
        organization_id = current().organization_id
        tool = await tool_of(self._maker, organization_id, draft(request.tool), request.function_name)
        receipt = await self._executor.execute(organization_id, convert.source_call(request, tool.id), tool)
        return execution_pb.RunSourceResponse(receipt=convert.receipt_message(receipt))

    async def UploadFile(
        self, requests: AsyncIterator[execution_pb.UploadFileRequest], context: Any
    ) -> execution_pb.UploadFileResponse:
        caller = current()
        first = await anext(aiter(requests), None)
        if first is None or first.WhichOneof("part") != "name":
            raise InvalidArgument("the first message must have the name", reason="EXECUTION_FILE_INVALID")
        chunks = (request.chunk async for request in requests)
        file = await self._files.keep(caller.organization_id, caller.user_id, first.name, chunks)
        return execution_pb.UploadFileResponse(file=convert.file_message(file))

    async def ListFiles(self, request: execution_pb.ListFilesRequest, context: Any) -> execution_pb.ListFilesResponse:
        page = await self._files.list(current().organization_id, convert.file_filter(request))
        return execution_pb.ListFilesResponse(
            files=map(convert.file_message, page.items), next_page_token=page.next_token
        )

    async def StreamFile(
        self, request: execution_pb.StreamFileRequest, context: Any
    ) -> AsyncIterator[execution_pb.StreamFileResponse]:
        file, content = await self._files.fetch(current().organization_id, convert.file_id(request.file_id))
        yield execution_pb.StreamFileResponse(file=convert.file_message(file), chunk=content[:_CHUNK_BYTES])
        for start in range(_CHUNK_BYTES, len(content), _CHUNK_BYTES):
            yield execution_pb.StreamFileResponse(chunk=content[start : start + _CHUNK_BYTES])

    async def DeleteFile(
        self, request: execution_pb.DeleteFileRequest, context: Any
    ) -> execution_pb.DeleteFileResponse:
        await self._files.delete(current().organization_id, convert.file_id(request.file_id))
        return execution_pb.DeleteFileResponse()

    async def PurgeReceipts(
        self, request: execution_pb.PurgeReceiptsRequest, context: Any
    ) -> execution_pb.PurgeReceiptsResponse:
        agent_id = convert.agent_id(request.agent_id)
        erased = await self._executor.purge(current().organization_id, agent_id)
        return execution_pb.PurgeReceiptsResponse(erased=erased)
