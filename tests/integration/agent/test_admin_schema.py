"""The migrated schema: keys begin with the tenant, and the tables that SQLAlchemy knows are the real ones."""

import asyncio
from collections.abc import AsyncIterator

import asyncpg
import pytest
from sqlalchemy import Column
from sqlalchemy.dialects import postgresql

from services.agent.adapters.tables import metadata
from services.common.migrate import migrate
from tests.conftest import DatabaseUrl

# Keys of tables, with what they point at. The table of migrations belongs to Alembic.
_KEYS = """
SELECT c.relname AS table, i.conname AS name, i.contype AS kind, obj_description(c.oid, 'pg_class') AS comment,
       ARRAY(SELECT a.attname FROM unnest(i.conkey) WITH ORDINALITY AS k (number, place)
             JOIN pg_attribute a ON a.attrelid = i.conrelid AND a.attnum = k.number ORDER BY place)::text[] AS columns
FROM pg_constraint i JOIN pg_class c ON c.oid = i.conrelid JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = 'agent' AND i.contype IN ('p', 'u', 'f') AND c.relname <> 'alembic_version'
"""
_UNIQUE_INDEXES = """
SELECT c.relname AS table, x.relname AS name, 'i' AS kind, obj_description(c.oid, 'pg_class') AS comment,
       ARRAY(SELECT pg_get_indexdef(i.indexrelid, place, true)
             FROM generate_series(1, i.indnkeyatts) AS place) AS columns
FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid JOIN pg_class x ON x.oid = i.indexrelid
JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = 'agent' AND i.indisunique AND c.relname <> 'alembic_version'
"""
_COLUMNS = """
SELECT c.relname AS table, a.attname AS name, format_type(a.atttypid, a.atttypmod) AS type, a.attnotnull AS required
FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = 'agent' AND c.relkind = 'r' AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY c.relname, a.attnum
"""


@pytest.fixture(scope="module")
def agent_url(database_url: DatabaseUrl) -> str:
    """A migrated database."""
    url = database_url("agent")
    asyncio.run(migrate(url, "services.agent"))
    return url


@pytest.fixture
async def connection(agent_url: str) -> AsyncIterator[asyncpg.Connection]:
    """A connection to it."""
    made = await asyncpg.connect(agent_url)
    yield made
    await made.close()


async def test_every_key_begins_with_the_tenant(connection: asyncpg.Connection) -> None:
    keys = [*await connection.fetch(_KEYS), *await connection.fetch(_UNIQUE_INDEXES)]
    assert len(keys) > 20
    wrong = [
        f"{key['table']}.{key['name']}"
        for key in keys
        if key["columns"][0] != "organization_id" and not (key["comment"] or "").startswith("reference: ")
    ]
    assert wrong == []


async def test_the_tables_are_the_migrated_ones(connection: asyncpg.Connection) -> None:
    real: dict[str, list[tuple[str, str, bool]]] = {}
    for row in await connection.fetch(_COLUMNS):
        real.setdefault(row["table"], []).append((row["name"], row["type"], row["required"]))
    primary = {row["table"]: list(row["columns"]) for row in await connection.fetch(_KEYS) if row["kind"] == b"p"}
    for table in metadata.sorted_tables:
        assert [(each.name, _type(each), not each.nullable) for each in table.columns] == real[table.name]
        assert {each.name for each in table.primary_key} == set(primary[table.name])


def _type(column: Column[object]) -> str:
    return column.type.compile(dialect=postgresql.dialect()).lower()  # type: ignore[no-untyped-call]
