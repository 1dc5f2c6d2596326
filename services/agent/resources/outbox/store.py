"""The outbox in Postgres."""

from collections.abc import Sequence

import asyncpg

from services.agent.resources.outbox.ports import OutboxEntry

# Being claimed counts as an attempt and puts the order off: who dies with it loses it to the others.
# $1 most, $2 lease in seconds, $3 kinds
_CLAIM = """
WITH due AS (
    SELECT organization_id, id FROM agent.outbox WHERE not_before <= now() AND kind = ANY($3)
    ORDER BY not_before LIMIT $1 FOR UPDATE SKIP LOCKED
)
UPDATE agent.outbox o SET attempts = o.attempts + 1, not_before = now() + make_interval(secs => $2)
FROM due WHERE o.organization_id = due.organization_id AND o.id = due.id
RETURNING o.organization_id, o.id, o.kind, o.subject_id, o.attempts, o.payload
"""
# Only as long as nobody else has claimed it meanwhile: $3 attempts
_DONE = "DELETE FROM agent.outbox WHERE organization_id = $1 AND id = $2 AND attempts = $3"
# $4 seconds, $5 error
_RETRY = """
UPDATE agent.outbox SET not_before = now() + make_interval(secs => $4), last_error = coalesce($5, last_error)
WHERE organization_id = $1 AND id = $2 AND attempts = $3
"""


class PostgresOutbox:
    """`resources.outbox.ports.Outbox`."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool

    async def claim(self, kinds: Sequence[str], most: int, lease: float) -> Sequence[OutboxEntry]:
        return [OutboxEntry(**row) for row in await self._pool.fetch(_CLAIM, most, lease, kinds)]

    async def done(self, order: OutboxEntry) -> None:
        await self._pool.execute(_DONE, order.organization_id, order.id, order.attempts)

    async def retry(self, order: OutboxEntry, seconds: float, error: str | None) -> None:
        await self._pool.execute(_RETRY, order.organization_id, order.id, order.attempts, seconds, error)
