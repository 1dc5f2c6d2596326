"""New passages on Postgres: one statement for a batch."""

import asyncio
from collections.abc import Sequence
from typing import Any
from uuid import UUID

import asyncpg

from services.common.core.languages import language_of
from services.common.core.statements import Statement
from services.common.vectors import encode
from services.memory.core.errors import ArchiveConflict
from services.memory.core.ranking.search import archive_lexeme, tenant_lexeme
from services.memory.passages.model import EmbeddedTexts, NewPassages, Passage, PassageDraft
from services.memory.passages.store.words import retitled, title_words, words_vector

# What a large batch is made of is encoded in a thread: the loop serves others meanwhile.
_MANY = 50

# Whether vectors with the model {model}, made for the handle {embedding}, belong into an archive `a`.
_FITS = """a.kind < 3 AND CASE
    WHEN a.model_id IS NULL THEN a.embedding IS NOT DISTINCT FROM {embedding} ELSE a.model_id = {model} END"""

_NEW_ARCHIVE = """
INSERT INTO memory.archives (organization_id, id, name, embedding, created_by_id, last_updated_by_id)
VALUES ($1, $2, $3, $4, $5, $5)
"""
# Of two that make one at the same time, the second waits here, and finds that there is one.
_NEW_DEFAULT = """
INSERT INTO memory.agent_archives (organization_id, agent_id, archive_id, is_default, created_with_agent)
VALUES ($1, $2, $3, true, true)
ON CONFLICT (organization_id, agent_id) WHERE is_default DO NOTHING
RETURNING archive_id
"""

# The archive's row is locked last, and not for long: batches for one archive are made side by side.
_INSERT = Statement(f"""
WITH added AS (
    INSERT INTO memory.passages (
        organization_id, archive_id, id, text, tags, metadata, words, word_count, created_by_id,
        last_updated_by_id, created_at, key, valid_from, valid_to)
    SELECT :organization_id, :archive_id, d.id, d.text, d.tags, d.metadata,
        {words_vector("d.words", ":lexemes", "d.language", "d.title")}, d.word_count, :user_id, :user_id,
        coalesce(d.created_at, now()), d.key, d.valid_from, d.valid_to
    FROM jsonb_to_recordset(:drafts) AS d (
        id uuid, text text, tags text[], metadata jsonb, words text, language text, title text, word_count integer,
        created_at timestamptz, key text, valid_from timestamptz, valid_to timestamptz)
    ON CONFLICT (organization_id, archive_id, id) DO NOTHING
    RETURNING id, tags, metadata, word_count, created_at, updated_at
), tagged AS (
    INSERT INTO memory.passage_tags (organization_id, archive_id, passage_id, tag)
    SELECT :organization_id, :archive_id, added.id, tag FROM added CROSS JOIN unnest(added.tags) AS tag
), found_by_meaning AS (
    INSERT INTO memory.passage_vectors (organization_id, archive_id, passage_id, model_id, embedding)
    SELECT :organization_id, :archive_id, added.id, :model_id, v.embedding
    FROM unnest(:ids::uuid[], :vectors::halfvec[]) AS v (id, embedding) JOIN added ON added.id = v.id
), counted AS (
    UPDATE memory.archives a
    SET passage_count = a.passage_count + n.passages, word_count = a.word_count + n.words, model_id = :model_id
    FROM (SELECT count(*) AS passages, coalesce(sum(word_count), 0) AS words FROM added) n
    WHERE a.organization_id = :organization_id AND a.id = :archive_id
        AND {_FITS.format(model=":model_id", embedding=":embedding")}
    RETURNING a.id
)
SELECT added.id, added.metadata, added.created_at, added.updated_at, EXISTS (SELECT FROM counted) AS fits FROM added
""")

_UPDATE_COUNT = f"""
UPDATE memory.archives a SET word_count = a.word_count + $3, model_id = $4
WHERE a.organization_id = $1 AND a.id = $2 AND {_FITS.format(model="$4", embedding="$5")}
RETURNING a.id
"""
_UPDATE_TEXT = f"""
UPDATE memory.passages
SET text = $4, word_count = $6, words = {words_vector("$5::text", "$7", "$8", "''")}
WHERE organization_id = $1 AND archive_id = $2 AND id = $3
"""
_RETITLE = f"""
UPDATE memory.passages SET words = {retitled("words", "$4", "$5::text")}
WHERE organization_id = $1 AND archive_id = $2 AND id = $3
"""
_ERASE_VECTORS = """
DELETE FROM memory.passage_vectors WHERE organization_id = $1 AND archive_id = $2 AND passage_id = $3
"""
_NEW_VECTOR = """
INSERT INTO memory.passage_vectors (organization_id, archive_id, passage_id, model_id, embedding)
VALUES ($1, $2, $3, $4, $5)
"""


