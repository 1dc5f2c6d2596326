"""The service behind real gRPC, with no agents; modules with other needs have a world of their own."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.integration.agent.admin_world import AdminWorld, admin_world
from tests.integration.agent.company_world import Company, company_world


@pytest.fixture
async def world(agent_url: str, tmp_path: Path) -> AsyncIterator[AdminWorld]:
    """The service with no agents."""
    async with admin_world(agent_url, tmp_path) as world:
        for table in ("agents", "outbox", "messages", "compiled_prompts"):
            await world.pool.execute(f"DELETE FROM agent.{table}")
        yield world


@pytest.fixture
async def company(urls: tuple[str, str], tmp_path: Path) -> AsyncIterator[Company]:
    """The service and memory, with no agents, identities or groups."""
    async with company_world(urls, tmp_path) as company:
        yield company
