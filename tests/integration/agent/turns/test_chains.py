"""Tools that send messages: what would never be answered is refused before anybody waits."""

import asyncio
import time
from dataclasses import replace

import pytest

from loci.agent.v1 import message_pb2, message_service_pb2
from services.agent.convert.turns import turn_request
from services.agent.core.messages import Call
from services.common.context import CallContext
from services.common.errors import DeadlineExceeded, FailedPrecondition, LociError
from services.common.ids import to_public, uuid7
from tests.integration.agent.world import ORGANIZATION, SECONDS, World, calls, end, text
from tests.polling import until


async def test_an_agent_whose_tool_writes_to_it(world: World) -> None:
    request = world.request("Ask yourself.")
    said: list[str] = []

    async def ask(call: Call) -> str:
        nested = replace(world.request("And?"), ancestors=(request.run_id,))
        with pytest.raises(FailedPrecondition, match="would never be answered") as refused:
            await replica.send(nested)
        said.append(refused.value.reason)
        # In the background nobody waits: it comes after this turn.
        accepted, _ = await replica.worker.accept(replace(nested, background=True), stream=False)
        said.append("accepted" if accepted.started else "")
        return "asked"

    async with world.replica() as replica:
        replica.tools.actions = {"ask": ask}
        replica.models.replies = [calls("ask"), text("Done."), text("Later.")]
        async with asyncio.timeout(SECONDS):
            await replica.send(request)
            while ("assistant", "Later.") not in await world.history():
                await asyncio.sleep(0.02)
    assert said == ["RUN_CHAIN_INVALID", "accepted"]


async def test_two_agents_whose_tools_write_to_each_other(world: World) -> None:
    """Neither is in the other's chain; together they would wait for each other."""
    first, first_id = world.request("one"), world.agent_id
    second_id = await world.add_agent()
    second = world.request("two")
    world.agent_id = first_id
    outcomes: dict[str, str] = {}
    both = asyncio.Barrier(2)

    async with world.replica() as replica:

        async def ask(call: Call) -> str:
            mine, other = (first, second_id) if call.key.startswith(str(first.run_id)) else (second, first_id)
            await both.wait()
            nested = replace(
                world.request("?"), agent_id=other, conversation_id=other, ancestors=(mine.run_id,), run_id=uuid7()
            )
            try:
                end(await replica.send(nested))
            except LociError as error:
                outcomes[str(mine.run_id)] = error.reason
            else:
                outcomes[str(mine.run_id)] = "answered"
            return "done"

        replica.tools.actions = {"ask": ask}
        replica.models.replies = [calls("ask"), calls("ask")]
        async with asyncio.timeout(SECONDS):
            await asyncio.gather(replica.send(first), replica.send(second))
    assert sorted(outcomes.values()) == ["RUN_CHAIN_INVALID", "answered"]


async def test_a_busy_agent_outside_of_the_chain_is_waited_for(world: World) -> None:
    gate = asyncio.Event()

    async def wait(call: Call) -> str:
        await gate.wait()
        return "waited"

    async with world.replica() as replica:
        replica.tools.actions = {"wait": wait}
        replica.models.replies = [calls("wait"), text("One."), text("Two.")]
        running = asyncio.create_task(replica.send(world.request("one")))
        await until(lambda: replica.models.requests)
        nested = asyncio.create_task(replica.send(replace(world.request("two"), ancestors=(uuid7(),))))
        await world.until_waiting(1)
        assert not nested.done()
        gate.set()
        await asyncio.gather(running, nested)
    assert ("assistant", "Two.") in await world.history()


async def test_a_chain_has_an_end(world: World) -> None:
    async with world.replica() as replica:
        replica.models.replies = [text("Still.")]
        await replica.send(replace(world.request("?"), ancestors=tuple(uuid7() for _ in range(8))))
        with pytest.raises(FailedPrecondition, match="8 runs wait"):
            await replica.send(replace(world.request("?"), ancestors=tuple(uuid7() for _ in range(9))))


def test_a_nested_run_ends_with_those_that_wait() -> None:
    outer, waiting = uuid7(), uuid7()
    context = CallContext(ORGANIZATION, ORGANIZATION, "run", ("agent",), outer, (waiting,), time.time() + 500)
    message = message_pb2.InputMessage(content=[message_pb2.ContentPart(text="?")])
    wire = message_service_pb2.TurnRequest(agent_id=to_public("agent", uuid7()), messages=[message])
    request = turn_request(wire, context, longest_seconds=600)
    assert request.ancestors == (waiting, outer)
    assert 400 < request.seconds <= 500
    with pytest.raises(DeadlineExceeded):
        turn_request(wire, replace(context, deadline=time.time() - 1), longest_seconds=600)
