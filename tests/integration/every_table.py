"""Rows of a tenant in every table of a schema, whatever tables there are: made up, and counted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID, uuid4

import asyncpg
import grpc
import pytest

from services.common.context import CallContext, Signer, use_context
from services.common.errors import from_rpc
from services.common.purge import DEFAULT_ORGANIZATION
from tests.postgres import Postgres

_TABLES = """
SELECT t.oid, t.relname AS name, t.relkind = 'p' AS partitioned FROM pg_class t
JOIN pg_attribute a ON a.attrelid = t.oid AND a.attname = 'organization_id'
WHERE t.relnamespace = $1::text::regnamespace AND t.relkind IN ('r', 'p') AND NOT t.relispartition
"""
# Those that must be given.
_COLUMNS = """
SELECT a.attname AS name, format_type(a.atttypid, NULL) AS type FROM pg_attribute a
WHERE a.attrelid = $1 AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = '' AND a.attidentity = ''
    AND (a.attnotnull AND NOT a.atthasdef OR EXISTS (
        SELECT FROM pg_index i WHERE i.indrelid = $1 AND i.indisunique AND a.attnum = ANY(i.indkey)))
"""
_CHECKS = """
SELECT conrelid::regclass::text AS name, conname FROM pg_constraint
WHERE contype = 'c' AND connamespace = $1::text::regnamespace AND coninhcount = 0
"""
_VALUES = {
    "uuid": "gen_random_uuid()",
    "text": "gen_random_uuid()::text",
    "bytea": "gen_random_uuid()::text::bytea",
    "json": "'{}'",
    "jsonb": "'{}'",
    "boolean": "false",
    "timestamp with time zone": "now() + n * interval '1 hour'",
    "tsvector": "'a'",
    "halfvec": "'[1]'",
    "smallint": "n",
    "integer": "n",
    "bigint": "n",
    "real": "n",
}


async def fill(postgres: Postgres, url: str, schema: str, organization_ids: Sequence[UUID], rows: int = 3) -> int:
    """So many rows for each tenant in every table, which keeps none of its checks and refers to nothing; how many
    tables there are. The database is spoilt for anything else.
    """
    connection = await asyncpg.connect(postgres.superuser_url(urlsplit(url).path.lstrip("/")))
    try:
        await connection.execute("SET session_replication_role = replica")
        for check in await connection.fetch(_CHECKS, schema):
            await connection.execute(f'ALTER TABLE {check["name"]} DROP CONSTRAINT "{check["conname"]}"')
        tables = await connection.fetch(_TABLES, schema)
        for table in tables:
            name = f"{schema}.{table['name']}"
            if table["partitioned"]:
                await connection.execute(f"CREATE TABLE {name}_rest PARTITION OF {name} DEFAULT")
            columns = await connection.fetch(_COLUMNS, table["oid"])
            names = ", ".join(column["name"] for column in columns)
            values = ", ".join(_value(column["name"], column["type"]) for column in columns)
            statement = f"INSERT INTO {name} ({names}) SELECT {values} FROM generate_series(1, $2) n"
            for organization_id in organization_ids:
                # Of itself there is one.
                await connection.execute(f"{statement} ON CONFLICT DO NOTHING", organization_id, rows)
    finally:
        await connection.close()
    return len(tables)


def _value(column: str, kind: str) -> str:
    if column == "organization_id":
        return "$1"
    return "'{}'" if kind.endswith("[]") else _VALUES[kind]


async def rows_of(postgres: Postgres, url: str, schema: str, organization_id: UUID) -> dict[str, int]:
    """Counts a tenant's rows in each table that has any."""
    connection = await asyncpg.connect(postgres.superuser_url(urlsplit(url).path.lstrip("/")))
    try:
        found = {
            table["name"]: await connection.fetchval(
                f"SELECT count(*) FROM {schema}.{table['name']} WHERE organization_id = $1", organization_id
            )
            for table in await connection.fetch(_TABLES, schema)
        }
    finally:
        await connection.close()
    return {name: count for name, count in found.items() if count}


async def assert_purges(
    postgres: Postgres, url: str, schema: str, rpc: Any, request: Any, caller: CallContext, signer: Signer
) -> None:
    """Asserts that PurgeOrganization erases the context's tenant, whole and alone, and for the outbox's calls alone."""
    mine, other = uuid4(), uuid4()
    await fill(postgres, url, schema, [mine, other, DEFAULT_ORGANIZATION])
    before = [await rows_of(postgres, url, schema, each) for each in (mine, other, DEFAULT_ORGANIZATION)]
    for organization_id, role, reason in (
        (mine, "admin", "ROLE_NOT_PERMITTED"),
        (mine, "run", "ROLE_NOT_PERMITTED"),
        (DEFAULT_ORGANIZATION, "agent", "ORGANIZATION_IS_DEFAULT"),
    ):
        asked = replace(caller, organization_id=organization_id, role=role, expires_at=0.0, token=b"")
        with use_context(asked, signer=signer), pytest.raises(grpc.aio.AioRpcError) as error:
            await rpc(request)
        assert from_rpc(error.value).reason == reason
    assert [await rows_of(postgres, url, schema, each) for each in (mine, other, DEFAULT_ORGANIZATION)] == before
    asked = replace(caller, organization_id=mine, role="agent", expires_at=0.0, token=b"")
    for _ in range(2):
        with use_context(asked, signer=signer):
            assert (await rpc(request)).done
        left = [await rows_of(postgres, url, schema, each) for each in (mine, other, DEFAULT_ORGANIZATION)]
        assert left == [{}, *before[1:]]
