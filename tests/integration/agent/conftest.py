"""Migrated databases, and the world that most tests of turns take theirs from; modules with other needs say so."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from services.agent.driving import lease_keeper
from services.agent.postgres import lease_sql, line_sql
from services.agent.streams import reading
from tests.conftest import MigratedUrl
from tests.integration.agent.world import World, world_on


@pytest.fixture(autouse=True)
def long_leases(monkeypatch: pytest.MonkeyPatch) -> None:
    """No replica loses its lease because the machine is busy; see `Replica.die`."""
    for module, name in ((lease_sql, "TICK"), (lease_sql, "REAP"), (line_sql, "PROMOTE")):
        statement = getattr(module, name)
        assert lease_sql.LEASE in statement
        monkeypatch.setattr(module, name, statement.replace(lease_sql.LEASE, "interval '1 hour'"))


@pytest.fixture
def by_notice_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody looks for himself: what a replica does not hear of it never learns in a test's time."""
    monkeypatch.setattr(lease_keeper, "BEAT_SECONDS", 600.0)
    monkeypatch.setattr(reading, "FIRST_POLL_SECONDS", 600.0)
    monkeypatch.setattr(reading, "POLL_SECONDS", 600.0)


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
