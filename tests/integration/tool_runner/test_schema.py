"""The migrated schema: keys by tenant, and migrated once."""

from __future__ import annotations

import asyncio

from services.common.migrate import migrate
from tests.conftest import DatabaseUrl
from tests.integration.catalogue import assert_keys_begin_with_tenant


async def test_every_key_begins_with_the_tenant(tool_url: str) -> None:
    await assert_keys_begin_with_tenant(tool_url, "tool_runner")


async def test_replicas_migrate_once(fresh_database_url: DatabaseUrl) -> None:
    url = fresh_database_url("tool_runner")
    did = await asyncio.gather(*(migrate(url, "services.tool_runner") for _ in range(3)))
    assert sorted(did) == [False, False, True]
