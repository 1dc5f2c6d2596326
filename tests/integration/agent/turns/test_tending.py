"""Sleep-time: every Nth turn an agent's partner reads what was said since it last looked, in the background."""

import asyncio
from typing import Any
from uuid import UUID

import pytest

from services.agent.core.events import Ended
from services.agent.core.facts import RunStatus
from services.agent.core.tending import TendingLimits
from services.common.ids import uuid7
from tests.integration.agent.world import ORGANIZATION, Replica, World, answered, calls, end, text, world_on

GROUP = """
INSERT INTO agent.groups (organization_id, id, description, manager_type, manager_agent_id, manager_settings,
                          created_by_id, last_updated_by_id)
VALUES ($1, $2, '', 'sleeptime', $3, $4, $1, $1)
"""
MEMBER = "INSERT INTO agent.group_agents (organization_id, group_id, agent_id, position) VALUES ($1, $2, $3, 0)"


async def tended(world: World, *, every: int | None = 2) -> tuple[UUID, UUID]:
    """The world's agent, and a partner that tends it every so many turns."""
    first = world.agent_id
    partner = await world.add_agent(agent_type="sleeptime_agent")
    world.agent_id = first
    group_id = uuid7()
    settings = {} if every is None else {"sleeptime_agent_frequency": every}
    await world.pool.execute(GROUP, ORGANIZATION, group_id, first, settings)
    await world.pool.execute(MEMBER, ORGANIZATION, group_id, partner)
    await world.pool.execute("UPDATE agent.agents SET enable_sleeptime = true WHERE id = $1", first)
    return first, partner


async def told(world: World, agent_id: UUID) -> list[str]:
    """What an agent was told, oldest first."""
    query = "SELECT content FROM agent.messages WHERE agent_id = $1 AND role = 'user' ORDER BY seq"
    return [row["content"][0]["text"] for row in await world.pool.fetch(query, agent_id)]


async def rested(world: World, agent_id: UUID, count: int) -> list[Any]:
    """An agent's runs, once there are so many and all are over."""

    async def over() -> list[Any] | None:
        rows: list[Any] = await world.pool.fetch(
            "SELECT * FROM agent.runs WHERE agent_id = $1 ORDER BY created_at", agent_id
        )
        return rows if len(rows) == count and all(row["completed_at"] for row in rows) else None

    return await answered(over)


async def say(replica: Replica, world: World, said: str, reply: str) -> Ended:
    replica.models.replies.insert(0, text(reply))
    return end(await replica.send(world.request(said)))


