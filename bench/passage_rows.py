"""Passages straight into the tables of memory, as the service would have stored them."""

import struct
from dataclasses import dataclass
from uuid import UUID

import asyncpg

from bench.corpus import LENGTH, Batch, Corpus, Matrix, Nearest
from services.common import vectors
from services.common.ids import from_public
from services.memory.core.ranking.search import archive_lexeme, tenant_lexeme

_ARCHIVE = """
SELECT a.organization_id, a.id, a.model_id FROM memory.agent_archives m
JOIN memory.archives a ON a.organization_id = m.organization_id AND a.id = m.archive_id WHERE m.agent_id = $1
"""
_TEXTS = """
INSERT INTO memory.passages (
    organization_id, archive_id, id, text, words, word_count, created_by_id, last_updated_by_id, created_at)
SELECT $1, $2, lpad(to_hex($3::int + place - 1), 32, '0')::uuid, text,
    to_tsvector('memory.words', text) || array_to_tsvector($5::text[]), $6, $2, $2,
    now() - ($3::int + place) * interval '1 minute'
FROM unnest($4::text[]) WITH ORDINALITY AS t (text, place)
"""
_COUNTS = """
UPDATE memory.archives SET passage_count = passage_count + $3, word_count = word_count + $3 * $4
WHERE organization_id = $1 AND id = $2
"""
_INDEX = "SELECT pg_get_indexdef('memory.passages_by_words'::regclass)"


@dataclass(frozen=True, slots=True)
class Archive:
    """An agent's archive, with the model of its vectors."""

    organization_id: UUID
    id: UUID
    model_id: int

    @classmethod
    async def of(cls, url: str, agent_id: str) -> "Archive":
        """Returns the agent's only archive."""
        connection = await asyncpg.connect(url)
        row = await connection.fetchrow(_ARCHIVE, from_public("agent", agent_id))
        await connection.close()
        return cls(*row)


async def copy_passages(url: str, archive: Archive, corpus: Corpus, count: int, nearest: Nearest) -> None:
    """The first `count` passages of the corpus, with their numbers as ids. url: the superuser's.

    The index of words is made anew afterwards, which takes a fraction of the time.
    """
    connection = await asyncpg.connect(url)
    await vectors.register(connection)
    # Keys to archives and passages, which are right.
    await connection.execute("SET session_replication_role = replica; SET maintenance_work_mem = '1GB'")
    definition = await connection.fetchval(_INDEX)
    await connection.execute("DROP INDEX memory.passages_by_words")
    for batch in corpus.batches(count):
        nearest.add(batch)
        await _copy(connection, archive, batch)
    await connection.execute(_COUNTS, archive.organization_id, archive.id, count, LENGTH)
    await connection.execute(definition)
    for table in ("archives", "passages", "passage_vectors"):
        await connection.execute(f"VACUUM ANALYZE memory.{table}")
    await connection.execute("CHECKPOINT")
    await connection.close()


async def _copy(connection: asyncpg.Connection, archive: Archive, batch: Batch) -> None:
    key = archive.organization_id, archive.id
    lexemes = [archive_lexeme(archive.id), tenant_lexeme(archive.organization_id)]
    await connection.execute(_TEXTS, *key, batch.first, batch.texts, lexemes, LENGTH)
    rows = (
        (*key, UUID(int=number), archive.model_id, vector)
        for number, vector in enumerate(_wire(batch.vectors), batch.first)
    )
    columns = ["organization_id", "archive_id", "passage_id", "model_id", "embedding"]
    await connection.copy_records_to_table("passage_vectors", schema_name="memory", records=rows, columns=columns)


def _wire(matrix: Matrix) -> list[bytes]:
    """Returns each row as `vectors.encode` does, in less time."""
    head = struct.pack(">HH", matrix.shape[1], 0)
    return [head + row.tobytes() for row in matrix.astype(">f2")]
