"""SQL for where a search looks, and what it leaves out."""

from services.memory.core.ranking.search import Part
from services.memory.passages.model import PassageFilter

_WITH_TAGS = """(c.archive_id, c.{key}) IN (
        SELECT t.archive_id, t.passage_id FROM memory.passage_tags t
        WHERE t.organization_id = $1 AND {within} AND t.tag = ANY(${tags}::text[])
        GROUP BY t.archive_id, t.passage_id HAVING count(*) >= ${least})"""
_WITH_DATES = """(c.archive_id, c.{key}) IN (
        SELECT d.archive_id, d.id FROM memory.passages d
        WHERE d.organization_id = $1 AND {within}{bounds})"""

# Of rows `{alias}`, those of the archives in $2; where that is null, those of all archives of the tenant, but no
# pieces of files.
_OF_ARCHIVES = "{alias}.archive_id = ANY($2)"
_OF_TENANT = """$2::uuid[] IS NULL AND {alias}.archive_id NOT IN (
        SELECT f.id FROM memory.archives f WHERE f.organization_id = $1 AND f.kind <> 1)"""


def within(part: Part, alias: str = "c") -> str:
    """SQL for rows `alias` of a part of the tenant's archives, whose ids are $2; the tenant is $1."""
    return (_OF_TENANT if part.archive_ids is None else _OF_ARCHIVES).format(alias=alias)


def condition(wanted: PassageFilter, part: Part, *, key: str, first: int) -> tuple[str, list[object]]:
    """SQL for a filter on rows `c` of a part, whose column `key` is a passage's id, and its values, from `first` on."""
    values: list[object] = []

    def number(value: object) -> int:
        values.append(value)
        return first + len(values) - 1

    conditions = []
    if wanted.tags:
        least = len(wanted.tags) if wanted.match_all_tags else 1
        conditions.append(
            _WITH_TAGS.format(key=key, within=within(part, "t"), tags=number(wanted.tags), least=number(least))
        )
    bounds = ""
    if wanted.start is not None:
        bounds += f" AND d.created_at >= ${number(wanted.start)}"
    if wanted.end is not None:
        bounds += f" AND d.created_at <= ${number(wanted.end)}"
    if bounds:
        conditions.append(_WITH_DATES.format(key=key, within=within(part, "d"), bounds=bounds))
    return " AND ".join(conditions) or "true", values
