"""`IngestionStore` on Postgres: every write holds a file to the state that was read."""

import asyncio
from collections.abc import Sequence
from typing import Any
from uuid import UUID, uuid5

import asyncpg

from services.common.core.languages import language_of
from services.common.core.statements import Statement
from services.common.vectors import encode
from services.memory.agent_files.store.opening import open_files
from services.memory.archives.model import EmbeddingModel
from services.memory.core.errors import FileConflict, ModelConflict
from services.memory.core.file_text.pages import chunks_of
from services.memory.core.ranking.search import archive_lexeme
from services.memory.files.model import Batch, Chunk, FileStatus, ParseSummary, TextPage, Work
from services.memory.files.store.rows import FILE_COLUMNS, FILE_JOIN, PAGE_COLUMNS, file_of_row, page_of_row
from services.memory.passages.store.words import title_words, words_vector

# Passages that are removed in one statement: a few tenths of a second with their vectors.
_PORTION = 1_000

_WORK = f"""
SELECT {FILE_COLUMNS}, f.upload_id, f.tries, a.embedding, a.model_id, e.handle, e.dimensions
FROM memory.files f {FILE_JOIN}
JOIN memory.archives a ON a.organization_id = f.organization_id AND a.id = f.folder_id
LEFT JOIN memory.embedding_models e ON e.id = a.model_id
WHERE f.organization_id = $1 AND f.folder_id = $2 AND f.id = $3
"""
_START = """
UPDATE memory.files SET status = 2, tries = tries + 1, error = NULL, updated_at = now()
WHERE organization_id = $1 AND id = $2 AND status IN (1, 2) RETURNING id
"""
_NO_PAGES = "DELETE FROM memory.file_pages WHERE organization_id = $1 AND file_id = $2"
# Who lost his lease may still be at it: the same bytes make the same pages.
_NEW_PAGE = """
INSERT INTO memory.file_pages (
    organization_id, file_id, page, first_line, last_line, text, continued, first_place, cuts)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT DO NOTHING
"""
_PARSED = """
UPDATE memory.files f
SET status = CASE WHEN $6 > 0 THEN 3 ELSE 4 END, line_count = $4, char_count = $5, chunk_count = $6, ending = $8,
    embedded_count = 0, upload_id = NULL, updated_at = now(),
    media_type = f.media_type || CASE
        WHEN $9::text = '' OR f.media_type LIKE '%charset=%' THEN '' ELSE '; charset=' || $9::text END
WHERE f.organization_id = $1 AND f.id = $2 AND f.status = 2 AND f.upload_id = $3
    AND $7 = (SELECT count(*) FROM memory.file_pages p WHERE p.organization_id = $1 AND p.file_id = $2)
RETURNING status
"""
_NO_BYTES = "DELETE FROM memory.file_uploads WHERE organization_id = $1 AND upload_id = $2"
_PAGES = f"""
SELECT {PAGE_COLUMNS} FROM memory.file_pages p
WHERE p.organization_id = $1 AND p.file_id = $2 AND p.first_place + cardinality(p.cuts) / 2 > $3
ORDER BY p.page LIMIT $4
"""
_MOVE = """
UPDATE memory.files
SET embedded_count = embedded_count + $4, error = NULL, updated_at = now(),
    status = CASE WHEN embedded_count + $4 >= chunk_count THEN 4 ELSE 3 END
WHERE organization_id = $1 AND id = $2 AND status = 3 AND embedded_count = $3
RETURNING status
"""
_ADD = Statement(f"""
WITH added AS (
    INSERT INTO memory.passages (
        organization_id, archive_id, id, text, words, word_count, created_by_id, last_updated_by_id, file_id,
        place, first_line, last_line)
    SELECT :organization_id, :folder_id, d.id, d.text,
        {words_vector("d.words", ":lexemes", "d.language", ":title::text")},
        d.word_count, :user_id, :user_id, :file_id, d.place, d.first_line, d.last_line
    FROM jsonb_to_recordset(:drafts) AS d (
        id uuid, text text, words text, language text, word_count integer, place integer, first_line integer,
        last_line integer)
    ON CONFLICT (organization_id, archive_id, id) DO NOTHING
    RETURNING id, word_count
), found_by_meaning AS (
    INSERT INTO memory.passage_vectors (organization_id, archive_id, passage_id, model_id, embedding)
    SELECT :organization_id, :folder_id, added.id, :model_id, v.embedding
    FROM unnest(:ids::uuid[], :vectors::halfvec[]) AS v (id, embedding) JOIN added ON added.id = v.id
)
UPDATE memory.archives a
SET passage_count = a.passage_count + n.passages, word_count = a.word_count + n.words, model_id = :model_id
FROM (SELECT count(*) AS passages, coalesce(sum(word_count), 0) AS words FROM added) n
WHERE a.organization_id = :organization_id AND a.id = :folder_id AND a.kind = 2 AND CASE
    WHEN a.model_id IS NULL THEN a.embedding IS NOT DISTINCT FROM :embedding ELSE a.model_id = :model_id END
RETURNING a.id
""")
_NOTE = """
UPDATE memory.files SET error = $3, updated_at = now() WHERE organization_id = $1 AND id = $2 AND status IN (2, 3)
"""
_GIVE_UP = """
UPDATE memory.files SET status = 5, error = $4, embedded_count = 0, updated_at = now()
WHERE organization_id = $1 AND id = $2 AND status IN (1, 2, 3) AND embedded_count = $3
RETURNING upload_id IS NULL AS read
"""
_REMOVE = """
WITH gone AS (
    DELETE FROM memory.passages WHERE (organization_id, archive_id, id) IN (
        SELECT organization_id, archive_id, id FROM memory.passages
        WHERE organization_id = $1 AND archive_id = $2 AND file_id = $3 LIMIT $4)
    RETURNING word_count
), counted AS (
    UPDATE memory.archives a SET passage_count = a.passage_count - n.passages, word_count = a.word_count - n.words
    FROM (SELECT count(*) AS passages, coalesce(sum(word_count), 0) AS words FROM gone) n
    WHERE a.organization_id = $1 AND a.id = $2 AND n.passages > 0
)
SELECT count(*) FROM gone
"""


