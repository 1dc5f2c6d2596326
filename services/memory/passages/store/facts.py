"""Facts that change: a passage takes the place of others, which stay for questions about their time."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from services.common.errors import NotFound
from services.memory.passages.model import PassageDraft

# Two that tell of the same thing at the same time wait for one another. What they end is locked before the archive's
# row, as whoever changes a passage does it.
_LOCK_KEYS = """
SELECT pg_advisory_xact_lock(hashtextextended($1::uuid::text || key, 0))
FROM (SELECT key FROM unnest($2::text[]) AS key ORDER BY key) AS sorted
"""
_LOCK_OTHERS = """
SELECT p.id FROM memory.passages p
WHERE p.organization_id = $1 AND p.archive_id = $2 AND (p.key = ANY($3::text[]) OR p.id = ANY($4::uuid[]))
ORDER BY p.id FOR UPDATE
"""
# The latest of a key is true; each other until the next began.
_END_BY_KEY = """
WITH told AS (
    SELECT p.id, lead(p.id) OVER fact AS next_id, lead(coalesce(p.valid_from, p.created_at)) OVER fact AS next_from
    FROM memory.passages p
    WHERE p.organization_id = $1 AND p.archive_id = $2 AND p.key = ANY($3::text[])
    WINDOW fact AS (PARTITION BY p.key ORDER BY coalesce(p.valid_from, p.created_at), p.id)
)
UPDATE memory.passages p SET valid_to = least(p.valid_to, told.next_from), superseded_by_id = told.next_id
FROM told
WHERE p.organization_id = $1 AND p.archive_id = $2 AND p.id = told.id AND told.next_id IS NOT NULL
    AND p.superseded_by_id IS DISTINCT FROM told.next_id
"""
_END_BY_ID = """
UPDATE memory.passages p
SET valid_to = least(p.valid_to, coalesce(n.valid_from, n.created_at)), superseded_by_id = n.id
FROM unnest($3::uuid[], $4::uuid[]) AS pair (id, new_id)
JOIN memory.passages n ON n.organization_id = $1 AND n.archive_id = $2 AND n.id = pair.new_id
WHERE p.organization_id = $1 AND p.archive_id = $2 AND p.id = pair.id
"""


def no_such_passage(passage_id: UUID) -> NotFound:
    """Returns the error for an id that names no passage in the place that was asked."""
    return NotFound(f"Passage passage-{passage_id} not found", reason="PASSAGE_NOT_FOUND")


async def lock_facts(connection: Any, organization_id: UUID, archive_id: UUID, drafts: Sequence[PassageDraft]) -> None:
    """Locks what these drafts may end, before they are stored. Raises NotFound (PASSAGE_NOT_FOUND)."""
    keys = sorted({draft.key for draft in drafts if draft.key is not None})
    named = list(dict.fromkeys(one for draft in drafts for one in draft.supersedes))
    if keys:
        await connection.execute(_LOCK_KEYS, archive_id, keys)
    there = {row["id"] for row in await connection.fetch(_LOCK_OTHERS, organization_id, archive_id, keys, named)}
    brought = {draft.id for draft in drafts}
    for one in named:
        if one not in there and one not in brought:
            raise no_such_passage(one)


async def supersede(connection: Any, organization_id: UUID, archive_id: UUID, added: Sequence[PassageDraft]) -> None:
    """Ends what the drafts, which are stored, take the place of."""
    keys = sorted({draft.key for draft in added if draft.key is not None})
    if keys:
        await connection.execute(_END_BY_KEY, organization_id, archive_id, keys)
    pairs = [(old, draft.id) for draft in added for old in draft.supersedes]
    if pairs:
        olds, news = [old for old, _ in pairs], [new for _, new in pairs]
        await connection.execute(_END_BY_ID, organization_id, archive_id, olds, news)
