"""Conversations made, forked, read, changed and removed: as agents are, copies of blocks first and the row last."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import UUID

from services.agent.resources.agents.model.settings import PendingApproval
from services.agent.resources.agents.ports import AgentStore, ModelCatalogue
from services.agent.resources.conversations import model as conversations
from services.agent.resources.conversations.model import Conversation, ConversationSettings, SettingValues
from services.agent.resources.conversations.ports import (
    ConversationEraser,
    ConversationList,
    ConversationMemories,
    ConversationStore,
    NewConversation,
)
from services.agent.resources.messages.ports import History, Prompts
from services.agent.resources.outbox.ports import OutboxEntry
from services.agent.resources.outbox.service import Handler
from services.common.context import CallContext
from services.common.core.paging import PageOf
from services.common.core.refusals import Refused
from services.common.errors import AlreadyExists, InvalidArgument, NotFound

# With these the memory service has copied nothing.
_REFUSALS = (Refused, InvalidArgument, NotFound)


@dataclass(frozen=True, slots=True)
class ConversationState:
    """A conversation, the messages of its window and its copies of blocks; None: not asked for."""

    conversation: Conversation
    window: tuple[UUID, ...] | None = None
    isolated_block_ids: tuple[UUID, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Fork:
    """A fork into the conversation `new_id`. `message_id`: the last one to take; None: all."""

    new_id: UUID
    agent_id: UUID | None
    # The agent's default conversation has its id.
    source_id: UUID
    message_id: UUID | None = None
    hidden: bool = False


class Conversations:
    """Creates, forks, reads, changes and deletes conversations."""

    def __init__(
        self,
        store: ConversationStore,
        memories: ConversationMemories,
        agents: AgentStore,
        models: ModelCatalogue,
        history: History,
        prompts: Prompts,
    ) -> None:
        self._store = store
        self._memories = memories
        self._agents = agents
        self._models = models
        self._history = history
        self._prompts = prompts

    async def create(
        self,
        caller: CallContext,
        conversation_id: UUID,
        agent_id: UUID,
        values: SettingValues,
        labels: Sequence[str],
    ) -> ConversationState:
        """Makes a conversation, or returns the one with that id. Raises Refused, LociError."""
        values, isolated_labels = conversations.check(values), conversations.check_labels(labels)
        agent = await self._agents.get(caller.organization_id, agent_id)
        window = await self._window(caller, values, ConversationSettings(), agent.settings.model)
        settings = conversations.begin(values, window=window, now=datetime.now(UTC))
        new = NewConversation(
            organization_id=caller.organization_id,
            id=conversation_id,
            agent_id=agent_id,
            user_id=caller.user_id,
            isolated_labels=isolated_labels,
        )
        return await self.make(new, lambda: self._isolate(new, None), lambda: self._store.insert(new, settings))

    async def fork(self, caller: CallContext, fork: Fork) -> ConversationState:
        """Makes a conversation that begins with another's messages. Raises LociError."""
        organization_id = caller.organization_id
        agent_id, labels = await self.owner(organization_id, fork.agent_id, fork.source_id)
        cut = None
        if fork.message_id is not None:
            cut = await self._store.place(organization_id, fork.source_id, fork.message_id)
        new = NewConversation(
            organization_id=organization_id,
            id=fork.new_id,
            agent_id=agent_id,
            user_id=caller.user_id,
            isolated_labels=labels,
        )
        return await self.make(
            new,
            lambda: self._isolate(new, fork.source_id),
            lambda: self._store.fork(new, fork.source_id, cut, hidden=fork.hidden),
        )

    async def get(self, organization_id: UUID, conversation_id: UUID, *, relations: bool = True) -> ConversationState:
        """Raises NotFound (CONVERSATION_NOT_FOUND)."""
        conversation = await self._store.get(organization_id, conversation_id)
        return await self._describe(organization_id, conversation) if relations else ConversationState(conversation)

    async def list(self, organization_id: UUID, filters: ConversationList) -> PageOf[Conversation]:
        """Returns one page. Raises Refused, LociError."""
        return await self._store.list(organization_id, filters)

    async def waiting(self, organization_id: UUID, agent_id: UUID) -> Sequence[tuple[UUID, PendingApproval]]:
        """Returns what waits for the client, by the ids of the conversations."""
        return await self._store.waiting(organization_id, agent_id)

    async def update(self, caller: CallContext, conversation_id: UUID, values: SettingValues) -> ConversationState:
        """Changes settings. Raises Refused, LociError."""
        values = conversations.check(values)
        organization_id = caller.organization_id
        before = await self._store.get(organization_id, conversation_id)
        agent = await self._agents.get(organization_id, before.agent_id)
        window = await self._window(caller, values, before.settings, agent.settings.model)
        stored = conversations.change(before.settings, values, window=window, now=datetime.now(UTC))
        after = await self._store.update(organization_id, caller.user_id, conversation_id, stored) if stored else before
        return await self._describe(organization_id, after)

    async def delete(self, caller: CallContext, conversation_id: UUID) -> None:
        """Gone for readers at once; what hangs on it follows by the outbox. Raises NotFound."""
        await self._store.delete(caller.organization_id, conversation_id, caller.user_id)

    async def recompile(
        self, organization_id: UUID, agent_id: UUID | None, conversation_id: UUID, *, dry_run: bool
    ) -> str:
        """Returns the system prompt compiled anew, and stores it unless `dry_run`. Raises NotFound."""
        if agent_id != conversation_id:
            agent_id = (await self._of_agent(organization_id, agent_id, conversation_id)).agent_id
        conversation = await self._history.conversation(organization_id, agent_id, conversation_id)
        compile_prompt = self._prompts.compiled if dry_run else self._prompts.rewrite
        return await compile_prompt(organization_id, conversation.agent, conversation_id)

    async def make(
        self,
        new: NewConversation,
        isolate: Callable[[], Awaitable[tuple[UUID, ...]]],
        insert: Callable[[], Awaitable[Conversation | None]],
    ) -> ConversationState:
        """Stores copies of blocks under a reservation, then the row. Raises LociError."""
        copies: tuple[UUID, ...] = ()
        if new.isolated_labels:
            if not await self._store.reserve(new):
                return await self._get_existing(new)
            try:
                copies = await isolate()
            except _REFUSALS:
                await self._store.release(new)
                raise
        conversation = await insert()
        if conversation is None:
            return await self._get_existing(new)
        its_place = await self._history.conversation(new.organization_id, new.agent_id, new.id)
        await self._prompts.rewrite(new.organization_id, its_place.agent, new.id)
        window = await self._store.window(new.organization_id, new.id)
        return ConversationState(conversation, window, copies)

    async def owner(
        self, organization_id: UUID, agent_id: UUID | None, conversation_id: UUID
    ) -> tuple[UUID, tuple[str, ...]]:
        """Returns the agent of a conversation, and the labels of the copies that it has. Raises NotFound."""
        if agent_id == conversation_id:
            return (await self._agents.get(organization_id, conversation_id)).id, ()
        source = await self._of_agent(organization_id, agent_id, conversation_id)
        return source.agent_id, source.isolated_labels

    async def _isolate(self, new: NewConversation, source_id: UUID | None) -> tuple[UUID, ...]:
        return await self._memories.isolate(new.agent_id, new.id, new.isolated_labels, source_id)

    async def _get_existing(self, new: NewConversation) -> ConversationState:
        try:
            conversation = await self._store.get(new.organization_id, new.id)
        except NotFound:
            conversation = None
        if conversation is None or conversation.agent_id != new.agent_id:
            sentence = f"The id conv-{new.id} is that of a conversation that is not this one; use another."
            raise AlreadyExists(sentence, reason="CONVERSATION_ID_TAKEN")
        return await self._describe(new.organization_id, conversation)

    async def _of_agent(self, organization_id: UUID, agent_id: UUID | None, conversation_id: UUID) -> Conversation:
        conversation = await self._store.get(organization_id, conversation_id)
        if agent_id not in (None, conversation.agent_id):
            raise conversation_not_found(conversation_id)
        return conversation

    async def _describe(self, organization_id: UUID, conversation: Conversation) -> ConversationState:
        window = await self._store.window(organization_id, conversation.id)
        copies: tuple[UUID, ...] = ()
        if conversation.isolated_labels:
            copies = await self._memories.isolated_block_ids(conversation.agent_id, conversation.id)
        return ConversationState(conversation, window, copies)

    async def _window(
        self,
        caller: CallContext,
        values: SettingValues,
        before: ConversationSettings,
        of_agent: str,
    ) -> int:
        """Returns tokens of the window of the model after a change; 0 where it does not matter."""
        model = conversations.window_model(values, before.model, of_agent)
        return 0 if model is None else await self._models.window(caller.organization_id, model)


