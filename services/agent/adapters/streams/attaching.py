"""Finding the background run that a client means: by an otid it sent, or because it is active in a conversation."""

from uuid import UUID

import asyncpg

_BY_KEY = """
SELECT r.id FROM agent.run_keys k JOIN agent.runs r ON r.organization_id = $1 AND r.id = k.run_id
WHERE k.organization_id = $1 AND k.key = $2 AND r.background
"""

# The one whose turn it is, else the one that has waited longest.
_ACTIVE = """
SELECT id FROM agent.runs
WHERE organization_id = $1 AND conversation_id = $2 AND background AND status IN ('running', 'created')
ORDER BY status = 'running' DESC, created_at LIMIT 1
"""


_VIEW = "SELECT options ->> 'view' FROM agent.runs WHERE organization_id = $1 AND id = $2"


class PostgresAttaching:
    """`core.ports_streams.BackgroundRuns`."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool

    async def view(self, organization_id: UUID, run_id: UUID) -> str:
        view: str | None = await self._pool.fetchval(_VIEW, organization_id, run_id)
        return view or ""

    async def by_key(self, organization_id: UUID, key: str) -> UUID | None:
        run_id: UUID | None = await self._pool.fetchval(_BY_KEY, organization_id, key)
        return run_id

    async def active(self, organization_id: UUID, conversation_id: UUID) -> UUID | None:
        run_id: UUID | None = await self._pool.fetchval(_ACTIVE, organization_id, conversation_id)
        return run_id
