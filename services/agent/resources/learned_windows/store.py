"""Windows of models as calls showed them. The turn path writes and reads them itself; see LEARN_WINDOW in sql.py."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

import asyncpg

_LIST = """
SELECT model, tokens, learned_at FROM agent.learned_windows
WHERE organization_id = $1 AND learned_at > now() - interval '7 days' ORDER BY model
"""
_FORGET = "DELETE FROM agent.learned_windows WHERE organization_id = $1 AND model = $2"


class PostgresLearnedWindows:
    """Learned windows of tenants: model, tokens, learned_at."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool

    async def list(self, organization_id: UUID) -> Sequence[Mapping[str, Any]]:
        """Returns all that hold now, by model."""
        rows: Sequence[Mapping[str, Any]] = await self._pool.fetch(_LIST, organization_id)
        return rows

    async def forget(self, organization_id: UUID, model: str) -> None:
        """Forgets one; nothing happens when it is not there."""
        await self._pool.execute(_FORGET, organization_id, model)
