"""Turns on the real journal: what is stored, shown, resumed, refused."""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import replace

import asyncpg
import pytest

from services.agent.adapters.streams.attaching import PostgresAttaching
from services.agent.core.events import Abandoned, Delta, MessagePiece
from services.agent.core.facts import RunStatus, StopReason
from services.agent.core.messages import Call, Text
from services.agent.core.ports import BlockView, MemoryView, ModelRequest, PartDelta, PeerLost, Reply
from services.agent.core.ports_journal import TurnRequest
from services.agent.core.stored_stream import last_position
from services.common.errors import Aborted, AlreadyExists, NotFound, ResourceExhausted
from services.common.ids import uuid7
from services.common.statement_counter import StatementCounter
from tests.integration.agent.world import (
    ORGANIZATION,
    SECONDS,
    World,
    calls,
    end,
    says,
    shown,
    text,
    until_locked_out,
    world_on,
)
from tests.polling import until


async def test_a_reply_ends_the_turn(world: World) -> None:
    async with world.replica() as replica:
        replica.models.replies = [text("Hello Ada.")]
        events = await replica.send(world.request("I am Ada."))
    assert end(events).run.stop_reason is StopReason.END_TURN
    assert end(events).run.status is RunStatus.COMPLETED
    assert end(events).usage.prompt_tokens == 10
    assert await world.history() == [("user", "I am Ada."), ("assistant", "Hello Ada.")]


async def test_tools_run_between_two_replies(world: World) -> None:
    async def dice(call: Call) -> str:
        return "4"

    async with world.replica() as replica:
        replica.tools.actions = {"roll": dice}
        replica.models.replies = [calls("roll", "roll"), text("Twice a four.")]
        events = await replica.send(world.request("Roll twice."))
        asked = replica.models.requests[1]
    assert shown(events) == ["assistant", "tool", "assistant"]
    assert [message.role for message in asked.history] == ["user", "assistant", "tool"]
    keys = [part.key for part in asked.history[1].parts if isinstance(part, Call)]
    run_id = end(events).run.id
    assert keys == [f"{run_id}/1/0", f"{run_id}/1/1"]


@pytest.mark.usefixtures("by_notice_alone")
async def test_one_step_costs_two_transactions(agent_url: str) -> None:
    counter = StatementCounter(keep_texts=True)
    async with world_on(agent_url, counter) as world, world.replica() as replica:
        await replica.settles()
        await replica.send(world.request())
        await asyncio.sleep(0)
        counter.reset()
        await replica.send(world.request())
        await asyncio.sleep(0)
        assert (counter.statements, counter.transactions) == (2, 2), counter.texts


async def test_max_steps(world: World) -> None:
    async def nothing(call: Call) -> str:
        return "ok"

    async with world.replica() as replica:
        replica.tools.actions = {"think": nothing}
        replica.models.replies = [calls("think") for _ in range(5)]
        events = await replica.send(world.request(max_steps=2))
    assert end(events).run.stop_reason is StopReason.MAX_STEPS
    assert end(events).steps == 2


async def test_model_error_fails_the_run_and_the_next_message_works(world: World) -> None:
    async with world.replica() as replica:
        replica.models.replies = [ResourceExhausted("slow down", reason="LLM_RATE_LIMIT"), text("Here I am.")]
        events = await replica.send(world.request("one"))
        failure = end(events).failure
        assert failure is not None
        assert (failure.error_type, end(events).run.status) == ("llm_rate_limit", RunStatus.FAILED)
        again = await replica.send(world.request("two"))
    assert end(again).run.stop_reason is StopReason.END_TURN
    assert [role for role, _ in await world.history()] == ["user", "user", "assistant"]


async def test_deltas_carry_the_otids_of_the_message(world: World) -> None:
    async def reply(request: ModelRequest) -> AsyncGenerator[PartDelta | Reply]:
        assert request.stream
        yield PartDelta(0, "content", "Hel")
        yield PartDelta(0, "content", "lo")
        yield PartDelta(1, "call", '{"a"', "call_1", "think")
        yield PartDelta(1, "call", ":1}", "call_1", "think")
        yield says(Text("Hello"), Call("", "call_1", "think", '{"a":1}'))

    async def nothing(call: Call) -> str:
        return "ok"

    async with world.replica() as replica:
        replica.tools.actions = {"think": nothing}
        replica.models.replies = [reply, text("Done.")]
        events = await replica.send(world.request(), stream=True)
    deltas = [event for event in events if isinstance(event, Delta)]
    first = [event for event in events if isinstance(event, MessagePiece)][:2]
    # The name of a call comes before its arguments.
    assert [delta.otid for delta in deltas] == [first[0].otid] * 2 + [first[1].otid] * 3
    assert {delta.message_id for delta in deltas} == {first[0].message.id}
    sequences = [event.sequence for event in events]
    assert sequences == sorted(set(sequences))


