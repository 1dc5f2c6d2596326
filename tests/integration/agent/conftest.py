"""Migrated databases, and the world that most tests of turns take theirs from; modules with other needs say so."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.conftest import MigratedUrl
from tests.integration.agent.world import World, world_on


@pytest.fixture(scope="module")
def agent_url(migrated_url: MigratedUrl) -> str:
    """The module's database with the schema `agent`."""
    return migrated_url("agent")


@pytest.fixture(scope="module")
def urls(migrated_url: MigratedUrl) -> tuple[str, str]:
    """The module's database with the schemas `agent` and `memory`, as the role of each."""
    return migrated_url("agent"), migrated_url("memory")


@pytest.fixture
async def world(agent_url: str) -> AsyncIterator[World]:
    """One agent in it."""
    async with world_on(agent_url) as world:
        yield world
