"""A fault of ours ends the run that meets it, soon and in words, and costs nobody else anything."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import asyncpg
import pytest

from services.agent.adapters.faults import passes
from services.agent.fact_log import NewerRelease
from services.agent.facts import RunStatus, StopReason
from services.agent.ports import PeerLost
from services.agent.worker import MOST_FAULTS
from services.common.errors import Internal, Unavailable
from services.common.migrate import migrate
from tests.conftest import DatabaseUrl
from tests.integration.agent.world import World, end, text, world_on


@pytest.fixture(scope="module")
def agent_url(database_url: DatabaseUrl) -> str:
    """A migrated database."""
    url = database_url("agent")
    asyncio.run(migrate(url, "services.agent"))
    return url


@pytest.fixture
async def world(agent_url: str) -> AsyncIterator[World]:
    """One agent in it."""
    async with world_on(agent_url) as made:
        yield made


@pytest.mark.parametrize(
    ("error", "does"),
    [
        (TypeError("ours"), False),
        (Internal("theirs, and it comes again"), False),
        (asyncpg.UntranslatableCharacterError("NUL"), False),
        (asyncpg.UniqueViolationError("twice"), False),
        (asyncpg.ProgramLimitExceededError("too large"), False),
        (asyncpg.CannotConnectNowError("starting"), True),
        (asyncpg.DeadlockDetectedError("again"), True),
        (asyncpg.InterfaceError("connection is closed"), True),
        (ConnectionResetError(), True),
        (TimeoutError(), True),
        (PeerLost("gone"), True),
        (Unavailable("gone"), True),
        (NewerRelease("99"), True),
    ],
)
def test_which_errors_pass(error: Exception, does: bool) -> None:
    assert passes(error) is does


async def test_a_fault_is_met_twice_and_the_next_in_line_goes_on(world: World) -> None:
    async with world.replica() as replica:
        replica.models.replies = [RuntimeError("a fault")] * MOST_FAULTS + [text("Here.")]
        first, second = asyncio.create_task(replica.send(world.request("one"))), world.request("two")
        while not replica.models.requests:
            await asyncio.sleep(0.01)
        async with asyncio.timeout(5):
            assert end(await replica.send(second)).run.status is RunStatus.COMPLETED
            ended = end(await first)
        assert len(replica.models.requests) == MOST_FAULTS + 1
        assert not replica.worker._dropped
    assert (ended.run.status, ended.run.stop_reason) == (RunStatus.FAILED, StopReason.ERROR)
    assert ended.failure is not None
    assert (ended.failure.error_type, ended.failure.reason) == ("internal_error", "RUN_GIVEN_UP")
    assert [said for role, said in await world.history() if role == "user"] == ["one", "two"]


async def test_what_passes_is_tried_again(world: World) -> None:
    async with world.replica() as replica:
        replica.models.replies = [ConnectionResetError()] * (MOST_FAULTS + 1) + [text("Here.")]
        async with asyncio.timeout(15):
            assert end(await replica.send(world.request())).run.status is RunStatus.COMPLETED


async def test_a_run_whose_settings_nobody_understands_ends(world: World) -> None:
    async with world.replica() as replica:
        await world.pool.execute(
            "UPDATE agent.agents SET tool_rules = $2 WHERE id = $1", world.agent_id, [{"type": "unheard_of"}]
        )
        request = world.request()
        with pytest.raises((KeyError, ValueError)):
            await replica.send(request)
        async with asyncio.timeout(10):
            ended = end([each async for each in replica.reader.follow(request.organization_id, request.run_id)])
        assert ended.failure is not None
        assert ended.failure.reason == "RUN_GIVEN_UP"
        await world.pool.execute("UPDATE agent.agents SET tool_rules = '[]' WHERE id = $1", world.agent_id)
        assert end(await replica.send(replace(world.request()))).run.status is RunStatus.COMPLETED
