"""`resources.groups.turns.GroupLogs` on Postgres."""

from collections.abc import Sequence
from uuid import UUID

import asyncpg

from services.agent.core.ports_agents import AgentName
from services.common.ids import uuid7

# The agent that stands for a group: it is in no list, has no memory and asks no model.
# $1 organization, $2 group, $3 user
_AGENT = """
INSERT INTO agent.agents (organization_id, id, name, agent_type, system, model, embedding, context_window_limit,
                          created_by_id, last_updated_by_id, hidden)
VALUES ($1, $2::uuid, 'group-' || $2::uuid, 'letta_v1_agent', '', '', '', 32000, $3, $3, true)
ON CONFLICT (organization_id, id) DO NOTHING RETURNING id
"""
_CONVERSATION = """
INSERT INTO agent.conversations (organization_id, id, agent_id, created_by_id) VALUES ($1, $2, $2, $3)
"""
# $3 log
_SEGMENT = """
INSERT INTO agent.conversation_segments (organization_id, conversation_id, ordinal, log_id, from_seq)
VALUES ($1, $2, 0, $3, 1)
"""
_HEAD = "INSERT INTO agent.conversation_heads (organization_id, conversation_id, log_id) VALUES ($1, $2, $3)"
# $2 agents
_NAMES = """
SELECT a.id, a.name FROM unnest($2::uuid[]) WITH ORDINALITY AS wanted(id, place)
JOIN agent.agents a ON a.organization_id = $1 AND a.id = wanted.id AND a.deleted_at IS NULL
ORDER BY place
"""


class PostgresGroupLogs:
    """See the port."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool

    async def open(
        self, organization_id: UUID, user_id: UUID, group_id: UUID, agent_ids: Sequence[UUID]
    ) -> list[AgentName]:
        async with self._pool.acquire() as connection, connection.transaction():
            if await connection.fetchval(_AGENT, organization_id, group_id, user_id) is not None:
                log_id = uuid7()
                await connection.execute(_CONVERSATION, organization_id, group_id, user_id)
                await connection.execute(_SEGMENT, organization_id, group_id, log_id)
                await connection.execute(_HEAD, organization_id, group_id, log_id)
            rows = await connection.fetch(_NAMES, organization_id, list(agent_ids))
        return [AgentName(row["id"], row["name"]) for row in rows]
