"""Messages that were found, read whole."""

from collections.abc import Sequence
from uuid import UUID

import asyncpg

from services.agent.adapters.recall.conditions import (
    Parameters,
    fetch_rows,
    filter_condition,
    range_values,
    repeat_exclusion,
    scope_condition,
)
from services.agent.core.recall.query import MessageFilter, MessageHit, Scope
from services.agent.postgres.rows import message_from_row
from services.common.core.fusion import FusedScore

_COLUMNS = """m.id, m.role, m.content, m.name, m.otid, m.sender_id, m.run_id, m.step_id, m.seq, m.created_at,
    m.agent_id, m.conversation_id"""
# Of an agent that is deleted, what is not erased yet, or lives on as the past of another, is that one's alone.
_PRESENT = """EXISTS (
        SELECT FROM agent.agents a WHERE a.organization_id = $1 AND a.id = m.agent_id AND a.deleted_at IS NULL)"""
_BY_IDS = f"""
SELECT {_COLUMNS}
FROM unnest({{ids}}::uuid[]) WITH ORDINALITY AS wanted (id, place)
JOIN agent.messages m ON m.organization_id = $1 AND m.id = wanted.id
WHERE {{where}}
ORDER BY wanted.place LIMIT {{limit}}
"""
_NEWEST = f"""
SELECT {_COLUMNS} FROM ({{parts}}) m ORDER BY m.created_at DESC, m.id DESC LIMIT {{limit}}
"""
_OF_AGENT = """
    (SELECT m.* FROM agent.messages m WHERE m.organization_id = $1 AND m.agent_id = {agent} AND {where}
     ORDER BY m.created_at DESC LIMIT {limit})
"""
_OF_RANGES = """
    (SELECT one.* FROM unnest({logs}::uuid[], {firsts}::bigint[], {lasts}::bigint[]) AS part (log_id, first, last)
     CROSS JOIN LATERAL (
        SELECT m.* FROM agent.messages m
        WHERE m.organization_id = $1 AND m.log_id = part.log_id AND m.seq BETWEEN part.first AND part.last AND {where}
        ORDER BY m.seq DESC LIMIT {limit}) one)
"""
# The newest messages are in the conversations that were spoken in last.
_OF_TENANT = """
    (SELECT one.* FROM (
        SELECT h.log_id FROM agent.conversation_heads h
        WHERE h.organization_id = $1 ORDER BY h.last_message_at DESC NULLS LAST, h.conversation_id LIMIT {limit}
     ) head CROSS JOIN LATERAL (
        SELECT m.* FROM agent.messages m
        WHERE m.organization_id = $1 AND m.log_id = head.log_id AND {where}
        ORDER BY m.seq DESC LIMIT {limit}) one)
"""


class MessageHits:
    """The part of `ports.Rankings` that reads messages."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool

    async def newest(self, scope: Scope, filters: MessageFilter, limit: int) -> list[MessageHit]:
        """See `ports.Rankings`."""
        values = Parameters([scope.organization_id])
        where, most = f"{filter_condition(filters, values)} AND {repeat_exclusion(filters, values)}", values.add(limit)
        parts = []
        if scope.is_tenant:
            parts.append(_OF_TENANT.format(where=f"{where} AND {_PRESENT}", limit=most))
        if scope.agent_id is not None:
            parts.append(_OF_AGENT.format(agent=values.add(scope.agent_id), where=where, limit=most))
        if scope.ranges:
            logs, firsts, lasts = range_values(scope, values)
            parts.append(_OF_RANGES.format(logs=logs, firsts=firsts, lasts=lasts, where=where, limit=most))
        if not parts:
            return []
        rows = await fetch_rows(self._pool, _NEWEST.format(parts="UNION ALL".join(parts), limit=most), values)
        return [_found(row, FusedScore(row["id"], 0.0)) for row in rows]

    async def found(
        self, scope: Scope, ranked: Sequence[FusedScore[UUID]], filters: MessageFilter, limit: int
    ) -> list[MessageHit]:
        """See `ports.Rankings`."""
        values = Parameters([scope.organization_id])
        where = f"{scope_condition(scope, values)} AND {repeat_exclusion(filters, values)}"
        if scope.is_tenant:
            where += f" AND {_PRESENT}"
        statement = _BY_IDS.format(ids=values.add([one.key for one in ranked]), where=where, limit=values.add(limit))
        by_id = {one.key: one for one in ranked}
        return [_found(row, by_id[row["id"]]) for row in await self._pool.fetch(statement, *values)]


def _found(row: asyncpg.Record, ranked: FusedScore[UUID]) -> MessageHit:
    return MessageHit(message_from_row(row), row["agent_id"], row["conversation_id"], ranked)
