"""The rule on keys, checked against Postgres's own catalogue; every service's integration tests call this.

So that one day tenants can be spread over several Postgres servers, every primary, unique and foreign key begins
with `organization_id uuid NOT NULL`. Tables that are read before the tenant is known are exempt by their comment:
COMMENT ON TABLE ... IS 'reference: <why>'.
"""

import asyncpg

from services.common.migrate import VERSION_TABLE

# One row per key: unique indexes (those of primary keys and unique constraints, too), then foreign keys. Columns of
# an expression have no name.
_KEYS = """
SELECT t.relname AS table_name, i.relname AS key_name,
       CASE WHEN x.indisprimary THEN 'primary key' ELSE 'unique' END AS kind,
       ARRAY(SELECT coalesce(a.attname::text, '<expression>')
             FROM unnest(x.indkey::int2[]) WITH ORDINALITY AS k (attnum, place)
             LEFT JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = k.attnum AND k.attnum > 0
             WHERE k.place <= x.indnkeyatts ORDER BY k.place) AS columns,
       NULL::text[] AS foreign_columns, NULL::oid AS foreign_table
FROM pg_index x JOIN pg_class t ON t.oid = x.indrelid JOIN pg_class i ON i.oid = x.indexrelid
WHERE x.indisunique AND t.relnamespace = $1::text::regnamespace AND t.relkind IN ('r', 'p')
UNION ALL
SELECT t.relname, c.conname, 'foreign key',
       ARRAY(SELECT a.attname::text FROM unnest(c.conkey) WITH ORDINALITY AS k (attnum, place)
             JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = k.attnum ORDER BY k.place),
       ARRAY(SELECT a.attname::text FROM unnest(c.confkey) WITH ORDINALITY AS k (attnum, place)
             JOIN pg_attribute a ON a.attrelid = c.confrelid AND a.attnum = k.attnum ORDER BY k.place),
       c.confrelid
FROM pg_constraint c JOIN pg_class t ON t.oid = c.conrelid
WHERE c.contype = 'f' AND t.relnamespace = $1::text::regnamespace
"""
_TABLES = """
SELECT t.relname AS table_name, coalesce(obj_description(t.oid, 'pg_class'), '') AS comment,
       format_type(a.atttypid, a.atttypmod) AS tenant_type, a.attnotnull AS tenant_required
FROM pg_class t LEFT JOIN pg_attribute a ON a.attrelid = t.oid AND a.attname = 'organization_id'
WHERE t.relkind IN ('r', 'p') AND t.relnamespace = $1::text::regnamespace
"""


async def assert_keys_begin_with_tenant(url: str, schema: str) -> None:
    """Fails with one line per table or key of `schema` that breaks the rule, or when there is no table at all."""
    connection = await asyncpg.connect(url)
    try:
        found = await broken_rules(connection, schema)
    finally:
        await connection.close()
    assert found == [], "\n".join(["keys must begin with organization_id:", *found])


async def broken_rules(connection: asyncpg.Connection, schema: str) -> list[str]:
    """A line per table or key of `schema` that breaks the rule, sorted."""
    tables = [row for row in await connection.fetch(_TABLES, schema) if row["table_name"] != VERSION_TABLE]
    if not tables:
        return [f"{schema}: has no tables; migrate first"]
    reference = {row["table_name"] for row in tables if _is_reference(row["comment"])}
    mine = {row["table_name"] for row in tables} - reference
    keys = [row for row in await connection.fetch(_KEYS, schema) if row["table_name"] in mine]
    found = [f"{row['table_name']}: {why}" for row in tables if row["table_name"] in mine for why in _of_table(row)]
    found += [f"{row['table_name']}.{row['key_name']}: {why}" for row in keys for why in _of_key(row)]
    with_primary_key = {row["table_name"] for row in keys if row["kind"] == "primary key"}
    found += [f"{name}: has no primary key" for name in mine - with_primary_key]
    return sorted(found)


def _is_reference(comment: str) -> bool:
    return comment.startswith("reference:") and len(comment.removeprefix("reference:").strip()) > 0


def _of_table(row: asyncpg.Record) -> list[str]:
    if row["tenant_type"] is None:
        return ["has no organization_id"]
    if row["tenant_type"] != "uuid" or not row["tenant_required"]:
        return ["organization_id is not uuid NOT NULL"]
    return []


def _of_key(row: asyncpg.Record) -> list[str]:
    sides = [row["columns"]] + ([] if row["foreign_columns"] is None else [row["foreign_columns"]])
    if all(columns[:1] == ["organization_id"] for columns in sides):
        return []
    return [f"{row['kind']} ({', '.join(row['columns'])})"]
