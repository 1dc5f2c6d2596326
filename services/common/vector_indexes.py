"""Indexes over half-precision vectors: one per embedding model and table, built beside the traffic.

A table of vectors has the columns `model_id integer`, `embedding halfvec` and `waiting boolean`. What waits is in no
index and is found by reading it; the rest is in the HNSW index of its model (Malkov and Yashunin, 2018), where there
is one. So to store a vector costs nothing of what it costs to put it into such an index, which is milliseconds.
What indexes there are, and which are whole, stands in pg_catalog alone.
"""

import logging
from dataclasses import dataclass
from typing import Any

import asyncpg

from services.common.database import connect, connect_options

logger = logging.getLogger(__name__)

# What pgvector's HNSW can hold of halfvec.
MOST_DIMENSIONS = 4_000
# Fewer are read from end to end sooner than an index answers.
LEAST_VECTORS = 10_000
# So many may wait before the index takes them in.
MOST_WAITING = 1_000
_BATCH = 100
_BATCHES = 50
_BULK_BATCH = 5_000
_MIB = 1 << 20
_CLOSE_SECONDS = 5.0

_STATE = """
SELECT coalesce(i.indisvalid, false) AS valid, NOT coalesce(i.indisvalid, true) AS broken,
    greatest(c.reltuples, 0)::bigint AS vectors,
    pg_has_role(t.relowner, 'USAGE') AS buildable,
    (SELECT count(*) FROM (SELECT FROM {table} WHERE model_id = {model} AND waiting LIMIT {most}) w) AS waiting
FROM pg_catalog.pg_class t
LEFT JOIN pg_catalog.pg_class c ON c.relnamespace = t.relnamespace AND c.relname = '{name}'
LEFT JOIN pg_catalog.pg_index i ON i.indexrelid = c.oid
WHERE t.oid = '{table}'::regclass
"""
_SETTLE = """
UPDATE {table} SET waiting = false WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM {table} WHERE model_id = {model} AND waiting LIMIT {batch} FOR NO KEY UPDATE SKIP LOCKED))
"""
_COUNT = "SELECT count(*) FILTER (WHERE waiting), count(*) FROM {table} WHERE model_id = {model}"


@dataclass(frozen=True, slots=True)
class VectorIndex:
    """The index over the vectors of one model in a table (`schema.name`)."""

    table: str
    model_id: int
    dimensions: int

    @property
    def name(self) -> str:
        """Returns the index's name within the table's schema."""
        return f"{self.table.rpartition('.')[2]}_model_{self.model_id}"

    @property
    def possible(self) -> bool:
        """Returns whether vectors are short enough for one."""
        return self.dimensions <= MOST_DIMENSIONS

    @property
    def expression(self) -> str:
        """Returns what is indexed; order by `{expression} <=> $n::halfvec({dimensions})` to use it."""
        return f"(embedding::halfvec({self.dimensions}))"

    @property
    def condition(self) -> str:
        """Returns the condition on its rows, in literals: a parameter would hide the index from the planner."""
        return f"model_id = {self.model_id} AND NOT waiting"

    def sql(self, statement: str, **more: object) -> str:
        """Returns `statement` with its names filled in."""
        return statement.format(table=self.table, model=self.model_id, name=self.name, **more)


@dataclass(frozen=True, slots=True)
class IndexState:
    """vectors: about how many the index holds; waiting: how many do not, counted up to a little over LEAST_VECTORS.

    broken: there is one that is being built, or was when its builder died. buildable: this role may build one.
    """

    valid: bool = False
    broken: bool = False
    vectors: int = 0
    waiting: int = 0
    buildable: bool = False

    @property
    def overdue(self) -> bool:
        """Returns whether there is work for `tend`, as far as this tells: where an index was removed, nothing waits."""
        return self.broken or self.waiting > (MOST_WAITING if self.valid else LEAST_VECTORS)