async def test_a_lost_model_gateway_is_an_abandoned_attempt(world: World) -> None:
    async def cut(request: ModelRequest) -> AsyncGenerator[PartDelta | Reply]:
        yield PartDelta(0, "content", "Hel")
        raise PeerLost("gone")

    async with world.replica() as replica:
        replica.models.replies = [cut, text("Hello.")]
        events = await replica.send(world.request(), stream=True)
    abandoned = [event for event in events if isinstance(event, Abandoned)]
    assert [(event.attempt, event.message_id) for event in abandoned] == [(1, events[0].message_id)]  # type: ignore[union-attr]
    assert await world.history() == [("user", "Hello"), ("assistant", "Hello.")]


async def test_cancel_stops_a_running_model_call(world: World) -> None:
    started = asyncio.Event()
    closed = asyncio.Event()

    async def hang(request: ModelRequest) -> AsyncGenerator[PartDelta | Reply]:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            closed.set()
        yield text("never")

    async with world.replica() as replica:
        replica.models.replies = [hang, text("I am back.")]
        request = world.request()
        sending = asyncio.create_task(replica.send(request))
        await started.wait()
        reached = await replica.worker.cancel(request.organization_id, [(request.run_id, world.agent_id)])
        events = await sending
        assert reached == [request.run_id]
        assert closed.is_set()
        assert end(events).run.status is RunStatus.CANCELLED
        assert end(await replica.send(world.request())).run.stop_reason is StopReason.END_TURN


async def test_cancel_kills_running_tools_and_leaves_a_sendable_history(world: World) -> None:
    started = asyncio.Event()

    async def hang(call: Call) -> str:
        started.set()
        await asyncio.Event().wait()
        return "never"

    async with world.replica() as replica:
        replica.tools.actions = {"wait": hang}
        replica.models.replies = [calls("wait"), text("It was interrupted.")]
        request = world.request()
        sending = asyncio.create_task(replica.send(request))
        await started.wait()
        await replica.worker.cancel(request.organization_id, [(request.run_id, world.agent_id)])
        assert end(await sending).run.status is RunStatus.CANCELLED
        assert replica.tools.cancelled == [f"{request.run_id}/1/0"]
        await replica.send(world.request("and now?"))
        roles = [message.role for message in replica.models.requests[-1].history]
    assert roles == ["user", "assistant", "tool", "user"]


async def test_a_deadline_ends_the_run(world: World) -> None:
    async def hang(request: ModelRequest) -> AsyncGenerator[PartDelta | Reply]:
        await asyncio.Event().wait()
        yield text("never")

    async with world.replica() as replica:
        replica.models.replies = [hang]
        events = await replica.send(world.request(seconds=0.2))
    # Wherever the turn was by then.
    assert end(events).run.stop_reason is StopReason.ERROR
    assert end(events).failure is not None
    assert end(events).failure.reason == "RUN_DEADLINE"  # type: ignore[union-attr]


async def test_a_second_message_waits_in_line(world: World) -> None:
    asked, answer = asyncio.Event(), asyncio.Event()

    async def slow(request: ModelRequest) -> AsyncGenerator[PartDelta | Reply]:
        asked.set()
        await answer.wait()
        yield text("first")

    async with world.replica() as replica:
        replica.models.replies = [slow, text("second"), text("third")]
        sending = [asyncio.create_task(replica.send(world.request("1")))]
        await asked.wait()
        for waiting, content in enumerate(("2", "3"), start=1):
            sending.append(asyncio.create_task(replica.send(world.request(content))))
            await world.until_waiting(waiting)
        answer.set()
        results = await asyncio.gather(*sending)
    assert [end(events).run.fence for events in results] == [1, 1, 1]
    said = [content for _, content in await world.history()]
    assert said == ["1", "first", "2", "second", "3", "third"]
    assert await world.pool.fetchval("SELECT count(*) FROM agent.conversation_line") == 0


