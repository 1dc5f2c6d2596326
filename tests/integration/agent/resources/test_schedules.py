"""Schedules on several replicas: one run for each time, whoever dies when, and nothing is lost when none can begin."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import asyncpg
import pytest

from services.agent.adapters.acceptance import LONGEST_LINE
from services.agent.adapters.due_schedules import PostgresDue, run_of
from services.agent.core.facts import Options
from services.agent.core.messages import Message, Text
from services.agent.resources.schedules.ports import MOST_SCHEDULES, NewSchedule, Schedule, ScheduleTime
from services.agent.resources.schedules.scheduler import Scheduler
from services.agent.resources.schedules.store import PostgresSchedules
from services.common.core.paging import Page
from services.common.core.refusals import Refused
from services.common.engine import make_engine
from services.common.errors import AlreadyExists, NotFound, ResourceExhausted
from services.common.ids import uuid7
from tests.integration.agent.world import ORGANIZATION, SECONDS, Replica, World, calls, world_on

LONG_AGO = timedelta(days=365)


@dataclass
class Planned:
    """A world with a store of schedules."""

    world: World
    store: PostgresSchedules

    async def plan(self, *, ago: float = 0.0, cron: str | None = None, said: str = "Wake up.", **options: Any) -> UUID:
        """Something that is due since `ago` seconds, whatever may be asked for."""
        now = datetime.now(UTC)
        draft = self.draft(ScheduleTime(cron=cron) if cron else ScheduleTime(at=now), said, **options)
        schedule = await self.store.create(draft, lambda when, timezone, now: now - timedelta(seconds=ago))
        return schedule.id

    def draft(self, when: ScheduleTime, said: str = "Wake up.", **options: Any) -> NewSchedule:
        """What is sent to the world's agent."""
        message = Message(uuid7(), "user", (Text(said),), datetime.now(UTC), otid=options.pop("otid", None))
        return NewSchedule(
            ORGANIZATION,
            ORGANIZATION,
            options.pop("agent_id", self.world.agent_id),
            options.pop("id", None) or uuid7(),
            (message,),
            Options(**options),
            when,
        )

    def due(self, replica: Replica) -> PostgresDue:
        """What is due, as a replica sees it."""
        return PostgresDue(self.world.pool, replica.journal)

    def clock(self, replica: Replica) -> Scheduler:
        """Its clock."""
        return Scheduler(self.due(replica), replica.worker.on_successor, run_timeout=60)

    async def get(self, schedule_id: UUID) -> Schedule:
        """As it is now."""
        return await self.store.get(ORGANIZATION, self.world.agent_id, schedule_id)

    async def runs(self, *schedule_ids: UUID) -> list[Any]:
        """The runs of the world's agent that have ended, when none goes on."""
        async with asyncio.timeout(SECONDS):
            while True:
                rows: list[Any] = await self.world.pool.fetch(
                    "SELECT * FROM agent.runs WHERE agent_id = $1 ORDER BY created_at", self.world.agent_id
                )
                if rows and all(row["completed_at"] is not None for row in rows):
                    return rows
                await asyncio.sleep(0.01)


@pytest.fixture
async def planned(agent_url: str) -> AsyncIterator[Planned]:
    """One agent."""
    engine = make_engine(agent_url)
    async with world_on(agent_url) as world:
        await world.pool.execute("DELETE FROM agent.schedules")
        yield Planned(world, PostgresSchedules(world.pool, engine))
    await engine.dispose()


async def test_what_is_due_is_said_once_and_stays_to_be_read(planned: Planned) -> None:
    async with planned.world.replica() as replica:
        schedule_id = await planned.plan(max_steps=3, otid="mine", callback_url="https://example.com/told")
        before = await planned.get(schedule_id)
        assert before.when.at == before.next_at
        clock = planned.clock(replica)
        assert [await clock.send_due(), await clock.send_due()] == [1, 0]
        [run] = await planned.runs()
    after = await planned.get(schedule_id)
    assert run["id"] == after.last_run_id == run_of(schedule_id, before.next_at or datetime.max)
    assert (run["background"], run["options"]["max_steps"], run["user_id"]) == (True, 3, ORGANIZATION)
    assert run["options"]["callback_url"] == "https://example.com/told"
    assert (after.next_at, after.last_error, after.when) == (None, None, before.when)
    assert (await planned.world.history())[0] == ("user", "Wake up.")


