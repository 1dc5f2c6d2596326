"""Calls that wait for the client, on the real journal: who answers, when, from where, and what if nobody does."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid5

import pytest

from services.agent.adapters import journal
from services.agent.adapters.approval_deadlines import OVERDUE, answer_overdue
from services.agent.adapters.leases import PostgresLeases
from services.agent.core.events import Ended, Event
from services.agent.core.facts import ClientTool, Failure, Options, RunStatus, StopReason
from services.agent.core.messages import Call, Decision, Image, Message, Return, Role, text_of
from services.agent.core.ports import ModelRequest, PartDelta, Reply
from services.agent.core.turn import step_id
from services.agent.postgres.lease_sql import TICK
from services.agent.postgres.rows import message_from_row
from services.agent.resources.conversations.ports import NewConversation
from services.agent.resources.conversations.store import PostgresConversations
from services.common.engine import make_engine
from services.common.errors import Aborted, InvalidArgument
from services.common.ids import uuid7
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
from tests.polling import until

DELETE = {"type": "requires_approval", "tool_name": "delete"}
SHOW = ClientTool("show", "Shows a file.", {"type": "object", "properties": {}})


@pytest.fixture
async def world(agent_url: str) -> AsyncIterator[World]:
    """An agent that asks before it deletes."""
    async with world_on(agent_url) as made:
        await made.add_agent(tool_rules=[DELETE])
        yield made


def recorded(
    ran: list[str], names: tuple[str, ...] = ("delete", "look")
) -> dict[str, Callable[[Call], Awaitable[str]]]:
    """Tools that note each call's key."""

    async def act(call: Call) -> str:
        ran.append(call.key)
        return f"{call.name} is done"

    return dict.fromkeys(names, act)


async def stored(world: World, role: Role | None = None) -> list[Message]:
    """The agent's messages, oldest first; of one role."""
    rows = await world.pool.fetch("SELECT * FROM agent.messages WHERE agent_id = $1 ORDER BY seq", world.agent_id)
    return [message_from_row(row) for row in rows if role in (None, row["role"])]


async def returns(world: World) -> list[Return]:
    """All returns of tools in the log."""
    return [part for message in await stored(world, "tool") for part in message.parts if isinstance(part, Return)]


async def head(world: World) -> dict[str, Any]:
    """The row that says whose turn it is and what waits."""
    query = "SELECT * FROM agent.conversation_heads WHERE conversation_id = $1"
    return dict(await world.pool.fetchrow(query, world.agent_id))


async def asking(world: World, replica: Replica, *names: str, **request: Any) -> UUID:
    """A run that ends because its calls wait."""
    replica.models.replies = [calls(*(names or ("delete",)))]
    events = await replica.send(world.request("Tidy up.", **request))
    assert end(events).run.stop_reason is StopReason.REQUIRES_APPROVAL
    assert end(events).run.status is RunStatus.COMPLETED
    return end(events).run.id


async def follow(replica: Replica, run_id: UUID) -> list[Event]:
    """A run's events to its end."""
    async with asyncio.timeout(SECONDS), aclosing(replica.reader.follow(ORGANIZATION, run_id)) as events:
        return [event async for event in events]


def reason(events: list[Event]) -> StopReason | None:
    """Why a run ended."""
    return end(events).run.stop_reason


# Answers ---------------------------------------------------------------------------------------------------


async def test_nothing_of_a_reply_runs_before_the_answer_and_all_of_it_once_after(world: World) -> None:
    ran: list[str] = []
    async with world.replica() as replica:
        replica.tools.actions = recorded(ran)
        asked = await asking(world, replica, "look", "delete", "look")
        assert ran == []
        replica.models.replies = [text("All tidy.")]
        events = await replica.send(world.answer(Decision("call_1", approve=True)))
        shown = replica.models.requests[-1].history
    assert reason(events) is StopReason.END_TURN
    assert ran == [f"{asked}/1/{index}" for index in range(3)]
    # What was approved comes first, as in the reference.
    assert [part.call_id for part in await returns(world)] == ["call_1", "call_0", "call_2"]
    assert [message.role for message in shown] == ["user", "assistant", "tool"]
    assert [message.step_id for message in await stored(world, "tool")] == [step_id(asked, 1)]
    assert (await head(world))["pending_message_id"] is None


async def test_a_denial_is_told_with_its_reason(world: World) -> None:
    ran: list[str] = []
    async with world.replica() as replica:
        replica.tools.actions = recorded(ran)
        asked = await asking(world, replica, "look", "delete")
        replica.models.replies = [text("Then not.")]
        assert reason(await replica.send(world.answer(Decision("call_1", reason="too dear")))) is StopReason.END_TURN
    deleted, looked = await returns(world)
    assert (ran, looked.text) == ([f"{asked}/1/0"], "look is done")
    assert (deleted.is_error, deleted.refused, "too dear" in deleted.text) == (True, True, True)


