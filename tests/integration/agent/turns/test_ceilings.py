"""How far whoever began a run may go, on the way to all that is done in it: nothing on the way loses it."""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import uuid5

import pytest

from services.agent.adapters.due_schedules import PostgresDue
from services.agent.adapters.leases import PostgresLeases
from services.agent.core.facts import Options
from services.agent.core.messages import Call, Message, Text
from services.agent.core.ports import ModelRequest, PartDelta, Reply
from services.agent.resources.schedules.ports import NewSchedule, ScheduleTime
from services.agent.resources.schedules.scheduler import Scheduler
from services.agent.resources.schedules.store import PostgresSchedules
from services.common.context import current
from services.common.core.ceiling import Ceiling, ceiling
from services.common.engine import make_engine
from services.common.ids import uuid7
from tests.integration.agent.world import ORGANIZATION, SECONDS, Replica, World, answered, calls, end, text

LIMITS = [None, Ceiling("agent-only"), ceiling("client", {"agent-a": frozenset({"write_messages"})})]
LIMIT = LIMITS[2]


def ceilings_of_calls(replica: Replica) -> list[Ceiling | None]:
    """Scripts a turn that calls the tool `look`; returns below which ceilings it is called."""
    seen: list[Ceiling | None] = []

    async def look(call: Call) -> str:
        seen.append(current().ceiling)
        return "seen"

    replica.tools.actions, replica.models.replies = {"look": look}, [calls("look"), text("Done.")]
    return seen


@pytest.mark.parametrize("limit", LIMITS)
async def test_a_tool_is_called_below_it(world: World, limit: Ceiling | None) -> None:
    async with world.replica() as replica:
        seen = ceilings_of_calls(replica)
        end(await replica.send(replace(world.request("Look."), ceiling=limit)))
    assert seen == [limit]


@pytest.mark.parametrize("limit", LIMITS)
async def test_in_the_background_and_in_line(world: World, limit: Ceiling | None) -> None:
    async with world.replica() as replica:
        seen = ceilings_of_calls(replica)
        request = replace(world.request("Look."), ceiling=limit, background=True)
        await replica.worker.accept(request, stream=False)
        await answered(lambda: world.pool.fetchval("SELECT completed_at FROM agent.runs WHERE id = $1", request.run_id))
    assert seen == [limit]


@pytest.mark.parametrize("limit", LIMITS)
async def test_the_next_owner_keeps_it(world: World, limit: Ceiling | None) -> None:
    hangs = asyncio.Event()

    async def hang(request: ModelRequest) -> AsyncGenerator[PartDelta | Reply]:
        hangs.set()
        await asyncio.Event().wait()
        yield text("never")

    async with world.replica() as replica:
        replica.models.replies = [hang]
        request = replace(world.request("Go on."), ceiling=limit)
        await replica.worker.accept(request, stream=False)
        async with asyncio.timeout(SECONDS):
            await hangs.wait()
        await replica.die()
        leases = PostgresLeases(world.pool, uuid7())
        await leases.register()
        await world.pool.execute("UPDATE agent.runs SET worker_id = $2 WHERE id = $1", request.run_id, leases.worker_id)
        row = await leases.reclaim(ORGANIZATION, request.run_id)
        assert row is not None
        assert (await leases.load(row)).ceiling == limit


async def test_a_schedule_keeps_it(world: World, agent_url: str) -> None:
    engine = make_engine(agent_url)
    message = Message(uuid7(), "user", (Text("Wake up."),), datetime.now(UTC))
    when, now = ScheduleTime(at=datetime.now(UTC)), datetime.now(UTC)
    draft = NewSchedule(ORGANIZATION, ORGANIZATION, world.agent_id, uuid7(), (message,), Options(), when, LIMIT)
    await world.pool.execute("DELETE FROM agent.schedules")
    async with world.replica() as replica:
        replica.models.replies = [text("I am awake.")]
        await PostgresSchedules(world.pool, engine).create(draft, lambda *_: now - timedelta(seconds=1))
        due = PostgresDue(world.pool, replica.journal)
        assert await Scheduler(due, replica.worker.on_successor, run_timeout=60).send_due() == 1
        query = "SELECT ceiling FROM agent.runs WHERE agent_id = $1 AND completed_at IS NOT NULL"
        stored = await answered(lambda: world.pool.fetchval(query, world.agent_id))
    await engine.dispose()
    assert stored == {"role": "client", "resources": {"agent-a": ["write_messages"]}}


async def test_a_rule_that_answers_for_the_client_keeps_it(world: World) -> None:
    rule = {"type": "requires_approval", "tool_name": "look", "timeout_seconds": 60, "on_timeout": "approve"}
    await world.add_agent(tool_rules=[rule])
    async with world.replica() as replica:
        seen = ceilings_of_calls(replica)
        asked = end(await replica.send(replace(world.request("Look."), ceiling=LIMIT))).run.id
        for statement in (
            "UPDATE agent.messages SET created_at = created_at - interval '2 minutes' WHERE agent_id = $1",
            "UPDATE agent.conversation_heads SET approval_due = approval_due - interval '2 minutes'"
            " WHERE conversation_id = $1",
        ):
            await world.pool.execute(statement, world.agent_id)
        query = "SELECT completed_at FROM agent.runs WHERE id = $1"
        await answered(lambda: world.pool.fetchval(query, uuid5(asked, "timeout")))
    assert seen == [LIMIT]