async def read_state(executor: Any, index: VectorIndex) -> IndexState:
    """Returns what there is now; a few milliseconds at most."""
    row = await executor.fetchrow(index.sql(_STATE, most=LEAST_VECTORS + 1))
    # What a statistic does not know yet, is more than an index is built for.
    vectors = (row["vectors"] or LEAST_VECTORS) if row["valid"] else 0
    return IndexState(row["valid"], row["broken"], vectors, row["waiting"], row["buildable"])


async def tend(url: str, index: VectorIndex, *, memory_mib: int) -> bool:
    """Builds the index, or takes in what waits; False when another process is at it.

    url: a direct connection, not through PgBouncer; memory_mib: what building may take. An index that a broken build
    left is dropped first. Cancelled at any point, it goes on at the next call. Where the role may not build, one line
    is logged.
    """
    if not index.possible:
        return True
    connection = await connect(url, **connect_options(patience=None))
    try:
        # A session that waited would hold a snapshot, for which a concurrent build would wait in turn.
        if not await connection.fetchval(
            "SELECT pg_try_advisory_lock(hashtextextended($1, 0))", _qualified_name(index)
        ):
            return False
        while await _step(connection, index, await read_state(connection, index), memory_mib):
            pass
    finally:
        await connection.close(timeout=_CLOSE_SECONDS)
    return True


async def _step(connection: asyncpg.Connection, index: VectorIndex, state: IndexState, memory_mib: int) -> bool:
    """Returns whether something was done."""
    if not state.buildable:
        logger.warning("the role of the database does not own %s: no index of its vectors", index.table)
        return False
    if state.valid and not state.overdue:
        return False
    # What waits does not tell: a build that was cut off has taken it in.
    waiting, vectors = await connection.fetchrow(index.sql(_COUNT))
    if not state.valid and vectors <= LEAST_VECTORS:
        await connection.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {_qualified_name(index)}")
        return False
    # Vector by vector an index takes thrice the time, or more, of one that is built from the beginning.
    if state.valid and waiting <= vectors - waiting:
        return await _take_in(connection, index, _BATCH, batches=_BATCHES)
    await _build(connection, index, vectors, memory_mib)
    return True


async def _build(connection: asyncpg.Connection, index: VectorIndex, vectors: int, memory_mib: int) -> None:
    await connection.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {_qualified_name(index)}")
    await _take_in(connection, index, _BULK_BATCH)
    await connection.execute(f"ANALYZE {index.table}")
    statement = (
        f"CREATE INDEX CONCURRENTLY {index.name} ON {index.table} USING hnsw ({index.expression} halfvec_cosine_ops) "
        f"WHERE {index.condition}"
    )
    # Parallel workers share this memory, and it is taken at once.
    needed = vectors * (3 * index.dimensions + 1_000) // _MIB + 64
    await connection.execute(f"SET maintenance_work_mem = '{min(memory_mib, needed)}MB'")
    try:
        await connection.execute(statement)
    except asyncpg.InsufficientResourcesError as error:
        # A container's /dev/shm is small. The build of one process takes its memory from elsewhere.
        logger.info("an index is built by one process: %s", error)
        await connection.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {_qualified_name(index)}")
        await connection.execute("SET max_parallel_maintenance_workers = 0")
        await connection.execute(statement)
    logger.info("built the index %s of %d vectors", _qualified_name(index), vectors)


async def _take_in(
    connection: asyncpg.Connection, index: VectorIndex, size: int, *, batches: int | None = None
) -> bool:
    """Returns whether there was something.

    A batch is a transaction; what others change just now is left for the next time.
    """
    statement = index.sql(_SETTLE, batch=size)
    taken, done = 0, size
    while done == size and (batches is None or taken < batches * size):
        done = int((await connection.execute(statement)).removeprefix("UPDATE "))
        taken += done
    return taken > 0


def _qualified_name(index: VectorIndex) -> str:
    return f"{index.table.rpartition('.')[0]}.{index.name}"