class PostgresIngestion:
    """`IngestionStore`."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool

    async def work(self, organization_id: UUID, folder_id: UUID, file_id: UUID) -> Work | None:
        row = await self._pool.fetchrow(_WORK, organization_id, folder_id, file_id)
        if row is None:
            return None
        model = None
        if row["model_id"] is not None:
            model = EmbeddingModel(id=row["model_id"], handle=row["handle"], dimensions=row["dimensions"])
        return Work(
            file=file_of_row(row),
            upload_id=row["upload_id"],
            tries=row["tries"],
            embedding=row["embedding"] or "",
            model=model,
        )

    async def start_parsing(self, organization_id: UUID, file_id: UUID) -> None:
        async with self._pool.acquire() as connection, connection.transaction():
            if not await connection.fetchval(_START, organization_id, file_id):
                raise FileConflict
            await connection.execute(_NO_PAGES, organization_id, file_id)

    async def add_pages(self, organization_id: UUID, file_id: UUID, pages: Sequence[TextPage]) -> None:
        values = [
            (
                organization_id,
                file_id,
                one.page,
                one.first_line,
                one.last_line,
                one.text,
                one.continued,
                one.first_place,
                [place for cut in one.cuts for place in cut],
            )
            for one in pages
        ]
        try:
            await self._pool.executemany(_NEW_PAGE, values)
        except asyncpg.ForeignKeyViolationError:
            raise FileConflict from None

    async def finish_parsing(self, organization_id: UUID, work: Work, parsed: ParseSummary) -> FileStatus:
        counts = (parsed.lines, parsed.characters, parsed.chunks, parsed.pages, parsed.ending, parsed.charset)
        async with self._pool.acquire() as connection, connection.transaction():
            status = await connection.fetchval(_PARSED, organization_id, work.file.id, work.upload_id, *counts)
            if status is None:
                raise FileConflict
            await connection.execute(_NO_BYTES, organization_id, work.upload_id)
            await open_files(connection, organization_id, work.file.folder_id, [work.file.id])
        return FileStatus(status)

    async def chunks(self, organization_id: UUID, file_id: UUID, place: int, limit: int) -> Sequence[Chunk]:
        # Nearly every page has several.
        rows = await self._pool.fetch(_PAGES, organization_id, file_id, place, 1 + limit // 4)
        pieces = [chunk for row in rows for chunk in chunks_of(page_of_row(row))]
        return [chunk for chunk in pieces if chunk.place >= place][:limit]

    async def add_batch(self, organization_id: UUID, work: Work, batch: Batch) -> FileStatus:
        at = (organization_id, work.file.id, work.file.embedded_count, len(batch.chunks))
        # Others are served while a large batch is encoded.
        insertion = await asyncio.to_thread(_insertion, organization_id, work, batch)
        async with self._pool.acquire() as connection, connection.transaction():
            status = await connection.fetchval(_MOVE, *at)
            if status is None:
                raise FileConflict
            if batch.chunks and not await connection.fetchval(*insertion):
                raise ModelConflict
        return FileStatus(status)

    async def note(self, organization_id: UUID, file_id: UUID, error: str) -> None:
        await self._pool.execute(_NOTE, organization_id, file_id, error)

    async def give_up(self, organization_id: UUID, work: Work, error: str) -> None:
        async with self._pool.acquire() as connection, connection.transaction():
            row = await connection.fetchrow(_GIVE_UP, organization_id, work.file.id, work.file.embedded_count, error)
            if row is None:
                raise FileConflict
            if not row["read"]:
                await connection.execute(_NO_PAGES, organization_id, work.file.id)

    async def remove_passages(self, organization_id: UUID, folder_id: UUID, file_id: UUID) -> bool:
        return bool(await self._pool.fetchval(_REMOVE, organization_id, folder_id, file_id, _PORTION))


def _insertion(organization_id: UUID, work: Work, batch: Batch) -> tuple[Any, ...]:
    ids = [uuid5(work.file.id, str(chunk.place)) for chunk in batch.chunks]
    drafts = [
        {
            "id": id_,
            "text": chunk.text,
            "words": " ".join(words),
            "language": language_of(chunk.text),
            "word_count": len(words),
            "place": chunk.place,
            "first_line": chunk.first_line,
            "last_line": chunk.last_line,
        }
        for id_, chunk, words in zip(ids, batch.chunks, batch.words, strict=True)
    ]
    vectors = {id_: vector for id_, vector in zip(ids, batch.vectors, strict=True) if vector is not None}
    return _ADD.bind(
        organization_id=organization_id,
        folder_id=work.file.folder_id,
        file_id=work.file.id,
        user_id=work.file.created_by_id,
        lexemes=[archive_lexeme(work.file.folder_id)],
        title=title_words([work.file.name]),
        drafts=drafts,
        model_id=None if batch.model is None else batch.model.id,
        ids=list(vectors),
        vectors=[encode(vector) for vector in vectors.values()],
        embedding=work.embedding or None,
    )