async def test_busy_can_be_refused(world: World) -> None:
    asked, answer = asyncio.Event(), asyncio.Event()

    async def slow(request: ModelRequest) -> AsyncGenerator[PartDelta | Reply]:
        asked.set()
        await answer.wait()
        yield text("first")

    async with world.replica(on_busy="reject") as replica:
        replica.models.replies = [slow]
        sending = asyncio.create_task(replica.send(world.request()))
        await asked.wait()
        with pytest.raises(Aborted, match="currently being processed") as refused:
            await replica.send(world.request())
        answer.set()
        await sending
    assert refused.value.reason == "CONVERSATION_BUSY"


async def test_two_that_lock_their_conversation_exclude_each_other(world: World) -> None:
    async def hang(request: ModelRequest) -> AsyncGenerator[PartDelta | Reply]:
        await asyncio.Event().wait()
        yield text("never")

    async with world.replica(on_busy=None) as replica:
        replica.models.replies = [hang]
        first, beside, other = _locking(world), world.request(), _locking(world)
        await replica.worker.accept(first, stream=False)
        await replica.worker.accept(beside, stream=False)
        with pytest.raises(Aborted, match="currently being processed") as refused:
            await replica.worker.accept(_locking(world), stream=False)
        assert refused.value.metadata["run_id"] == f"run-{first.run_id}"
        # Whoever says so waits.
        await replica.worker.accept(replace(other, on_busy="wait"), stream=False)
        runs = [(request.run_id, world.agent_id) for request in (other, beside, first)]
        assert len(await replica.worker.cancel(first.organization_id, runs)) == 3


async def test_who_waits_to_lock_a_conversation_keeps_others_out(world: World) -> None:
    async def hang(request: ModelRequest) -> AsyncGenerator[PartDelta | Reply]:
        await asyncio.Event().wait()
        yield text("never")

    async with world.replica(on_busy=None) as replica:
        replica.models.replies = [hang]
        first, waiting = world.request(), _locking(world)
        await replica.worker.accept(first, stream=False)
        # What does not lock is waited for.
        await replica.worker.accept(waiting, stream=False)
        with pytest.raises(Aborted) as refused:
            await replica.worker.accept(_locking(world), stream=False)
        assert refused.value.metadata["run_id"] == f"run-{waiting.run_id}"
        runs = [(request.run_id, world.agent_id) for request in (waiting, first)]
        assert len(await replica.worker.cancel(first.organization_id, runs)) == 2


def _locking(world: World) -> TurnRequest:
    request = world.request()
    return replace(request, options=replace(request.options, locks=True))


async def test_the_newest_run_is_found_by_its_label(world: World) -> None:
    async with world.replica() as replica:
        replica.models.replies = [text("once"), text("twice")]
        for _ in range(2):
            request = world.request(labels=("otid:1",), background=True)
            await replica.worker.accept(request, stream=False)
            found = await PostgresAttaching(world.pool).by_key(request.organization_id, "otid:1")
            assert found == request.run_id


async def test_the_line_has_an_end(world: World) -> None:
    async def slow(request: ModelRequest) -> AsyncGenerator[PartDelta | Reply]:
        await asyncio.Event().wait()
        yield text("first")

    async with world.replica() as replica:
        replica.models.replies = [slow]
        first = world.request()
        await replica.worker.accept(first, stream=False)
        waiting = [world.request() for _ in range(32)]
        for request in waiting:
            await replica.worker.accept(request, stream=False)
        with pytest.raises(ResourceExhausted):
            await replica.worker.accept(world.request(), stream=False)
        runs = [(request.run_id, world.agent_id) for request in (*waiting, first)]
        assert len(await replica.worker.cancel(first.organization_id, runs)) == 33
        assert end(await replica.send(world.request())).run.status is RunStatus.COMPLETED


async def test_retries_attach(world: World) -> None:
    async with world.replica() as replica:
        replica.models.replies = [text("once")]
        first = world.request(keys=("otids:1",), request_hash=b"h")
        original = await replica.send(first)
        for repeated in (
            world.request(keys=("otids:1",)),
            world.request(run_id=first.run_id),
            world.request(request_hash=b"h", is_retry=True),
        ):
            again = await replica.send(repeated)
            assert [event.sequence for event in again] == [event.sequence for event in original]
        assert len(replica.models.requests) == 1
        # Two first attempts with equal text are two messages.
        replica.models.replies = [text("twice")]
        await replica.send(world.request(request_hash=b"h"))
    assert [content for _, content in await world.history()] == ["Hello", "once", "Hello", "twice"]


