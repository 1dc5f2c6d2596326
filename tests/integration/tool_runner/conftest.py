"""`runner`: the service, for a tenant of the test's own, on the module's migrated database."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.conftest import MigratedUrl
from tests.integration.tool_runner.harness import Service, tool_runner


@pytest.fixture(scope="module")
def tool_url(migrated_url: MigratedUrl) -> str:
    """The module's database with the schema `tool_runner`."""
    return migrated_url("tool_runner")


@pytest.fixture
async def runner(tool_url: str, tmp_path: Path) -> AsyncIterator[Service]:
    """See `harness.Service`; its sandbox is a `harness.HeldSandbox`."""
    async with tool_runner(tool_url, tmp_path) as service:
        yield service
