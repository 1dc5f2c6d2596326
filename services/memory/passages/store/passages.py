"""Passages on Postgres: `PassageStore`."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

import asyncpg

from services.memory.agent_tools.model import CallRecord
from services.memory.agent_tools.store import keep_record
from services.memory.archives.model import Archive, EmbeddingModel
from services.memory.archives.store import ARCHIVE_COLUMNS, archive_of_row, embedding_model_id
from services.memory.core.errors import ArchiveConflict
from services.memory.core.ranking.search import Scope
from services.memory.passages.model import EmbeddedTexts, NewPassages, Passage, PassageKey, Place
from services.memory.passages.store.facts import lock_facts, no_such_passage, supersede
from services.memory.passages.store.insertion import (
    insert_passages,
    make_default_archive,
    replace_text,
    replace_title,
)
from services.memory.passages.store.places import archive_ids, scope
from services.memory.passages.store.rows import PASSAGE_COLUMNS, PASSAGE_JOINS, PASSAGES_COLUMNS, passage_of_row
from services.memory.sql.statements import Values

_DEFAULT_ARCHIVE = f"""
SELECT {ARCHIVE_COLUMNS}
FROM memory.agent_archives m
JOIN memory.archives a ON a.organization_id = m.organization_id AND a.id = m.archive_id
LEFT JOIN memory.embedding_models e ON e.id = a.model_id
WHERE m.organization_id = $1 AND m.agent_id = $2 AND m.is_default
"""

_LOCK = """
SELECT word_count FROM memory.passages WHERE organization_id = $1 AND archive_id = $2 AND id = $3 FOR UPDATE
"""
_UPDATE = """
UPDATE memory.passages SET {changes}last_updated_by_id = $4, updated_at = now()
WHERE organization_id = $1 AND archive_id = $2 AND id = $3
RETURNING tags
"""
_UNTAG = """
DELETE FROM memory.passage_tags
WHERE organization_id = $1 AND archive_id = $2 AND passage_id = $3 AND tag <> ALL ($4::text[])
"""
_TAG = """
INSERT INTO memory.passage_tags (organization_id, archive_id, passage_id, tag)
SELECT $1, $2, $3, tag FROM unnest($4::text[]) AS tag
ON CONFLICT DO NOTHING
"""

_DELETE = """
WITH gone AS (
    DELETE FROM memory.passages p
    WHERE p.organization_id = $1 AND p.archive_id IN ({archives}) AND p.id = $3
    RETURNING p.archive_id, p.word_count, p.valid_to, p.superseded_by_id
), follower AS (
    UPDATE memory.passages p SET valid_to = gone.valid_to, superseded_by_id = gone.superseded_by_id
    FROM gone
    WHERE p.organization_id = $1 AND p.archive_id = gone.archive_id AND p.valid_to IS NOT NULL
        AND p.superseded_by_id = $3
), counted AS (
    UPDATE memory.archives a
    SET passage_count = a.passage_count - 1, word_count = a.word_count - gone.word_count
    FROM gone WHERE a.organization_id = $1 AND a.id = gone.archive_id
)
SELECT count(*) FROM gone
"""
_GET = f"""
SELECT {PASSAGE_COLUMNS} FROM memory.passages p {PASSAGE_JOINS}
WHERE p.organization_id = $1 AND p.archive_id IN ({{archives}}) AND p.id = $3
"""
_BY_KEYS = f"""
SELECT {PASSAGES_COLUMNS}
FROM unnest($2::uuid[], $3::uuid[]) AS wanted (archive_id, id)
JOIN memory.passages p ON p.organization_id = $1 AND p.archive_id = wanted.archive_id AND p.id = wanted.id
{PASSAGE_JOINS}
WHERE a.kind < 3
"""


class PostgresPassages:
    """`PassageStore`."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool
        # Rows of this table never change.
        self._models: dict[tuple[str, int], EmbeddingModel] = {}

    async def default_archive(self, organization_id: UUID, agent_id: UUID) -> Archive | None:
        row = await self._pool.fetchrow(_DEFAULT_ARCHIVE, organization_id, agent_id)
        return None if row is None else archive_of_row(row)

    async def scope(self, organization_id: UUID, place: Place) -> Scope:
        return await scope(self._pool, organization_id, place)

    async def embedding_model(self, handle: str, dimensions: int) -> EmbeddingModel:
        model = self._models.get((handle, dimensions))
        if model is not None:
            return model
        number = await embedding_model_id(self._pool, handle, dimensions)
        model = EmbeddingModel(id=number, handle=handle, dimensions=dimensions)
        self._models[handle, dimensions] = model
        return model

    async def insert(
        self, organization_id: UUID, user_id: UUID, new: NewPassages, record: CallRecord | None = None
    ) -> list[Passage]:
        async with self._pool.acquire() as connection, connection.transaction():
            if new.default_of is not None:
                await make_default_archive(connection, organization_id, user_id, new, new.default_of)
            facts = [draft for draft in new.drafts if draft.key is not None or draft.supersedes]
            if facts:
                await lock_facts(connection, organization_id, new.archive_id, facts)
            stored = await insert_passages(connection, organization_id, user_id, new)
            added = [draft for draft in facts if draft.id in stored]
            if added:
                await supersede(connection, organization_id, new.archive_id, added)
                # One that was made for an earlier time has ended already.
                stored = {key: one for key, one in stored.items() if key not in {draft.id for draft in added}}
            if record is not None:
                await keep_record(connection, organization_id, record)
            existing = [(new.archive_id, draft.id) for draft in new.drafts if draft.id not in stored]
            if existing:
                passages = await _by_keys(connection, organization_id, existing)
                stored |= {passage.id: passage for passage in passages.values()}
            if len(stored) < len(new.drafts):
                raise ArchiveConflict  # one that was there is being deleted
        return [stored[draft.id] for draft in new.drafts]

    async def update(
        self,
        organization_id: UUID,
        user_id: UUID,
        key: PassageKey,
        changes: Mapping[str, Any],
        embedded: EmbeddedTexts | None,
    ) -> Passage:
        tags = changes.get("tags")
        if changes.get("valid_to", ...) is None:
            changes = {**changes, "superseded_by_id": None}
        values = Values(organization_id, *key, user_id)
        statement = _UPDATE.format(changes=values.assign({name: changes[name] for name in changes.keys() - {"text"}}))
        async with self._pool.acquire() as connection, connection.transaction():
            words_before = await connection.fetchval(_LOCK, organization_id, *key)
            if words_before is None:
                raise no_such_passage(key[1])
            if embedded is not None:
                await replace_text(connection, organization_id, key, changes["text"], words_before, embedded)
            titles = await connection.fetchval(statement, *values.all)
            if embedded is not None or tags is not None:
                await replace_title(connection, organization_id, key, titles)
            if tags is not None:
                await connection.execute(_UNTAG, organization_id, *key, tags)
                await connection.execute(_TAG, organization_id, *key, tags)
            passages = await _by_keys(connection, organization_id, [key])
        return passages[key]

    async def delete(self, organization_id: UUID, place: Place, passage_id: UUID) -> None:
        archives, value = archive_ids(place)
        if not await self._pool.fetchval(_DELETE.format(archives=archives), organization_id, value, passage_id):
            raise no_such_passage(passage_id)

    async def get(self, organization_id: UUID, place: Place, passage_id: UUID) -> Passage:
        archives, value = archive_ids(place)
        row = await self._pool.fetchrow(_GET.format(archives=archives), organization_id, value, passage_id)
        if row is None:
            raise no_such_passage(passage_id)
        return passage_of_row(row)

    async def by_keys(self, organization_id: UUID, keys: Sequence[PassageKey]) -> dict[PassageKey, Passage]:
        return await _by_keys(self._pool, organization_id, keys)


async def _by_keys(executor: Any, organization_id: UUID, keys: Sequence[PassageKey]) -> dict[PassageKey, Passage]:
    archives, passages = [key[0] for key in keys], [key[1] for key in keys]
    rows = await executor.fetch(_BY_KEYS, organization_id, archives, passages)
    return {(row["archive_id"], row["id"]): passage_of_row(row) for row in rows}