def conversation_not_found(conversation_id: UUID) -> NotFound:
    """Returns the error for a conversation that is not there."""
    return NotFound(f"Conversation conv-{conversation_id} not found", reason="CONVERSATION_NOT_FOUND")


def handlers(memories: ConversationMemories, eraser: ConversationEraser) -> Mapping[str, Handler]:
    """Returns what handles each kind of outbox entry about a conversation; its payload names the agent."""

    def agent_of(order: OutboxEntry) -> UUID:
        return UUID(order.payload["agent_id"])

    async def purge_conversation_orphan(order: OutboxEntry) -> bool:
        # A create that was repeated after its conversation was there reserves it once more.
        if not await eraser.exists(order.organization_id, order.subject_id):
            await memories.purge_conversation(agent_of(order), order.subject_id)
        return True

    # A run that still goes on may yet write there.
    async def purge_conversation(order: OutboxEntry) -> bool:
        if not await eraser.stop(order.organization_id, order.subject_id):
            return False
        await memories.purge_conversation(agent_of(order), order.subject_id)
        return True

    async def erase_conversation(order: OutboxEntry) -> bool:
        return await eraser.erase(order.organization_id, order.subject_id)

    return {each.__name__: each for each in (purge_conversation_orphan, purge_conversation, erase_conversation)}