async def make_default_archive(
    connection: Any, organization_id: UUID, user_id: UUID, new: NewPassages, agent_id: UUID
) -> None:
    """Returns the agent's own archive. Raises ArchiveConflict when there is one by now."""
    name = f"{new.agent_name}'s Archive" if new.agent_name else f"Archive of agent-{agent_id}"
    await connection.execute(_NEW_ARCHIVE, organization_id, new.archive_id, name, new.embedded.embedding, user_id)
    if await connection.fetchval(_NEW_DEFAULT, organization_id, agent_id, new.archive_id) is None:
        raise ArchiveConflict


async def insert_passages(
    connection: Any, organization_id: UUID, user_id: UUID, new: NewPassages
) -> dict[UUID, Passage]:
    """Stores those whose ids are new, and returns them. Raises ArchiveConflict."""
    drafts, ids, vectors = _values(new) if len(new.drafts) < _MANY else await asyncio.to_thread(_values, new)
    embedded = new.embedded
    try:
        added = await connection.fetch(
            *_INSERT.bind(
                organization_id=organization_id,
                archive_id=new.archive_id,
                user_id=user_id,
                drafts=drafts,
                lexemes=_lexemes(organization_id, new.archive_id),
                model_id=None if embedded.model is None else embedded.model.id,
                ids=ids,
                vectors=vectors,
                embedding=embedded.embedding,
            )
        )
    except asyncpg.ForeignKeyViolationError:
        raise ArchiveConflict from None  # deleted meanwhile
    if added and not added[0]["fits"]:
        raise ArchiveConflict
    drafted, with_vector = {draft.id: draft for draft in new.drafts}, set(ids)
    return {
        row["id"]: _passage_of(
            drafted[row["id"]], row, new.archive_id, user_id, embedded.embedding if row["id"] in with_vector else None
        )
        for row in added
    }


def _passage_of(draft: PassageDraft, row: Any, archive_id: UUID, user_id: UUID, embedding: str | None) -> Passage:
    return Passage(
        id=draft.id,
        archive_id=archive_id,
        text=draft.text,
        tags=draft.tags,
        metadata=row["metadata"],
        embedding=embedding,
        created_by_id=user_id,
        last_updated_by_id=user_id,
        created_at=row["created_at"],
        updated_at=row["updated_at"],
        key=draft.key,
        valid_from=draft.valid_from,
        valid_to=draft.valid_to,
    )


async def replace_text(
    connection: Any,
    organization_id: UUID,
    key: tuple[UUID, UUID],
    text: str,
    words_before: int,
    embedded: EmbeddedTexts,
) -> None:
    """Replaces the text of a passage with its words and vector; others of its vectors are of the old text, and erased.

    Its title is left out of the words: see `replace_title`. Raises ArchiveConflict.
    """
    [search_words], [vector] = embedded.search_words, embedded.vectors
    more = len(search_words) - words_before
    model_id = None if embedded.model is None else embedded.model.id
    if not await connection.fetchval(_UPDATE_COUNT, organization_id, key[0], more, model_id, embedded.embedding):
        raise ArchiveConflict
    lexemes = _lexemes(organization_id, key[0])
    words = " ".join(search_words)
    language = language_of(text)
    await connection.execute(_UPDATE_TEXT, organization_id, *key, text, words, len(search_words), lexemes, language)
    await connection.execute(_ERASE_VECTORS, organization_id, *key)
    if vector is not None:
        await connection.execute(_NEW_VECTOR, organization_id, *key, model_id, encode(vector))


async def replace_title(connection: Any, organization_id: UUID, key: tuple[UUID, UUID], titles: Sequence[str]) -> None:
    """Makes these the texts whose words count beside those of a passage's text."""
    lexemes = _lexemes(organization_id, key[0])
    await connection.execute(_RETITLE, organization_id, *key, lexemes, title_words(titles))


def _lexemes(organization_id: UUID, archive_id: UUID) -> list[str]:
    return [archive_lexeme(archive_id), tenant_lexeme(organization_id)]


def _values(new: NewPassages) -> tuple[list[dict[str, object]], list[UUID], list[bytes]]:
    """Returns the drafts as JSON, and vectors with the passages they belong to."""
    drafts = [_draft_json(*pair) for pair in zip(new.drafts, new.embedded.search_words, strict=True)]
    vectors = {
        draft.id: encode(vector)
        for draft, vector in zip(new.drafts, new.embedded.vectors, strict=True)
        if vector is not None
    }
    return drafts, list(vectors), list(vectors.values())


def _draft_json(draft: PassageDraft, search_words: Sequence[str]) -> dict[str, object]:
    return {
        "id": draft.id,
        "text": draft.text,
        "tags": draft.tags,
        "metadata": draft.metadata,
        "words": " ".join(search_words),
        "language": language_of(draft.text),
        "title": title_words(draft.tags),
        "word_count": len(search_words),
        "created_at": draft.created_at,
        "key": draft.key,
        "valid_from": draft.valid_from,
        "valid_to": draft.valid_to,
    }
