"""Partners made: their parts, before the transaction that makes them agents.

Each has a reservation of its own, as every new agent: without the commit that follows its parts are swept.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any
from uuid import UUID

from services.agent.resources.agents.convert import memory_persona
from services.agent.resources.agents.model.settings import AgentSettings
from services.agent.resources.agents.model.sleeptime import Partner, group_of, needs_persona, partner_values
from services.agent.resources.agents.model.state import NewAgent
from services.agent.resources.agents.ports import AgentMemories, AgentStore
from services.agent.resources.messages.ports import Prompts
from services.agent.resources.refusals import REFUSALS
from services.common.context import CallContext
from services.common.errors import NotFound
from services.common.ids import from_public

# With these the memory service has made nothing.
# The settings of a new agent, from what its request says.
Resolve = Callable[[NewAgent], Awaitable[AgentSettings]]


class Partners:
    """Prepares the partners of agents, and drops those that were not needed."""

    def __init__(self, store: AgentStore, memories: AgentMemories, prompts: Prompts) -> None:
        self._store = store
        self._memories = memories
        self._prompts = prompts

    async def prepare(
        self,
        caller: CallContext,
        agent_id: UUID,
        settings: AgentSettings,
        blocks: Sequence[Any],
        ids: tuple[UUID, UUID],
        resolve: Resolve,
    ) -> Partner:
        """Makes the parts of an agent's partner; nothing when the id is taken, which the store will see.

        `blocks`: those of the first agent. Raises Refused, LociError; then nothing is left behind.
        """
        partner_id, group_id = ids
        new = NewAgent(agent_id=partner_id, settings=partner_values(settings))
        partner = Partner(
            agent_id=partner_id,
            settings=await resolve(new),
            group_id=group_id,
            group=group_of(agent_id, partner_id),
        )
        if await self._store.reserve(caller.organization_id, partner_id, caller.user_id):
            own = [memory_persona(partner_id)] if needs_persona(block.label for block in blocks) else []
            try:
                await self._memories.create(partner_id, own, [from_public("block", block.id) for block in blocks])
            except REFUSALS:
                await self._store.release(caller.organization_id, partner_id)
                raise
        return partner

    async def join(self, caller: CallContext, agent_id: UUID, partner: Partner) -> None:
        """Stores the partner of an agent that is there; it is dropped where that one has a group meanwhile.

        Raises NotFound (AGENT_NOT_FOUND).
        """
        try:
            stored = await self._store.insert_partner(caller.organization_id, caller.user_id, agent_id, partner)
        except NotFound:
            await self._drop(caller, partner.agent_id)
            raise
        await (self.begin if stored else self._drop)(caller, partner.agent_id)

    async def begin(self, caller: CallContext, partner_id: UUID) -> None:
        """Writes the prompt of a partner that was stored."""
        agent = await self._store.get(caller.organization_id, partner_id)
        await self._prompts.rewrite(caller.organization_id, agent, partner_id)

    async def _drop(self, caller: CallContext, partner_id: UUID) -> None:
        await self._memories.purge(partner_id, erase_blocks=True)
        await self._store.release(caller.organization_id, partner_id)