async def test_a_partial_answer_is_refused(world: World) -> None:
    ran: list[str] = []
    async with world.replica() as replica:
        replica.tools.actions = recorded(ran)
        asked = await asking(world, replica, "delete", "delete")
        with pytest.raises(InvalidArgument, match="Invalid tool call IDs") as refused:
            await replica.send(world.answer(Decision("call_1", approve=True)))
        assert refused.value.reason == "TOOL_CALL_IDS_INVALID"
        with pytest.raises(Aborted, match="waiting for approval"):
            await replica.send(world.request("Well?"))
        replica.models.replies = [text("Both are settled.")]
        last = await replica.send(world.answer(Decision("call_0", reason="no"), Decision("call_1", approve=True)))
    assert (reason(last), ran) == (StopReason.END_TURN, [f"{asked}/1/1"])
    assert [part.is_error for part in await returns(world)] == [True, False]


async def test_a_client_runs_its_own_tools(world: World) -> None:
    ran: list[str] = []
    picture = Image("AAAA", media_type="image/png")
    async with world.replica() as replica:
        # A client's tool hides the agent's own of the same name.
        replica.tools.actions = recorded(ran, ("show", "look"))
        asked = await asking(world, replica, "show", "look", client_tools=[SHOW])
        replica.models.replies = [text("I see.")]
        shown = Return("call_0", "", "a cat", stdout=("one line",), images=(picture,))
        events = await replica.send(world.answer(shown, client_tools=[SHOW]))
        history = replica.models.requests[-1].history
    assert (reason(events), ran) == (StopReason.END_TURN, [f"{asked}/1/1"])
    first, second = await returns(world)
    assert (first.name, first.text, first.stdout, first.images) == ("show", "a cat", ("one line",), (picture,))
    assert (second.name, second.text) == ("look", "look is done")
    assert history[-1].parts == (first, second)


async def test_what_the_user_says_with_the_answer_comes_after_the_returns(world: World) -> None:
    async with world.replica() as replica:
        replica.tools.actions = recorded([])
        await asking(world, replica)
        replica.models.replies = [text("Done, and hello.")]
        await replica.send(world.answer(Decision("call_0", approve=True), said="And say hello."))
        history = replica.models.requests[-1].history
        replica.models.replies = [text("Hello again.")]
        assert reason(await replica.send(world.request("Again."))) is StopReason.END_TURN
    assert [message.role for message in history] == ["user", "assistant", "tool", "user"]


async def test_any_replica_takes_the_answer_also_after_a_restart(world: World) -> None:
    ran: list[str] = []
    async with world.replica() as first:
        first.tools.actions = recorded(ran)
        asked = await asking(world, first)
    async with world.replica() as another:
        another.tools.actions = recorded(ran)
        another.models.replies = [text("Gone.")]
        assert reason(await another.send(world.answer(Decision("call_0", approve=True)))) is StopReason.END_TURN
    assert ran == [f"{asked}/1/0"]


async def test_a_reply_at_the_last_step_may_still_ask_and_an_answer_counts_steps_anew(world: World) -> None:
    ran: list[str] = []
    async with world.replica() as replica:
        replica.tools.actions = recorded(ran)
        await asking(world, replica, max_steps=1)
        replica.models.replies = [calls("look"), text("never asked for")]
        events = await replica.send(world.answer(Decision("call_0", approve=True), max_steps=1))
    assert (reason(events), end(events).steps, len(ran)) == (StopReason.MAX_STEPS, 1, 2)


async def test_an_agent_that_forgets_remembers_what_it_asked(world: World) -> None:
    ran: list[str] = []
    await world.add_agent(tool_rules=[DELETE], autoclear=True)
    async with world.replica() as replica:
        replica.tools.actions = recorded(ran)
        await replica.send(world.request("Forget this."))
        asked = await asking(world, replica)
        assert [message.role for message in replica.models.requests[-1].history] == ["user"]
        replica.models.replies = [text("Gone.")]
        await replica.send(world.answer(Decision("call_0", approve=True)))
        assert [message.role for message in replica.models.requests[-1].history][-2:] == ["assistant", "tool"]
        await replica.send(world.request("And now?"))
        assert [message.role for message in replica.models.requests[-1].history] == ["user"]
    assert ran == [f"{asked}/1/0"]


# Answers that come twice, late, or wrong -------------------------------------------------------------------


