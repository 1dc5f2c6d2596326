"""Archives and passages on Postgres: writing and reading."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import asyncpg

from services.common.errors import NotFound
from services.common.vectors import encode
from services.memory.adapters import rows
from services.memory.adapters.calls import RECORD, record_values
from services.memory.adapters.rows import ARCHIVE_COLUMNS
from services.memory.archival.search import archive_lexeme, tenant_lexeme
from services.memory.model import Archive, CallRecord, EmbeddingModel, Passage, PassageDraft
from services.memory.ports import ArchiveChanged, CallRepeated, NewPassages, PassageKey

_ARCHIVES = f"""
SELECT {ARCHIVE_COLUMNS}
FROM memory.agent_archives m
JOIN memory.archives a ON a.organization_id = m.organization_id AND a.id = m.archive_id
LEFT JOIN memory.embedding_models e ON e.id = a.model_id
WHERE m.organization_id = $1 AND m.agent_id = $2"""
_ALL_ARCHIVES = f"{_ARCHIVES} ORDER BY m.is_default DESC, m.attached_at, a.id"
_DEFAULT_ARCHIVE = f"{_ARCHIVES} AND m.is_default"

_MODEL = "SELECT id FROM memory.embedding_models WHERE handle = $1 AND dimensions = $2"
_NEW_MODEL = "INSERT INTO memory.embedding_models (handle, dimensions) VALUES ($1, $2) ON CONFLICT DO NOTHING"

_NEW_ARCHIVE = """
WITH made AS (
    INSERT INTO memory.archives (organization_id, id, name, model_id, embedding, created_by_id, last_updated_by_id)
    VALUES ($1, $3, $4, $5, (SELECT handle FROM memory.embedding_models WHERE id = $5), $6, $6)
    ON CONFLICT DO NOTHING
)
INSERT INTO memory.agent_archives (organization_id, agent_id, archive_id, is_default)
VALUES ($1, $2, $3, true)
ON CONFLICT DO NOTHING
"""

_INSERT = """
WITH added AS (
    INSERT INTO memory.passages (
        organization_id, archive_id, id, text, tags, metadata, words, word_count, created_by_id,
        last_updated_by_id, created_at)
    SELECT $1, $2, d.id, d.text, d.tags, d.metadata,
        to_tsvector('memory.words', d.words) || array_to_tsvector($5::text[]), d.word_count, $3, $3,
        coalesce(d.created_at, now())
    FROM jsonb_to_recordset($4) AS d (
        id uuid, text text, tags text[], metadata jsonb, words text, word_count integer,
        created_at timestamptz)
    ON CONFLICT (organization_id, archive_id, id) DO NOTHING
    RETURNING id, tags, word_count
), tagged AS (
    INSERT INTO memory.passage_tags (organization_id, archive_id, passage_id, tag)
    SELECT $1, $2, added.id, tag FROM added CROSS JOIN unnest(added.tags) AS tag
), counted AS (
    UPDATE memory.archives a
    SET passage_count = a.passage_count + n.passages, word_count = a.word_count + n.words
    FROM (SELECT count(*) AS passages, coalesce(sum(word_count), 0) AS words FROM added) n
    WHERE a.organization_id = $1 AND a.id = $2
)
INSERT INTO memory.passage_vectors (organization_id, archive_id, passage_id, model_id, embedding)
SELECT $1, $2, added.id, $6, v.embedding
FROM unnest($7::uuid[], $8::halfvec[]) AS v (id, embedding) JOIN added ON added.id = v.id
"""

_DELETE = """
WITH gone AS (
    DELETE FROM memory.passages p USING memory.agent_archives m
    WHERE m.organization_id = $1 AND m.agent_id = $2
        AND p.organization_id = $1 AND p.archive_id = m.archive_id AND p.id = $3
    RETURNING p.archive_id, p.word_count
), counted AS (
    UPDATE memory.archives a
    SET passage_count = a.passage_count - 1, word_count = a.word_count - gone.word_count
    FROM gone WHERE a.organization_id = $1 AND a.id = gone.archive_id
)
SELECT count(*) FROM gone
"""

_BY_KEYS = """
SELECT p.id, p.archive_id, p.text, p.tags, p.metadata, p.created_by_id, p.created_at, p.updated_at, e.handle
FROM unnest($2::uuid[], $3::uuid[]) AS wanted (archive_id, id)
JOIN memory.passages p ON p.organization_id = $1 AND p.archive_id = wanted.archive_id AND p.id = wanted.id
JOIN memory.archives a ON a.organization_id = $1 AND a.id = p.archive_id
LEFT JOIN memory.passage_vectors v ON v.organization_id = $1 AND v.archive_id = p.archive_id
    AND v.passage_id = p.id AND v.model_id = a.model_id
