"""Many passages with vectors, copied into the database: the same for the same seed."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import numpy as np
import numpy.typing as npt

from services.memory.archives.model import EmbeddingModel
from services.memory.core.ranking.search import Part

Matrix = npt.NDArray[np.float32]

DIMENSIONS = 128
# A passage in three has the first tag, one in 200 the second.
_PASSAGES = """
INSERT INTO memory.passages (
    organization_id, archive_id, id, text, tags, words, word_count, created_by_id, last_updated_by_id, created_at)
SELECT $1, $2, lpad(to_hex(n), 32, '0')::uuid, 'x',
    array_remove(ARRAY[CASE WHEN n % 3 = 0 THEN 'common' END, CASE WHEN n % 200 = 0 THEN 'rare' END], NULL),
    '', 1, $2, $2, $4::timestamptz + n % 1000 * interval '1 day'
FROM generate_series(0, $3::int - 1) n
"""
_TAGS = """
INSERT INTO memory.passage_tags (organization_id, archive_id, passage_id, tag)
SELECT organization_id, archive_id, id, unnest(tags) FROM memory.passages WHERE organization_id = $1 AND archive_id = $2
"""
FIRST_DAY = datetime(2026, 1, 1, tzinfo=UTC)


def clustered(count: int, seed: int) -> Matrix:
    """Unit vectors around 300 middles, which overlap, in 12 of the dimensions' directions."""
    fixed, drawn = np.random.default_rng(5), np.random.default_rng(seed)
    middles = fixed.standard_normal((300, 12), dtype=np.float32)
    directions = fixed.standard_normal((12, DIMENSIONS), dtype=np.float32)
    places = middles[drawn.integers(0, 300, count)] + drawn.standard_normal((count, 12), dtype=np.float32)
    vectors = places @ directions
    unit: Matrix = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float16).astype(np.float32)
    return unit


def wire(vector: npt.NDArray[Any]) -> bytes:
    """As the database takes it."""
    return struct.pack(">HH", len(vector), 0) + vector.astype(">f2").tobytes()


@dataclass
class Tenant:
    """One archive, whose passages have their numbers as ids; passage n is made on day n % 1,000."""

    organization_id: UUID
    archive_id: UUID
    model: EmbeddingModel
    vectors: Matrix

    @property
    def part(self) -> Part:
        """All of it."""
        return Part((self.archive_id,), len(self.vectors))

    def nearest(self, query: npt.NDArray[Any], expected: npt.NDArray[Any], count: int) -> list[UUID]:
        """Passages by cosine, exactly, of those whose numbers are `expected`."""
        order = np.argsort(-(self.vectors[expected] @ query), kind="stable")[:count]
        return [UUID(int=int(number)) for number in expected[order]]


async def tenant(connection: asyncpg.Connection, model: EmbeddingModel, count: int, seed: int) -> Tenant:
    """A new tenant with so many passages, all of whose vectors wait. The connection knows `halfvec`."""
    created = Tenant(uuid4(), uuid4(), model, clustered(count, seed))
    await connection.execute(
        "INSERT INTO memory.archives (organization_id, id, name, model_id, embedding, passage_count, word_count, "
        "created_by_id, last_updated_by_id) VALUES ($1, $2, '', $3, $4, $5, 1, $2, $2)",
        created.organization_id, created.archive_id, model.id, model.handle, count,
    )  # fmt: skip
    key = created.organization_id, created.archive_id
    await connection.execute(_PASSAGES, *key, count, FIRST_DAY)
    await connection.execute(_TAGS, *key)
    await connection.copy_records_to_table(
        "passage_vectors",
        schema_name="memory",
        records=((*key, UUID(int=n), model.id, wire(created.vectors[n])) for n in range(count)),
        columns=["organization_id", "archive_id", "passage_id", "model_id", "embedding"],
    )
    return created
