"""Passages ranked by their vectors."""

from collections.abc import Sequence
from uuid import UUID

import asyncpg

from services.common.vectors import encode
from services.memory.adapters.archival.filters import ask, condition, within
from services.memory.archival.passages import PassageFilter
from services.memory.archival.search import Part, Ranked
from services.memory.model import EmbeddingModel

# Exact: the order is not by an expression that an index has. The model's number is a literal, so that the
# planner knows how many vectors it has.
_BY_VECTOR = """
SELECT c.archive_id, c.passage_id, 1 - (c.embedding <=> $3::halfvec) AS score
FROM memory.passage_vectors c
WHERE c.organization_id = $1 AND {within} AND c.model_id = {model} AND {wanted}
ORDER BY c.embedding <=> $3::halfvec, c.passage_id
LIMIT $4
"""


class VectorRanking:
    """The half of `ports.Rankings` that ranks by vectors."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool

    async def by_vector(
        self,
        organization_id: UUID,
        part: Part,
        model: EmbeddingModel,
        vector: Sequence[float],
        wanted: PassageFilter,
        limit: int,
    ) -> list[Ranked]:
        """See `ports.Rankings`."""
        filtered, values = condition(wanted, part, key="passage_id", first=5)
        statement = _BY_VECTOR.format(model=model.id, within=within(part), wanted=filtered)
        found = await ask(self._pool, statement, organization_id, part.archive_ids, encode(vector), limit, *values)
        return [Ranked(*row) for row in found]
