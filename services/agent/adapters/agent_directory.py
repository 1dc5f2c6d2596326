"""`core.ports_agents.AgentDirectory` on Postgres."""

from collections.abc import Sequence
from uuid import UUID

import asyncpg

from services.agent.core.ports_agents import AgentName

# $1 organization, $2 tags to have all of, $3 tags to have one of, empty for any, $4 most
_TAGGED = """
SELECT id, name FROM agent.agents
WHERE organization_id = $1 AND deleted_at IS NULL AND tags @> $2::text[]
    AND ($3::text[] = '{}' OR tags && $3::text[])
ORDER BY created_at, id LIMIT $4
"""


class PostgresAgentDirectory:
    """See the port."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool

    async def tagged(
        self, organization_id: UUID, match_all: Sequence[str], match_some: Sequence[str], most: int
    ) -> list[AgentName]:
        rows = await self._pool.fetch(_TAGGED, organization_id, list(match_all), list(match_some), most)
        return [AgentName(row["id"], row["name"]) for row in rows]
