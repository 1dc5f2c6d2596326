"""Passages ranked by their vectors, by one of three statements; core/ranking/vector_choice.py says when by which."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import asyncpg

from services.common.vectors import encode
from services.memory.archives.model import EmbeddingModel
from services.memory.core.ranking.search import Part, RankedPassage
from services.memory.core.ranking.vector_choice import VectorPlan, candidates, choose_plan, count_limit, most_read
from services.memory.passages.model import PassageFilter
from services.memory.search.store.filters import (
    Selection,
    filter_condition,
    select_by_filter,
    selects,
    set_condition,
    within,
)
from services.memory.search.store.vector_indexes import VectorIndexes
from services.memory.sql.reading import reading
from services.memory.sql.statements import Values

# In all three the model's number is a literal: with a parameter, a plan would not know of its index, nor how many
# vectors it has. Plans are made for the very values: one for any tenant would be wrong for one that has most rows.
_ANY_VALUES = "SET LOCAL plan_cache_mode = force_custom_plan"

# The order is not by an expression that an index has, and the distance, which is what costs, is computed once.
_READ_SETTINGS = f"{_ANY_VALUES}; SET LOCAL enable_sort = on"
_READ = """
SELECT archive_id, passage_id, 1 - distance AS score
FROM (
    SELECT c.archive_id, c.passage_id, c.embedding <=> $3::halfvec AS distance
    FROM memory.passage_vectors c
    WHERE c.organization_id = $1 AND {within} AND c.model_id = {model} AND {filters}
    ORDER BY distance, c.passage_id
    LIMIT $4
) AS nearest
"""

# What waits for the index is read beside it.
_INDEX = """
WITH near AS MATERIALIZED (
    SELECT c.archive_id, c.passage_id, (c.embedding::halfvec({dimensions})) <=> $3::halfvec({dimensions}) AS distance
    FROM memory.passage_vectors c
    WHERE c.organization_id = $1 AND {within} AND c.model_id = {model} AND NOT c.waiting AND {filters}
    ORDER BY (c.embedding::halfvec({dimensions})) <=> $3::halfvec({dimensions})
    LIMIT $4
), late AS MATERIALIZED (
    SELECT c.archive_id, c.passage_id, c.embedding <=> $3::halfvec AS distance
    FROM memory.passage_vectors c
    WHERE c.organization_id = $1 AND {within} AND c.model_id = {model} AND c.waiting AND {filters}
    ORDER BY c.embedding <=> $3::halfvec
    LIMIT $4
)
SELECT archive_id, passage_id, 1 - distance AS score
FROM (TABLE near UNION ALL TABLE late) AS found
ORDER BY distance, passage_id
LIMIT $4
"""
# Without a way to sort, the planner takes the index, whose cost it overrates.
_INDEX_SETTINGS = f"""{_ANY_VALUES};
SET LOCAL enable_sort = off;
SET LOCAL hnsw.iterative_scan = relaxed_order;
SET LOCAL hnsw.max_scan_tuples = 40000;
SET LOCAL hnsw.scan_mem_multiplier = 4;
SET LOCAL hnsw.ef_search = """

_FETCH = """
WITH chosen AS MATERIALIZED ({selection})
SELECT archive_id, passage_id, 1 - distance AS score
FROM (
    SELECT c.archive_id, c.passage_id, c.embedding <=> $3::halfvec AS distance
    FROM chosen
    JOIN memory.passage_vectors c ON c.organization_id = $1 AND c.archive_id = chosen.archive_id
        AND c.passage_id = chosen.passage_id AND c.model_id = {model}
    WHERE {filters}
    ORDER BY distance, c.passage_id
    LIMIT $4
) AS nearest
"""
# A hash of all vectors is what the chosen few are there to avoid.
_FETCH_SETTINGS = f"{_ANY_VALUES}; SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off"


class VectorRanking:
    """The half of `Rankings` that ranks by vectors."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._vectors = pool
        self._indexes = VectorIndexes(pool)

    async def by_vector(
        self,
        organization_id: UUID,
        part: Part,
        model: EmbeddingModel,
        vector: Sequence[float],
        filters: PassageFilter,
        limit: int,
    ) -> list[RankedPassage]:
        """See `Rankings`."""
        indexed, large = 0, part.passages > most_read(model.dimensions)
        if large:
            indexed = (await self._indexes.state(organization_id, model, part.passages)).vectors
        values = (organization_id, part.archive_ids, encode(vector), limit)
        search = _Search(self._vectors, part, model, filters, values)
        rows = await (search.nearest(indexed) if large else search.read())
        return [RankedPassage(*row) for row in rows]


@dataclass(frozen=True, slots=True)
class _Search:
    """One question. `values`: tenant, archives, vector, limit."""

    pool: asyncpg.Pool
    part: Part
    model: EmbeddingModel
    filters: PassageFilter
    values: tuple[UUID, tuple[UUID, ...] | None, bytes, int]

    async def nearest(self, indexed: int) -> Sequence[Any]:
        """Returns them by the fastest statement; where the index does not find enough, all are read."""
        passages, limit = self.part.passages, self.values[3]
        most = count_limit(passages, indexed=indexed, limit=limit)
        selection = await self._select(most)
        selected = None if selection is None else selection.passages
        plan = choose_plan(passages, indexed=indexed, limit=limit, dimensions=self.model.dimensions, selected=selected)
        if plan is VectorPlan.FETCH and selection is not None:
            return await self.fetch(selection)
        if plan is VectorPlan.INDEX:
            rows = await self.index()
            if len(rows) == limit:
                return rows
        return await self.read()

    async def _select(self, most: int) -> Selection | None:
        if not selects(self.filters):
            return None
        async with reading(self.pool, _ANY_VALUES) as connection:
            return await select_by_filter(connection, self.values[0], self.part, self.filters, most)

    async def read(self) -> Sequence[Any]:
        """Exact, among all."""
        values = Values(*self.values)
        filters = set_condition(self.filters, self.part, values)
        statement = _READ.format(model=self.model.id, within=within(self.part), filters=filters)
        return await self._fetch(_READ_SETTINGS, statement, values.all)

    async def index(self) -> Sequence[Any]:
        """Returns them by the model's index and, beside it, among what waits for it."""
        values = Values(*self.values)
        statement = _INDEX.format(
            model=self.model.id,
            dimensions=self.model.dimensions,
            within=within(self.part),
            filters=filter_condition(self.filters, values),
        )
        return await self._fetch(f"{_INDEX_SETTINGS}{candidates(self.values[3])}", statement, values.all)

    async def fetch(self, selection: Selection) -> Sequence[Any]:
        """Exact, among what a filter leaves."""
        values = Values(*self.values)
        statement = _FETCH.format(
            model=self.model.id,
            selection=selection.sql(self.filters, self.part, values),
            filters=filter_condition(selection.rest(self.filters), values),
        )
        return await self._fetch(_FETCH_SETTINGS, statement, values.all)

    async def _fetch(self, settings: str, statement: str, values: Sequence[object]) -> Sequence[Any]:
        async with reading(self.pool, settings) as connection:
            rows: Sequence[Any] = await connection.fetch(statement, *values)
        return rows
