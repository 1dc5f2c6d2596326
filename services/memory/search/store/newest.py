"""SQL for the newest passages of some archives."""

from services.memory.core.ranking.search import Part

# What a ranking by words reads of a passage.
COLUMNS = "c.organization_id, c.archive_id, c.id, c.words, c.word_count, c.tags, c.created_at"
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
    """At most `most` (SQL) passages `c` of a part, about as many of each archive; the tenant is $1, its archives $2."""
    one = part.archive_ids is not None and len(part.archive_ids) == 1
    of_archives = "$2::uuid[] IS NULL AND a.kind = 1" if part.archive_ids is None else "a.id = ANY($2)"
    each = f"{most}::bigint" if one else f"{most}::bigint / 4"
    return _NEWEST.format(columns=COLUMNS, within=of_archives, archives=_MOST_ARCHIVES, each=each, most=most)
