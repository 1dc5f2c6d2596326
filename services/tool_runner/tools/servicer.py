"""The catalogue over gRPC."""

from typing import Any

from loci.tool.v1 import tool_service_pb2 as tool_pb
from loci.tool.v1 import tool_service_pb2_grpc as tool_grpc
from services.common.context import CallContext, current
from services.common.ids import uuid7
from services.common.page_requests import page_by_id
from services.tool_runner.tools import convert
from services.tool_runner.tools.missing_packages import MissingPackages
from services.tool_runner.tools.model import DEFAULT_SIZE
from services.tool_runner.tools.ports import Lists
from services.tool_runner.tools.search import convert as search_convert
from services.tool_runner.tools.search.service import ToolSearch
from services.tool_runner.tools.service import ToolCatalogue


class ToolServicer(tool_grpc.ToolServiceServicer):
    """loci.tool.v1.ToolService."""

    def __init__(self, catalogue: ToolCatalogue, lists: Lists, search: ToolSearch, missing: MissingPackages) -> None:
        self._catalogue = catalogue
        self._missing = missing
        self._lists = lists
        self._search = search

    async def GetTool(self, request: tool_pb.GetToolRequest, context: Any) -> tool_pb.GetToolResponse:
        caller = await self._caller()
        tool = await self._catalogue.get(caller.organization_id, convert.tool_id(request.tool_id))
        return tool_pb.GetToolResponse(tool=convert.tool_message(tool))

    async def ListTools(self, request: tool_pb.ListToolsRequest, context: Any) -> tool_pb.ListToolsResponse:
        caller = current()
        filters, page = convert.tool_filter(request), page_by_id(request.page, "tool", DEFAULT_SIZE)
        if not (request.page.after or request.page.page_token):
            # As in the reference: the first page has every tool that ships, deleted ones too.
            await self._catalogue.restore(caller.organization_id, caller.user_id)
        result = await self._lists.tools(caller.organization_id, filters, page)
        return tool_pb.ListToolsResponse(
            tools=[convert.tool_message(tool) for tool in result.items], next_page_token=result.next_token
        )

    async def BatchGetTools(self, request: tool_pb.BatchGetToolsRequest, context: Any) -> tool_pb.BatchGetToolsResponse:
        caller = await self._caller()
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
        draft = convert.draft(request.tool)
        tool = await self._catalogue.create(caller.organization_id, caller.user_id, tool_id, draft)
        self._search.hear(caller)
        warnings = await self._missing.warnings(caller.organization_id, tool)
        return tool_pb.CreateToolResponse(tool=convert.tool_message(tool), warnings=warnings)

    async def UpsertTool(self, request: tool_pb.UpsertToolRequest, context: Any) -> tool_pb.UpsertToolResponse:
        caller = await self._caller()
        draft = convert.draft(request.tool)
        tool = await self._catalogue.upsert(caller.organization_id, caller.user_id, uuid7(), draft)
        self._search.hear(caller)
        warnings = await self._missing.warnings(caller.organization_id, tool)
        return tool_pb.UpsertToolResponse(tool=convert.tool_message(tool), warnings=warnings)

    async def UpdateTool(self, request: tool_pb.UpdateToolRequest, context: Any) -> tool_pb.UpdateToolResponse:
        caller = await self._caller()
        tool_id = convert.tool_id(request.tool_id)
        changes = convert.changes(request.tool, request.update_mask.paths)
        tool = await self._catalogue.update(caller.organization_id, caller.user_id, tool_id, changes)
        self._search.hear(caller)
        is_new = {"source_code", "pip_requirements"} & changes.keys()
        warnings = await self._missing.warnings(caller.organization_id, tool) if is_new else []
        return tool_pb.UpdateToolResponse(tool=convert.tool_message(tool), warnings=warnings)

    async def DeleteTool(self, request: tool_pb.DeleteToolRequest, context: Any) -> tool_pb.DeleteToolResponse:
        caller = await self._caller()
        await self._catalogue.delete(caller.organization_id, convert.tool_id(request.tool_id))
        return tool_pb.DeleteToolResponse()

    async def CountTools(self, request: tool_pb.CountToolsRequest, context: Any) -> tool_pb.CountToolsResponse:
        caller = await self._caller()
        filters = convert.tool_filter(request.filter)
        return tool_pb.CountToolsResponse(count=await self._lists.count(caller.organization_id, filters))

    async def SearchTools(self, request: tool_pb.SearchToolsRequest, context: Any) -> tool_pb.SearchToolsResponse:
        caller = await self._caller()
        hits, mode = await self._search.find(caller, search_convert.query(request))
        return search_convert.response(hits, mode)

    async def GenerateToolSchema(
        self, request: tool_pb.GenerateToolSchemaRequest, context: Any
    ) -> tool_pb.GenerateToolSchemaResponse:
        current()
        args_schema = convert.args_json_schema(request.args_json_schema_json) or ""
        schema, takes_agent_state = await self._catalogue.schema_of(
            request.source_code, request.source_type or "python", args_schema
        )
        return tool_pb.GenerateToolSchemaResponse(json_schema_json=schema, takes_agent_state=takes_agent_state)

    async def EnsureBaseTools(
        self, request: tool_pb.EnsureBaseToolsRequest, context: Any
    ) -> tool_pb.EnsureBaseToolsResponse:
        caller = current()
        tools = await self._catalogue.ensure_base(caller.organization_id, caller.user_id)
        return tool_pb.EnsureBaseToolsResponse(tools=[convert.tool_message(tool) for tool in tools])

    async def ImportTool(self, request: tool_pb.ImportToolRequest, context: Any) -> tool_pb.ImportToolResponse:
        caller = await self._caller()
        draft = convert.draft(request.tool)
        tool = await self._catalogue.import_tool(
            caller.organization_id, caller.user_id, uuid7(), request.library, request.definition_json, draft
        )
        self._search.hear(caller)
        warnings = await self._missing.warnings(caller.organization_id, tool)
        return tool_pb.ImportToolResponse(tool=convert.tool_message(tool), warnings=warnings)

    async def _caller(self) -> CallContext:
        """Returns who calls; their tenant has the built-in tools from here on."""
        caller = current()
        await self._catalogue.ensure(caller.organization_id, caller.user_id)
        return caller