async def test_what_was_missed_is_said_once_and_then_goes_on(planned: Planned) -> None:
    async with planned.world.replica() as replica:
        schedule_id = await planned.plan(cron="*/5 * * * *", ago=LONG_AGO.total_seconds(), otid="again")
        clock, began = planned.clock(replica), datetime.now(UTC)
        assert [await clock.send_due(), await clock.send_due()] == [1, 0]
        await planned.runs()
        after = await planned.get(schedule_id)
        assert after.next_at is not None
        assert began < after.next_at <= datetime.now(UTC) + timedelta(minutes=5)
        # The next time is another message, whatever the first was called.
        await planned.world.pool.execute("UPDATE agent.schedules SET next_at = now(), due_at = now()")
        assert await clock.send_due() == 1
        assert len(await planned.runs()) == 2
    assert [said for role, said in await planned.world.history() if role == "user"] == ["Wake up.", "Wake up."]
    otids = await planned.world.pool.fetch(
        "SELECT otid FROM agent.messages WHERE agent_id = $1 AND role = 'user'", planned.world.agent_id
    )
    assert "again" not in [row["otid"] for row in otids]


async def test_many_replicas_send_everything_once(planned: Planned) -> None:
    wanted = {await planned.plan(said=f"Number {number}", ago=number) for number in range(40)}
    async with AsyncExitStack() as stack:
        replicas = [await stack.enter_async_context(planned.world.replica()) for _ in range(3)]
        # More than may wait in one line.
        clocks = [asyncio.create_task(planned.clock(replica).run()) for replica in replicas]
        async with asyncio.timeout(SECONDS):
            while len(await planned.runs()) < len(wanted):
                await asyncio.sleep(0.05)
        for clock in clocks:
            clock.cancel()
        await asyncio.gather(*clocks, return_exceptions=True)
    said = [text for role, text in await planned.world.history() if role == "user"]
    assert sorted(said) == sorted(f"Number {number}" for number in range(40))
    assert len({row["id"] for row in await planned.runs()}) == len(wanted)


async def test_a_replica_that_dies_before_it_commits_has_sent_nothing(planned: Planned) -> None:
    schedule_id = await planned.plan()
    async with planned.world.replica() as replica:
        dying = await asyncpg.connect(planned.world.url)
        killer = await asyncpg.connect(planned.world.url)
        await dying.execute("BEGIN")
        await dying.execute("SELECT FROM agent.schedules FOR UPDATE")
        clock = planned.clock(replica)
        # Passed by, not waited for.
        assert await asyncio.wait_for(clock.send_due(), SECONDS) == 0
        await killer.execute("SELECT pg_terminate_backend($1)", dying.get_server_pid())
        await killer.close()
        async with asyncio.timeout(SECONDS):
            while not await clock.send_due():
                await asyncio.sleep(0.01)
        [run] = await planned.runs()
    assert run["id"] == (await planned.get(schedule_id)).last_run_id
    dying.terminate()


async def test_a_replica_that_dies_after_it_leaves_the_run_to_another(planned: Planned) -> None:
    async with planned.world.replica() as dying, planned.world.replica() as other:
        await planned.plan()
        sent = await planned.due(dying).send_next(60)
        assert sent is not None
        assert sent.successor is not None
        # Nobody was told of the run.
        await dying.die()
        assert await planned.clock(other).send_due() == 0
        [run] = await planned.runs()
    assert run["status"] == "completed"
    assert run["worker_id"] == other.journal.worker_id


async def test_what_cannot_begin_is_kept_and_tried_again(planned: Planned) -> None:
    world = planned.world
    async with world.replica() as replica:
        gate = asyncio.Event()

        async def wait(request: Any) -> Any:
            await gate.wait()
            yield calls()

        replica.models.replies = [wait]
        begun = [await replica.worker.accept(world.request(background=True), stream=True)]
        begun += [await replica.worker.accept(world.request(background=True), stream=True) for _ in range(LONGEST_LINE)]
        schedule_id, clock = await planned.plan(), planned.clock(replica)
        assert await clock.send_due() == 1
        failed = await planned.get(schedule_id)
        assert "requests wait for this conversation already" in (failed.last_error or "")
        assert failed.next_at is not None
        assert failed.next_at > datetime.now(UTC)
        assert (failed.last_run_id, failed.when) == (None, (await planned.get(schedule_id)).when)
        gate.set()
        async with asyncio.timeout(SECONDS):
            while (await planned.get(schedule_id)).last_run_id is None:
                await world.pool.execute("UPDATE agent.schedules SET next_at = now()")
                await clock.send_due()
        assert (await planned.get(schedule_id)).last_error is None
        assert len(await planned.runs()) == LONGEST_LINE + 2


