"""SQL for where a search looks, and what it leaves out."""

from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from services.memory.core.ranking.search import Part
from services.memory.passages.model import PassageFilter
from services.memory.sql.statements import Values

# What a ranking by words reads of a passage.
COLUMNS = """c.organization_id, c.archive_id, c.id, c.words, c.word_count, c.tags, c.created_at, c.valid_from,
    c.valid_to"""
# Of more archives, the largest.
_MOST_ARCHIVES = 16

_NEWEST = """
    SELECT {columns} FROM (
        SELECT a.id FROM memory.archives a
        WHERE a.organization_id = $1 AND {within}
        ORDER BY a.passage_count DESC LIMIT {archives}
    ) AS archive CROSS JOIN LATERAL (
        SELECT * FROM memory.passages p WHERE p.organization_id = $1 AND p.archive_id = archive.id
        ORDER BY p.created_at DESC, p.id DESC LIMIT {each}
    ) AS c LIMIT {most}"""


def newest(part: Part, most: str) -> str:
    """Selects up to `most` (SQL) passages `c` of a part, as many of each archive; $1 is the tenant, $2 its archives."""
    one = part.archive_ids is not None and len(part.archive_ids) == 1
    of_archives = "$2::uuid[] IS NULL AND a.kind = 1" if part.archive_ids is None else "a.id = ANY($2)"
    each = f"{most}::bigint" if one else f"{most}::bigint / 4"
    return _NEWEST.format(columns=COLUMNS, within=of_archives, archives=_MOST_ARCHIVES, each=each, most=most)


_IN_TAGS = """(c.archive_id, c.passage_id) IN (
        SELECT t.archive_id, t.passage_id FROM memory.passage_tags t
        WHERE t.organization_id = $1 AND {within} AND t.tag = ANY({tags}::text[])
        GROUP BY t.archive_id, t.passage_id HAVING count(*) >= {least})"""
_IN_DATES = """(c.archive_id, c.passage_id) IN (
        SELECT d.archive_id, d.id FROM memory.passages d
        WHERE d.organization_id = $1 AND {within} AND {bounds})"""

# What is true no more is little beside the rest, and in an index of its own.
_NOT_IN_ENDED = """(c.archive_id, c.passage_id) NOT IN (
        SELECT e.archive_id, e.id FROM memory.passages e
        WHERE e.organization_id = $1 AND {within} AND e.valid_to <= now())"""
_IN_VALID = """(c.archive_id, c.passage_id) IN (
        SELECT d.archive_id, d.id FROM memory.passages d
        WHERE d.organization_id = $1 AND {within} AND {valid})"""

# Of rows `{alias}`, those of the archives in $2; where that is null, those of all archives of the tenant, but no
# pieces of files.
_OF_ARCHIVES = "{alias}.archive_id = ANY($2)"
_OF_TENANT = """$2::uuid[] IS NULL AND {alias}.archive_id NOT IN (
        SELECT f.id FROM memory.archives f WHERE f.organization_id = $1 AND f.kind <> 1)"""


def within(part: Part, alias: str = "c") -> str:
    """Returns SQL for rows `alias` of a part of the tenant's archives, whose ids are $2; the tenant is $1."""
    return (_OF_TENANT if part.archive_ids is None else _OF_ARCHIVES).format(alias=alias)


# Scalar subqueries: the planner makes neither joins nor hashes of them, which would read all that has the tags.
_HAS_TAGS = """(SELECT count(*) FROM memory.passage_tags t
        WHERE t.organization_id = $1 AND t.archive_id = c.archive_id AND t.passage_id = c.passage_id
            AND t.tag = ANY({tags}::text[])) >= {least}"""
_HAS_DATES = """(SELECT {bounds} FROM memory.passages d
        WHERE d.organization_id = $1 AND d.archive_id = c.archive_id AND d.id = c.passage_id)"""

_HAS_NOT_ENDED = """(SELECT count(*) FROM memory.passages e
        WHERE e.organization_id = $1 AND e.archive_id = c.archive_id AND e.id = c.passage_id
            AND e.valid_to <= now()) = 0"""
