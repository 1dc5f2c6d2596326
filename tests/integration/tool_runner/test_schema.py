"""The migrated schema: keys by tenant, the same as SQLAlchemy's table, and migrated once."""

from __future__ import annotations

import asyncio
from typing import Any

import pgvector.sqlalchemy  # noqa: F401  # halfvec is a type that SQLAlchemy then knows
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Connection

from services.common.engine import make_engine
from services.common.migrate import migrate
from services.tool_runner.tools.table import metadata
from tests.conftest import DatabaseUrl
from tests.integration.catalogue import assert_keys_begin_with_tenant


async def test_every_key_begins_with_the_tenant(tool_url: str) -> None:
    await assert_keys_begin_with_tenant(tool_url, "tool_runner")


async def test_the_table_of_sqlalchemy_is_that_of_the_migrations(tool_url: str) -> None:
    engine = make_engine(tool_url, size=1)

    def differences(connection: Connection) -> list[Any]:
        options = {
            "include_schemas": True,
            "compare_type": True,
            "include_name": lambda name, kind, _: name == "tool_runner" if kind == "schema" else True,
            "include_object": lambda item, name, kind, _r, _c: kind != "table" or name == "tools",
        }
        return list(compare_metadata(MigrationContext.configure(connection, opts=options), metadata))

    async with engine.connect() as connection:
        assert await connection.run_sync(differences) == []
    await engine.dispose()


async def test_replicas_migrate_once(fresh_database_url: DatabaseUrl) -> None:
    url = fresh_database_url("tool_runner")
    did = await asyncio.gather(*(migrate(url, "services.tool_runner") for _ in range(3)))
    assert sorted(did) == [False, False, True]
