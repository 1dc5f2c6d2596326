"""The migrated schema: keys by tenant, the same as SQLAlchemy's tables, and back again."""

from __future__ import annotations

import asyncio
import importlib
from pathlib import Path
from typing import Any

from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Connection, text

from services.common.engine import make_engine
from services.common.migrate import migrate
from services.memory.sql.columns import metadata
from tests.conftest import DatabaseUrl
from tests.integration.catalogue import assert_keys_begin_with_tenant

SERVICE = Path(__file__).resolve().parents[3] / "services" / "memory"


async def test_every_key_begins_with_the_tenant(memory_url: str) -> None:
    await assert_keys_begin_with_tenant(memory_url, "memory")


async def test_the_tables_of_sqlalchemy_are_those_of_the_migrations(memory_url: str) -> None:
    engine = make_engine(memory_url, size=1)

    rooms = [
        importlib.import_module(f"services.memory.{file.parent.name}.tables") for file in SERVICE.glob("*/tables.py")
    ]
    assert len(rooms) == 10
    assert {module.metadata for module in rooms} == {metadata}

    def differences(connection: Connection) -> list[Any]:
        options = {
            "include_schemas": True,
            "compare_type": True,
            "include_name": lambda name, kind, _: kind != "schema" or name == "memory",
            "include_object": lambda item, name, kind, _r, _c: name != "alembic_version",
        }
        return list(compare_metadata(MigrationContext.configure(connection, opts=options), metadata))

    async with engine.connect() as connection:
        assert await connection.run_sync(differences) == []
        storage = text("SELECT reloptions FROM pg_class WHERE oid = 'memory.passage_vectors'::regclass")
        assert await connection.scalar(storage) == ["toast_tuple_target=8160"]
    await engine.dispose()


async def test_migrating_twice_does_nothing_the_second_time(fresh_database_url: DatabaseUrl) -> None:
    url = fresh_database_url("memory")
    assert sorted(await asyncio.gather(*(migrate(url, "services.memory") for _ in range(3)))) == [
        False,
        False,
        True,
    ]
    assert not await migrate(url, "services.memory")
