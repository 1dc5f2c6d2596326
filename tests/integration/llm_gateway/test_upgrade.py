"""A database of the release before: its rows are kept on the way to the newest revision, and on the way back."""

from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import asyncpg
from alembic import command
from alembic.config import Config
from sqlalchemy import Connection

from services.common.database import open_pool
from services.common.engine import make_engine
from services.common.migrate import migrate, migrations_folder
from services.common.migrations.upgrade import upgrade
from services.llm_gateway.usage.model import Group, ReportQuery
from services.llm_gateway.usage.store import PostgresUsageReports
from tests.conftest import DatabaseUrl

PACKAGE, SCHEMA = "services.llm_gateway", "llm_gateway"
_OLD_ROW = """
INSERT INTO llm_gateway.usage (organization_id, id, kind, handle, prompt_tokens, completion_tokens, estimated,
    provider_model, milliseconds, created_at)
VALUES ($1, $2, 'chat', 'openai/gpt-4o-mini', 100, 10, false, 'gpt', 5, $3)
"""


async def downgrade(url: str, revision: str) -> None:
    def back(connection: Connection) -> None:
        config = Config()
        config.set_main_option("script_location", str(migrations_folder(PACKAGE)))
        config.set_main_option("path_separator", "os")
        config.attributes.update(connection=connection, schema=SCHEMA)
        command.downgrade(config, revision)

    engine = make_engine(url, size=1)
    async with engine.connect() as connection:
        await connection.run_sync(back)
    await engine.dispose()


async def test_usage_of_the_release_before_is_reported_and_kept(database_url: DatabaseUrl) -> None:
    url, tenant, moment = database_url("llm_gateway"), uuid4(), datetime(2026, 11, 1, tzinfo=UTC)
    owner: Any = await asyncpg.connect(url)
    await upgrade(url, migrations_folder(PACKAGE), SCHEMA, "0001")
    await owner.execute(_OLD_ROW, tenant, uuid4(), moment)
    assert await migrate(url, PACKAGE)
    pool = await open_pool(url)
    asked = ReportQuery(datetime(2026, 10, 1, tzinfo=UTC), datetime(2026, 12, 1, tzinfo=UTC), (Group.MODEL,))
    report = await PostgresUsageReports(pool).report(tenant, asked)
    # It had no price; its tokens are there.
    assert (report.totals.requests, report.totals.prompt_tokens, report.totals.unpriced_requests) == (1, 100, 1)
    assert not await migrate(url, PACKAGE)
    await pool.close()
    await downgrade(url, "0001")
    assert await owner.fetchval("SELECT count(*) FROM llm_gateway.usage WHERE organization_id = $1", tenant) == 1
    tables = await owner.fetch("SELECT tablename FROM pg_tables WHERE schemaname = $1", SCHEMA)
    assert {row["tablename"] for row in tables} == {"usage", "alembic_version"}
    assert await migrate(url, PACKAGE)
    await owner.close()