LEFT JOIN memory.embedding_models e ON e.id = v.model_id
"""


class PostgresPassages:
    """`ports.PassageStore`."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool
        # Rows of this table never change.
        self._models: dict[tuple[str, int], EmbeddingModel] = {}

    async def archives(self, organization_id: UUID, agent_id: UUID) -> list[Archive]:
        found = await self._pool.fetch(_ALL_ARCHIVES, organization_id, agent_id)
        return [rows.archive(row) for row in found]

    async def default_archive(self, organization_id: UUID, agent_id: UUID) -> Archive | None:
        row = await self._pool.fetchrow(_DEFAULT_ARCHIVE, organization_id, agent_id)
        return None if row is None else rows.archive(row)

    async def embedding_model(self, handle: str, dimensions: int) -> EmbeddingModel:
        known = self._models.get((handle, dimensions))
        if known is not None:
            return known
        number = await self._pool.fetchval(_MODEL, handle, dimensions)
        if number is None:
            await self._pool.execute(_NEW_MODEL, handle, dimensions)
            number = await self._pool.fetchval(_MODEL, handle, dimensions)
        model = EmbeddingModel(id=number, handle=handle, dimensions=dimensions)
        self._models[handle, dimensions] = model
        return model

    async def insert(
        self, organization_id: UUID, user_id: UUID, new: NewPassages, record: CallRecord | None = None
    ) -> list[Passage]:
        async with self._pool.acquire() as connection, connection.transaction():
            if new.archive_name is not None:
                await _make_archive(connection, organization_id, user_id, new)
            try:
                await connection.execute(_INSERT, *_insert_values(organization_id, user_id, new))
            except asyncpg.ForeignKeyViolationError:
                raise ArchiveChanged from None  # deleted meanwhile
            if record is not None:
                kept = await connection.fetchrow(RECORD, *record_values(organization_id, record))
                if kept is None:
                    raise CallRepeated
            keys = [(new.archive_id, draft.id) for draft in new.drafts]
            found = await _by_keys(connection, organization_id, keys)
        return [found[key] for key in keys]

    async def delete(self, organization_id: UUID, agent_id: UUID, passage_id: UUID) -> None:
        if not await self._pool.fetchval(_DELETE, organization_id, agent_id, passage_id):
            raise NotFound(
                f"Passage passage-{passage_id} not found in the archives of agent agent-{agent_id}",
                reason="PASSAGE_NOT_FOUND",
            )

    async def by_keys(self, organization_id: UUID, keys: Sequence[PassageKey]) -> dict[PassageKey, Passage]:
        return await _by_keys(self._pool, organization_id, keys)


async def _make_archive(connection: Any, organization_id: UUID, user_id: UUID, new: NewPassages) -> None:
    model_id = None if new.model is None else new.model.id
    await connection.execute(
        _NEW_ARCHIVE, organization_id, new.agent_id, new.archive_id, new.archive_name, model_id, user_id
    )
    # Another call may have made it first, for another model.
    row = await connection.fetchrow(_DEFAULT_ARCHIVE, organization_id, new.agent_id)
    if row is None or (row["id"], row["model_id"]) != (new.archive_id, model_id):
        raise ArchiveChanged


def _insert_values(organization_id: UUID, user_id: UUID, new: NewPassages) -> tuple[object, ...]:
    drafts = [_draft_json(*pair) for pair in zip(new.drafts, new.search_words, strict=True)]
    vectors = {draft.id: vector for draft, vector in zip(new.drafts, new.vectors, strict=True) if vector is not None}
    return (
        organization_id,
        new.archive_id,
        user_id,
        drafts,
        [archive_lexeme(new.archive_id), tenant_lexeme(organization_id)],
        None if new.model is None else new.model.id,
        list(vectors),
        [encode(vector) for vector in vectors.values()],
    )


def _draft_json(draft: PassageDraft, search_words: Sequence[str]) -> dict[str, object]:
    return {
        "id": draft.id,
        "text": draft.text,
        "tags": draft.tags,
        "metadata": draft.metadata,
        "words": " ".join(search_words),
        "word_count": len(search_words),
        "created_at": draft.created_at,
    }


async def _by_keys(executor: Any, organization_id: UUID, keys: Sequence[PassageKey]) -> dict[PassageKey, Passage]:
    archives, passages = [key[0] for key in keys], [key[1] for key in keys]
    found = await executor.fetch(_BY_KEYS, organization_id, archives, passages)
    return {(row["archive_id"], row["id"]): rows.passage(row) for row in found}