async def test_the_second_of_two_answers_goes_on_anew(world: World) -> None:
    ran: list[str] = []
    async with world.replica() as replica, world.replica() as other:
        replica.tools.actions = recorded(ran)
        await asking(world, replica)
        replica.models.replies = [text("Gone.")]
        first = await replica.send(world.answer(Decision("call_0", approve=True)))
        other.models.replies = [text("It is."), text("And that, too.")]
        again = await other.send(world.answer(Decision("call_0", reason="no, wait")))
        assert (reason(again), end(again).run.id == end(first).run.id) == (StopReason.END_TURN, False)
        assert "keep-alive" in text_of(other.models.requests[-1].history[-1])
        # What is said beside it takes the place of that.
        await other.send(world.answer(Decision("call_0", approve=True), said="And that?"))
        assert text_of(other.models.requests[-1].history[-1]) == "And that?"
    assert len(ran) == 1


async def test_an_answer_comes_again_when_its_calls_have_left_the_window(world: World) -> None:
    async with world.replica() as replica:
        replica.tools.actions = recorded([])
        await asking(world, replica)
        replica.models.replies = [text("Gone.")]
        await replica.send(world.answer(Decision("call_0", approve=True)))
        replica.models.replies = [text("All that."), text("On with it.")]
        whole = Options(compact={"mode": "all"})
        assert reason(await replica.send(replace(world.request(), messages=(), options=whole))) is StopReason.END_TURN
        again = await replica.send(world.answer(Decision("call_0", approve=True)))
        assert reason(again) is StopReason.END_TURN
        assert replica.models.requests[-1].history[0].role == "summary"
        with pytest.raises(InvalidArgument, match="awaiting approval"):
            await replica.send(world.answer(Decision("call_1", approve=True)))


async def test_the_second_of_two_answers_attaches_while_the_first_is_carried_out(world: World) -> None:
    started, go = asyncio.Event(), asyncio.Event()
    ran: list[str] = []

    async def slow(call: Call) -> str:
        ran.append(call.key)
        started.set()
        await go.wait()
        return "done"

    async with world.replica() as replica, world.replica() as other:
        replica.tools.actions = {"delete": slow}
        await asking(world, replica, "delete", "delete")
        replica.models.replies = [text("Gone.")]
        both = (Decision("call_0", approve=True), Decision("call_1", reason="no"))
        answer = world.answer(*both)
        first = asyncio.create_task(replica.send(answer))
        await started.wait()
        second = asyncio.create_task(other.send(world.answer(*both)))
        await until(lambda: other.reader._hub.is_read(answer.run_id))
        go.set()
        events, again = await first, await second
    assert end(again).run.id == end(events).run.id
    assert len(ran) == 1
    assert (await head(world))["waiting"] == 0


@pytest.mark.parametrize("background", [False, True])
async def test_of_answers_that_come_at_the_same_time_one_is_carried_out(world: World, *, background: bool) -> None:
    ran: list[str] = []
    async with world.replica() as replica, world.replica() as other:
        for each in (replica, other):
            each.tools.actions = recorded(ran)
        for round_ in range(1, 4):
            await asking(world, replica)
            results = await asyncio.gather(
                *(
                    each.send(world.answer(Decision("call_0", approve=True), background=background))
                    for each in (replica, other, replica)
                )
            )
            # Who comes when it is done goes on without an answer.
            assert set(map(reason, results)) == {StopReason.END_TURN}
            assert len(ran) == round_
    assert await world.pool.fetchval("SELECT count(*) FROM agent.conversation_line") == 0


@pytest.mark.parametrize(
    ("answer", "refusal"),
    [(Decision("call_7", approve=True), "TOOL_CALL_IDS_INVALID"), (Return("call_7", "", "x"), "TOOL_CALL_IDS_INVALID")],
)
async def test_an_answer_to_another_call_is_refused(world: World, answer: Decision | Return, refusal: str) -> None:
    async with world.replica() as replica:
        replica.tools.actions = recorded([])
        await asking(world, replica)
        before = await stored(world)
        with pytest.raises(InvalidArgument, match="Invalid tool call IDs") as refused:
            await replica.send(world.answer(answer))
        assert (refused.value.reason, await stored(world)) == (refusal, before)
        assert (await head(world))["pending_message_id"] is not None


async def test_an_answer_to_nothing_is_refused(world: World) -> None:
    async with world.replica() as replica:
        await replica.send(world.request())
        with pytest.raises(InvalidArgument, match="No tool call is currently awaiting approval") as refused:
            await replica.send(world.answer(Decision("call_0", approve=True)))
        assert refused.value.reason == "NO_PENDING_APPROVAL"
        assert reason(await replica.send(world.request("Go on."))) is StopReason.END_TURN


