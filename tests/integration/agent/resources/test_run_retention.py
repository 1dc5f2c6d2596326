"""Old runs go with all that hangs on them; messages, what is used, and what others wait for stay."""

from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

import pytest

from services.agent.core.facts import RunStatus, StopReason
from services.agent.core.messages import Call, Decision
from services.agent.core.ports_journal import TurnRequest
from services.agent.resources.runs.retention import KeptDays, RunRetention
from tests.integration.agent.world import Replica, World, calls, end, text, world_on

OLD = "interval '31 days'"
DELETE = {"type": "requires_approval", "tool_name": "delete"}
KEPT = KeptDays(runs=30, traces=30, prompts=30)


@pytest.fixture
async def world(agent_url: str) -> AsyncIterator[World]:
    """One agent, and nothing of other worlds that could be old."""
    async with world_on(agent_url) as made:
        await made.add_agent(tool_rules=[DELETE])
        for table in ("runs", "compiled_prompts"):
            await made.pool.execute(f"DELETE FROM agent.{table}")
        yield made


async def delete(call: Call) -> str:
    return "deleted"


async def rows(world: World, table: str) -> int:
    query = f"SELECT count(*) FROM agent.{table} WHERE "
    found: int = await world.pool.fetchval(
        query
        + ("agent_id = $1" if table in OF_AGENTS else "run_id IN (SELECT id FROM agent.runs WHERE agent_id = $1)"),
        world.agent_id,
    )
    return found


OF_AGENTS = ("runs", "steps", "messages", "compiled_prompts", "system_prompts")


async def counts(world: World, *tables: str) -> tuple[int, ...]:
    return tuple([await rows(world, table) for table in tables])


async def grow_old(world: World, *tables: str, where: str = "true") -> None:
    for table in tables:
        await world.pool.execute(f"UPDATE agent.{table} SET created_at = created_at - {OLD} WHERE {where}")


async def say(world: World, replica: Replica, said: str, **options: Any) -> UUID:
    events = await replica.send(world.request(said, **options))
    assert end(events).run.status is RunStatus.COMPLETED
    return end(events).run.id


async def test_an_old_run_goes_and_what_was_said_stays(world: World) -> None:
    async with world.replica() as replica:
        old = await say(world, replica, "one", keys=("k:1",))
        await say(world, replica, "two", keys=("k:2",))
        await grow_old(world, "runs", where=f"id = '{old}'")
        assert await counts(world, "runs", "steps", "facts", "run_keys", "messages") == (2, 2, 6, 2, 4)
        assert await RunRetention(world.pool, KeptDays()).sweep() == 0
        retention = RunRetention(world.pool, KEPT)
        assert await retention.sweep() == 1
        assert await retention.sweep() == 0
        assert await counts(world, "runs", "steps", "facts", "run_keys", "messages") == (1, 1, 3, 1, 4)
        await say(world, replica, "three")
        shown = replica.models.requests[-1].history
    assert [message.role for message in shown] == ["user", "assistant"] * 2 + ["user"]


async def test_a_run_whose_calls_wait_stays_and_goes_on(world: World) -> None:
    async with world.replica() as replica:
        replica.tools.actions = {"delete": delete}
        replica.models.replies = [calls("delete"), text("Done.")]
        events = await replica.send(world.request("Tidy up."))
        assert end(events).run.stop_reason is StopReason.REQUIRES_APPROVAL
        await grow_old(world, "runs", "steps", "compiled_prompts")
        assert await RunRetention(world.pool, KEPT).sweep() == 0
        answer: TurnRequest = world.answer(Decision("call_0", approve=True))
        assert end(await replica.send(answer)).run.stop_reason is StopReason.END_TURN
        await grow_old(world, "runs")
        assert await RunRetention(world.pool, KEPT).sweep() == 2


async def test_a_prompt_stays_while_a_conversation_or_a_step_uses_it(world: World) -> None:
    change = "UPDATE agent.agents SET system = $2, version = version + 1 WHERE id = $1"
    async with world.replica() as replica:
        for number in range(3):
            await world.pool.execute(change, world.agent_id, f"You are Loci, number {number}.")
            await say(world, replica, str(number))
        assert await counts(world, "compiled_prompts", "system_prompts") == (3, 3)
        await grow_old(world, "compiled_prompts", "system_prompts")
        retention = RunRetention(world.pool, KEPT)
        # Steps of late were told all of them; of the agent's own texts only the newest is used.
        assert await retention.sweep() == 2
        assert await counts(world, "compiled_prompts", "system_prompts") == (3, 1)
        await grow_old(world, "steps", where="number = 1")
        assert await retention.sweep() == 2
        assert await counts(world, "compiled_prompts", "system_prompts") == (1, 1)
        await say(world, replica, "And now?")
        assert "number 2." in replica.models.requests[-1].prompt


async def test_the_first_fact_names_the_system_prompt_and_is_read_with_it(world: World) -> None:
    system = "You are Loci. " + "Remember everything. " * 1_000
    await world.add_agent(system=system)
    async with world.replica() as replica:
        await say(world, replica, "one")
        await say(world, replica, "two")
    query = (
        "SELECT body FROM agent.facts WHERE number = 1 AND run_id IN (SELECT id FROM agent.runs WHERE agent_id = $1)"
    )
    bodies = [row["body"] for row in await world.pool.fetch(query, world.agent_id)]
    assert ["system" in body["settings"] for body in bodies] == [False, False]
    assert len({body["system_hash"] for body in bodies}) == 1
    assert await counts(world, "system_prompts") == (1,)
