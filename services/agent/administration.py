"""Agents made, read, changed and removed: across services, without a transaction that spans them.

Parts are created first and the agent's row last: it is the commit point. A reservation in the outbox, written before
the parts and gone with the commit, has the parts swept when no agent follows.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from services.agent import agents
from services.agent.agents import BASE_TOOLS, LETTA_V1_AGENT, Agent, AgentDraft, AgentSettings, Defaults
from services.agent.ports_admin import (
    AgentList,
    AgentMemories,
    AgentStore,
    CatalogueTool,
    ModelCatalogue,
    ToolCatalogue,
)
from services.agent.refusals import Refused
from services.common.context import CallContext
from services.common.errors import (
    Aborted,
    AlreadyExists,
    FailedPrecondition,
    InvalidArgument,
    NotFound,
)
from services.common.paging import PageOf

# Changes of one agent that meet are made one after the other, at most this many times over.
_ATTEMPTS = 10
# With these the memory service has made nothing.
_REFUSALS = (Refused, InvalidArgument, NotFound, AlreadyExists, FailedPrecondition)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewAgent:
    """A request for an agent. `blocks` are drafts as the memory service takes them, with ids."""

    agent_id: UUID
    draft: AgentDraft
    blocks: Sequence[Any] = ()
    block_ids: tuple[UUID, ...] = ()
    tool_names: tuple[str, ...] = ()
    include_base_tools: bool = True


@dataclass(frozen=True, slots=True)
class Described:
    """An agent with its blocks and tools, as their services gave them."""

    agent: Agent
    blocks: Sequence[Any] = ()
    tools: Sequence[Any] = ()


class Administration:
    """What AgentService does. `defaults` are the handles of agents whose clients name none."""

    def __init__(
        self,
        store: AgentStore,
        memories: AgentMemories,
        tools: ToolCatalogue,
        models: ModelCatalogue,
        defaults: Defaults,
    ) -> None:
        self._store = store
        self._memories = memories
        self._tools = tools
        self._models = models
        self._defaults = defaults

    # One agent -----------------------------------------------------------------------------------------------------

    async def create(self, caller: CallContext, new: NewAgent) -> Described:
        """Makes an agent, or returns the one with that id. Raises Refused, LociError; then nothing is left behind."""
        draft = agents.check(new.draft)
        if not await self._store.reserve(caller.organization_id, new.agent_id, caller.user_id):
            return await self._existing(caller.organization_id, new.agent_id)
        try:
            settings, tools = await self._resolve(caller.organization_id, draft, new)
            blocks = await self._create_blocks(new)
        except _REFUSALS:
            await self._store.release(caller.organization_id, new.agent_id)
            raise
        agent = await self._store.insert(caller.organization_id, new.agent_id, caller.user_id, settings)
        if agent is None:
            return await self._existing(caller.organization_id, new.agent_id)
        return Described(agent, blocks, [tool.tool for tool in tools])

    async def get(self, organization_id: UUID, agent_id: UUID) -> Described:
        """Raises NotFound (AGENT_NOT_FOUND)."""
        return await self._describe_one(await self._store.get(organization_id, agent_id))

    async def update(self, caller: CallContext, agent_id: UUID, draft: AgentDraft, names: Sequence[str]) -> Described:
        """Changes the settings that are named. Raises Refused, LociError."""
        mask, draft = agents.check_mask(names), agents.check(draft)
        organization_id = caller.organization_id
        if "tool_ids" in mask:
            await self._existing_tools(draft.tool_ids, ())
        if "embedding" in mask and draft.embedding is not None:
            await self._models.check_embedding(organization_id, draft.embedding)

        async def changed(before: AgentSettings) -> AgentSettings:
            model = (draft.model or self._defaults.model) if "model" in mask else before.model
            # Only these two depend on the model, and a model that is gone must not hinder the other changes.
            needed = mask & {"model", "context_window_limit"}
            window = await self._models.window(organization_id, model) if needed else 0
            return agents.change(before, draft, mask, window=window, defaults=self._defaults)

        return await self._change(caller, agent_id, changed)

    async def attach_tool(self, caller: CallContext, agent_id: UUID, tool_id: UUID) -> Described:
        """Raises NotFound (AGENT_NOT_FOUND, TOOL_NOT_FOUND)."""
        await self._existing_tools((tool_id,), ())

        async def changed(before: AgentSettings) -> AgentSettings:
            return agents.with_tools(before, (*before.tool_ids, tool_id))

        return await self._change(caller, agent_id, changed)

    async def detach_tool(self, caller: CallContext, agent_id: UUID, tool_id: UUID) -> Described:
        """Raises NotFound (AGENT_NOT_FOUND)."""

        async def changed(before: AgentSettings) -> AgentSettings:
            return agents.with_tools(before, (each for each in before.tool_ids if each != tool_id))

        return await self._change(caller, agent_id, changed)

    async def delete(self, caller: CallContext, agent_id: UUID) -> None:
        """Gone for readers at once; what hangs on it follows by the outbox. Raises NotFound (AGENT_NOT_FOUND)."""
        await self._store.delete(caller.organization_id, agent_id, caller.user_id)

    # Many ----------------------------------------------------------------------------------------------------------

    async def list(self, organization_id: UUID, wanted: AgentList, *, relations: bool) -> PageOf[Described]:
        """One page in one statement and, with `relations`, two RPCs. Raises Refused, LociError."""
        page = await self._store.list(organization_id, wanted)
        described = await self._describe(page.items) if relations else map(Described, page.items)
        return PageOf(tuple(described), page.next_token)

    async def _describe(self, found: Sequence[Agent]) -> Sequence[Described]:
        tool_ids = agents.unique(tool_id for agent in found for tool_id in agent.settings.tool_ids)
        blocks, tools = await together(self._memories.blocks([agent.id for agent in found]), self._tools.find(tool_ids))
        by_id = {tool.id: tool.tool for tool in tools}
        return [
            # A deleted tool dangles until the agent's tools are set anew.
            Described(
                agent, blocks.get(agent.id, ()), [by_id[each] for each in agent.settings.tool_ids if each in by_id]
            )
            for agent in found
        ]

    async def _describe_one(self, agent: Agent) -> Described:
        described = await self._describe([agent])
        return described[0]

    # Parts ---------------------------------------------------------------------------------------------------------

    async def _existing(self, organization_id: UUID, agent_id: UUID) -> Described:
        try:
            return await self.get(organization_id, agent_id)
        except NotFound:
            sentence = (
                f"The id agent-{agent_id} is that of an agent that was deleted or could not be made; use another."
            )
            raise AlreadyExists(sentence, reason="AGENT_ID_TAKEN") from None

    async def _resolve(
        self, organization_id: UUID, draft: AgentDraft, new: NewAgent
    ) -> tuple[AgentSettings, tuple[CatalogueTool, ...]]:
        base = BASE_TOOLS[draft.agent_type or LETTA_V1_AGENT] if new.include_base_tools else ()
        window, tools, _ = await together(
            self._models.window(organization_id, draft.model or self._defaults.model),
            self._existing_tools(draft.tool_ids, (*base, *new.tool_names)),
            self._check_embedding(organization_id, draft.embedding),
        )
        settings = agents.begin(draft, (tool.id for tool in tools), window=window, defaults=self._defaults)
        return settings, tools

    async def _existing_tools(self, tool_ids: Sequence[UUID], names: Sequence[str]) -> tuple[CatalogueTool, ...]:
        """The tools, those given by name first. Raises NotFound (TOOL_NOT_FOUND), naming what there is not."""
        names = tuple(dict.fromkeys(names))
        found = await self._tools.find(tool_ids, names)
        by_name, by_id = {tool.name: tool for tool in found}, {tool.id: tool for tool in found}
        missing = [name for name in names if name not in by_name]
        missing += [f"tool-{tool_id}" for tool_id in tool_ids if tool_id not in by_id]
        if missing:
            raise NotFound(f"Tools not found: {', '.join(missing)}", reason="TOOL_NOT_FOUND")
        ordered = agents.unique([*(by_name[name].id for name in names), *tool_ids])
        return tuple(by_id[tool_id] for tool_id in ordered)

    async def _check_embedding(self, organization_id: UUID, handle: str | None) -> None:
        if handle is not None:
            await self._models.check_embedding(organization_id, handle)

    async def _create_blocks(self, new: NewAgent) -> Sequence[Any]:
        if not new.blocks and not new.block_ids:
            return ()
        return await self._memories.create(new.agent_id, new.blocks, new.block_ids)

    async def _change(
        self,
        caller: CallContext,
        agent_id: UUID,
        changed: Callable[[AgentSettings], Awaitable[AgentSettings]],
    ) -> Described:
        for _ in range(_ATTEMPTS):
            before = await self._store.get(caller.organization_id, agent_id)
            settings = await changed(before.settings)
            if settings == before.settings:
                return await self._describe_one(before)
            after = await self._store.update(caller.organization_id, caller.user_id, before, settings)
            if after is not None:
                return await self._describe_one(after)
        sentence = f"agent-{agent_id} is being changed by others all the time; try again."
        raise Aborted(sentence, reason="AGENT_VERSION_CONFLICT")


async def together(*calls: Awaitable[Any]) -> list[Any]:
    """The results of calls made at the same time; all have ended when the first error is raised."""
    outcomes = await asyncio.gather(*calls, return_exceptions=True)
    for outcome in outcomes:
        if isinstance(outcome, BaseException):
            raise outcome
    return outcomes
