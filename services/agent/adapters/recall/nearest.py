"""Messages ranked by their vectors: all that count are read, or an index; see core/recall/vector_choice.py."""

from collections.abc import Sequence

import asyncpg

from services.agent.adapters.recall.conditions import (
    Parameters,
    fetch_rows,
    filter_condition,
    range_values,
    scope_condition,
)
from services.agent.adapters.recall.indexes import VectorIndexes
from services.agent.core.ports_recall import EmbeddingModel
from services.agent.core.recall.query import MessageFilter, RankedMessage, Scope
from services.agent.core.recall.vector_choice import by_index, candidates, most_read
from services.common.vectors import encode

# Those of the agent's own model first.
_MODELS = """
SELECT e.id, e.handle, e.dimensions FROM agent.embedding_models e
WHERE EXISTS (
    SELECT FROM agent.message_vectors v
    WHERE v.organization_id = $1 AND v.model_id = e.id AND ($2::uuid[] IS NULL OR v.agent_id = ANY($2)))
ORDER BY e.handle IS NOT DISTINCT FROM $3::text DESC, e.id DESC
"""

# Exact: the order is not by an expression that an index has. The model's number is a literal, so that the planner
# knows how many vectors it has.
_EXACT = """
SELECT v.message_id, 1 - (v.embedding <=> {vector}::halfvec) AS score
FROM ({parts}) v
ORDER BY v.embedding <=> {vector}::halfvec, v.message_id
LIMIT {limit}
"""
_OF_SCOPE = """
    SELECT v.message_id, v.embedding FROM agent.message_vectors v
    WHERE v.model_id = {model} AND {within} AND {counted}
"""
_OF_RANGES = """
    SELECT v.message_id, v.embedding
    FROM unnest({logs}::uuid[], {firsts}::bigint[], {lasts}::bigint[]) AS part (log_id, first, last)
    JOIN agent.message_vectors v ON v.organization_id = $1 AND v.log_id = part.log_id
        AND v.seq BETWEEN part.first AND part.last
    WHERE v.model_id = {model} AND {counted}
"""

# How many count, as far as it matters.
_COUNT = "SELECT count(*) FROM (SELECT FROM ({parts}) v LIMIT {most}) counted"

# What waits for the index is read beside it.
_INDEX = """
WITH near AS MATERIALIZED (
    SELECT v.message_id, (v.embedding::halfvec({dimensions})) <=> {vector}::halfvec({dimensions}) AS distance
    FROM agent.message_vectors v
    WHERE {within} AND v.model_id = {model} AND NOT v.waiting AND {counted}
    ORDER BY (v.embedding::halfvec({dimensions})) <=> {vector}::halfvec({dimensions})
    LIMIT {limit}
), late AS MATERIALIZED (
    SELECT v.message_id, v.embedding <=> {vector}::halfvec AS distance
    FROM agent.message_vectors v
    WHERE {within} AND v.model_id = {model} AND v.waiting AND {counted}
    ORDER BY v.embedding <=> {vector}::halfvec
    LIMIT {limit}
)
SELECT message_id, 1 - distance AS score FROM (TABLE near UNION ALL TABLE late) AS found
ORDER BY distance, message_id
LIMIT {limit}
"""
# Without a way to sort, the planner takes the index, whose cost it overrates.
_BY_INDEX = """
SELECT set_config('enable_sort', 'off', true), set_config('hnsw.iterative_scan', 'relaxed_order', true),
       set_config('hnsw.max_scan_tuples', '40000', true), set_config('hnsw.ef_search', '{candidates}', true)
"""


class VectorRanking:
    """The part of `ports.Rankings` that ranks by vectors."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool
        self._indexes = VectorIndexes(pool)

    async def models(self, scope: Scope) -> list[EmbeddingModel]:
        """See `ports.Rankings`."""
        agents = list(scope.agent_ids) or None
        rows = await self._pool.fetch(_MODELS, scope.organization_id, agents, scope.embedding)
        return [EmbeddingModel(*row) for row in rows]

    async def by_vector(
        self, scope: Scope, model: EmbeddingModel, vector: Sequence[float], filters: MessageFilter, limit: int
    ) -> list[RankedMessage]:
        """See `ports.Rankings`."""
        if await self._is_for_index(scope, model, filters, limit):
            hits = await self._by_index(scope, model, vector, filters, limit)
            # Where few of the vectors count, the index stops before it has met enough of them.
            if len(hits) == limit:
                return hits
        values = Parameters([scope.organization_id])
        statement = _EXACT.format(
            parts="UNION ALL".join(_parts(scope, model, filters, values)),
            vector=values.add(encode(vector)),
            limit=values.add(limit),
        )
        return [RankedMessage(*row) for row in await fetch_rows(self._pool, statement, values)]

    async def _is_for_index(self, scope: Scope, model: EmbeddingModel, filters: MessageFilter, limit: int) -> bool:
        indexed, dimensions = 0, model.dimensions
        if scope.messages > most_read(dimensions):
            indexed = (await self._indexes.state(model)).vectors
        if not by_index(scope.messages, indexed=indexed, limit=limit, dimensions=dimensions):
            return False
        values = Parameters([scope.organization_id])
        parts = "UNION ALL".join(_parts(scope, model, filters, values))
        most = most_read(dimensions) + 1
        ((count,),) = await fetch_rows(self._pool, _COUNT.format(parts=parts, most=values.add(most)), values)
        return bool(count == most)

    async def _by_index(
        self, scope: Scope, model: EmbeddingModel, vector: Sequence[float], filters: MessageFilter, limit: int
    ) -> list[RankedMessage]:
        values = Parameters([scope.organization_id])
        statement = _INDEX.format(
            within=scope_condition(scope, values, "v"),
            counted=filter_condition(filters, values, "v", key="message_id"),
            model=model.id,
            dimensions=model.dimensions,
            vector=values.add(encode(vector)),
            limit=values.add(limit),
        )
        setting = _BY_INDEX.format(candidates=candidates(limit))
        return [RankedMessage(*row) for row in await fetch_rows(self._pool, statement, values, setting)]


def _parts(scope: Scope, model: EmbeddingModel, filters: MessageFilter, values: Parameters) -> list[str]:
    """Returns statements for the vectors of a scope: those of the agent by its index, those of ranges by theirs."""
    count = filter_condition(filters, values, "v", key="message_id")
    parts = []
    if scope.is_tenant or scope.agent_id is not None:
        own = "v.organization_id = $1"
        if scope.agent_id is not None:
            own += f" AND v.agent_id = {values.add(scope.agent_id)}"
        parts.append(_OF_SCOPE.format(model=model.id, within=own, counted=count))
    if scope.ranges:
        logs, firsts, lasts = range_values(scope, values)
        parts.append(_OF_RANGES.format(model=model.id, counted=count, logs=logs, firsts=firsts, lasts=lasts))
    return parts or [_OF_SCOPE.format(model=model.id, within="false", counted=count)]
