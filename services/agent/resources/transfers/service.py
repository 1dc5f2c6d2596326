"""Moving agents in and out, with what was said.

Parts are put aside as they come, and written in one transaction when all are there: no transaction waits for the client
or for a peer. A claim on each agent is renewed until then, so nobody else makes an agent of that id meanwhile. What
memory and the tool runner attach to an agent has no transaction with that: it is taken back when something later is
wrong, and swept when this process dies first.
"""

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
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
from services.agent.resources.agents.ports import AgentMemories, ToolCatalogue
from services.agent.resources.conversations import model as conversations
from services.agent.resources.transfers.model import (
    ImportedAgent,
    ImportedConversation,
    ImportedGroup,
    ImportedMessages,
    Importer,
    ImportPart,
    ImportResult,
    Log,
    invalid,
)
from services.agent.resources.transfers.ports import ImportWriter, TransferMemories, TransferStore
from services.common.context import CallContext
from services.common.core.refusals import Refused
from services.common.core.storable import storable
from services.common.database import DRIVER_ERRORS
from services.common.errors import DeadlineExceeded, InvalidArgument, LociError, NotFound, Unavailable
from services.common.ids import uuid7

logger = logging.getLogger(__name__)

MOST_AGENTS = 1_000
LONGEST_NAME = 256
# Imports at the same time, and how long each may take, in seconds.
_AT_ONCE = 2
_SECONDS = 3_600.0
# A claim that is not renewed for a minute is whoever's comes next.
RENEW_SECONDS = 15.0
_CLAIM_SECONDS = 75.0
_LOOK_SECONDS = 0.5


class Transfers:
    """Imports and exports agents."""

    def __init__(
        self,
        store: TransferStore,
        memories: AgentMemories,
        attachments: TransferMemories,
        tools: ToolCatalogue,
        catalogues: Catalogues,
        defaults: Defaults,
    ) -> None:
        self._store = store
        self._memories = memories
        self._attachments = attachments
        self._tools = tools
        self._catalogues = catalogues
        self._defaults = defaults
        self._places = asyncio.Semaphore(_AT_ONCE)

    async def import_agents(self, caller: CallContext, parts: AsyncIterator[ImportPart]) -> ImportResult:
        """Stores all of it or nothing. Raises Refused, LociError."""
        begun: list[UUID] = []
        importer = Importer(caller.organization_id, caller.user_id, uuid7())
        try:
            async with self._places, asyncio.timeout(_SECONDS), self._renewed(importer, begun):
                return await self._import(importer, parts, begun)
        except TimeoutError:
            await self._take_back(importer, begun)
            raise DeadlineExceeded(f"the import took more than {_SECONDS:.0f} s; nothing was stored") from None
        except (LociError, Refused, asyncio.CancelledError):
            # Cancelled: the caller went away.
            await self._take_back(importer, begun)
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

    async def _import(self, importer: Importer, parts: AsyncIterator[ImportPart], begun: list[UUID]) -> ImportResult:
        logs: dict[UUID, Log] = {}
        agent_ids: list[UUID] = []
        async with self._store.open_writer(importer) as writing:
            async for part in parts:
                match part:
                    case ImportedAgent():
                        _check_new(part.id, logs)
                        if len(agent_ids) == MOST_AGENTS:
                            raise invalid(f"an import has at most {MOST_AGENTS} agents")
                        log = logs[part.id] = Log(part.id, part.id, uuid7())
                        agent_ids.append(part.id)
                        await self._agent(importer, writing, part, log, begun)
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
                        writing.messages(of, first, [message for message, _ in part.messages])
                    case ImportedGroup():
                        for agent_id in part.members:
                            _check_named(agent_id, agent_ids, "a group")
                        writing.group(part)
                    case _:
                        assert_never(part)
            if not agent_ids:
                raise invalid("an import has at least one agent")
            for log in logs.values():
                writing.head(log)
        return ImportResult(tuple(agent_ids), sum(log.next_seq - 1 for log in logs.values()))

    async def _agent(
        self, importer: Importer, writing: ImportWriter, new: ImportedAgent, log: Log, begun: list[UUID]
    ) -> None:
        settings = await self._settings(importer.organization_id, new)
        await self._claim(importer, new.id)
        begun.append(new.id)
        writing.agent(new, settings, log)
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
        writing.conversation(new, labels, log)

    # Claims ---------------------------------------------------------------------------------------------------------

    async def _claim(self, importer: Importer, agent_id: UUID) -> None:
        """Waits for another import of this agent. Raises AlreadyExists (IMPORT_EXISTS), Unavailable."""
        try:
            async with asyncio.timeout(_CLAIM_SECONDS):
                while True:
                    if await self._store.claim(importer, agent_id):
                        return
                    await asyncio.sleep(_LOOK_SECONDS)
        except TimeoutError:
            raise Unavailable(f"agent-{agent_id} is being imported by another request; repeat this one later") from None

    @asynccontextmanager
    async def _renewed(self, importer: Importer, begun: Sequence[UUID]) -> AsyncIterator[None]:
        renewing = asyncio.create_task(self._renew(importer, begun))
        try:
            yield
        finally:
            renewing.cancel()
            await asyncio.wait([renewing])

    async def _renew(self, importer: Importer, begun: Sequence[UUID]) -> None:
        while True:
            await asyncio.sleep(RENEW_SECONDS * random.uniform(0.5, 1.0))
            try:
                await self._store.renew(importer, begun)
            except (OSError, LociError, *DRIVER_ERRORS) as error:
                # An agent whose claim is lost is not stored.
                logger.warning("the claims of import %s were not renewed: %r", importer.import_id, error)

    async def _take_back(self, importer: Importer, begun: Sequence[UUID]) -> None:
        """Detaches what was attached to agents that were not stored."""
        for agent_id in await self._store.renew(importer, begun):
            try:
                await self._memories.purge(agent_id, erase_blocks=False)
                await self._tools.purge_secrets(agent_id)
            except LociError as error:
                # The claim stays, and with it the order to do this within the hour.
                logger.warning("what was attached to agent-%s is taken back later: %r", agent_id, error)
                continue
            await self._store.release(importer, agent_id)


def _name(given: str | None) -> str | None:
    """As another server had it, whatever its rules."""
    name = " ".join(storable(given or "").split())[:LONGEST_NAME]
    return name or None


def _check_named(agent_id: UUID, agent_ids: Sequence[UUID], where: str) -> None:
    if agent_id not in agent_ids:
        raise invalid(f"{where} names agent-{agent_id}, which was not named before")


def _check_new(new_id: UUID, logs: Mapping[UUID, Log]) -> None:
    """Before anything is asked: the second one would wait for the first."""
    if new_id in logs:
        raise invalid(f"{new_id} is the id of two agents or conversations")
