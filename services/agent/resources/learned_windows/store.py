"""Windows of models as calls showed them. The turn path writes and reads them itself; see LEARN_WINDOW in sql.py."""

from collections.abc import Sequence
from uuid import UUID

import asyncpg

from services.agent.resources.learned_windows.ports import LearnedWindow

_LIST = """
SELECT model, tokens, learned_at FROM agent.learned_windows
WHERE organization_id = $1 AND learned_at > now() - interval '7 days' ORDER BY model
"""
_FORGET = "DELETE FROM agent.learned_windows WHERE organization_id = $1 AND model = $2"


class PostgresLearnedWindows:
    """`resources.learned_windows.ports.LearnedWindowStore`."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool

    async def list(self, organization_id: UUID) -> Sequence[LearnedWindow]:
        return [LearnedWindow(**row) for row in await self._pool.fetch(_LIST, organization_id)]

    async def forget(self, organization_id: UUID, model: str) -> None:
        await self._pool.execute(_FORGET, organization_id, model)
