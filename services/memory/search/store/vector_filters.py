"""Filters of a search by vectors: looked up for one passage after the other, or as the set that they leave."""

from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from services.memory.core.ranking.search import Part
from services.memory.passages.model import PassageFilter
from services.memory.search.store.filters import within

# Scalar subqueries: the planner makes neither joins nor hashes of them, which would read all that has the tags.
_HAS_TAGS = """(SELECT count(*) FROM memory.passage_tags t
        WHERE t.organization_id = $1 AND t.archive_id = c.archive_id AND t.passage_id = c.passage_id
            AND t.tag = ANY({tags}::text[])) >= {least}"""
_HAS_DATES = """(SELECT {bounds} FROM memory.passages d
        WHERE d.organization_id = $1 AND d.archive_id = c.archive_id AND d.id = c.passage_id)"""

_WITH_TAGS = """SELECT DISTINCT t.archive_id, t.passage_id FROM memory.passage_tags t
        WHERE t.organization_id = $1 AND {within} AND t.tag = ANY({tags}::text[])"""
_WITH_DATES = """SELECT d.archive_id, d.id AS passage_id FROM memory.passages d
        WHERE d.organization_id = $1 AND {within} AND {bounds}"""

_COUNT_TAGS = """
SELECT wanted.tag, (
    SELECT count(*) FROM (
        SELECT FROM memory.passage_tags t WHERE t.organization_id = $1 AND {within} AND t.tag = wanted.tag LIMIT $3
    ) AS found) AS passages
FROM unnest($4::text[]) AS wanted (tag)
"""
_COUNT_DATES = """
SELECT count(*) FROM (
    SELECT FROM memory.passages d WHERE d.organization_id = $1 AND {within} AND {bounds} LIMIT $3) AS found
"""


class Values:
    """The values of a statement; each is given its place."""

    def __init__(self, *values: object) -> None:
        self.all = list(values)

    def add(self, value: object) -> str:
        """Returns what stands for it in SQL."""
        self.all.append(value)
        return f"${len(self.all)}"


@dataclass(frozen=True, slots=True)
class Chosen:
    """About `passages` passages, among them all that a filter leaves: those with any of `tags`, or of its dates."""

    passages: int
    tags: tuple[str, ...] = ()

    def sql(self, wanted: PassageFilter, part: Part, values: Values) -> str:
        """A query of their keys."""
        if self.tags:
            return _WITH_TAGS.format(within=within(part, "t"), tags=values.add(self.tags))
        return _WITH_DATES.format(within=within(part, "d"), bounds=_bounds(wanted, values))

    def rest(self, wanted: PassageFilter) -> PassageFilter:
        """What of the filter these passages need not all fit."""
        if not self.tags:
            return replace(wanted, start=None, end=None)
        return replace(wanted, tags=()) if self.tags == wanted.tags else wanted


def looked_up(wanted: PassageFilter, values: Values) -> str:
    """A condition on rows `c` of vectors; the tenant is $1."""
    conditions = []
    if wanted.tags:
        least = len(wanted.tags) if wanted.match_all_tags else 1
        conditions.append(_HAS_TAGS.format(tags=values.add(wanted.tags), least=values.add(least)))
    if _has_dates(wanted):
        conditions.append(_HAS_DATES.format(bounds=_bounds(wanted, values)))
    return " AND ".join(conditions) or "true"


async def choose(connection: Any, organization_id: UUID, part: Part, wanted: PassageFilter, most: int) -> Chosen | None:
    """The smallest of the sets that the filter names, counted up to `most`; None without a filter."""
    sets = []
    if wanted.tags:
        statement = _COUNT_TAGS.format(within=within(part, "t"))
        found = await connection.fetch(statement, organization_id, part.archive_ids, most, wanted.tags)
        counts = {row["tag"]: row["passages"] for row in found}
        if wanted.match_all_tags:
            rarest = min(counts, key=lambda tag: counts[tag])
            sets.append(Chosen(counts[rarest], (rarest,)))
        else:
            sets.append(Chosen(sum(counts.values()), wanted.tags))
    if _has_dates(wanted):
        values = Values(organization_id, part.archive_ids, most)
        statement = _COUNT_DATES.format(within=within(part, "d"), bounds=_bounds(wanted, values))
        sets.append(Chosen(await connection.fetchval(statement, *values.all)))
    return min(sets, key=lambda one: one.passages, default=None)


def _has_dates(wanted: PassageFilter) -> bool:
    return wanted.start is not None or wanted.end is not None


def _bounds(wanted: PassageFilter, values: Values) -> str:
    bounds = []
    if wanted.start is not None:
        bounds.append(f"d.created_at >= {values.add(wanted.start)}")
    if wanted.end is not None:
        bounds.append(f"d.created_at <= {values.add(wanted.end)}")
    return " AND ".join(bounds)
