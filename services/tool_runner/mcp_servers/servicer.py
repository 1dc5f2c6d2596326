"""MCP servers over gRPC."""

from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID, uuid4

from loci.tool.v1 import execution_service_pb2 as execution_pb
from loci.tool.v1 import mcp_service_pb2 as mcp_pb
from loci.tool.v1 import mcp_service_pb2_grpc as mcp_grpc
from services.common.context import CallContext, current
from services.common.errors import DeadlineExceeded, FailedPrecondition, Internal, LociError, NotFound, Unavailable
from services.common.ids import to_public
from services.tool_runner.core.model import Tool
from services.tool_runner.executions import convert as convert_executions
from services.tool_runner.executions.service import ExecutionService
from services.tool_runner.mcp.client import Target
from services.tool_runner.mcp.protocol.errors import Kind, McpProblem
from services.tool_runner.mcp_servers import convert
from services.tool_runner.mcp_servers.wiring import Mcp
from services.tool_runner.tools.convert import tool_id, tool_message
from services.tool_runner.tools.service import ToolCatalogue


class McpServicer(mcp_grpc.McpServiceServicer):
    """loci.tool.v1.McpService. `shows_secrets`: whether answers have them as they are instead of masked."""

    def __init__(
        self, mcp: Mcp, executor: ExecutionService, catalogue: ToolCatalogue, *, shows_secrets: bool = False
    ) -> None:
        self._registry = mcp.registry
        self._connecting = mcp.connecting
        self._resources = mcp.resources
        self._executor = executor
        self._catalogue = catalogue
        self._shows_secrets = shows_secrets

    async def CreateMcpServer(
        self, request: mcp_pb.CreateMcpServerRequest, context: Any
    ) -> mcp_pb.CreateMcpServerResponse:
        caller = await self._caller()
        with _statuses():
            server = await self._registry.create(caller.organization_id, caller.user_id, convert.new_server(request))
        return mcp_pb.CreateMcpServerResponse(server=convert.server_message(server, show_secrets=self._shows_secrets))

    async def GetMcpServer(self, request: mcp_pb.GetMcpServerRequest, context: Any) -> mcp_pb.GetMcpServerResponse:
        organization_id = current().organization_id
        if request.id:
            server = await self._registry.get(organization_id, convert.server_id(request.id))
        else:
            server = await self._registry.find_by_name(organization_id, request.name)
        return mcp_pb.GetMcpServerResponse(server=convert.server_message(server, show_secrets=self._shows_secrets))

    async def ListMcpServers(
        self, request: mcp_pb.ListMcpServersRequest, context: Any
    ) -> mcp_pb.ListMcpServersResponse:
        servers = await self._registry.all(current().organization_id)
        return mcp_pb.ListMcpServersResponse(
            servers=[convert.server_message(server, show_secrets=self._shows_secrets) for server in servers]
        )

    async def UpdateMcpServer(
        self, request: mcp_pb.UpdateMcpServerRequest, context: Any
    ) -> mcp_pb.UpdateMcpServerResponse:
        caller = await self._caller()
        with _statuses():
            name, change = convert.change(request)
            server = await self._registry.update(
                caller.organization_id, caller.user_id, convert.server_id(request.id), name, change
            )
        return mcp_pb.UpdateMcpServerResponse(server=convert.server_message(server, show_secrets=self._shows_secrets))

    async def DeleteMcpServer(
        self, request: mcp_pb.DeleteMcpServerRequest, context: Any
    ) -> mcp_pb.DeleteMcpServerResponse:
        await self._registry.delete(current().organization_id, convert.server_id(request.id))
        return mcp_pb.DeleteMcpServerResponse()

    async def RefreshMcpServer(
        self, request: mcp_pb.RefreshMcpServerRequest, context: Any
    ) -> mcp_pb.RefreshMcpServerResponse:
        caller = await self._caller()
        with _statuses():
            refreshed = await self._registry.refresh(
                caller.organization_id, caller.user_id, convert.server_id(request.id)
            )
        return mcp_pb.RefreshMcpServerResponse(
            server=convert.server_message(refreshed.server),
            added=refreshed.added,
            updated=refreshed.updated,
            deleted=refreshed.deleted,
        )

    async def ListMcpTools(self, request: mcp_pb.ListMcpToolsRequest, context: Any) -> mcp_pb.ListMcpToolsResponse:
        tools = await self._registry.tools(current().organization_id, convert.server_id(request.id))
        return mcp_pb.ListMcpToolsResponse(tools=[tool_message(tool) for tool in tools])

    async def RunMcpTool(self, request: mcp_pb.RunMcpToolRequest, context: Any) -> mcp_pb.RunMcpToolResponse:
        organization_id = current().organization_id
        tool = await self._tool(organization_id, request)
        call = convert_executions.call(
            execution_pb.ExecuteToolRequest(
                call_key=request.call_key or f"mcp-{uuid4()}",
                tool_id=to_public("tool", tool.id),
                arguments_json=request.arguments_json,
            )
        )
        receipt = await self._executor.execute(organization_id, call)
        return mcp_pb.RunMcpToolResponse(receipt=convert_executions.receipt_message(receipt))

    async def ListMcpResources(
        self, request: mcp_pb.ListMcpResourcesRequest, context: Any
    ) -> mcp_pb.ListMcpResourcesResponse:
        with _statuses():
            found = await self._resources.resources(current().organization_id, convert.server_id(request.id))
        return mcp_pb.ListMcpResourcesResponse(resources_json=found[0], templates_json=found[1])

    async def ReadMcpResource(
        self, request: mcp_pb.ReadMcpResourceRequest, context: Any
    ) -> mcp_pb.ReadMcpResourceResponse:
        server_id = convert.server_id(request.id)
        with _statuses():
            contents = await self._resources.read(current().organization_id, server_id, request.uri)
        return mcp_pb.ReadMcpResourceResponse(contents_json=contents)

    async def ListMcpPrompts(
        self, request: mcp_pb.ListMcpPromptsRequest, context: Any
    ) -> mcp_pb.ListMcpPromptsResponse:
        with _statuses():
            prompts = await self._resources.prompts(current().organization_id, convert.server_id(request.id))
        return mcp_pb.ListMcpPromptsResponse(prompts_json=prompts)

    async def GetMcpPrompt(self, request: mcp_pb.GetMcpPromptRequest, context: Any) -> mcp_pb.GetMcpPromptResponse:
        server_id = convert.server_id(request.id)
        with _statuses():
            messages = await self._resources.prompt(
                current().organization_id, server_id, request.name, request.arguments
            )
        return mcp_pb.GetMcpPromptResponse(messages_json=messages)

    async def TestMcpServer(self, request: mcp_pb.TestMcpServerRequest, context: Any) -> mcp_pb.TestMcpServerResponse:
        organization_id = current().organization_id
        with _statuses():
            server = convert.unsaved_server(request.transport)
            target = Target(organization_id, server, stored=False)
            tools, listing = await self._registry.list_unsaved(organization_id, target)
        return mcp_pb.TestMcpServerResponse(
            tools=[_without_id(tool) for tool in tools], tool_problems=convert.problem_messages(listing.problems)
        )

    async def StreamConnect(
        self, request: mcp_pb.StreamConnectRequest, context: Any
    ) -> AsyncIterator[mcp_pb.StreamConnectResponse]:
        caller = await self._caller()
        with _statuses():
            if request.id:
                server = await self._registry.get(caller.organization_id, convert.server_id(request.id))
            else:
                server = convert.unsaved_server(request.transport, request.name)
            events = self._connecting.stream(
                caller.organization_id,
                caller.user_id,
                server,
                stored=bool(request.id),
                origin=request.callback_url,
            )
            sequence = 0
            async for event in events:
                sequence += 1
                yield convert.connect_event_message(event, sequence)

    async def GetMcpAuthorization(
        self, request: mcp_pb.GetMcpAuthorizationRequest, context: Any
    ) -> mcp_pb.GetMcpAuthorizationResponse:
        asked = await self._connecting.asked(request.state)
        return mcp_pb.GetMcpAuthorizationResponse(
            url=asked.url,
            server_name=asked.server_name,
            server_url=asked.server_url,
            organization_id=to_public("org", asked.organization_id),
            user_id=to_public("user", asked.user_id),
        )

    async def FinishMcpAuthorization(
        self, request: mcp_pb.FinishMcpAuthorizationRequest, context: Any
    ) -> mcp_pb.FinishMcpAuthorizationResponse:
        with _statuses():
            server_id = await self._connecting.finish(request.state, request.code, request.error, request.issuer)
        return mcp_pb.FinishMcpAuthorizationResponse(id=to_public("mcp_server", server_id) if server_id else "")

    async def _tool(self, organization_id: UUID, request: mcp_pb.RunMcpToolRequest) -> Tool:
        tools = await self._registry.tools(organization_id, convert.server_id(request.id))
        wanted_id = tool_id(request.tool_id) if request.tool_id else None
        for tool in tools:
            if tool.id == wanted_id or (wanted_id is None and request.tool_name in (tool.mcp_tool_name, tool.name)):
                return tool
        raise NotFound(
            f"the MCP server has no tool {request.tool_id or request.tool_name[:100]!r}", reason="TOOL_NOT_FOUND"
        )

    async def _caller(self) -> CallContext:
        """Returns who calls; the tools that ship have their names in the catalogue before others can take them."""
        caller = current()
        await self._catalogue.ensure(caller.organization_id, caller.user_id)
        return caller


def _without_id(tool: Tool) -> Any:
    message = tool_message(tool)
    message.id = ""
    return message


@contextmanager
def _statuses() -> Iterator[None]:
    """Turns problems of a server, and refusals, into statuses."""
    try:
        yield
    except McpProblem as problem:
        raise _status(problem) from None


def _status(problem: McpProblem) -> LociError:
    match problem.kind:
        case Kind.UNREACHABLE:
            return Unavailable(problem.message, reason="MCP_UNREACHABLE")
        case Kind.TIMEOUT:
            return DeadlineExceeded(problem.message, reason="MCP_TIMEOUT")
        case Kind.OAUTH_REQUIRED:
            return FailedPrecondition(problem.message, reason="MCP_OAUTH_REQUIRED")
        case Kind.DISABLED:
            return FailedPrecondition(problem.message, reason="MCP_STDIO_DISABLED")
        case Kind.FAILED:
            return Internal(problem.message, reason="MCP_FAILED")