async def test_what_cannot_be_sent_holds_up_nothing(planned: Planned) -> None:
    pool = planned.world.pool
    newer, broken, gone, fine = [await planned.plan(ago=9 - number) for number in range(4)]
    await pool.execute("UPDATE agent.schedules SET schema_version = 99 WHERE id = $1", newer)
    await pool.execute("UPDATE agent.schedules SET input = '{}' WHERE id = $1", broken)
    agent_id = planned.world.agent_id
    deleted = await planned.world.add_agent()
    await pool.execute("UPDATE agent.schedules SET agent_id = $2 WHERE id = $1", gone, deleted)
    await pool.execute("UPDATE agent.agents SET deleted_at = now() WHERE id = $1", deleted)
    planned.world.agent_id = agent_id
    async with planned.world.replica() as replica:
        assert await planned.clock(replica).send_due() == 4
        [run] = await planned.runs()
    rows = {row["id"]: row for row in await pool.fetch("SELECT * FROM agent.schedules")}
    assert run["id"] == rows[fine]["last_run_id"]
    assert "schema version 99" in rows[newer]["last_error"]
    assert "KeyError" in rows[broken]["last_error"]
    assert [rows[each]["attempts"] for each in (newer, broken, gone, fine)] == [1, 1, 1, 0]
    assert rows[gone]["next_at"] is None
    assert all(rows[each]["next_at"] is not None for each in (newer, broken))


async def test_while_calls_wait_for_a_person_it_waits_too(planned: Planned) -> None:
    await planned.world.add_agent(tool_rules=[{"type": "requires_approval", "tool_name": "launch"}])
    async with planned.world.replica() as replica:
        replica.tools.actions["launch"] = None  # type: ignore[assignment]
        replica.models.replies = [calls("launch")]
        await replica.send(planned.world.request())
        schedule_id = await planned.plan()
        await planned.clock(replica).send_due()
        assert "waiting for approval" in ((await planned.get(schedule_id)).last_error or "")


async def test_how_many_may_wait_and_how_many_are_kept(planned: Planned) -> None:
    pool, ours = planned.world.pool, (ORGANIZATION, planned.world.agent_id)

    def first(when: ScheduleTime, timezone: str, now: datetime) -> datetime:
        return now + LONG_AGO

    made = [
        await planned.store.create(planned.draft(ScheduleTime(cron="0 0 1 1 *")), first) for _ in range(MOST_SCHEDULES)
    ]
    with pytest.raises(ResourceExhausted, match="wait for their time already"):
        await planned.store.create(planned.draft(ScheduleTime(cron="0 0 1 1 *")), first)
    # The same again is there; of another agent, it is taken.
    again = await planned.store.create(planned.draft(ScheduleTime(cron="1 1 1 1 *"), id=made[0].id), first)
    assert (again.id, again.when) == (made[0].id, made[0].when)
    other = await planned.world.add_agent()
    with pytest.raises(AlreadyExists):
        await planned.store.create(planned.draft(ScheduleTime(cron="0 0 1 1 *"), id=made[0].id, agent_id=other), first)
    with pytest.raises(NotFound):
        await planned.store.create(planned.draft(ScheduleTime(cron="0 0 1 1 *"), agent_id=uuid7()), first)
    page = await planned.store.list(*ours, Page(60, ascending=True))
    rest = await planned.store.list(*ours, Page(60, ascending=True, token=page.next_token))
    assert [each.id for each in (*page.items, *rest.items)] == [each.id for each in made]
    after = await planned.store.list(*ours, Page(60, ascending=True, after=made[97].id))
    assert ([each.id for each in after.items], after.next_token) == ([made[98].id, made[99].id], "")
    await pool.execute("UPDATE agent.schedules SET next_at = NULL, last_at = created_at WHERE id <> $1", made[0].id)
    planned.world.agent_id = ours[1]
    for _ in range(3):
        await planned.store.create(planned.draft(ScheduleTime(cron="0 0 1 1 *")), first)
    over = await pool.fetchval("SELECT count(*) FROM agent.schedules WHERE agent_id = $1 AND next_at IS NULL", ours[1])
    assert over == MOST_SCHEDULES - 1
    await planned.store.delete(*ours, made[0].id)
    for wrong in (made[0].id, uuid7()):
        with pytest.raises(NotFound):
            await planned.store.delete(*ours, wrong)
        with pytest.raises(NotFound):
            await planned.store.get(*ours, wrong)
    with pytest.raises(Refused):
        await planned.store.list(*ours, Page(60, token="nonsense"))


async def test_what_is_refused_leaves_nothing(planned: Planned) -> None:
    def refuse(when: ScheduleTime, timezone: str, now: datetime) -> datetime:
        raise Refused("SCHEDULE_INVALID", "no")

    with pytest.raises(Refused):
        await planned.store.create(planned.draft(ScheduleTime(cron="* * * * *")), refuse)
    assert await planned.world.pool.fetchval("SELECT count(*) FROM agent.schedules") == 0


async def test_how_long_to_sleep(planned: Planned) -> None:
    async with planned.world.replica() as replica:
        due = planned.due(replica)
        assert await due.wait_seconds() is None
        await planned.plan(ago=-30)
        assert 25 < (await due.wait_seconds() or 0) <= 30
