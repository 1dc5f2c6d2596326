"""Tools and models of other services, as agents need them."""

import asyncio
from collections.abc import Awaitable, Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

from services.agent.resources.agents.model.base_tools import with_approvals
from services.agent.resources.agents.model.settings import AgentSettings, unique
from services.agent.resources.agents.ports import CatalogueTool, ModelCatalogue, ToolCatalogue
from services.common.errors import NotFound


class Catalogues:
    """Tools and models that there are."""

    def __init__(self, tools: ToolCatalogue, models: ModelCatalogue) -> None:
        self._tools = tools
        self._models = models

    async def find(self, tool_ids: Sequence[UUID]) -> tuple[CatalogueTool, ...]:
        """Returns those of the tools that exist."""
        return await self._tools.find(tool_ids)

    async def tools(self, tool_ids: Sequence[UUID], names: Sequence[str]) -> tuple[CatalogueTool, ...]:
        """Returns the tools, those given by name first. Raises NotFound (TOOL_NOT_FOUND), naming what there is not."""
        names = tuple(dict.fromkeys(names))
        available = await self._tools.find(tool_ids, names)
        by_name, by_id = {tool.name: tool for tool in available}, {tool.id: tool for tool in available}
        missing = [name for name in names if name not in by_name]
        missing += [f"tool-{tool_id}" for tool_id in tool_ids if tool_id not in by_id]
        if missing:
            raise NotFound(f"Tools not found: {', '.join(missing)}", reason="TOOL_NOT_FOUND")
        ordered = unique([*(by_name[name].id for name in names), *tool_ids])
        return tuple(by_id[tool_id] for tool_id in ordered)

    async def check_attached(self, settings: AgentSettings, tool_name: str) -> None:
        """Raises NotFound (TOOL_NOT_FOUND) when none of the agent's tools has this name."""
        tools = await self._tools.find(settings.tool_ids)
        if all(tool.name != tool_name for tool in tools):
            raise NotFound(f"The agent has no tool {tool_name[:80]}", reason="TOOL_NOT_FOUND")

    async def window(self, organization_id: UUID, handle: str) -> int:
        """Returns tokens of a chat model's window. Raises NotFound (MODEL_NOT_FOUND)."""
        return await self._models.window(organization_id, handle)

    async def check_embedding(self, organization_id: UUID, handle: str | None) -> None:
        """Raises NotFound (EMBEDDING_NOT_FOUND) for an unknown embedding model; None is none."""
        if handle is not None:
            await self._models.check_embedding(organization_id, handle)


def with_their_approvals(after: AgentSettings, before: AgentSettings, tools: Sequence[CatalogueTool]) -> AgentSettings:
    """Returns `after` with the approval rules of those of the tools that were not attached before."""
    names = (tool.name for tool in tools if tool.needs_approval and tool.id not in before.tool_ids)
    return replace(after, tool_rules=with_approvals(after.tool_rules, names))


async def together(*calls: Awaitable[Any]) -> list[Any]:
    """Returns the results of calls made at the same time; all have ended when the first error is raised."""
    outcomes = await asyncio.gather(*calls, return_exceptions=True)
    for outcome in outcomes:
        if isinstance(outcome, BaseException):
            raise outcome
    return outcomes
