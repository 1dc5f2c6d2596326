"""A tenant's rows go from every table of every schema, in small portions, and nobody else's do."""

from __future__ import annotations

from uuid import uuid4

import asyncpg
import pytest

from services.common import purge
from services.common.database import open_pool
from services.common.errors import FailedPrecondition
from services.common.purge import DEFAULT_ORGANIZATION, purge_rows
from tests.conftest import DatabaseUrl, MigratedUrl
from tests.integration.every_table import fill, rows_of
from tests.postgres import Postgres


@pytest.mark.parametrize("schema", ["agent", "memory", "llm_gateway", "tool_runner"])
async def test_every_table(
    schema: str, migrated_url: MigratedUrl, postgres: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = migrated_url(schema)
    mine, other = uuid4(), uuid4()
    tables = await fill(postgres, url, schema, [mine, other])
    theirs = await rows_of(postgres, url, schema, other)
    assert len(theirs) == len(await rows_of(postgres, url, schema, mine)) == tables >= 4
    monkeypatch.setattr(purge, "ROWS_AT_ONCE", 2)
    async with await open_pool(url, size=1) as pool:
        assert not await purge_rows(pool, schema, mine, seconds=-1)
        kept = next(iter(theirs))
        assert await purge_rows(pool, schema, mine, keep={kept})
        assert await rows_of(postgres, url, schema, mine) == {kept: theirs[kept]}
        for _ in range(2):
            assert await purge_rows(pool, schema, mine)
    assert await rows_of(postgres, url, schema, mine) == {}
    assert await rows_of(postgres, url, schema, other) == theirs


async def test_what_is_not_done(fresh_database_url: DatabaseUrl) -> None:
    url = fresh_database_url("memory")
    connection = await asyncpg.connect(url)
    for name, other in (("one", "two"), ("two", "one")):
        await connection.execute(f"CREATE TABLE memory.{name} (organization_id uuid PRIMARY KEY, {other}_id uuid)")
    for name, other in (("one", "two"), ("two", "one")):
        await connection.execute(f"ALTER TABLE memory.{name} ADD FOREIGN KEY ({other}_id) REFERENCES memory.{other}")
    await connection.execute("INSERT INTO memory.one VALUES ($1)", DEFAULT_ORGANIZATION)
    async with await open_pool(url, size=1) as pool:
        with pytest.raises(FailedPrecondition) as caught:
            await purge_rows(pool, "memory", DEFAULT_ORGANIZATION)
        assert caught.value.reason == "ORGANIZATION_IS_DEFAULT"
        with pytest.raises(RuntimeError, match="in a circle"):
            await purge_rows(pool, "memory", uuid4())
    assert await connection.fetchval("SELECT count(*) FROM memory.one") == 1
    await connection.close()
