"""`runner`: the service, for a tenant of the test's own, on the module's migrated database."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from services.common.migrate import migrate
from tests.conftest import DatabaseUrl
from tests.integration.tool_runner.harness import Service, tool_runner


@pytest.fixture(scope="module")
def tool_url(database_url: DatabaseUrl) -> str:
    """The module's database with the schema `tool_runner`."""
    url = database_url("tool_runner")
    asyncio.run(migrate(url, "services.tool_runner"))
    return url


@pytest.fixture
async def runner(tool_url: str, tmp_path: Path) -> AsyncIterator[Service]:
    """See `harness.Service`; its sandbox is a `harness.HeldSandbox`."""
    async with tool_runner(tool_url, tmp_path) as service:
        yield service
