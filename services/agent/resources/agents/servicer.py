"""AgentService: parse, call, convert. The tenant and the user come from the verified call context."""

from collections.abc import Callable
from typing import Any

from loci.agent.v1 import agent_service_pb2 as wire
from loci.agent.v1 import agent_service_pb2_grpc
from services.agent.resources.agents.convert import (
    agent_list,
    agent_to_proto,
    identity_ids,
    new_agent,
    secrets,
    setting_values,
)
from services.agent.resources.agents.folders import AgentFolders
from services.agent.resources.agents.service import Agents
from services.agent.resources.tool_runs.convert import direct_key, outcome_to_proto
from services.agent.resources.tool_runs.service import ToolRuns
from services.common.context import current
from services.common.core.storable import storable
from services.common.ids import from_public
from services.common.page_requests import allow, page_by

_TAGS_PER_PAGE = 50


class AgentServicer(agent_service_pb2_grpc.AgentServiceServicer):
    """loci.agent.v1.AgentService. `on_deleted` is called when there is something to clear away."""

    def __init__(
        self,
        agents: Agents,
        folders: AgentFolders,
        tool_runs: ToolRuns,
        on_deleted: Callable[[], None],
    ) -> None:
        self._agents = agents
        self._folders = folders
        self._tool_runs = tool_runs
        self._on_deleted = on_deleted

    async def CreateAgent(self, request: wire.CreateAgentRequest, context: Any) -> wire.CreateAgentResponse:
        """Creates an agent: its blocks first, its row last."""
        described = await self._agents.create(current(), new_agent(request))
        return wire.CreateAgentResponse(agent=agent_to_proto(described))

    async def GetAgent(self, request: wire.GetAgentRequest, context: Any) -> wire.GetAgentResponse:
        """Returns one agent with blocks and tools."""
        agent_id = from_public("agent", request.agent_id)
        described = await self._agents.get(current().organization_id, agent_id)
        return wire.GetAgentResponse(agent=agent_to_proto(described))

    async def ListAgents(self, request: wire.ListAgentsRequest, context: Any) -> wire.ListAgentsResponse:
        """Returns one page."""
        page = await self._agents.list(
            current().organization_id, agent_list(request), relations=not request.omit_relations
        )
        return wire.ListAgentsResponse(agents=map(agent_to_proto, page.items), next_page_token=page.next_token)

    async def CountAgents(self, request: wire.CountAgentsRequest, context: Any) -> wire.CountAgentsResponse:
        """Returns how many agents there are."""
        filters = agent_list(request.filter)
        return wire.CountAgentsResponse(count=await self._agents.count(current().organization_id, filters))

    async def ListAgentTags(self, request: wire.ListAgentTagsRequest, context: Any) -> wire.ListAgentTagsResponse:
        """Returns one page of names."""
        allow(request.page, "page_size", "after", "before", "order")
        page = page_by(request.page, storable, _TAGS_PER_PAGE, ascending=True)
        tags = await self._agents.tags(current().organization_id, page, storable(request.query_text))
        return wire.ListAgentTagsResponse(tags=tags)

    async def UpdateAgent(self, request: wire.UpdateAgentRequest, context: Any) -> wire.UpdateAgentResponse:
        """Changes the fields of the mask."""
        agent_id = from_public("agent", request.agent_id)
        described = await self._agents.update(
            current(),
            agent_id,
            setting_values(request.agent, request.update_mask.paths),
            secrets(request),
            identity_ids(request),
        )
        return wire.UpdateAgentResponse(agent=agent_to_proto(described))

    async def DeleteAgent(self, request: wire.DeleteAgentRequest, context: Any) -> wire.DeleteAgentResponse:
        """Deletes it for readers at once; the rest follows."""
        await self._agents.delete(current(), from_public("agent", request.agent_id))
        self._on_deleted()
        return wire.DeleteAgentResponse()

    async def AttachTool(self, request: wire.AttachToolRequest, context: Any) -> wire.AttachToolResponse:
        """Adds a tool at the end."""
        agent_id, tool_id = from_public("agent", request.agent_id), from_public("tool", request.tool_id)
        described = await self._agents.attach_tool(current(), agent_id, tool_id)
        return wire.AttachToolResponse(agent=agent_to_proto(described))

    async def DetachTool(self, request: wire.DetachToolRequest, context: Any) -> wire.DetachToolResponse:
        """Takes a tool away."""
        agent_id, tool_id = from_public("agent", request.agent_id), from_public("tool", request.tool_id)
        described = await self._agents.detach_tool(current(), agent_id, tool_id)
        return wire.DetachToolResponse(agent=agent_to_proto(described))

    async def AttachFolder(self, request: wire.AttachFolderRequest, context: Any) -> wire.AttachFolderResponse:
        """Attaches a folder, and the tools for its files."""
        agent_id, folder_id = from_public("agent", request.agent_id), from_public("source", request.folder_id)
        described = await self._folders.attach(current(), agent_id, folder_id)
        return wire.AttachFolderResponse(agent=agent_to_proto(described))

    async def DetachFolder(self, request: wire.DetachFolderRequest, context: Any) -> wire.DetachFolderResponse:
        """Detaches a folder; with the last one the tools go."""
        agent_id, folder_id = from_public("agent", request.agent_id), from_public("source", request.folder_id)
        described = await self._folders.detach(current(), agent_id, folder_id)
        return wire.DetachFolderResponse(agent=agent_to_proto(described))

    async def SetToolApproval(self, request: wire.SetToolApprovalRequest, context: Any) -> wire.SetToolApprovalResponse:
        """Adds or removes an approval rule."""
        agent_id = from_public("agent", request.agent_id)
        described = await self._agents.set_tool_approval(
            current(), agent_id, request.tool_name, required=request.requires_approval
        )
        return wire.SetToolApprovalResponse(agent=agent_to_proto(described))

    async def RenameTool(self, request: wire.RenameToolRequest, context: Any) -> wire.RenameToolResponse:
        """Has the rules of agents follow a tool's name."""
        changed = await self._agents.rename_tool(
            current(),
            from_public("tool", request.tool_id),
            request.old_name,
            request.new_name,
            only_approvals=request.only_approvals,
        )
        return wire.RenameToolResponse(changed_agents=changed)

    async def ResetMessages(self, request: wire.ResetMessagesRequest, context: Any) -> wire.ResetMessagesResponse:
        """Begins the default conversation anew."""
        described = await self._agents.reset_messages(current(), from_public("agent", request.agent_id))
        return wire.ResetMessagesResponse(agent=agent_to_proto(described))

    async def RunAgentTool(self, request: wire.RunAgentToolRequest, context: Any) -> wire.RunAgentToolResponse:
        """As a call of the agent's model is run, without a turn."""
        agent_id, key = from_public("agent", request.agent_id), direct_key(request.call_key)
        executed = await self._tool_runs.run(current(), agent_id, request.tool_name, request.arguments_json, key)
        return outcome_to_proto(executed)
