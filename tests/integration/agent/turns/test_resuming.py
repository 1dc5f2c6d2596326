"""What the next owner of a run is told is what the owner before was told."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import replace
from itertools import count
from uuid import UUID

from services.agent.adapters.leases import PostgresLeases
from services.agent.core.facts import Usage
from services.agent.core.messages import Call
from services.agent.core.ports import BlockView, MemoryView, ModelRequest, PartDelta, Reply
from services.agent.core.ports_journal import OwnedRun
from services.common.ids import uuid7
from tests.integration.agent.world import ORGANIZATION, SECONDS, Replica, World, calls, text

# A reply after which the window is compacted.
FULL = replace(calls("quick"), usage=Usage(31_000, 5))


async def quick(call: Call) -> str:
    return "It is done."


async def nothing() -> None:
    """What happens by default."""


async def resumed(
    world: World, replica: Replica, *replies: object, begun: Callable[[], Awaitable[object]] = nothing
) -> tuple[OwnedRun, OwnedRun]:
    """A run that is driven until its script is over, as its first owner had it and as the next one has it.

    `begun` happens in between.
    """
    hangs = asyncio.Event()

    async def hang(request: ModelRequest) -> AsyncGenerator[PartDelta | Reply]:
        hangs.set()
        await asyncio.Event().wait()
        yield text("never")

    replica.tools.actions, replica.models.replies = {"quick": quick}, [*replies, hang]
    request = world.request("Go on.")
    accepted, _ = await replica.worker.accept(request, stream=False)
    assert accepted.owned is not None
    async with asyncio.timeout(SECONDS):
        await hangs.wait()
    await replica.die()
    await begun()
    leases = PostgresLeases(world.pool, uuid7())
    await leases.register()
    await world.pool.execute("UPDATE agent.runs SET worker_id = $2 WHERE id = $1", request.run_id, leases.worker_id)
    row = await leases.reclaim(ORGANIZATION, request.run_id)
    assert row is not None
    return accepted.owned, await leases.load(row)


async def talked(replica: Replica, world: World) -> None:
    """Some turns, each of a memory that is another one whenever it is looked at."""
    numbers = count()

    async def view(agent_id: UUID, conversation_id: UUID) -> MemoryView:
        number = next(numbers)
        return MemoryView((BlockView(agent_id, number, "human", f"Look number {number}.", 5_000),))

    replica.worker._ports.memory.view = view  # type: ignore[method-assign]
    for _ in range(6):
        await replica.send(world.request("x" * 6_000))


async def test_the_conversation_is_known_as_before(world: World) -> None:
    async with world.replica() as replica:
        await talked(replica, world)
        first, next_one = await resumed(world, replica, calls("quick"))
    assert first.recalled == next_one.recalled == 12
    assert first.counted.reported == next_one.counted.reported == 10
    assert next_one.prompt_versions == await world.pool.fetchval(
        "SELECT prompt_versions FROM agent.conversation_heads WHERE conversation_id = $1", world.agent_id
    )
    assert next_one.prompt is not None
    assert next_one.prompt.text == replica.models.requests[-1].prompt


async def test_after_a_compaction_it_is_the_prompt_of_that(world: World) -> None:
    async with world.replica() as replica:
        await talked(replica, world)
        first, next_one = await resumed(world, replica, FULL, calls("quick"))
    assert replica.models.requests[-1].history[0].role == "summary"
    assert first.recalled == next_one.recalled
    assert next_one.prompt is not None
    prompts = [request.prompt for request in replica.models.requests[-3:]]
    assert prompts[0] != prompts[1]
    assert next_one.prompt.text == prompts[1] == prompts[2]


async def test_the_prompt_of_before_a_compaction_is_not_used_again(world: World) -> None:
    async with world.replica() as replica:
        await talked(replica, world)
        _, next_one = await resumed(world, replica, FULL)
    assert replica.models.requests[-1].history[0].role == "summary"
    assert next_one.prompt is None


async def test_it_has_the_system_prompt_that_it_began_with(world: World) -> None:
    await world.add_agent(system="You are Loci, as you were.")
    async with world.replica() as replica:
        await replica.send(world.request())
        change = "UPDATE agent.agents SET system = 'You are another.' WHERE id = $1"
        first, next_owner = await resumed(world, replica, begun=lambda: world.pool.execute(change, world.agent_id))
    assert first.turn.settings.system == "You are Loci, as you were."
    assert next_owner.turn.settings == first.turn.settings


async def test_a_first_fact_of_the_release_before_is_read(world: World) -> None:
    """It repeats the system prompt."""
    before = """UPDATE agent.facts SET schema_version = 2,
            body = jsonb_set(body - 'system_hash', '{settings,system}', '"You are of before."')
        WHERE number = 1 AND run_id IN (SELECT id FROM agent.runs WHERE agent_id = $1)"""
    async with world.replica() as replica:
        _, next_owner = await resumed(world, replica, begun=lambda: world.pool.execute(before, world.agent_id))
    assert next_owner.turn.settings.system == "You are of before."
