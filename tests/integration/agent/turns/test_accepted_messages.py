"""What was accepted is in the log, whatever becomes of its run before that begins."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

import pytest

from services.agent.core import messages
from services.agent.core.events import Event
from services.agent.core.facts import RunStatus, StopReason
from services.agent.core.messages import Call, Decision, Text
from services.agent.core.ports import ModelRequest, PartDelta, Reply
from services.agent.core.ports_journal import OwnedRun, TurnRequest
from services.agent.driving import lease_keeper, worker
from services.common.errors import Unavailable
from tests.integration.agent.world import (
    ORGANIZATION,
    SECONDS,
    Replica,
    World,
    answered,
    calls,
    end,
    text,
    world_on,
)

DELETE = {"type": "requires_approval", "tool_name": "delete"}
TALKED = ["user", "assistant"]
APPROVED = ["user", "assistant", "approval", "tool", "assistant"]


@pytest.fixture
async def world(agent_url: str) -> AsyncIterator[World]:
    """An agent that asks before it deletes."""
    async with world_on(agent_url) as made:
        await made.add_agent(tool_rules=[DELETE])
        yield made


@dataclass
class Gate:
    """A model that has been asked, and answers when the gate is opened."""

    reply: Reply
    asked: asyncio.Event
    opened: asyncio.Event

    async def __call__(self, request: ModelRequest) -> AsyncGenerator[PartDelta | Reply]:
        """A reply for the script."""
        self.asked.set()
        await self.opened.wait()
        yield self.reply


async def delete(call: Call) -> str:
    return "deleted"


async def begin(replica: Replica, request: TurnRequest) -> None:
    accepted, _ = await replica.worker.accept(request, stream=False)
    assert accepted.started


async def follow(replica: Replica, request: TurnRequest) -> list[Event]:
    events = replica.reader.follow(ORGANIZATION, request.run_id)
    async with asyncio.timeout(SECONDS), aclosing(events):
        return [event async for event in events]


async def meets(world: World, replica: Replica, *requests: TurnRequest, reply: Reply | None = None) -> TurnRequest:
    """Requests that were accepted while a run went on which then ended, by default since a call waits."""
    gate = Gate(reply or calls("delete"), asyncio.Event(), asyncio.Event())
    replica.tools.actions = {"delete": delete}
    replica.models.replies = [gate]
    first = world.request("Tidy up.")
    await begin(replica, first)
    await gate.asked.wait()
    for request in requests:
        await begin(replica, request)
    gate.opened.set()
    await follow(replica, first)
    return first


async def run(world: World, request: TurnRequest) -> Mapping[str, Any]:
    found: Mapping[str, Any] = await world.pool.fetchrow("SELECT * FROM agent.runs WHERE id = $1", request.run_id)
    return found


async def roles(world: World) -> list[str]:
    return [role for role, _ in await world.history()]


async def waits(world: World) -> bool:
    query = "SELECT waiting > 0 AND active_run_id IS NULL FROM agent.conversation_heads WHERE conversation_id = $1"
    return bool(await world.pool.fetchval(query, world.agent_id))


# A call waits for the client --------------------------------------------------------------------------------


async def test_what_is_said_in_the_background_waits_for_the_answer_and_is_said_then(world: World) -> None:
    said = [world.request(each, background=True) for each in ("one", "two")]
    async with world.replica() as replica:
        await meets(world, replica, *said)
        assert await waits(world)
        assert [(await run(world, each))["status"] for each in said] == ["created", "created"]
        replica.models.replies = [text("Deleted."), text("1"), text("2")]
        answer = await replica.send(world.answer(Decision("call_0", approve=True)))
        assert end(answer).run.stop_reason is StopReason.END_TURN
        for each in said:
            assert end(await follow(replica, each)).run.status is RunStatus.COMPLETED
    assert await roles(world) == [*APPROVED, *TALKED, *TALKED]


async def test_its_time_limit_is_counted_from_its_turn(world: World) -> None:
    said = world.request("one", background=True)
    async with world.replica() as replica:
        await meets(world, replica, said)
        long_ago = (
            "UPDATE agent.runs SET created_at = created_at - interval '1 day', deadline = deadline - interval '1 day'"
        )
        await world.pool.execute(f"{long_ago} WHERE id = $1", said.run_id)
        await replica.send(world.answer(Decision("call_0", approve=True)))
        assert end(await follow(replica, said)).run.status is RunStatus.COMPLETED


async def test_it_is_said_when_the_waiting_is_given_up(world: World) -> None:
    said = world.request("one", background=True)
    async with world.replica() as replica:
        asking = await meets(world, replica, said)
        assert await replica.worker.cancel(ORGANIZATION, [(asking.run_id, world.agent_id)])
        assert end(await follow(replica, said)).run.status is RunStatus.COMPLETED
    assert await roles(world) == ["user", "assistant", "tool", *TALKED]


async def test_it_is_found_when_nobody_said_that_the_waiting_is_over(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease_keeper, "BEATS_PER_REPAIR", 1)
    said = world.request("one", background=True)
    async with world.replica() as replica:
        await meets(world, replica, said)
        over = "UPDATE agent.conversation_heads SET pending_message_id = NULL WHERE conversation_id = $1"
        await world.pool.execute(over, world.agent_id)
        # A call still waits in the log: it is put back into the line, and the head says again what for.
        waiting = "SELECT pending_message_id IS NOT NULL AND active_run_id IS NULL AND waiting = 1"
        await answered(
            lambda: world.pool.fetchval(
                f"{waiting} FROM agent.conversation_heads WHERE conversation_id = $1", world.agent_id
            )
        )
        await replica.send(world.answer(Decision("call_0", approve=True)))
        assert end(await follow(replica, said)).run.status is RunStatus.COMPLETED
    assert await roles(world) == [*APPROVED, *TALKED]


async def test_it_can_be_cancelled_while_it_waits(world: World) -> None:
    said = world.request("one", background=True)
    async with world.replica() as replica:
        await meets(world, replica, said)
        assert await replica.worker.cancel(ORGANIZATION, [(said.run_id, world.agent_id)]) == [said.run_id]
        assert end(await follow(replica, said)).run.status is RunStatus.CANCELLED
        answer = await replica.send(world.answer(Decision("call_0", approve=True)))
        assert end(answer).run.stop_reason is StopReason.END_TURN
    assert await roles(world) == APPROVED


async def test_of_an_answer_that_comes_too_late_stays_what_was_said_with_it(world: World) -> None:
    late = world.answer(Decision("call_7", approve=True), said="And thanks!", background=True)
    async with world.replica() as replica:
        await meets(world, replica, late, reply=text("Tidy."))
        failure = end(await follow(replica, late)).failure
        assert failure is not None
        assert failure.reason == "NO_PENDING_APPROVAL"
        assert (await world.history())[-1] == ("user", "And thanks!")
        await replica.send(world.request("Go on."))
        shown = replica.models.requests[-1].history
    assert [part for message in shown for part in message.parts if isinstance(part, Text)] == [
        *map(Text, ("Tidy up.", "Tidy.", "And thanks!", "Go on."))
    ]


# A run that nobody can begin ---------------------------------------------------------------------------------


async def test_a_run_that_cannot_be_begun_leaves_what_was_said(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "FIRST_PAUSE", 0.01)
    said = world.request("one", background=True)

    async def fails(row: Mapping[str, Any]) -> OwnedRun:
        raise RuntimeError("a fault of ours")

    async with world.replica() as replica:
        monkeypatch.setattr(replica.lease_keeper._leases, "load", fails)
        await meets(world, replica, said, reply=text("Tidy."))
        failure = end(await follow(replica, said)).failure
        assert failure is not None
        assert failure.reason == "RUN_GIVEN_UP"
        assert await world.history() == [("user", "Tidy up."), ("assistant", "Tidy."), ("user", "one")]
        assert end(await replica.send(world.request("two"))).run.status is RunStatus.COMPLETED


async def of_tomorrow(world: World, request: TurnRequest) -> None:
    """A newer release wrote what waits."""
    newer = """UPDATE agent.conversation_line SET input = jsonb_set(input, '{messages,0,parts}',
        input #> '{messages,0,parts}' || '[{"type": "hologram", "text": "a ship"}]') WHERE run_id = $1"""
    await world.pool.execute(newer, request.run_id)


async def refused(world: World, request: TurnRequest, by: Replica) -> None:
    query = "SELECT EXISTS (SELECT FROM agent.run_queue WHERE run_id = $1 AND $2 = ANY(refused_by))"
    await answered(lambda: world.pool.fetchval(query, request.run_id, by.journal.worker_id))


async def accepted_of_tomorrow(world: World, replica: Replica, said: TurnRequest) -> None:
    gate = Gate(text("Tidy."), asyncio.Event(), asyncio.Event())
    replica.models.replies = [gate]
    await begin(replica, world.request("Tidy up."))
    await gate.asked.wait()
    await begin(replica, said)
    await of_tomorrow(world, said)
    gate.opened.set()


@pytest.mark.parametrize("background", [True, False])
async def test_what_an_older_replica_cannot_read_is_left_to_a_newer_one(
    world: World, monkeypatch: pytest.MonkeyPatch, background: bool
) -> None:
    said = world.request("one", background=background)
    async with world.replica() as older, world.replica() as other:
        await accepted_of_tomorrow(world, older, said)
        for each in (older, other):
            await refused(world, said, each)
        assert (await run(world, said))["status"] == "running"
        monkeypatch.setitem(messages._TYPES, "hologram", Text)
        async with world.replica() as newer:
            assert end(await follow(newer, said)).run.status is RunStatus.COMPLETED
            assert len(newer.models.requests) == 1
    assert (await world.history())[-2] == ("user", "one a ship")


async def test_what_nobody_could_read_ends_at_its_time_limit_and_what_can_be_read_stays(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease_keeper, "BEATS_PER_REPAIR", 1)
    said = world.request("one", background=True)
    async with world.replica() as replica:
        await accepted_of_tomorrow(world, replica, said)
        await refused(world, said, replica)
        await world.pool.execute("UPDATE agent.runs SET deadline = now() WHERE id = $1", said.run_id)
        failure = end(await follow(replica, said)).failure
        assert failure is not None
        assert failure.reason == "RUN_GIVEN_UP"
        role, kept = (await world.history())[-1]
        assert (role, kept.startswith("one [")) == ("user", True)
        assert "hologram" in kept
        assert end(await replica.send(world.request("two"))).run.status is RunStatus.COMPLETED


async def test_a_conversation_that_a_replica_cannot_read_is_driven_by_another(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = world.request("two")
    async with world.replica() as older:
        await older.send(world.request("one"))
        newer_reply = """UPDATE agent.messages SET content = '[{"type": "hologram", "text": "a ship"}]'
            WHERE role = 'assistant' AND agent_id = $1"""
        await world.pool.execute(newer_reply, world.agent_id)
        await begin(older, said)
        await refused(world, said, older)
        with pytest.raises(Unavailable):
            # Whoever cannot read the conversation does not judge what fits it.
            await older.worker.accept(world.answer(Decision(approve=True)), stream=False)
        monkeypatch.setitem(messages._TYPES, "hologram", Text)
        async with world.replica() as newer:
            assert end(await follow(newer, said)).run.status is RunStatus.COMPLETED
