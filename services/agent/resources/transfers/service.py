"""Moving agents in and out, with what was said.

Parts are read as they come and written in one transaction, which begins with the agents' rows: each comes out of a
reservation, so nobody else makes an agent of that id meanwhile. What memory and the tool runner attach to an agent has
no transaction with that: it is taken back when something later is wrong, and swept when this process dies first.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import assert_never
from uuid import UUID

from services.agent.core.messages import Message
from services.agent.resources.agents.catalogues import Catalogues
from services.agent.resources.agents.model import settings as agents
from services.agent.resources.agents.model.base_tools import (
    BASE_TOOLS,
    LETTA_V1_AGENT,
    has_base_rules,
    with_base_rules,
)
from services.agent.resources.agents.model.checks import SettingValues, check
from services.agent.resources.agents.model.settings import AgentSettings, Defaults
from services.agent.resources.agents.ports import AgentMemories, AgentStore, ToolCatalogue
from services.agent.resources.conversations import model as conversations
from services.agent.resources.transfers.model import (
    ImportedAgent,
    ImportedConversation,
    ImportedGroup,
    ImportedMessages,
    ImportPart,
    ImportResult,
    Log,
    invalid,
)
from services.agent.resources.transfers.ports import ImportWriter, TransferMemories, TransferStore
from services.common.context import CallContext
from services.common.core.refusals import Refused
from services.common.core.storable import storable
from services.common.errors import AlreadyExists, DeadlineExceeded, InvalidArgument, LociError, NotFound
from services.common.ids import uuid7

logger = logging.getLogger(__name__)

MOST_AGENTS = 1_000
LONGEST_NAME = 256
# Imports that hold a connection at the same time, and for how long at most, in seconds.
_AT_ONCE = 2
_SECONDS = 3_600.0


class Transfers:
    """Imports and exports agents."""

    def __init__(
        self,
        store: TransferStore,
        agent_store: AgentStore,
        memories: AgentMemories,
        attachments: TransferMemories,
        tools: ToolCatalogue,
        catalogues: Catalogues,
        defaults: Defaults,
    ) -> None:
        self._store = store
        self._agents = agent_store
        self._memories = memories
        self._attachments = attachments
        self._tools = tools
        self._catalogues = catalogues
        self._defaults = defaults
        self._places = asyncio.Semaphore(_AT_ONCE)

    async def import_agents(self, caller: CallContext, parts: AsyncIterator[ImportPart]) -> ImportResult:
        """Stores all of it or nothing. Raises Refused, LociError."""
        begun: list[UUID] = []
        try:
            async with self._places, asyncio.timeout(_SECONDS):
                return await self._import(caller, parts, begun)
        except TimeoutError:
            await self._take_back(caller, begun)
            raise DeadlineExceeded(f"the import took more than {_SECONDS:.0f} s; nothing was stored") from None
        except (LociError, Refused, asyncio.CancelledError):
            # Cancelled: the caller went away.
            await self._take_back(caller, begun)
            raise

    async def find(self, organization_id: UUID, agent_ids: Sequence[UUID]) -> Sequence[UUID]:
        """Returns those of the agents that are there. Raises Refused (IMPORT_INVALID)."""
        if len(agent_ids) > MOST_AGENTS:
            raise invalid(f"agent_ids has {len(agent_ids)} ids; at most {MOST_AGENTS} are looked for at once")
        return await self._store.find(organization_id, agent_ids)

    async def messages(
        self, organization_id: UUID, agent_id: UUID, conversation_id: UUID, *, whole: bool
    ) -> AsyncIterator[tuple[Message, bool]]:
        """Yields the messages of a conversation, and whether each is in its window: those that are not come first.

        Raises NotFound (AGENT_NOT_FOUND, CONVERSATION_NOT_FOUND).
        """
        window = await self._store.window(organization_id, agent_id, conversation_id)
        if whole:
            in_window = {message.id for message in window}
            async for message in self._store.history(organization_id, conversation_id):
                if message.id not in in_window:
                    yield message, False
        for message in window:
            yield message, True

    # One import -----------------------------------------------------------------------------------------------------

    async def _import(self, caller: CallContext, parts: AsyncIterator[ImportPart], begun: list[UUID]) -> ImportResult:
        logs: dict[UUID, Log] = {}
        agent_ids: list[UUID] = []
        async with self._store.open_writer(caller.organization_id, caller.user_id) as writing:
            async for part in parts:
                match part:
                    case ImportedAgent():
                        _check_new(part.id, logs)
                        if len(agent_ids) == MOST_AGENTS:
                            raise invalid(f"an import has at most {MOST_AGENTS} agents")
                        log = logs[part.id] = Log(part.id, part.id, uuid7())
                        agent_ids.append(part.id)
                        await self._agent(caller, writing, part, log, begun)
                    case ImportedConversation():
                        _check_new(part.id, logs)
                        _check_named(part.agent_id, agent_ids, "agent_id")
                        log = logs[part.id] = Log(part.agent_id, part.id, uuid7())
                        await self._conversation(writing, part, log)
                    case ImportedMessages():
                        if (of := logs.get(part.conversation_id)) is None:
                            raise invalid(f"the conversation conv-{part.conversation_id} was not named before")
                        first = of.next_seq
                        of.add(part)
                        await writing.messages(of, first, [message for message, _ in part.messages])
                    case ImportedGroup():
                        for agent_id in part.members:
                            _check_named(agent_id, agent_ids, "a group")
                        await writing.group(part)
                    case _:
                        assert_never(part)
            if not agent_ids:
                raise invalid("an import has at least one agent")
            for log in logs.values():
                await writing.head(log)
        return ImportResult(tuple(agent_ids), sum(log.next_seq - 1 for log in logs.values()))

    async def _agent(
        self, caller: CallContext, writing: ImportWriter, new: ImportedAgent, log: Log, begun: list[UUID]
    ) -> None:
        settings = await self._settings(caller.organization_id, new)
        if not await self._agents.reserve(caller.organization_id, new.id, caller.user_id):
            raise _id_taken(new.id)
        begun.append(new.id)
        if not await writing.agent(new, settings, log):
            raise _id_taken(new.id)
        if new.block_ids:
            await self._memories.create(new.id, (), new.block_ids)
        for folder_id in new.folder_ids:
            await self._memories.attach_folder(new.id, folder_id, settings.file_limits)
        for archive_id in new.archive_ids:
            await self._attachments.attach_archive(new.id, archive_id)
        if new.secrets:
            await self._tools.set_secrets(new.id, new.secrets)

    async def _settings(self, organization_id: UUID, new: ImportedAgent) -> AgentSettings:
        try:
            values = {**check({**new.settings, "name": None}), "name": _name(new.settings.get("name"))}
        except Refused as refused:
            raise InvalidArgument(
                refused.message, reason=refused.reason, metadata={"entity": f"agent-{new.id}"}
            ) from None
        agent_type = values.get("agent_type") or LETTA_V1_AGENT
        base = BASE_TOOLS[agent_type] if new.include_base_tools else ()
        tools = await self._catalogues.tools(values.get("tool_ids") or (), base)
        rules = values.get("tool_rules") or ()
        if base and has_base_rules(agent_type):
            rules = with_base_rules(rules, base)
        window = await self._window(organization_id, values)
        tool_ids = (tool.id for tool in tools)
        return agents.begin(values, tool_ids, rules, window=window, defaults=self._defaults)

    async def _window(self, organization_id: UUID, values: SettingValues) -> int:
        """Returns tokens that the agent may have: what was asked for, whoever serves the model."""
        limit: int | None = values.get("context_window_limit")
        if limit is not None:
            return limit
        try:
            return await self._catalogues.window(organization_id, values.get("model") or self._defaults.model)
        except NotFound:
            return agents.LARGEST_DEFAULT_WINDOW

    async def _conversation(self, writing: ImportWriter, new: ImportedConversation, log: Log) -> None:
        conversations.check(new.settings)
        labels: tuple[str, ...] = ()
        if new.isolated_block_ids:
            labels = await self._attachments.adopt(new.agent_id, new.id, new.isolated_block_ids)
        await writing.conversation(new, labels, log)

    async def _take_back(self, caller: CallContext, begun: Sequence[UUID]) -> None:
        """Detaches what was attached to agents that were not stored."""
        for agent_id in begun:
            # Somebody else may have made it.
            if not await self._agents.reserve(caller.organization_id, agent_id, caller.user_id):
                continue
            try:
                await self._memories.purge(agent_id, erase_blocks=False)
                await self._tools.purge_secrets(agent_id)
            except LociError as error:
                # The reservation stays, and with it the order to do this within the hour.
                logger.warning("what was attached to agent-%s is taken back later: %r", agent_id, error)
                continue
            await self._agents.release(caller.organization_id, agent_id)


def _name(given: str | None) -> str | None:
    """As another server had it, whatever its rules."""
    name = " ".join(storable(given or "").split())[:LONGEST_NAME]
    return name or None


def _check_named(agent_id: UUID, agent_ids: Sequence[UUID], where: str) -> None:
    if agent_id not in agent_ids:
        raise invalid(f"{where} names agent-{agent_id}, which was not named before")


def _check_new(new_id: UUID, logs: Mapping[UUID, Log]) -> None:
    """Before anything is asked: a reservation waits for the transaction that has used it up."""
    if new_id in logs:
        raise invalid(f"{new_id} is the id of two agents or conversations")


def _id_taken(agent_id: UUID) -> AlreadyExists:
    return AlreadyExists(
        f"The id agent-{agent_id} is taken; nothing was stored",
        reason="IMPORT_EXISTS",
        metadata={"entity": f"agent-{agent_id}"},
    )
