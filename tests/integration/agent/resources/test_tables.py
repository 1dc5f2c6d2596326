"""The migrated schema: keys begin with the tenant, and the tables that SQLAlchemy knows are the real ones."""

import asyncpg
from sqlalchemy import Column
from sqlalchemy.dialects import postgresql

from services.agent.resources.tables import metadata
from tests.integration.catalogue import assert_keys_begin_with_tenant

_COLUMNS = """
SELECT c.relname AS table, a.attname AS name, format_type(a.atttypid, a.atttypmod) AS type, a.attnotnull AS required,
       EXISTS (SELECT FROM pg_index i WHERE i.indrelid = c.oid AND i.indisprimary AND a.attnum = ANY(i.indkey)) AS key
FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
WHERE c.relnamespace = 'agent'::regnamespace AND c.relkind = 'r' AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY c.relname, a.attnum
"""


async def test_every_key_begins_with_the_tenant(agent_url: str) -> None:
    await assert_keys_begin_with_tenant(agent_url, "agent")


async def test_the_tables_are_the_migrated_ones(agent_url: str) -> None:
    connection = await asyncpg.connect(agent_url)
    rows = await connection.fetch(_COLUMNS)
    await connection.close()
    real: dict[str, list[tuple[str, str, bool, bool]]] = {}
    for row in rows:
        real.setdefault(row["table"], []).append((row["name"], row["type"], row["required"], row["key"]))
    known = {
        table.name: sorted((each.name, _type(each), not each.nullable, each.primary_key) for each in table.columns)
        for table in metadata.sorted_tables
    }
    assert known == {name: sorted(columns) for name, columns in real.items() if name in known}


def _type(column: Column[object]) -> str:
    return column.type.compile(dialect=postgresql.dialect()).lower()  # type: ignore[no-untyped-call]