# Other messages meanwhile ----------------------------------------------------------------------------------


async def test_a_message_is_refused_at_once_while_calls_wait(world: World) -> None:
    async with world.replica() as replica:
        replica.tools.actions = recorded([])
        await asking(world, replica)
        before, pending = await stored(world), (await head(world))["pending_message_id"]
        for background in (False, True):
            with pytest.raises(Aborted, match="waiting for approval") as refused:
                await replica.send(world.request("Hello?", background=background))
            assert refused.value.reason == "APPROVAL_PENDING"
            assert refused.value.metadata == {"pending_request_id": f"message-{UUID(int=pending.int - 1)}"}
        assert await stored(world) == before


async def test_a_message_that_finds_calls_waiting_at_the_head_of_the_line_ends_and_the_next_goes_on(
    world: World,
) -> None:
    asked, go = asyncio.Event(), asyncio.Event()

    async def slow(request: ModelRequest) -> AsyncGenerator[PartDelta | Reply]:
        asked.set()
        await go.wait()
        yield calls("delete")

    async with world.replica() as replica:
        replica.tools.actions = recorded([])
        replica.models.replies = [slow]
        sending = [asyncio.create_task(replica.send(world.request("Tidy up.")))]
        await asked.wait()
        for waiting, said in enumerate(("one", "two"), start=1):
            sending.append(asyncio.create_task(replica.send(world.request(said))))
            await world.until_waiting(waiting)
        go.set()
        first, *others = await asyncio.gather(*sending)
        for events in others:
            failure = end(events).failure
            assert failure is not None
            assert (failure.reason, end(events).run.status) == ("APPROVAL_PENDING", RunStatus.FAILED)
            assert failure.detail == f"message-{UUID(int=(await head(world))['pending_message_id'].int - 1)}"
        assert [message.role for message in await stored(world)] == ["user", "assistant"]
        replica.models.replies = [text("Gone.")]
        assert reason(await replica.send(world.answer(Decision("call_0", approve=True)))) is StopReason.END_TURN
        assert reason(await replica.send(world.request("three"))) is StopReason.END_TURN
    assert reason(first) is StopReason.REQUIRES_APPROVAL


async def test_an_answer_overtakes_messages_that_wait(world: World) -> None:
    """A message comes into line while a partial answer is carried out; the rest of the answer passes it."""
    asked, go = asyncio.Event(), asyncio.Event()

    async def slow(request: ModelRequest) -> AsyncGenerator[PartDelta | Reply]:
        asked.set()
        await go.wait()
        yield calls("delete")

    ran: list[str] = []
    async with world.replica() as replica:
        replica.tools.actions = recorded(ran)
        replica.models.replies = [slow, text("Gone."), text("Hello.")]
        first = asyncio.create_task(replica.send(world.request("Tidy up.")))
        await asked.wait()
        second = asyncio.create_task(replica.send(world.request("Hello?")))
        await world.until_waiting(1)
        third = asyncio.create_task(replica.send(world.answer(Decision(approve=True))))
        await world.until_waiting(2)
        go.set()
        results = await asyncio.gather(first, third, second)
    assert list(map(reason, results)) == [StopReason.REQUIRES_APPROVAL, StopReason.END_TURN, StopReason.END_TURN]
    assert [message.role for message in await stored(world)] == [
        *("user", "assistant", "approval", "tool", "assistant"),
        *("user", "assistant"),
    ]


async def test_a_fork_waits_for_an_answer_of_its_own(world: World, agent_url: str) -> None:
    ran: list[str] = []
    engine = make_engine(agent_url)
    conversations = PostgresConversations(world.pool, engine)

    def fork() -> NewConversation:
        return NewConversation(organization_id=ORGANIZATION, id=uuid7(), agent_id=world.agent_id, user_id=ORGANIZATION)

    waiting, answered = fork(), fork()
    async with world.replica() as replica:
        replica.tools.actions = recorded(ran)
        await asking(world, replica)
        await conversations.fork(waiting, world.agent_id, None, hidden=False)
        replica.models.replies = [text("Gone."), text("Kept."), text("Hello."), text("Hello.")]
        await replica.send(world.answer(Decision("call_0", approve=True)))
        await conversations.fork(answered, world.agent_id, None, hidden=False)
        with pytest.raises(Aborted, match="waiting for approval"):
            await replica.send(replace(world.request("Hello?"), conversation_id=waiting.id))
        denied = world.answer(Decision("call_0", reason="not here"))
        for request in (replace(denied, conversation_id=waiting.id), world.request(), world.request()):
            assert reason(await replica.send(request)) is StopReason.END_TURN
        assert reason(await replica.send(replace(world.request(), conversation_id=answered.id))) is StopReason.END_TURN
    await engine.dispose()
    assert len(ran) == 1


