"""Whoever hangs (model, summariser, tool, memory), a cancel from any replica ends the run, and so does its time limit;
the next message works."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

import pytest

from services.agent.calls import model_calls
from services.agent.core.facts import Options, RunStatus, StopReason
from services.agent.core.messages import Call, Decision
from services.agent.core.ports import MemoryView, ModelRequest, PartDelta, PeerLost, Reply
from services.agent.core.ports_journal import TurnRequest
from services.common.errors import OutOfRange, Unavailable
from tests.integration.agent.world import (
    ORGANIZATION,
    SECONDS,
    Replica,
    ScriptedMemory,
    World,
    answered,
    calls,
    end,
    text,
    world_on,
)
from tests.polling import until


@pytest.fixture
async def world(agent_url: str) -> AsyncIterator[World]:
    """One agent that asks before it deletes."""
    async with world_on(agent_url) as made:
        await made.add_agent(tool_rules=[{"type": "requires_approval", "tool_name": "delete"}])
        yield made


@dataclass
class Hung:
    """Something that began and never ends, unless it is stopped."""

    began: asyncio.Event = field(default_factory=asyncio.Event)
    stopped: asyncio.Event = field(default_factory=asyncio.Event)

    async def forever(self) -> None:
        """Hangs."""
        self.began.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.stopped.set()

    async def model(self, request: ModelRequest) -> AsyncGenerator[PartDelta | Reply]:
        """A model that begins to speak and hangs."""
        yield PartDelta(0, "content", "I was about to")
        await self.forever()

    async def tool(self, call: Call) -> str:
        """A tool that hangs."""
        await self.forever()
        return "never"


Arrange = Callable[[World, Replica, Hung, pytest.MonkeyPatch], Awaitable[TurnRequest]]


async def model(world: World, replica: Replica, hung: Hung, monkeypatch: pytest.MonkeyPatch) -> TurnRequest:
    replica.models.replies = [hung.model]
    return world.request()


async def model_after_tools(world: World, replica: Replica, hung: Hung, monkeypatch: pytest.MonkeyPatch) -> TurnRequest:
    replica.tools.actions = {"work": lambda call: asyncio.sleep(0, "done")}
    replica.models.replies = [calls("work"), hung.model]
    return world.request()


async def tool(world: World, replica: Replica, hung: Hung, monkeypatch: pytest.MonkeyPatch) -> TurnRequest:
    replica.tools.actions = {"work": hung.tool}
    replica.models.replies = [calls("work", "work")]
    return world.request()


async def parallel_tools(world: World, replica: Replica, hung: Hung, monkeypatch: pytest.MonkeyPatch) -> TurnRequest:
    replica.tools.parallel = frozenset({"work"})
    return await tool(world, replica, hung, monkeypatch)


async def approved_tool(world: World, replica: Replica, hung: Hung, monkeypatch: pytest.MonkeyPatch) -> TurnRequest:
    replica.tools.actions = {"delete": hung.tool}
    replica.models.replies = [calls("delete")]
    await replica.send(world.request())
    return world.answer(Decision("call_0", approve=True))


async def tool_in_background(
    world: World, replica: Replica, hung: Hung, monkeypatch: pytest.MonkeyPatch
) -> TurnRequest:
    return replace(await tool(world, replica, hung, monkeypatch), background=True)


async def summariser(world: World, replica: Replica, hung: Hung, monkeypatch: pytest.MonkeyPatch) -> TurnRequest:
    for number in range(14):
        await replica.send(world.request(f"message {number} " + "word " * 1_200))
    replica.models.summaries = [hung.model]
    limits = {"limit": "16000", "requested": "20000"}
    replica.models.replies = [OutOfRange("too long", reason="LLM_CONTEXT_OVERFLOW", metadata=limits)]
    return world.request()


async def summariser_that_was_asked_for(
    world: World, replica: Replica, hung: Hung, monkeypatch: pytest.MonkeyPatch
) -> TurnRequest:
    request = await summariser(world, replica, hung, monkeypatch)
    replica.models.replies = []
    return replace(request, messages=(), options=Options(compact={}))


async def memory(world: World, replica: Replica, hung: Hung, monkeypatch: pytest.MonkeyPatch) -> TurnRequest:
    view = ScriptedMemory.view

    async def hang(self: ScriptedMemory, agent_id: UUID, conversation_id: UUID) -> MemoryView:
        if hung.stopped.is_set():
            return await view(self, agent_id, conversation_id)
        await hung.forever()
        raise AssertionError

    monkeypatch.setattr(ScriptedMemory, "view", hang)
    return world.request()


async def catalogue(world: World, replica: Replica, hung: Hung, monkeypatch: pytest.MonkeyPatch) -> TurnRequest:
    describe = replica.tools.describe

    async def hang(tool_ids: Any) -> Any:
        if not hung.stopped.is_set():
            await hung.forever()
        return await describe(tool_ids)

    monkeypatch.setattr(replica.tools, "describe", hang)
    return world.request()


async def lost_gateway(world: World, replica: Replica, hung: Hung, monkeypatch: pytest.MonkeyPatch) -> TurnRequest:
    """Its calls are made again and again, with growing pauses."""
    monkeypatch.setattr(model_calls, "_FIRST_PAUSE", 600.0)

    async def lost(request: ModelRequest) -> AsyncGenerator[PartDelta | Reply]:
        hung.began.set()
        hung.stopped.set()
        if hung.began.is_set():
            raise PeerLost("gone")
        yield text("never")

    replica.models.replies = [lost] * 8
    return world.request()


ARRANGEMENTS: list[Arrange] = [
    model,
    model_after_tools,
    tool,
    parallel_tools,
    approved_tool,
    tool_in_background,
    summariser,
    summariser_that_was_asked_for,
    memory,
    catalogue,
    lost_gateway,
]


@pytest.mark.usefixtures("by_notice_alone")
@pytest.mark.parametrize("by_another", [False, True])
@pytest.mark.parametrize("arrange", ARRANGEMENTS, ids=lambda arrange: arrange.__name__)
async def test_a_cancel_ends_it(
    world: World, arrange: Arrange, by_another: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    hung = Hung()
    async with world.replica(capacity=0) as other, world.replica() as replica:
        request = await arrange(world, replica, hung, monkeypatch)
        sending = asyncio.create_task(replica.send(request, stream=True))
        await asyncio.wait_for(hung.began.wait(), SECONDS)
        # What a run is shown is asked for even before it is stored.
        await answered(lambda: world.pool.fetchval("SELECT 1 FROM agent.runs WHERE id = $1", request.run_id))
        where = other if by_another else replica
        assert await where.worker.cancel(ORGANIZATION, [(request.run_id, world.agent_id)]) == [request.run_id]
        events = await sending
        assert hung.stopped.is_set()
        assert end(events).run.status is RunStatus.CANCELLED
        await the_next_message_works(world, replica)


@pytest.mark.parametrize("arrange", ARRANGEMENTS, ids=lambda arrange: arrange.__name__)
async def test_its_time_limit_ends_it(world: World, arrange: Arrange, monkeypatch: pytest.MonkeyPatch) -> None:
    hung = Hung()
    async with world.replica() as replica:
        request = replace(await arrange(world, replica, hung, monkeypatch), seconds=3_600.0)
        time_limits = held_time_limits(replica, monkeypatch)
        sending = asyncio.create_task(replica.send(request))
        await asyncio.wait_for(hung.began.wait(), SECONDS)
        # What it is shown is asked for even before it is driven.
        seconds, come = await until(lambda: time_limits.get(request.run_id), SECONDS)
        assert 3_000 < seconds <= 3_600
        come()
        events = await sending
        assert hung.stopped.is_set()
        last = end(events)
        assert (last.run.status, last.run.stop_reason) == (RunStatus.FAILED, StopReason.ERROR)
        assert last.failure is not None
        assert last.failure.reason == "RUN_DEADLINE"
        await the_next_message_works(world, replica)


def held_time_limits(
    replica: Replica, monkeypatch: pytest.MonkeyPatch
) -> dict[UUID, tuple[float, Callable[[], object]]]:
    """The seconds of each run that begins, and what happens when they are over; the test says when."""
    loop = asyncio.get_running_loop()
    held: dict[UUID, tuple[float, Callable[[], object]]] = {}
    call_later = loop.call_later

    def hold(delay: float, callback: Callable[..., object], *arguments: Any, **options: Any) -> asyncio.TimerHandle:
        if callback == replica.worker.interrupt:
            held[arguments[0]] = (delay, lambda: callback(*arguments))
        return call_later(delay, callback, *arguments, **options)

    monkeypatch.setattr(loop, "call_later", hold)
    return held


@pytest.mark.parametrize("then", ["the tool runner hangs", "the tool runner is away"])
async def test_a_cancel_does_not_wait_for_the_tool_runner(
    world: World, then: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    hung = Hung()

    async def cancel(call_key: str) -> None:
        if then == "the tool runner hangs":
            await asyncio.Event().wait()
        raise Unavailable("it is away")

    async with world.replica() as replica:
        request = await tool(world, replica, hung, monkeypatch)
        monkeypatch.setattr(replica.tools, "cancel", cancel)
        sending = asyncio.create_task(replica.send(request))
        await hung.began.wait()
        await replica.worker.cancel(ORGANIZATION, [(request.run_id, world.agent_id)])
        assert end(await sending).run.status is RunStatus.CANCELLED
        await the_next_message_works(world, replica)


async def the_next_message_works(world: World, replica: Replica) -> None:
    """And nothing is left of the run before."""
    replica.models.replies = [text("Here I am.")]
    events = await replica.send(world.request("And now?"))
    assert (end(events).run.status, end(events).failure) == (RunStatus.COMPLETED, None)
    pending = "SELECT count(*) FROM agent.steps WHERE agent_id = $1 AND status = 'pending'"
    assert await world.pool.fetchval(pending, world.agent_id) == 0
