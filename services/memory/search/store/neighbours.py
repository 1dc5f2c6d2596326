"""The neighbours of passages: what was stored just before and after in the archive, or stands there in the file."""

from collections.abc import Sequence
from uuid import UUID

import asyncpg

from services.common.core.neighbours import LONGEST_GAP, Neighbour
from services.memory.passages.model import PassageFilter, PassageKey
from services.memory.search.store.filters import own_condition
from services.memory.sql.statements import Values

# A few rows on each side, out of an index. What a filter leaves out is a step all the same.
_NEIGHBOURS = """
WITH giver AS MATERIALIZED (
    SELECT g.archive_id, g.id, g.created_at, g.file_id, g.place
    FROM unnest($2::uuid[], $3::uuid[]) AS wanted (archive_id, id)
    JOIN memory.passages g ON g.organization_id = $1 AND g.archive_id = wanted.archive_id AND g.id = wanted.id
)
SELECT giver.archive_id, giver.id, c.id AS neighbour, c.distance::int
FROM giver CROSS JOIN LATERAL (
    SELECT later.*, row_number() OVER (ORDER BY later.created_at, later.id) AS distance FROM (
        SELECT p.id, p.tags, p.created_at, p.valid_from, p.valid_to FROM memory.passages p
        WHERE p.organization_id = $1 AND p.archive_id = giver.archive_id AND giver.file_id IS NULL
            AND (p.created_at, p.id) > (giver.created_at, giver.id) AND p.created_at <= giver.created_at + $5::interval
        ORDER BY p.created_at, p.id LIMIT $4) AS later
    UNION ALL
    SELECT earlier.*, -row_number() OVER (ORDER BY earlier.created_at DESC, earlier.id DESC) FROM (
        SELECT p.id, p.tags, p.created_at, p.valid_from, p.valid_to FROM memory.passages p
        WHERE p.organization_id = $1 AND p.archive_id = giver.archive_id AND giver.file_id IS NULL
            AND (p.created_at, p.id) < (giver.created_at, giver.id) AND p.created_at >= giver.created_at - $5::interval
        ORDER BY p.created_at DESC, p.id DESC LIMIT $4) AS earlier
    UNION ALL
    SELECT p.id, p.tags, p.created_at, p.valid_from, p.valid_to, p.place - giver.place FROM memory.passages p
    WHERE p.organization_id = $1 AND p.archive_id = giver.archive_id AND p.file_id = giver.file_id
        AND p.place BETWEEN giver.place - $4 AND giver.place + $4 AND p.place <> giver.place
) AS c
WHERE {filters}
"""


class NeighbourLists:
    """The part of `Rankings` that finds neighbours."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._places = pool

    async def neighbours(
        self, organization_id: UUID, keys: Sequence[PassageKey], filters: PassageFilter, steps: int
    ) -> list[Neighbour[PassageKey]]:
        """See `Rankings`."""
        if not keys:
            return []
        archives, passages = [key[0] for key in keys], [key[1] for key in keys]
        values = Values(organization_id, archives, passages, steps, LONGEST_GAP)
        statement = _NEIGHBOURS.format(filters=own_condition(filters, values))
        rows = await self._places.fetch(statement, *values.all)
        return [
            Neighbour((archive_id, passage_id), (archive_id, neighbour_id), distance)
            for archive_id, passage_id, neighbour_id, distance in rows
        ]