_IS_VALID = """(SELECT {valid} FROM memory.passages d
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


@dataclass(frozen=True, slots=True)
class Selection:
    """About `passages` passages, among them all that a filter leaves: those with any of `tags`, or of its dates."""

    passages: int
    tags: tuple[str, ...] = ()

    def sql(self, filters: PassageFilter, part: Part, values: Values) -> str:
        """Returns a query of their keys."""
        if self.tags:
            return _WITH_TAGS.format(within=within(part, "t"), tags=values.add(self.tags))
        return _WITH_DATES.format(within=within(part, "d"), bounds=_bounds(filters, values))

    def rest(self, filters: PassageFilter) -> PassageFilter:
        """Returns the part of the filter that these passages need not all fit."""
        if not self.tags:
            return replace(filters, start=None, end=None)
        return replace(filters, tags=()) if self.tags == filters.tags else filters


def set_condition(filters: PassageFilter, part: Part, values: Values) -> str:
    """Returns a condition on rows `c` of vectors of a part, by the sets that the filter names."""
    conditions = []
    if filters.tags:
        tags, least = values.add(filters.tags), values.add(_least_tags(filters))
        conditions.append(_IN_TAGS.format(within=within(part, "t"), tags=tags, least=least))
    if _has_dates(filters):
        conditions.append(_IN_DATES.format(within=within(part, "d"), bounds=_bounds(filters, values)))
    if _is_of_now(filters):
        conditions.append(_NOT_IN_ENDED.format(within=within(part, "e")))
    elif valid := _validity(filters, values, "d"):
        conditions.append(_IN_VALID.format(within=within(part, "d"), valid=" AND ".join(valid)))
    return " AND ".join(conditions) or "true"


def filter_condition(filters: PassageFilter, values: Values) -> str:
    """Returns a condition on rows `c` of vectors; the tenant is $1."""
    conditions = []
    if filters.tags:
        tags, least = values.add(filters.tags), values.add(_least_tags(filters))
        conditions.append(_HAS_TAGS.format(tags=tags, least=least))
    if _has_dates(filters):
        conditions.append(_HAS_DATES.format(bounds=_bounds(filters, values)))
    if _is_of_now(filters):
        conditions.append(_HAS_NOT_ENDED)
    elif valid := _validity(filters, values, "d"):
        conditions.append(_IS_VALID.format(valid=" AND ".join(valid)))
    return " AND ".join(conditions) or "true"


def own_condition(filters: PassageFilter, values: Values) -> str:
    """Returns a condition on passages `c` themselves."""
    conditions = []
    if filters.tags:
        conditions.append(f"c.tags {'@>' if filters.match_all_tags else '&&'} {values.add(filters.tags)}::text[]")
    if filters.start is not None:
        conditions.append(f"c.created_at >= {values.add(filters.start)}")
    if filters.end is not None:
        conditions.append(f"c.created_at <= {values.add(filters.end)}")
    conditions += _validity(filters, values, "c")
    return " AND ".join(conditions) or "true"


def selects(filters: PassageFilter) -> bool:
    """Returns whether a filter names sets that can be counted: tags, dates."""
    return bool(filters.tags) or _has_dates(filters)


async def select_by_filter(
    connection: Any, organization_id: UUID, part: Part, filters: PassageFilter, most: int
) -> Selection | None:
    """Returns the smallest of the sets that the filter names, counted up to `most`; None without a filter."""
    sets = []
    if filters.tags:
        statement = _COUNT_TAGS.format(within=within(part, "t"))
        rows = await connection.fetch(statement, organization_id, part.archive_ids, most, filters.tags)
        counts = {row["tag"]: row["passages"] for row in rows}
        if filters.match_all_tags:
            rarest = min(counts, key=lambda tag: counts[tag])
            sets.append(Selection(counts[rarest], (rarest,)))
        else:
            sets.append(Selection(sum(counts.values()), filters.tags))
    if _has_dates(filters):
        values = Values(organization_id, part.archive_ids, most)
        statement = _COUNT_DATES.format(within=within(part, "d"), bounds=_bounds(filters, values))
        sets.append(Selection(await connection.fetchval(statement, *values.all)))
    return min(sets, key=lambda one: one.passages, default=None)


def _least_tags(filters: PassageFilter) -> int:
    return len(filters.tags) if filters.match_all_tags else 1


def _has_dates(filters: PassageFilter) -> bool:
    return filters.start is not None or filters.end is not None


def _is_of_now(filters: PassageFilter) -> bool:
    return filters.as_of is None and not filters.history and not filters.ended


def _validity(filters: PassageFilter, values: Values, alias: str) -> list[str]:
    """Returns conditions on passages `alias`: when what they say is true."""
    conditions = []
    if filters.as_of is not None:
        moment = values.add(filters.as_of)
        conditions.append(f"coalesce({alias}.valid_from, {alias}.created_at) <= {moment}::timestamptz")
        conditions.append(f"({alias}.valid_to IS NULL OR {alias}.valid_to > {moment}::timestamptz)")
    elif not filters.history and not filters.ended:
        conditions.append(f"({alias}.valid_to IS NULL OR {alias}.valid_to > now())")
    if filters.ended:
        conditions.append(f"{alias}.valid_to <= now()")
    return conditions


def _bounds(filters: PassageFilter, values: Values) -> str:
    bounds = []
    if filters.start is not None:
        bounds.append(f"d.created_at >= {values.add(filters.start)}")
    if filters.end is not None:
        bounds.append(f"d.created_at <= {values.add(filters.end)}")
    return " AND ".join(bounds)