@pytest.mark.parametrize("options", [{}, {"background": True}])
async def test_a_run_id_is_of_one_conversation(world: World, options: dict[str, bool]) -> None:
    async with world.replica() as replica:
        first = world.request("Mine.")
        await replica.send(first)
        await world.add_agent()
        with pytest.raises(AlreadyExists, match="a run of another conversation") as error:
            await replica.send(world.request("Yours?", run_id=first.run_id, **options))
        assert error.value.reason == "RUN_ID_TAKEN"
        assert await world.history() == []


async def test_what_is_there_twice_and_is_no_request_is_a_fault(world: World) -> None:
    async with world.replica() as replica:
        said = world.request("Hello")
        await replica.send(said)
        again = replace(world.request("Hello"), messages=said.messages)
        with pytest.raises(asyncpg.UniqueViolationError, match="messages"):
            await replica.send(again)


async def test_another_replica_goes_on_after_a_crash(world: World) -> None:
    ran: list[str] = []

    async def act(call: Call) -> str:
        ran.append(call.key)
        return "done"

    async def hang(request: ModelRequest) -> AsyncGenerator[PartDelta | Reply]:
        yield PartDelta(0, "content", "I was about to")
        await asyncio.Event().wait()

    async with world.replica() as survivor, world.replica() as victim:
        for replica in (survivor, victim):
            replica.tools.actions = {"act": act}
        victim.models.replies = [calls("act"), hang]
        survivor.models.replies = [text("All done.")]
        request = world.request()
        accepted, subscription = await victim.worker.accept(request, stream=True)
        assert subscription is not None
        seen = []
        async for event in subscription:
            seen.append(event)
            if isinstance(event, Delta):
                break
        await victim.die()
        follow = survivor.reader.follow(request.organization_id, accepted.run_id, after=last_position(seen[-1]))
        async with asyncio.timeout(SECONDS):
            rest = [event async for event in follow]
    assert isinstance(rest[0], Abandoned)
    assert rest[0].sequence > 1_000_000
    assert (end(rest).run.status, end(rest).run.fence) == (RunStatus.COMPLETED, 2)
    assert len(ran) == 1
    assert [role for role, _ in await world.history()] == ["user", "assistant", "tool", "assistant"]


async def test_a_replica_that_stops_hands_over_at_once(world: World) -> None:
    """Without its word the lease would have to end first."""
    asked = asyncio.Event()

    async def hang(request: ModelRequest) -> AsyncGenerator[PartDelta | Reply]:
        asked.set()
        await asyncio.Event().wait()
        yield text("never")

    async with world.replica() as heir:
        heir.models.replies = [text("I took over.")]
        request = world.request()
        async with world.replica() as leaver:
            leaver.models.replies = [hang]
            await leaver.worker.accept(request, stream=False)
            await asked.wait()
        async with asyncio.timeout(SECONDS):
            follow = heir.reader.follow(request.organization_id, request.run_id)
            events = [event async for event in follow]
    assert end(events).run.status is RunStatus.COMPLETED


async def test_an_unknown_agent(world: World) -> None:
    async with world.replica() as replica:
        world.agent_id = world.request().run_id
        with pytest.raises(NotFound, match="Agent not found"):
            await replica.send(world.request())


async def test_a_request_that_comes_while_a_turn_ends_sees_the_memory_that_it_left(world: World) -> None:
    before, after = (MemoryView((BlockView(uuid7(), 1, "human", name, 100),)) for name in ("Anna", "Ada"))
    async with world.replica() as replica:
        replica.memory.shows = before
        await replica.send(world.request("I am Anna."))
        assert replica.memory.views == 1
        async with world.pool.acquire() as connection, connection.transaction():
            ended = """
                WITH head AS (UPDATE agent.conversation_heads SET next_seq = next_seq + 1 WHERE conversation_id = $2
                              RETURNING log_id, next_seq - 1 AS seq)
                INSERT INTO agent.messages (organization_id, log_id, seq, id, agent_id, conversation_id, role, content)
                SELECT $1, log_id, seq, gen_random_uuid(), $2, $2, 'assistant', '[{"type": "text", "text": "Done."}]'
                FROM head"""
            await connection.execute(ended, ORGANIZATION, world.agent_id)
            sending = asyncio.create_task(replica.send(world.request("Who am I?")))
            await until(lambda: replica.memory.views == 2)
            # It waits for the turn to end.
            await until_locked_out(world.pool)
            replica.memory.shows = after
        assert end(await sending).run.stop_reason is StopReason.END_TURN
        asked = replica.models.requests[-1]
    assert ("Ada" in asked.prompt, "Anna" in asked.prompt) == (True, False)
    assert "Done." in [part.text for message in asked.history for part in message.parts if isinstance(part, Text)]
