"""Time travel: the checkpoints of a conversation, going back to one, going on from one elsewhere.

Messages are shared by reference, blocks are asked for by version. Rewinds are in `rewinds.py`. Forks make their parts
first and their row last, as all that is new.
"""

from dataclasses import dataclass
from uuid import UUID

from services.agent.resources.agents.model.checks import check
from services.agent.resources.agents.model.state import AgentState
from services.agent.resources.agents.ports import AgentStore
from services.agent.resources.agents.service import Agents
from services.agent.resources.checkpoints.model import Checkpoint, CheckpointRef, with_edits
from services.agent.resources.checkpoints.ports import (
    AgentFork,
    CheckpointStore,
    Inheritance,
    NewRewind,
    Point,
    Rewind,
    VersionedMemories,
)
from services.agent.resources.checkpoints.rewinds import Rewinds
from services.agent.resources.checkpoints.versions import versions_at
from services.agent.resources.conversations import model as conversations
from services.agent.resources.conversations.ports import NewConversation
from services.agent.resources.conversations.service import Conversations, ConversationState
from services.agent.resources.refusals import REFUSALS
from services.common.context import CallContext
from services.common.core.paging import PageOf
from services.common.core.storable import storable
from services.common.errors import AlreadyExists


@dataclass(frozen=True, slots=True)
class ConversationRef:
    """A conversation, and its agent where that is given. The default conversation has the agent's id."""

    agent_id: UUID | None
    conversation_id: UUID


class Checkpoints:
    """Lists checkpoints, rewinds conversations and forks them."""

    def __init__(
        self,
        store: CheckpointStore,
        memories: VersionedMemories,
        agent_store: AgentStore,
        agents: Agents,
        conversations: Conversations,
        rewinds: Rewinds,
    ) -> None:
        self._store = store
        self._rewinds = rewinds
        self._memories = memories
        self._agent_store = agent_store
        self._agents = agents
        self._conversations = conversations

    async def list(
        self, organization_id: UUID, where: ConversationRef, *, size: int, token: str, after: CheckpointRef | None
    ) -> PageOf[Checkpoint]:
        """Returns one page, newest first: two statements and one RPC. Raises Refused, LociError."""
        await self._conversations.owner(organization_id, where.agent_id, where.conversation_id)
        last = None
        if after is not None:
            last = (await self._store.find(organization_id, where.conversation_id, after)).checkpoint
        page = await self._store.list(organization_id, where.conversation_id, size=size, token=token, after=last)
        run_ids = [run_id for each in page.items for run_id in each.run_ids]
        edits = await self._memories.edits(run_ids) if run_ids else ()
        return PageOf(tuple(with_edits(each, edits) for each in page.items), page.next_token)

    async def rewind(
        self, caller: CallContext, where: ConversationRef, to: CheckpointRef, *, keep_blocks: bool, rewind_id: UUID
    ) -> Rewind:
        """Makes a conversation end at a checkpoint. Raises LociError."""
        agent_id, _ = await self._conversations.owner(caller.organization_id, where.agent_id, where.conversation_id)
        new = NewRewind(
            organization_id=caller.organization_id,
            user_id=caller.user_id,
            conversation_id=where.conversation_id,
            id=rewind_id,
            to=to,
        )
        return await self._rewinds.make(new, agent_id, keep_blocks=keep_blocks)

    async def rewinds(self, organization_id: UUID, where: ConversationRef, *, size: int, token: str) -> PageOf[Rewind]:
        """Returns one page, newest first. Raises Refused, LociError."""
        await self._conversations.owner(organization_id, where.agent_id, where.conversation_id)
        return await self._store.rewinds(organization_id, where.conversation_id, size=size, token=token)

    async def fork(
        self,
        caller: CallContext,
        where: ConversationRef,
        at: CheckpointRef,
        new_id: UUID,
        *,
        isolate_blocks: bool,
        hidden: bool,
    ) -> ConversationState:
        """Makes a conversation of the same agent. Raises Refused, LociError."""
        organization_id, source_id = caller.organization_id, where.conversation_id
        agent_id, labels = await self._conversations.owner(organization_id, where.agent_id, source_id)
        point = await self._store.find(organization_id, source_id, at)
        blocks = await self._memories.blocks(agent_id, source_id)
        if isolate_blocks:
            labels = conversations.check_labels(block.label for block in blocks)
        versions = (
            await versions_at(self._store, self._memories, organization_id, agent_id, source_id, point, blocks)
            if labels
            else {}
        )
        new = NewConversation(
            organization_id=organization_id,
            id=new_id,
            agent_id=agent_id,
            user_id=caller.user_id,
            isolated_labels=labels,
        )
        return await self._conversations.make(
            new,
            lambda: self._memories.isolate(agent_id, new_id, labels, source_id, versions),
            lambda: self._store.fork(new, source_id, point, reserved=bool(labels), hidden=hidden),
        )

    async def fork_agent(
        self, caller: CallContext, where: ConversationRef, at: CheckpointRef, new_id: UUID, name: str
    ) -> tuple[AgentState, Inheritance]:
        """Makes an agent with a past that it shares. Raises Refused, LociError."""
        organization_id, source_id = caller.organization_id, where.conversation_id
        values = check({"name": storable(name) or None})
        agent_id, _ = await self._conversations.owner(organization_id, where.agent_id, source_id)
        point = await self._store.find(organization_id, source_id, at)
        if await self._agent_store.reserve(organization_id, new_id, caller.user_id):
            try:
                inheritance = await self._copy_parts(organization_id, agent_id, source_id, new_id, point)
            except REFUSALS:
                await self._agent_store.release(organization_id, new_id)
                raise
            fork = AgentFork(
                organization_id=organization_id,
                user_id=caller.user_id,
                id=new_id,
                conversation_id=source_id,
                name=values["name"],
                inheritance=inheritance,
            )
            if await self._store.fork_agent(fork, point):
                return await self._agents.get(organization_id, new_id), inheritance
        described = await self._agents.get_existing(organization_id, new_id)
        existing = await self._store.inheritance(organization_id, new_id)
        if existing is None:
            sentence = f"The id agent-{new_id} is that of an agent that is no fork; use another."
            raise AlreadyExists(sentence, reason="AGENT_ID_TAKEN")
        return described, existing

    # Blocks --------------------------------------------------------------------------------------------------------

    async def _copy_parts(
        self, organization_id: UUID, agent_id: UUID, source_id: UUID, new_id: UUID, point: Point
    ) -> Inheritance:
        """Copies the blocks as they were, and attaches the archives."""
        blocks = await self._memories.blocks(agent_id, source_id)
        versions = await versions_at(self._store, self._memories, organization_id, agent_id, source_id, point, blocks)
        copies = await self._memories.copy(agent_id, source_id, new_id, versions, f"fork {new_id}")
        archives = await self._memories.share_archives(agent_id, new_id)
        return Inheritance(point.checkpoint.message.id, copies, archives)
