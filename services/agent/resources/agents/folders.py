"""Folders attached to agents, and with them the tools for files."""

from collections.abc import Sequence
from uuid import UUID

from services.agent.resources.agents.catalogues import Catalogues, with_their_approvals
from services.agent.resources.agents.model.base_tools import FILE_TOOLS
from services.agent.resources.agents.model.settings import AgentSettings, with_tools
from services.agent.resources.agents.model.state import AgentState
from services.agent.resources.agents.ports import AgentMemories, AgentStore, CatalogueTool
from services.agent.resources.agents.service import Agents
from services.common.context import CallContext


class AgentFolders:
    """Attaches and detaches. A step that failed is done by the next try: each may be repeated."""

    def __init__(self, store: AgentStore, memories: AgentMemories, catalogues: Catalogues, agents: Agents) -> None:
        self._store = store
        self._memories = memories
        self._catalogues = catalogues
        self._agents = agents

    async def attach(self, caller: CallContext, agent_id: UUID, folder_id: UUID) -> AgentState:
        """Raises NotFound (AGENT_NOT_FOUND, FOLDER_NOT_FOUND)."""
        agent = await self._store.get(caller.organization_id, agent_id)
        tools = await self._catalogues.tools((), FILE_TOOLS)
        await self._memories.attach_folder(agent_id, folder_id, agent.settings.file_limits)
        return await self._with(caller, agent_id, tools)

    async def detach(self, caller: CallContext, agent_id: UUID, folder_id: UUID) -> AgentState:
        """Detaches; with the last folder the tools go. Raises NotFound."""
        await self._store.get(caller.organization_id, agent_id)
        tools = await self._catalogues.tools((), FILE_TOOLS)
        if await self._memories.detach_folder(agent_id, folder_id):
            return await self._agents.get(caller.organization_id, agent_id)
        gone = {tool.id for tool in tools}

        async def changed(before: AgentSettings) -> AgentSettings:
            return with_tools(before, (each for each in before.tool_ids if each not in gone))

        after = await self._agents.change(caller, agent_id, changed)
        # Who attached a folder meanwhile may have found the tools still there.
        return await self._with(caller, agent_id, tools) if after.folders else after

    async def _with(self, caller: CallContext, agent_id: UUID, tools: Sequence[CatalogueTool]) -> AgentState:
        async def changed(before: AgentSettings) -> AgentSettings:
            after = with_tools(before, (*before.tool_ids, *(tool.id for tool in tools)))
            return with_their_approvals(after, before, tools)

        return await self._agents.change(caller, agent_id, changed)
