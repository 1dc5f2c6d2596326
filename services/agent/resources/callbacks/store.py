"""Outcomes of callbacks in Postgres."""

from uuid import UUID

import asyncpg

# $3 status code, $4 error
_NOTE = """
UPDATE agent.runs SET callback_sent_at = clock_timestamp(), callback_status_code = $3, callback_error = $4
WHERE organization_id = $1 AND id = $2
"""


class PostgresCallbackLog:
    """`resources.callbacks.ports.CallbackLog`."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool

    async def note(self, organization_id: UUID, run_id: UUID, status_code: int | None, error: str | None) -> None:
        await self._pool.execute(_NOTE, organization_id, run_id, status_code, error)
