"""Agents made, read, changed and removed: across services, without a transaction that spans them.

Parts are created first and the agent's row last: it is the commit point. A reservation in the outbox, written before
the parts and gone with the commit, has the parts swept when no agent follows.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from services.agent.core.messages import Message
from services.agent.core.rules.renaming import rename, with_approval_of
from services.agent.resources.agents.catalogues import Catalogues, together, with_their_approvals
from services.agent.resources.agents.gates import (
    Gates,
    check_own_rules,
    gates_of_new_tools,
    gates_over,
    with_gates,
)
from services.agent.resources.agents.model import settings as agents
from services.agent.resources.agents.model.base_tools import (
    BASE_TOOLS,
    FILE_TOOLS,
    LETTA_V1_AGENT,
    has_base_rules,
    with_approvals,
    with_base_rules,
    without_approval,
)
from services.agent.resources.agents.model.boot_messages import boot_messages
from services.agent.resources.agents.model.checks import SettingValues, check
from services.agent.resources.agents.model.settings import Agent, AgentSettings, Defaults
from services.agent.resources.agents.model.sleeptime import (
    Partner,
    has_partner,
    ids_at_creation,
    lacks_partner,
)
from services.agent.resources.agents.model.state import AgentState, NewAgent
from services.agent.resources.agents.ports import (
    AgentList,
    AgentMemories,
    AgentStore,
    Attachments,
    CatalogueTool,
    ModelCatalogue,
    ToolCatalogue,
)
from services.agent.resources.agents.sleeptime import Partners
from services.agent.resources.concurrency import until_stored
from services.agent.resources.identities.ports import IdentityStore
from services.agent.resources.messages.ports import Prompts
from services.agent.resources.refusals import REFUSALS
from services.common.context import CallContext
from services.common.core.paging import PageBy, PageOf
from services.common.errors import AlreadyExists, NotFound
from services.common.ids import from_public, uuid7

# The settings that file_limits follows from.
_FILE_LIMITS = {"model", "context_window_limit", "max_files_open", "per_file_view_window_char_limit"}


class Agents:
    """Creates, reads, changes and deletes agents. `defaults`: handles of agents whose clients name none."""

    def __init__(
        self,
        store: AgentStore,
        memories: AgentMemories,
        tools: ToolCatalogue,
        models: ModelCatalogue,
        defaults: Defaults,
        identities: IdentityStore,
        prompts: Prompts,
    ) -> None:
        self._store = store
        self._identities = identities
        self._memories = memories
        self._tools = tools
        self._catalogues = Catalogues(tools, models)
        self._defaults = defaults
        self._prompts = prompts
        self._partners = Partners(store, memories, prompts)

    # One agent -----------------------------------------------------------------------------------------------------

    async def create(self, caller: CallContext, new: NewAgent) -> AgentState:
        """Makes an agent, or returns the one with that id. Raises Refused, LociError; then nothing is left behind."""
        values = check(new.settings)
        check_own_rules(caller, values.get("tool_rules") or ())
        gates = await gates_over(self._store, caller)
        if not await self._store.reserve(caller.organization_id, new.agent_id, caller.user_id):
            return await self.get_existing(caller.organization_id, new.agent_id)
        partner = None
        try:
            settings, tools = await self._resolve(caller.organization_id, values, new, gates)
            if new.identity_ids:
                await self._identities.check(caller.organization_id, new.identity_ids)
            if new.secrets:
                await self._tools.set_secrets(new.agent_id, new.secrets)
            blocks = await self._create_blocks(new)
            for folder_id in new.folder_ids:
                await self._memories.attach_folder(new.agent_id, folder_id, settings.file_limits)
            if has_partner(settings):
                partner = await self._partner(caller, new.agent_id, settings, blocks, ids_at_creation(new.agent_id))
        except REFUSALS:
            if new.folder_ids or values.get("enable_sleeptime"):
                # The blocks and some of the folders may be attached.
                await self._memories.purge(new.agent_id, erase_blocks=True)
            if new.secrets:
                await self._tools.purge_secrets(new.agent_id)
            await self._store.release(caller.organization_id, new.agent_id)
            raise
        agent = await self._store.insert(
            caller.organization_id,
            new.agent_id,
            caller.user_id,
            settings,
            _messages(new, settings),
            new.identity_ids,
            partner,
        )
        if agent is None:
            return await self.get_existing(caller.organization_id, new.agent_id)
        await self._prompts.rewrite(caller.organization_id, agent, agent.id)
        if partner:
            await self._partners.begin(caller, partner.agent_id)
        if new.folder_ids or new.identity_ids or partner:
            return await self.get(caller.organization_id, new.agent_id)
        return AgentState(agent, blocks, [tool.tool for tool in tools])

    async def get(self, organization_id: UUID, agent_id: UUID) -> AgentState:
        """Raises NotFound (AGENT_NOT_FOUND)."""
        return await self._describe_one(await self._store.get(organization_id, agent_id))

    async def update(
        self,
        caller: CallContext,
        agent_id: UUID,
        values: SettingValues,
        secrets: Mapping[str, str] | None = None,
        identity_ids: Sequence[UUID] | None = None,
    ) -> AgentState:
        """Changes settings, and makes `secrets` and `identity_ids` all there are.

        Raises Refused, LociError.
        """
        values = check(values)
        organization_id = caller.organization_id
        if identity_ids is not None:
            await self._identities.check(organization_id, identity_ids)
        check_own_rules(caller, values.get("tool_rules") or ())
        gates = await gates_over(self._store, caller)
        tools = await self._catalogues.tools(values.get("tool_ids") or (), ())
        await self._catalogues.check_embedding(organization_id, values.get("embedding"))

        async def changed(before: AgentSettings) -> AgentSettings:
            model = (values["model"] or self._defaults.model) if "model" in values else before.model
            # Only these two depend on the model, and a model that is gone must not hinder the other changes.
            needed = values.keys() & {"model", "context_window_limit"}
            window = await self._catalogues.window(organization_id, model) if needed else 0
            after = agents.change(before, values, window=window, defaults=self._defaults)
            after = after if "tool_rules" in values else with_their_approvals(after, before, tools)
            return gates_of_new_tools(after, before, tools, gates)

        if secrets is not None:
            await self._store.get(organization_id, agent_id)
            await self._tools.set_secrets(agent_id, secrets)
        try:
            described = await self.change(caller, agent_id, changed)
        except NotFound:
            if secrets is not None:
                # Deleted meanwhile, and its secrets erased perhaps before these came.
                await self._tools.purge_secrets(agent_id)
            raise
        if described.folders and values.keys() & _FILE_LIMITS:
            limits = described.agent.settings.file_limits
            await self._memories.attach_folder(agent_id, from_public("source", described.folders[0].id), limits)
        if lacks_partner(described.agent, values):
            ids = uuid7(), uuid7()
            partner = await self._partner(caller, agent_id, described.agent.settings, described.blocks, ids)
            await self._partners.join(caller, agent_id, partner)
            described = await self.get(organization_id, agent_id)
        if identity_ids is None:
            return described
        await self._identities.set_of_agent(organization_id, agent_id, identity_ids)
        return await self.get(organization_id, agent_id)

    async def attach_tool(self, caller: CallContext, agent_id: UUID, tool_id: UUID) -> AgentState:
        """Raises NotFound (AGENT_NOT_FOUND, TOOL_NOT_FOUND)."""
        tools = await self._catalogues.tools((tool_id,), ())
        gates = await gates_over(self._store, caller)

        async def changed(before: AgentSettings) -> AgentSettings:
            after = agents.with_tools(before, (*before.tool_ids, tool_id))
            return gates_of_new_tools(with_their_approvals(after, before, tools), before, tools, gates)

        return await self.change(caller, agent_id, changed)

    async def detach_tool(self, caller: CallContext, agent_id: UUID, tool_id: UUID) -> AgentState:
        """Raises NotFound (AGENT_NOT_FOUND)."""

        async def changed(before: AgentSettings) -> AgentSettings:
            return agents.with_tools(before, (each for each in before.tool_ids if each != tool_id))

        return await self.change(caller, agent_id, changed)

    async def set_tool_approval(
        self, caller: CallContext, agent_id: UUID, tool_name: str, *, required: bool
    ) -> AgentState:
        """Whether calls of an attached tool wait for approval. Raises NotFound (AGENT_NOT_FOUND, TOOL_NOT_FOUND)."""

        async def changed(before: AgentSettings) -> AgentSettings:
            without = without_approval(before.tool_rules, tool_name)
            # A rule about a tool that is not attached any more can be taken away all the same.
            if without == before.tool_rules:
                await self._catalogues.check_attached(before, tool_name)
            after = with_approvals(before.tool_rules, (tool_name,)) if required else without
            return replace(before, tool_rules=after)

        return await self.change(caller, agent_id, changed)

    async def rename_tool(self, caller: CallContext, tool_id: UUID, old: str, new: str, *, only_approvals: bool) -> int:
        """Has the rules of all agents with the tool follow its name; returns how many changed. Raises Aborted.

        `only_approvals`: calls under both names wait from now on, so that none passes while the tool changes its name.
        """

        async def changed(before: AgentSettings) -> AgentSettings:
            follow = with_approval_of if only_approvals else rename
            return replace(before, tool_rules=follow(before.tool_rules, old, new))

        organization_id = caller.organization_id
        agent_ids = await self._store.with_rules_of(organization_id, tool_id, old)
        for agent_id in agent_ids:
            with suppress(NotFound):  # deleted meanwhile
                await self._change(caller, agent_id, changed)
        return len(agent_ids)

    async def reset_messages(self, caller: CallContext, agent_id: UUID) -> AgentState:
        """Begins its default conversation anew. Raises NotFound (AGENT_NOT_FOUND), Aborted (CONVERSATION_BUSY)."""
        return await self._describe_one(await self._store.reset_messages(caller.organization_id, agent_id))

    async def delete(self, caller: CallContext, agent_id: UUID) -> None:
        """Gone for readers at once; what hangs on it follows by the outbox. Raises NotFound (AGENT_NOT_FOUND)."""
        await self._store.delete(caller.organization_id, agent_id, caller.user_id)

    # Many ----------------------------------------------------------------------------------------------------------

    async def list(self, organization_id: UUID, filters: AgentList, *, relations: bool) -> PageOf[AgentState]:
        """Returns one page in one statement and, with `relations`, two RPCs. Raises Refused, LociError."""
        page = await self._store.list(organization_id, filters)
        described = await self._describe(page.items) if relations else map(AgentState, page.items)
        return PageOf(tuple(described), page.next_token)

    async def count(self, organization_id: UUID, filters: AgentList) -> int:
        """Returns how many the list would have on all its pages."""
        return await self._store.count(organization_id, filters)

    async def tags(self, organization_id: UUID, page: PageBy[str], query_text: str) -> Sequence[str]:
        """Returns a page of the tags of the tenant's agents that hold a text."""
        return await self._store.tags(organization_id, page, query_text)

    async def _describe(self, found: Sequence[Agent]) -> Sequence[AgentState]:
        tool_ids = agents.unique(tool_id for agent in found for tool_id in agent.settings.tool_ids)
        attached, tools = await together(
            self._memories.attachments([agent.id for agent in found]), self._catalogues.find(tool_ids)
        )
        by_id = {tool.id: tool.tool for tool in tools}
        return [
            AgentState(
                agent,
                attachments.blocks,
                # A deleted tool dangles until the agent's tools are set anew.
                [by_id[each] for each in agent.settings.tool_ids if each in by_id],
                attachments.folders,
                attachments.files,
            )
            for agent in found
            for attachments in (attached.get(agent.id, Attachments()),)
        ]

    async def _describe_one(self, agent: Agent) -> AgentState:
        described = await self._describe([agent])
        return described[0]

    # Parts ---------------------------------------------------------------------------------------------------------

    async def get_existing(self, organization_id: UUID, agent_id: UUID) -> AgentState:
        """Returns the agent that has an id which cannot be given to another. Raises AlreadyExists (AGENT_ID_TAKEN)."""
        try:
            return await self.get(organization_id, agent_id)
        except NotFound:
            sentence = (
                f"The id agent-{agent_id} is that of an agent that was deleted or could not be made; use another."
            )
            raise AlreadyExists(sentence, reason="AGENT_ID_TAKEN") from None

    async def _resolve(
        self, organization_id: UUID, values: SettingValues, new: NewAgent, gates: Gates = ()
    ) -> tuple[AgentSettings, tuple[CatalogueTool, ...]]:
        agent_type = values.get("agent_type") or LETTA_V1_AGENT
        base = BASE_TOOLS[agent_type] if new.include_base_tools else ()
        names = (*base, *new.tool_names, *(FILE_TOOLS if new.folder_ids else ()))
        window, tools, _ = await together(
            self._catalogues.window(organization_id, values.get("model") or self._defaults.model),
            self._catalogues.tools(values.get("tool_ids") or (), names),
            self._catalogues.check_embedding(organization_id, values.get("embedding")),
        )
        rules = values.get("tool_rules") or ()
        if has_base_rules(agent_type) if new.include_base_tool_rules is None else new.include_base_tool_rules:
            rules = with_base_rules(rules, (tool.name for tool in tools))
        rules = with_gates(with_approvals(rules, (tool.name for tool in tools if tool.needs_approval)), gates)
        tool_ids = (tool.id for tool in tools)
        return agents.begin(values, tool_ids, rules, window=window, defaults=self._defaults), tools

    async def _partner(
        self,
        caller: CallContext,
        agent_id: UUID,
        settings: AgentSettings,
        blocks: Sequence[Any],
        ids: tuple[UUID, UUID],
    ) -> Partner:
        async def resolve(new: NewAgent) -> AgentSettings:
            return (await self._resolve(caller.organization_id, check(new.settings), new))[0]

        return await self._partners.prepare(caller, agent_id, settings, blocks, ids, resolve)

    async def _create_blocks(self, new: NewAgent) -> Sequence[Any]:
        if not new.blocks and not new.block_ids:
            return ()
        return await self._memories.create(new.agent_id, new.blocks, new.block_ids)

    async def change(
        self,
        caller: CallContext,
        agent_id: UUID,
        changed: Callable[[AgentSettings], Awaitable[AgentSettings]],
    ) -> AgentState:
        """Stores what `changed` makes of the settings, anew as long as others change them. Raises NotFound, Aborted."""
        return await self._describe_one(await self._change(caller, agent_id, changed))

    async def _change(
        self,
        caller: CallContext,
        agent_id: UUID,
        changed: Callable[[AgentSettings], Awaitable[AgentSettings]],
    ) -> Agent:
        async def attempt() -> Agent | None:
            before = await self._store.get(caller.organization_id, agent_id)
            settings = await changed(before.settings)
            if settings == before.settings:
                return before
            return await self._store.update(caller.organization_id, caller.user_id, before, settings)

        return await until_stored(attempt, name=f"agent-{agent_id}", reason="AGENT_VERSION_CONFLICT")


def _messages(new: NewAgent, settings: AgentSettings) -> tuple[Message, ...]:
    """Returns what the conversation begins with: the client's messages, or those of the agent type."""
    if new.messages or not new.include_default_messages:
        return new.messages
    return boot_messages(settings.agent_type, settings.timezone, datetime.now(UTC), uuid7)
