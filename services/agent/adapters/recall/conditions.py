"""SQL for where a search looks and what it leaves out, and how its statements are planned."""

from collections.abc import Sequence
from typing import Any

import asyncpg

from services.agent.core.recall.query import MessageFilter, Scope, lexeme_of_agent, lexeme_of_tenant
from services.common.core.ranking import any_of

# The expression of the index `messages_by_words`, letter for letter.
WORDS = (
    "({alias}.search || array_to_tsvector(ARRAY['@' || replace({alias}.agent_id::text, '-', ''),"
    " '@@' || replace({alias}.organization_id::text, '-', '')]))"
)
# Plans for these values: a plan for any tenant would be wrong for one that holds most of the rows. What a search reads
# is bounded, so reading a whole table is never right.
_PLANNED = "SELECT set_config('plan_cache_mode', 'force_custom_plan', true), set_config('enable_seqscan', 'off', true)"
_IN_RANGES = """EXISTS (
        SELECT FROM unnest({logs}::uuid[], {firsts}::bigint[], {lasts}::bigint[]) AS part (log_id, first, last)
        WHERE {alias}.log_id = part.log_id AND {alias}.seq BETWEEN part.first AND part.last)"""
# A client's answers are found where they are: in the returns that came of them, or where nothing came of them, as they
# were given.
_NOT_ANSWERED = """NOT (m.role = 'approval' AND EXISTS (
        SELECT FROM agent.messages t WHERE t.organization_id = $1 AND t.run_id = m.run_id AND t.role = 'tool'))"""


class Parameters(list[object]):
    """The values of a statement, in the order in which its parts name them."""

    def add(self, value: object) -> str:
        """Adds one more and returns its name."""
        self.append(value)
        return f"${len(self)}"


async def fetch_rows(pool: asyncpg.Pool, statement: str, values: Sequence[object], *planned: str) -> Sequence[Any]:
    """Returns the rows; `planned`: statements that hold for this transaction alone."""
    async with pool.acquire() as connection, connection.transaction(readonly=True):
        await connection.execute(_PLANNED)
        for setting in planned:
            await connection.execute(setting)
        rows: Sequence[Any] = await connection.fetch(statement, *values)
        return rows


def lexemes_of(scope: Scope) -> str:
    """Returns the lexemes of the scope's agents, or of the tenant, in tsquery's notation."""
    agents = scope.agent_ids
    return any_of(map(lexeme_of_agent, agents) if agents else [lexeme_of_tenant(scope.organization_id)])


def scope_condition(scope: Scope, values: Parameters, alias: str = "m") -> str:
    """Returns SQL for rows `alias` of a scope, with log_id, seq and agent_id; the tenant is $1."""
    where = f"{alias}.organization_id = $1"
    if scope.is_tenant:
        return where
    parts = [] if scope.agent_id is None else [f"{alias}.agent_id = {values.add(scope.agent_id)}"]
    if scope.ranges or scope.agent_id is None:
        parts.append(range_condition(scope, values, alias))
    return f"{where} AND ({' OR '.join(parts)})"


def range_condition(scope: Scope, values: Parameters, alias: str) -> str:
    """Returns SQL for rows `alias` in one of the scope's ranges."""
    logs, firsts, lasts = range_values(scope, values)
    return _IN_RANGES.format(alias=alias, logs=logs, firsts=firsts, lasts=lasts)


def range_values(scope: Scope, values: Parameters) -> tuple[str, str, str]:
    """Returns the names of the ranges' logs, firsts and lasts."""
    ranges = scope.ranges
    return (
        values.add([part.log_id for part in ranges]),
        values.add([part.first for part in ranges]),
        values.add([part.last for part in ranges]),
    )


def filter_condition(filters: MessageFilter, values: Parameters, alias: str = "m", *, key: str = "id") -> str:
    """Returns SQL for rows `alias` (with role and created_at) of a filter; `key`: the column of a message's id."""
    parts = [f"{alias}.role = ANY({values.add(list(filters.roles))}::text[])", time_condition(filters, values, alias)]
    if filters.unseen:
        parts.append(f"{alias}.{key} <> ALL({values.add(list(filters.unseen))}::uuid[])")
    return " AND ".join(parts)


def time_condition(filters: MessageFilter, values: Parameters, alias: str = "m") -> str:
    """Returns SQL for rows `alias` made when a filter says."""
    parts = ["true"]
    if filters.start is not None:
        parts.append(f"{alias}.created_at >= {values.add(filters.start)}")
    if filters.end is not None:
        parts.append(f"{alias}.created_at <= {values.add(filters.end)}")
    return " AND ".join(parts)


def repeat_exclusion(filters: MessageFilter, values: Parameters) -> str:
    """Returns SQL for messages `m` that do not merely repeat the question, or what stands elsewhere."""
    parts = ["true"]
    if filters.asked_in is not None:
        parts.append(
            f"NOT (m.role = 'assistant' AND m.step_id IS NOT DISTINCT FROM {values.add(filters.asked_in)}::uuid)"
        )
    if "approval" in filters.roles:
        parts.append(_NOT_ANSWERED)
    return " AND ".join(parts)
