"""The scope of a search: the past of an agent, a conversation, or all of a tenant."""

from uuid import UUID

import asyncpg

from services.agent.core.recall.query import Range, Scope
from services.common.errors import NotFound
from services.common.ids import to_public

_LAST = 9_223_372_036_854_775_807

_TENANT = "SELECT coalesce(sum(next_seq - 1), 0) FROM agent.conversation_heads WHERE organization_id = $1"
_AGENT = """
SELECT a.embedding, (
    SELECT coalesce(sum(h.next_seq - 1), 0) FROM agent.conversations c
    JOIN agent.conversation_heads h ON h.organization_id = $1 AND h.conversation_id = c.id
    WHERE c.organization_id = $1 AND c.agent_id = $2
) AS messages
FROM agent.agents a WHERE a.organization_id = $1 AND a.id = $2 AND a.deleted_at IS NULL
"""
_CONVERSATION = """
SELECT c.agent_id, a.embedding FROM agent.conversations c
JOIN agent.agents a ON a.organization_id = $1 AND a.id = c.agent_id AND a.deleted_at IS NULL
WHERE c.organization_id = $1 AND c.id = $2 AND c.deleted_at IS NULL AND ($3::uuid IS NULL OR c.agent_id = $3)
"""
# All messages of a log are of one agent.
_RANGES = f"""
SELECT s.log_id, s.from_seq, coalesce(s.to_seq, h.next_seq - 1, {_LAST}) AS to_seq, (
    SELECT m.agent_id FROM agent.messages m
    WHERE m.organization_id = $1 AND m.log_id = s.log_id AND m.seq >= s.from_seq ORDER BY m.seq LIMIT 1) AS agent_id
FROM %s
LEFT JOIN agent.conversation_heads h ON h.organization_id = $1 AND h.log_id = s.log_id AND h.conversation_id = $2
WHERE s.organization_id = $1 AND s.%s = $2
ORDER BY s.ordinal
"""
# What it inherited from the agent that it was made from.
_INHERITED = _RANGES % ("agent.inherited_segments s", "agent_id")
_SEGMENTS = _RANGES % ("agent.conversation_segments s", "conversation_id")


class Scopes:
    """The part of `ports.Rankings` that knows where to search."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool

    async def scope(self, organization_id: UUID, agent_id: UUID | None, conversation_id: UUID | None) -> Scope:
        """See `ports.Rankings`."""
        if agent_id is not None:
            scope = await self._agent(organization_id, agent_id)
            if conversation_id is None:
                return scope
        if conversation_id is not None:
            return await self._conversation(organization_id, agent_id, conversation_id)
        messages = await self._pool.fetchval(_TENANT, organization_id)
        return Scope(organization_id, None, (), (), int(messages), None)

    async def _agent(self, organization_id: UUID, agent_id: UUID) -> Scope:
        row = await self._pool.fetchrow(_AGENT, organization_id, agent_id)
        if row is None:
            raise NotFound(f"Agent {to_public('agent', agent_id)} not found", reason="AGENT_NOT_FOUND")
        inherited = await self._pool.fetch(_INHERITED, organization_id, agent_id)
        ranges = [part for part in inherited if part["agent_id"] not in (None, agent_id)]
        messages = int(row["messages"]) + _length(ranges)
        return _scope(organization_id, agent_id, ranges, messages, row["embedding"])

    async def _conversation(self, organization_id: UUID, agent_id: UUID | None, conversation_id: UUID) -> Scope:
        row = await self._pool.fetchrow(_CONVERSATION, organization_id, conversation_id, agent_id)
        if row is None:
            name = to_public("conv", conversation_id)
            raise NotFound(f"Conversation {name} not found", reason="CONVERSATION_NOT_FOUND")
        ranges = await self._pool.fetch(_SEGMENTS, organization_id, conversation_id)
        scope = _scope(organization_id, None, ranges, _length(ranges), row["embedding"])
        # An empty conversation, too, is its agent's.
        return scope if scope.agent_ids else _scope(organization_id, None, (), 0, row["embedding"], row["agent_id"])


def _scope(
    organization_id: UUID,
    agent_id: UUID | None,
    ranges: "list[asyncpg.Record] | tuple[()]",
    messages: int,
    embedding: str,
    owner: UUID | None = None,
) -> Scope:
    agents = dict.fromkeys([agent_id, owner, *(part["agent_id"] for part in ranges)])
    return Scope(
        organization_id,
        agent_id,
        tuple(agent for agent in agents if agent is not None),
        tuple(Range(part["log_id"], part["from_seq"], part["to_seq"]) for part in ranges),
        messages,
        embedding,
    )


def _length(ranges: "list[asyncpg.Record]") -> int:
    return sum(max(part["to_seq"] - part["from_seq"] + 1, 0) for part in ranges)
