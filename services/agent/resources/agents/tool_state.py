"""An agent as the tools see it that take `agent_state`, by the reference's names."""

import asyncio
from collections.abc import Sequence
from typing import Any

import orjson

from services.agent.core.ports import BlockView, CallSite, Memory, MemoryView, ToolInfo, Tools
from services.agent.resources.agents.model.settings import Agent
from services.agent.resources.agents.ports import AgentStore


class StoredAgentStates:
    """`core.ports.AgentStates`, read when such a tool is called, and only then."""

    def __init__(self, agents: AgentStore, memory: Memory, tools: Tools) -> None:
        self._agents = agents
        self._memory = memory
        self._tools = tools

    async def of(self, site: CallSite) -> str:
        """See core.ports.AgentStates.of."""
        agent, view, tools = await asyncio.gather(
            self._agents.get(site.organization_id, site.agent_id),
            self._memory.view(site.agent_id, site.conversation_id),
            self._tools.describe(site.settings.tool_ids),
        )
        return orjson.dumps(state_of(agent, view, tools)).decode()


def state_of(agent: Agent, view: MemoryView, tools: Sequence[ToolInfo]) -> dict[str, Any]:
    """Returns as much of the reference's AgentState as is known here."""
    settings = agent.settings
    blocks = list(map(_block, view.blocks))
    return {
        "id": f"agent-{agent.id}",
        "name": settings.name,
        "description": settings.description,
        "agent_type": settings.agent_type,
        "system": settings.system,
        "model": settings.model,
        "embedding": settings.embedding,
        "context_window_limit": settings.context_window_limit,
        "tags": list(settings.tags),
        "metadata": dict(settings.metadata or {}),
        "timezone": settings.timezone,
        "project_id": settings.project_id,
        "created_at": agent.created_at,
        "updated_at": agent.updated_at,
        "memory": {"blocks": blocks},
        "blocks": blocks,
        "tools": [{"id": f"tool-{tool.id}", "name": tool.name, "tool_type": tool.tool_type} for tool in tools],
    }


def _block(block: BlockView) -> dict[str, Any]:
    return {
        "id": f"block-{block.id}",
        "label": block.label,
        "value": block.value,
        "limit": block.limit,
        "description": block.description,
        "read_only": block.read_only,
    }