# Replicas that die -----------------------------------------------------------------------------------------


async def test_an_owner_that_dies_between_answer_and_tools_is_followed_by_another(world: World) -> None:
    started = asyncio.Event()
    receipts: dict[str, str] = {}

    async def hang(call: Call) -> str:
        receipts[call.key] = "done by the first"
        started.set()
        await asyncio.Event().wait()
        return "never"

    async def attach(call: Call) -> str:
        return receipts.setdefault(call.key, "done by the second")

    async with world.replica() as survivor, world.replica() as victim:
        victim.tools.actions, survivor.tools.actions = {"delete": hang}, {"delete": attach}
        asked = await asking(world, victim)
        survivor.models.replies = [text("Gone.")]
        answer = world.answer(Decision("call_0", approve=True))
        await victim.worker.accept(answer, stream=False)
        await started.wait()
        await victim.die()
        events = await follow(survivor, answer.run_id)
    assert (reason(events), end(events).run.fence) == (StopReason.END_TURN, 2)
    assert receipts == {f"{asked}/1/0": "done by the first"}
    assert [part.text for part in await returns(world)] == ["done by the first"]


async def test_an_answer_whose_run_is_cancelled_is_not_carried_out_later(world: World) -> None:
    started = asyncio.Event()
    ran: list[str] = []

    async def hang(call: Call) -> str:
        ran.append(call.key)
        started.set()
        await asyncio.Event().wait()
        return "never"

    async with world.replica() as replica:
        replica.tools.actions = {"delete": hang}
        await asking(world, replica)
        answer = world.answer(Decision("call_0", approve=True))
        sending = asyncio.create_task(replica.send(answer))
        await started.wait()
        await replica.worker.cancel(ORGANIZATION, [(answer.run_id, world.agent_id)])
        assert reason(await sending) is StopReason.CANCELLED
        for background in (False, True):
            events = await replica.send(world.request("What now?", background=background))
            assert reason(events) is StopReason.END_TURN
        # The client may not know what became of its answer.
        again = await replica.send(world.answer(Decision("call_0", approve=True)))
        assert (reason(again), end(again).run.id == answer.run_id) == (StopReason.END_TURN, False)
    assert len(ran) == 1


# Cancel while calls wait -----------------------------------------------------------------------------------


async def test_cancelling_a_run_whose_calls_wait_denies_them_all_once(world: World) -> None:
    ran: list[str] = []
    async with world.replica() as replica, world.replica() as other:
        replica.tools.actions = recorded(ran)
        asked = await asking(world, replica, "look", "delete", "delete")
        await replica.send(world.answer(Decision("call_1", reason="never", by_rule=True)))
        assert await replica.worker.waiting_runs(ORGANIZATION, world.agent_id, None) == [(asked, world.agent_id)]
        runs = [(asked, world.agent_id)]
        reached = await asyncio.gather(*(each.worker.cancel(ORGANIZATION, runs) for each in (replica, other)))
        assert sorted(reached) == [[], [asked]]
        (message,) = await stored(world, "tool")
        assert (message.run_id, message.step_id) == (asked, step_id(asked, 1))
        assert all(part.is_error for part in await returns(world))
        assert "never" in (await returns(world))[1].text
        row = await head(world)
        assert (row["pending_message_id"], row["approval_due"]) == (None, None)
        statuses = await world.pool.fetch("SELECT status FROM agent.runs WHERE agent_id = $1", world.agent_id)
        assert [status["status"] for status in statuses] == ["cancelled", "cancelled"]
        # Its readers are told the same.
        assert end(await follow(other, asked)).run.status is RunStatus.CANCELLED
        replica.models.replies = [text("As you like.")]
        assert reason(await replica.send(world.request("Leave it."))) is StopReason.END_TURN
        assert await replica.worker.waiting_runs(ORGANIZATION, world.agent_id, None) == []
    assert ran == []


async def test_a_run_that_asks_just_when_it_is_cancelled_does_not_wait(world: World) -> None:
    request = world.request("Tidy up.")

    async def late(asked: ModelRequest) -> AsyncGenerator[PartDelta | Reply]:
        await world.pool.execute("UPDATE agent.runs SET cancel_requested = true WHERE id = $1", request.run_id)
        yield calls("delete")

    async with world.replica() as replica:
        replica.tools.actions = recorded([])
        replica.models.replies = [late, text("Hello.")]
        told = end(await replica.send(request)).run
        assert [part.refused for part in await returns(world)] == [True]
        stored_run = end(await follow(replica, request.run_id)).run
        assert (told.status, told.stop_reason) == (RunStatus.CANCELLED, StopReason.CANCELLED)
        assert (stored_run.status, stored_run.stop_reason) == (told.status, told.stop_reason)
        assert reason(await replica.send(world.request("Well?"))) is StopReason.END_TURN


