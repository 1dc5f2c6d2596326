"""The frequency of words, estimated from a sample of messages all over a scope."""

from collections.abc import Mapping, Sequence

import asyncpg

from services.agent.adapters.recall.conditions import Parameters, fetch_rows, range_values
from services.agent.core.recall.query import Scope
from services.common.core.ranking import any_of

_SAMPLED = 300
# Of the largest logs.
_LOGS = 50

# Some places of each log, evenly, and as many of each as it is long.
_SHARES = f"""
WITH log AS MATERIALIZED (
    SELECT log_id, first, newest, sum(newest - first + 1) OVER () AS messages FROM (
        SELECT * FROM ({{logs}}) AS any_log (log_id, first, newest) ORDER BY newest - first DESC LIMIT {_LOGS}
    ) AS largest
), picked AS MATERIALIZED (
    SELECT m.search FROM log
    CROSS JOIN LATERAL generate_series(first, newest, greatest(messages / {_SAMPLED}, 1)::bigint) AS place
    JOIN agent.messages m ON m.organization_id = $1 AND m.log_id = log.log_id AND m.seq = place
    WHERE m.search IS NOT NULL
)
SELECT (SELECT count(*) FROM picked WHERE picked.search @@ term.query::tsquery)::float8
       / greatest((SELECT count(*) FROM picked), 1) AS share
FROM unnest({{queries}}::text[]) WITH ORDINALITY AS term (query, place) ORDER BY term.place
"""
_OF_TENANT = "SELECT log_id, 1::bigint, next_seq - 1 FROM agent.conversation_heads WHERE organization_id = $1"
_OF_AGENT = """
    SELECT h.log_id, 1::bigint, h.next_seq - 1 FROM agent.conversations c
    JOIN agent.conversation_heads h ON h.organization_id = $1 AND h.conversation_id = c.id
    WHERE c.organization_id = $1 AND c.agent_id = {agent}
"""
_OF_RANGES = "SELECT * FROM unnest({logs}::uuid[], {firsts}::bigint[], {lasts}::bigint[])"


async def sample(pool: asyncpg.Pool, scope: Scope, terms: Mapping[str, Sequence[str]]) -> dict[str, float]:
    """Returns the share of a scope's messages that have each word, in any of its forms; 0 for rare ones."""
    values = Parameters([scope.organization_id])
    logs = [_OF_TENANT] if scope.is_tenant else []
    if scope.agent_id is not None:
        logs.append(_OF_AGENT.format(agent=values.add(scope.agent_id)))
    if scope.ranges:
        names = dict(zip(("logs", "firsts", "lasts"), range_values(scope, values), strict=True))
        logs.append(_OF_RANGES.format(**names))
    queries = values.add([any_of(forms) for forms in terms.values()])
    rows = await fetch_rows(pool, _SHARES.format(logs=" UNION ALL ".join(logs), queries=queries), values)
    return {stem: row["share"] for stem, row in zip(terms, rows, strict=True)}
