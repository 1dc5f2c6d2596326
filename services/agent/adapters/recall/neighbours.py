"""The neighbours of messages: what was said just before and after in the log."""

from collections.abc import Sequence
from uuid import UUID

import asyncpg

from services.agent.adapters.recall.conditions import (
    Parameters,
    fetch_rows,
    filter_condition,
    repeat_exclusion,
    scope_condition,
)
from services.agent.core.recall.query import MessageFilter, Scope
from services.common.core.neighbours import LONGEST_GAP, Neighbour

# Between two messages that count may stand some that do not: calls, their returns, summaries.
_REACH = 20
_NEIGHBOURS = """
WITH giver AS MATERIALIZED (
    SELECT g.id, g.log_id, g.seq, g.created_at FROM agent.messages g
    WHERE g.organization_id = $1 AND g.id = ANY({ids}::uuid[])
)
SELECT giver.id, beside.id AS neighbour, beside.distance::int
FROM giver CROSS JOIN LATERAL (
    SELECT later.id, row_number() OVER (ORDER BY later.seq) AS distance FROM (
        SELECT m.id, m.seq FROM agent.messages m
        WHERE m.organization_id = $1 AND m.log_id = giver.log_id AND m.seq > giver.seq AND m.seq <= giver.seq + {reach}
            AND m.created_at <= giver.created_at + {gap}::interval AND {where}
        ORDER BY m.seq LIMIT {steps}) AS later
    UNION ALL
    SELECT earlier.id, -row_number() OVER (ORDER BY earlier.seq DESC) FROM (
        SELECT m.id, m.seq FROM agent.messages m
        WHERE m.organization_id = $1 AND m.log_id = giver.log_id AND m.seq < giver.seq AND m.seq >= giver.seq - {reach}
            AND m.created_at >= giver.created_at - {gap}::interval AND {where}
        ORDER BY m.seq DESC LIMIT {steps}) AS earlier
) AS beside
"""


class NeighbourLists:
    """The part of `ports.Rankings` that finds neighbours."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool

    async def neighbours(
        self, scope: Scope, message_ids: Sequence[UUID], filters: MessageFilter, steps: int
    ) -> list[Neighbour[UUID]]:
        """See `ports.Rankings`."""
        values = Parameters([scope.organization_id])
        conditions = (
            scope_condition(scope, values),
            filter_condition(filters, values),
            repeat_exclusion(filters, values),
        )
        statement = _NEIGHBOURS.format(
            ids=values.add(list(message_ids)),
            reach=_REACH,
            gap=values.add(LONGEST_GAP),
            where=" AND ".join(conditions),
            steps=values.add(steps),
        )
        return [Neighbour(*row) for row in await fetch_rows(self._pool, statement, values)]
