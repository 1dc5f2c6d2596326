"""Folders attached to agents, and with them the tools for files."""

from collections.abc import Sequence
from uuid import UUID

from services.agent.resources.agents.catalogues import Catalogues, with_their_approvals
from services.agent.resources.agents.model import settings as agents
from services.agent.resources.agents.model.base_tools import FILE_TOOLS
from services.agent.resources.agents.model.described import Described
from services.agent.resources.agents.model.settings import AgentSettings
from services.agent.resources.agents.ports import AgentMemories, AgentStore, CatalogueTool
from services.agent.resources.agents.service import Administration
from services.common.context import CallContext


class AgentFolders:
    """Attaches and detaches. A step that failed is done by the next try: each may be repeated."""

    def __init__(
        self, store: AgentStore, memories: AgentMemories, catalogues: Catalogues, administration: Administration
    ) -> None:
        self._store = store
        self._memories = memories
        self._catalogues = catalogues
        self._administration = administration

    async def attach(self, caller: CallContext, agent_id: UUID, folder_id: UUID) -> Described:
        """Raises NotFound (AGENT_NOT_FOUND, FOLDER_NOT_FOUND)."""
        agent = await self._store.get(caller.organization_id, agent_id)
        tools = await self._catalogues.tools((), FILE_TOOLS)
        await self._memories.attach_folder(agent_id, folder_id, agent.settings.file_limits)
        return await self._with(caller, agent_id, tools)

    async def detach(self, caller: CallContext, agent_id: UUID, folder_id: UUID) -> Described:
        """With the last folder the tools go. Raises NotFound, FailedPrecondition (FOLDER_NOT_ATTACHED)."""
        await self._store.get(caller.organization_id, agent_id)
        tools = await self._catalogues.tools((), FILE_TOOLS)
        if await self._memories.detach_folder(agent_id, folder_id):
            return await self._administration.get(caller.organization_id, agent_id)
        gone = {tool.id for tool in tools}

        async def changed(before: AgentSettings) -> AgentSettings:
            return agents.with_tools(before, (each for each in before.tool_ids if each not in gone))

        after = await self._administration.change(caller, agent_id, changed)
        # Who attached a folder meanwhile may have found the tools still there.
        return await self._with(caller, agent_id, tools) if after.folders else after

    async def _with(self, caller: CallContext, agent_id: UUID, tools: Sequence[CatalogueTool]) -> Described:
        async def changed(before: AgentSettings) -> AgentSettings:
            after = agents.with_tools(before, (*before.tool_ids, *(tool.id for tool in tools)))
            return with_their_approvals(after, before, tools)

        return await self._administration.change(caller, agent_id, changed)