async def test_every_second_turn_the_partner_reads_what_was_said_since(world: World) -> None:
    _, partner = await tended(world)
    async with world.replica() as replica:
        ends = []
        for number in range(4):
            ends.append(await say(replica, world, f"Question {number}.", f"Answer {number}."))
            if number:
                await rested(world, partner, (number + 1) // 2)
        runs = await rested(world, partner, 2)
    assert [each.run_ids for each in ends] == [(), (runs[0]["id"],), (), (runs[1]["id"],)]
    first, second = await told(world, partner)
    assert all(f"{what} {number}." in first for what in ("Question", "Answer") for number in (0, 1))
    assert all(f"{what} {number}." in second for what in ("Question", "Answer") for number in (2, 3))
    assert "Question 1." not in second
    assert all(run["background"] and run["status"] == "completed" for run in runs)


async def test_the_foreground_does_not_wait_for_the_partner(world: World) -> None:
    _, partner = await tended(world, every=None)
    gate = asyncio.Event()

    async def think(request: Any) -> Any:
        await gate.wait()
        yield text("Noted.")

    async with world.replica() as replica:
        replica.models.replies = [text("Answer."), think]
        assert end(await replica.send(world.request("Question."))).run.status is RunStatus.COMPLETED
        await answered(lambda: _is(not replica.models.replies))
        assert (await say(replica, world, "Another.", "Answer.")).run.status is RunStatus.COMPLETED
        gate.set()
        await rested(world, partner, 2)


async def test_the_end_that_is_read_later_names_the_same_runs(world: World) -> None:
    await tended(world, every=1)
    async with world.replica() as replica:
        seen = await say(replica, world, "Question.", "Answer.")
        (last,) = [
            each for each in await replica.journal.events(ORGANIZATION, seen.run.id, 0) if isinstance(each, Ended)
        ]
    assert last.run_ids == seen.run_ids != ()


@pytest.mark.parametrize("what", ["paused", "failed", "waits"])
async def test_turns_that_do_not_count(world: World, what: str) -> None:
    first, partner = await tended(world, every=1)
    async with world.replica() as replica:
        match what:
            case "paused":
                await world.pool.execute("UPDATE agent.agents SET enable_sleeptime = false WHERE id = $1", first)
                replica.models.replies = [text("Answer.")]
            case "failed":
                replica.models.replies = [RuntimeError("no model"), RuntimeError("no model")]
            case _:
                rules = [{"type": "requires_approval", "tool_name": "roll"}]
                await world.pool.execute("UPDATE agent.agents SET tool_rules = $2 WHERE id = $1", first, rules)
                replica.tools.actions = {"roll": _never}
                replica.models.replies = [calls("roll")]
        assert end(await replica.send(world.request("Question."))).run_ids == ()
    assert await told(world, partner) == []


async def _never(call: Any) -> str:
    raise AssertionError(call)


async def test_a_partner_that_is_busy_reads_it_all_later(world: World) -> None:
    """One turn waits behind the one that goes on; more would say the same."""
    _, partner = await tended(world, every=1)
    gate = asyncio.Event()

    async def think(request: Any) -> Any:
        await gate.wait()
        yield text("Noted.")

    async with world.replica() as replica:
        replica.models.replies = [text("Answer 0."), think]
        ends = [end(await replica.send(world.request("Question 0.")))]
        await answered(lambda: _is(not replica.models.replies))
        ends += [await say(replica, world, f"Question {number}.", f"Answer {number}.") for number in (1, 2, 3)]
        gate.set()
        await rested(world, partner, 2)
        ends.append(await say(replica, world, "Question 4.", "Answer 4."))
        await rested(world, partner, 3)
    assert [len(each.run_ids) for each in ends] == [1, 1, 0, 0, 1]
    last = (await told(world, partner))[-1]
    assert all(f"Question {number}." in last for number in (2, 3, 4))
    assert "Question 1." not in last


async def _is(truth: bool) -> bool:
    return truth


async def test_tokens_of_a_day_are_a_bound(agent_url: str) -> None:
    async with world_on(agent_url) as world:
        _, partner = await tended(world, every=1)
        async with world.replica(tending=TendingLimits(60.0, tokens_per_day=20)) as replica:
            ends = []
            for number in range(4):
                ends.append(await say(replica, world, f"Question {number}.", "Answer."))
                await rested(world, partner, sum(map(bool, (each.run_ids for each in ends))))
    # Each takes 15.
    assert [len(each.run_ids) for each in ends] == [1, 1, 0, 0]


async def test_a_partner_that_is_deleted_is_passed_over(world: World) -> None:
    _, partner = await tended(world, every=1)
    await world.pool.execute("UPDATE agent.agents SET deleted_at = now() WHERE id = $1", partner)
    async with world.replica() as replica:
        assert (await say(replica, world, "Question.", "Answer.")).run_ids == ()


async def test_whoever_tends_is_not_tended(world: World) -> None:
    """Two that tend each other do not keep each other busy."""
    first, partner = await tended(world, every=1)
    group_id = uuid7()
    await world.pool.execute(GROUP, ORGANIZATION, group_id, partner, {})
    await world.pool.execute(MEMBER, ORGANIZATION, group_id, first)
    await world.pool.execute("UPDATE agent.agents SET enable_sleeptime = true WHERE id = $1", partner)
    async with world.replica() as replica:
        await say(replica, world, "Question.", "Answer.")
        (run,) = await rested(world, partner, 1)
    assert "run_ids" not in run["usage"]
    assert len(await rested(world, first, 1)) == 1


async def test_a_replica_that_dies_after_the_end_leaves_the_turn_to_others(world: World) -> None:
    _, partner = await tended(world, every=1)
    async with world.replica() as victim:
        victim.worker.on_successor = lambda *_: None
        seen = await say(victim, world, "Question.", "Answer.")
        await victim.die()
        async with world.replica():
            (run,) = await rested(world, partner, 1)
    assert (run["id"],) == seen.run_ids