async def test_a_cancel_is_not_lost_with_the_owner_of_a_run_that_asks(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = world.request("Tidy up.")

    async def late(asked: ModelRequest) -> AsyncGenerator[PartDelta | Reply]:
        await world.pool.execute("UPDATE agent.runs SET cancel_requested = true WHERE id = $1", request.run_id)
        yield calls("delete")

    async def lost(*given: Any) -> Any:
        monkeypatch.undo()
        raise ConnectionResetError("the owner is lost just now")

    monkeypatch.setattr(journal, "decline", lost)
    async with world.replica() as replica:
        replica.tools.actions = recorded([])
        replica.models.replies = [late, text("Hello.")]
        assert reason(await replica.send(request)) is StopReason.CANCELLED
        assert (await head(world))["pending_message_id"] is None
        assert reason(await replica.send(world.request("Well?"))) is StopReason.END_TURN


async def test_of_a_cancel_and_an_answer_one_wins(world: World) -> None:
    ran: list[str] = []
    async with world.replica() as replica, world.replica() as other:
        replica.tools.actions = recorded(ran)
        for _ in range(8):
            asked = await asking(world, replica)
            sending = asyncio.create_task(replica.send(world.answer(Decision("call_0", approve=True))))
            reached = await other.worker.cancel(ORGANIZATION, [(asked, world.agent_id)])
            ended = end(await sending).run
            # An answer that comes too late lets the conversation go on without it.
            assert (ended.id, ended.status) != (asked, RunStatus.CANCELLED)
            assert (f"{asked}/1/0" in ran) is (reached == [])
            assert reason(await replica.send(world.request("Go on."))) is StopReason.END_TURN


# Time-outs -------------------------------------------------------------------------------------------------


def limited(seconds: float, answer: str = "deny", tool: str = "delete") -> dict[str, Any]:
    """A rule with a default answer."""
    return {"type": "requires_approval", "tool_name": tool, "timeout_seconds": seconds, "on_timeout": answer}


async def waited(world: World, seconds: float) -> None:
    """The agent's calls have waited for so much longer."""
    span = timedelta(seconds=seconds)
    said = "UPDATE agent.messages SET created_at = created_at - $2::interval WHERE agent_id = $1"
    due = "UPDATE agent.conversation_heads SET approval_due = approval_due - $2::interval WHERE conversation_id = $1"
    async with world.pool.acquire() as connection, connection.transaction():
        for statement in (said, due):
            await connection.execute(statement, world.agent_id, span)


async def after_time_out(replica: Replica, asked: UUID) -> Ended:
    """The end of the run that answers for the client after another."""
    run_id = uuid5(asked, "timeout")
    await answered(lambda: replica.journal._pool.fetchval("SELECT 1 FROM agent.runs WHERE id = $1", run_id))
    return end(await follow(replica, run_id))


@pytest.mark.parametrize("answer", ["deny", "approve"])
async def test_a_rule_answers_when_nobody_does(world: World, answer: str) -> None:
    ran: list[str] = []
    await world.add_agent(tool_rules=[limited(60, answer)])
    async with world.replica() as replica, world.replica() as other:
        for each in (replica, other):
            each.tools.actions = recorded(ran)
            each.models.replies = [text("Nobody was there.")]
        replica.models.replies.insert(0, calls("look", "delete"))
        asked = end(await replica.send(world.request("Tidy up.", client_tools=[SHOW]))).run.id
        assert (await head(world))["approval_due"] is not None
        await waited(world, 61)
        ended = await after_time_out(other, asked)
        asked_of = [request for each in (replica, other) for request in each.models.requests][-1]
    assert (ended.run.stop_reason, ended.run.background) == (StopReason.END_TURN, True)
    assert [tool.name for tool in asked_of.tools] == ["delete", "look", "show"]
    assert ran == [f"{asked}/1/{index}" for index in range(2 if answer == "approve" else 1)]
    (said,) = await stored(world, "approval")
    (decision,) = said.parts
    assert isinstance(decision, Decision)
    assert (decision.approve, "Nobody answered within 60 s" in decision.reason) == (answer == "approve", True)
    assert await world.pool.fetchval("SELECT count(*) FROM agent.runs WHERE agent_id = $1", world.agent_id) == 2
    assert (await head(world))["approval_due"] is None


async def test_calls_without_a_time_out_wait_on_and_those_with_a_longer_one_for_theirs(world: World) -> None:
    ran: list[str] = []
    rules = [limited(60), limited(600, "approve", "look"), {"type": "requires_approval", "tool_name": "burn"}]
    await world.add_agent(tool_rules=rules)
    async with world.replica() as replica:
        replica.tools.actions = recorded(ran, ("delete", "look", "burn"))
        asked = await asking(world, replica, "delete", "look", "burn")
        await waited(world, 61)
        ended = await after_time_out(replica, asked)
        assert ended.run.stop_reason is StopReason.REQUIRES_APPROVAL
        await waited(world, 540)
        second = await after_time_out(replica, ended.run.id)
        assert second.run.stop_reason is StopReason.REQUIRES_APPROVAL
        row = await head(world)
        assert (row["approval_due"], row["pending_message_id"] is not None) == (None, True)
        replica.models.replies = [text("So be it.")]
        assert reason(await replica.send(world.answer(Decision("call_2", approve=True)))) is StopReason.END_TURN
    assert ran == [f"{asked}/1/1", f"{asked}/1/2"]


async def test_of_a_default_answer_and_the_users_the_first_counts(world: World) -> None:
    ran: list[str] = []
    await world.add_agent(tool_rules=[limited(60)])
    async with world.replica() as replica:
        replica.tools.actions = recorded(ran)
        for round_ in range(6):
            asked = await asking(world, replica)
            await world.pool.execute(
                "UPDATE agent.messages SET created_at = created_at - interval '1 hour' WHERE run_id = $1", asked
            )
            overdue = "UPDATE agent.conversation_heads SET approval_due = now() WHERE conversation_id = $1"
            await world.pool.execute(overdue, world.agent_id)
            sweeps = [answer_overdue(world.pool, replica.journal.worker_id) for _ in range(3)]
            sending = replica.send(world.answer(Decision("call_0", approve=True)))
            answering: list[Awaitable[Any]] = [*sweeps, sending] if round_ % 2 else [sending, *sweeps]
            results = await asyncio.gather(*answering)
            *begun, events = results if round_ % 2 else (*results[1:], results[0])
            by_rule = end(events).run.id == uuid5(asked, "timeout")
            assert (f"{asked}/1/0" in ran) is not by_rule
            query = "SELECT count(*) FROM agent.messages WHERE agent_id = $1 AND role = 'approval'"
            assert await world.pool.fetchval(query, world.agent_id) == round_ + 1
            assert sum(map(len, begun)) <= int(by_rule)


async def test_a_default_answer_survives_the_replica_that_began_it(world: World) -> None:
    await world.add_agent(tool_rules=[limited(60)])
    async with world.replica() as first:
        first.tools.actions = recorded([])
        asked = await asking(world, first)
    await waited(world, 61)
    # Its replica is gone; one that never beats begins the run and is lost with it.
    ((_, (run_id, home)),) = await answer_overdue(world.pool, uuid7())
    assert (run_id, home) == (uuid5(asked, "timeout"), None)
    async with world.replica() as heir:
        heir.tools.actions = recorded([])
        assert reason(await follow(heir, run_id)) is StopReason.END_TURN
    assert len(await returns(world)) == 1


@pytest.mark.parametrize("background", [False, True])
async def test_what_waits_goes_on_waiting_while_the_window_is_compacted(world: World, background: bool) -> None:
    ran: list[str] = []
    await world.add_agent(tool_rules=[limited(60)])
    async with world.replica() as replica:
        replica.tools.actions = recorded(ran)
        for _ in range(4):
            await replica.send(world.request("word " * 300))
        asked = await asking(world, replica)
        before = await head(world)
        compaction = replace(
            world.request(background=background), messages=(), options=Options(compact={"mode": "all"})
        )
        assert reason(await replica.send(compaction)) is StopReason.END_TURN
        after = await head(world)
        assert after["summary_id"] is not None
        for column in ("pending_message_id", "approval_due"):
            assert after[column] == before[column] is not None
        with pytest.raises(Aborted, match="waiting for approval"):
            await replica.send(world.request("Well?"))
        assert await replica.worker.waiting_runs(ORGANIZATION, world.agent_id, None) == [(asked, world.agent_id)]
        assert reason(await replica.send(world.answer(Decision("call_0", approve=True)))) is StopReason.END_TURN
    assert ran == [f"{asked}/1/0"]


@pytest.mark.parametrize(
    "newer",
    [
        "UPDATE agent.facts SET body = jsonb_set(body, '{settings,of_tomorrow}', '1') WHERE run_id = $1 AND number = 1",
        "UPDATE agent.facts SET schema_version = 99 WHERE run_id = $1 AND number = 1",
        "UPDATE agent.messages SET content = '[{\"type\": \"hologram\"}]' WHERE run_id = $1 AND role = 'assistant'",
    ],
)
async def test_what_a_newer_release_wrote_holds_up_nobody(world: World, newer: str) -> None:
    rule = [limited(60)]
    await world.add_agent(tool_rules=rule)
    async with world.replica() as first:
        first.tools.actions = recorded([])
        of_tomorrow = await asking(world, first)
        await world.pool.execute(newer, of_tomorrow)
    await waited(world, 61)
    unreadable = world.agent_id
    await world.add_agent(tool_rules=rule)
    async with world.replica() as replica:
        replica.tools.actions = recorded([])
        asked = await asking(world, replica)
        await waited(world, 61)
        assert (await after_time_out(replica, asked)).run.stop_reason is StopReason.END_TURN
        await world.add_agent()
        in_background = world.request("Hello", background=True)
        assert reason(await replica.send(in_background)) is StopReason.END_TURN
    due = "SELECT approval_due > now() FROM agent.conversation_heads WHERE conversation_id = $1"
    assert await world.pool.fetchval(due, unreadable)
    count = "SELECT count(*) FROM agent.runs WHERE agent_id = $1"
    assert await world.pool.fetchval(count, unreadable) == 1


async def test_a_default_answer_whose_run_was_given_up_is_given_again(world: World) -> None:
    await world.add_agent(tool_rules=[limited(60)])
    async with world.replica() as first:
        first.tools.actions = recorded([])
        asked = await asking(world, first)
    await waited(world, 61)
    leases = PostgresLeases(world.pool, uuid7())
    ((_, (run_id, _)),) = await leases.answer_overdue()
    (row,) = await leases.claim(1, ORGANIZATION) or []
    assert row["id"] == run_id
    await leases.give_up(row, Failure(StopReason.ERROR, "internal_error", "It could not be driven."))
    overdue = "UPDATE agent.conversation_heads SET approval_due = now() WHERE conversation_id = $1"
    await world.pool.execute(overdue, world.agent_id)
    ((_, (again, _)),) = await leases.answer_overdue()
    assert again not in (asked, run_id)
    async with world.replica() as heir:
        heir.tools.actions = recorded([])
        assert reason(await follow(heir, again)) is StopReason.END_TURN
    assert len(await returns(world)) == 1


async def test_what_waits_in_a_deleted_conversation_is_left_alone(world: World) -> None:
    await world.add_agent(tool_rules=[limited(60)])
    async with world.replica() as first:
        first.tools.actions = recorded([])
        await asking(world, first)
        await world.pool.execute("UPDATE agent.agents SET deleted_at = now() WHERE id = $1", world.agent_id)
        await waited(world, 61)
        over = "SELECT approval_due IS NULL FROM agent.conversation_heads WHERE conversation_id = $1"
        await answered(lambda: world.pool.fetchval(over, world.agent_id))
        assert await world.pool.fetchval("SELECT count(*) FROM agent.runs WHERE agent_id = $1", world.agent_id) == 1


async def test_looking_for_what_is_due_costs_nothing_however_many_conversations_there_are(world: World) -> None:
    conversations, heads = (f"INSERT INTO agent.{table} " for table in ("conversations", "conversation_heads"))
    async with world.pool.acquire() as connection:
        transaction = connection.transaction()
        await transaction.start()
        await connection.execute(
            f"{conversations} (organization_id, id, agent_id, created_by_id)"
            " SELECT $1, gen_random_uuid(), $2, $1 FROM generate_series(1, 20000)",
            ORGANIZATION,
            world.agent_id,
        )
        await connection.execute(
            f"{heads} (organization_id, conversation_id, log_id, approval_due)"
            " SELECT $1, id, gen_random_uuid(),"
            " CASE WHEN row_number() OVER () % 2 = 0 THEN now() + interval '1 hour' END"
            " FROM agent.conversations WHERE agent_id = $2 AND id <> agent_id",
            ORGANIZATION,
            world.agent_id,
        )
        await connection.execute("ANALYZE agent.conversation_heads")
        plans = [
            "\n".join(row[0] for row in await connection.fetch(f"EXPLAIN {statement}", *given))
            for statement, given in ((TICK, (uuid7(),)), (OVERDUE, ()))
        ]
        await transaction.rollback()
    assert all("heads_by_approval" in plan for plan in plans)
    assert not any("Seq Scan on conversation_heads" in plan for plan in plans)
    assert all("Index Cond: (approval_due <= now())" in plan for plan in plans)
