"""The replica that owns a run dies right before or right after any of its checkpoints; the other one finishes.

A checkpoint is what a replica asks of the database for its runs. Each scenario is played once to count them, then once
for each of them and each side of it. Clients do what the gateway does: they send again, with the same run id, to the
replica that is left, and read on where they were.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from itertools import groupby, pairwise, product
from typing import Any
from uuid import UUID

import pytest
from _pytest.mark import ParameterSet

from services.agent.core.events import Ended, Event, MessagePiece
from services.agent.core.facts import Options, Usage
from services.agent.core.messages import Call, Decision, Message, Return, Text, calls_of
from services.agent.core.ports import ModelRequest, PartDelta, Reply
from services.agent.core.ports_journal import TurnRequest
from services.agent.core.turn import step_id
from services.agent.core.window.sizes import estimate
from services.agent.driving.lease_keeper import CAPACITY
from services.agent.postgres.rows import message_from_row
from services.common.errors import OutOfRange
from services.common.ids import uuid7
from tests.integration.agent.world import ORGANIZATION, SECONDS, Replica, World, calls, end, text, world_on

WINDOW = 32_000
FULL = Usage(int(WINDOW * 0.95), 5)


@pytest.fixture
async def world(agent_url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[World]:
    """A world whose replicas look around ten times as often."""
    monkeypatch.setattr("services.agent.driving.lease_keeper.BEAT_SECONDS", 0.05)
    monkeypatch.setattr("services.agent.streams.reading.POLL_SECONDS", 0.05)
    async with world_on(agent_url) as made:
        yield made


class Checkpoints:
    """Counts what a replica asks of the database for its runs, and kills it at number `fatal` (0: never)."""

    def __init__(self, fatal: int = 0, *, after: bool = False) -> None:
        self._fatal = fatal
        self._after = after
        self.passed: list[str] = []
        self.dead = asyncio.Event()

    def guard(self, monkeypatch: pytest.MonkeyPatch, replica: Replica) -> None:
        """Makes the replica mortal."""
        for name in ("accept", "commit"):
            self._guard(monkeypatch, replica.journal, name)
        self._guard(monkeypatch, replica.journal._committer, "_next")
        # Not what it claims: how often it looks for that is up to the clock.
        self._guard(monkeypatch, replica.lease_keeper._leases, "load")

    def _guard(self, monkeypatch: pytest.MonkeyPatch, owner: object, name: str) -> None:
        act = getattr(owner, name)

        async def guarded(*arguments: Any) -> Any:
            self.passed.append(name)
            fatal = len(self.passed) == self._fatal
            if self.dead.is_set() or (fatal and not self._after):
                await self._die()
            result = await act(*arguments)
            if self.dead.is_set() or fatal:
                await self._die()
            return result

        monkeypatch.setattr(owner, name, guarded)

    async def _die(self) -> None:
        self.dead.set()
        await asyncio.Event().wait()


class Client:
    """Sends to the victim while it lives, else to the heir."""

    def __init__(self, world: World, victim: Replica, heir: Replica, checkpoints: Checkpoints) -> None:
        self.world = world
        self._replicas = [victim, heir]
        self._checkpoints = checkpoints
        self._killed = asyncio.Event()
        self._line_was_there = False
        # What the reader of each run saw, through both owners.
        self.seen: dict[UUID, list[Event]] = {}

    async def send(self, request: TurnRequest) -> list[Event]:
        """Takes a turn to its end, whoever drives it."""
        events = self.seen.setdefault(request.run_id, [])
        if not self._checkpoints.dead.is_set():
            reading = asyncio.create_task(self._read(self._replicas[0], request, events))
            dying = asyncio.create_task(self._checkpoints.dead.wait())
            await asyncio.wait((reading, dying), return_when=asyncio.FIRST_COMPLETED)
            dying.cancel()
            if not self._checkpoints.dead.is_set():
                await reading
                return events
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)
        await self._killed.wait()
        if not (events and isinstance(events[-1], Ended)):
            await self._read(self._replicas[1], request, events)
        return events

    async def _read(self, replica: Replica, request: TurnRequest, events: list[Event]) -> None:
        accepted, subscription = await replica.worker.accept(request, stream=True)
        assert accepted.run_id == request.run_id
        after = events[-1].sequence if events else 0
        follow = replica.reader.follow(ORGANIZATION, accepted.run_id, after=after, subscription=subscription)
        async with aclosing(follow) as more:
            async for event in more:
                events.append(event)

    async def entered(self, run_id: UUID) -> None:
        """Returns when a request is in the database, or its replica dead."""
        query = "SELECT EXISTS (SELECT FROM agent.runs WHERE id = $1)"
        while not self._checkpoints.dead.is_set() and not await self.world.pool.fetchval(query, run_id):
            await asyncio.sleep(0.005)

    def after_line(self, brain: "Brain", length: int) -> "Brain":
        """A model that says nothing before so many others are in line, unless the victim is dead."""
        query = "SELECT count(*) FROM agent.conversation_line WHERE conversation_id = $1"

        async def think(request: ModelRequest) -> AsyncGenerator[PartDelta | Reply]:
            while not (self._line_was_there or self._checkpoints.dead.is_set()):
                self._line_was_there = await self.world.pool.fetchval(query, self.world.agent_id) >= length
                await asyncio.sleep(0.005)
            async with aclosing(brain(request)) as events:
                async for event in events:
                    yield event

        return think

    async def kill(self) -> None:
        """Kills the victim when its time has come, and lets the heir take over."""
        await bury(self.world, self._replicas[0], self._checkpoints)
        self._replicas[1].lease_keeper._capacity = CAPACITY
        self._killed.set()


async def bury(world: World, replica: Replica, checkpoints: Checkpoints) -> None:
    """Kills a replica when its time has come; its lease is over at once."""
    await checkpoints.dead.wait()
    await replica.die()


Brain = Callable[[ModelRequest], AsyncGenerator[PartDelta | Reply]]


@dataclass(frozen=True)
class Scenario:
    """What clients do and the model answers; how many checkpoints that has, and what the log says in the end."""

    play: Callable[[Client], Awaitable[None]]
    brain: Brain
    points: int
    log: str
    tools: tuple[str, ...] = ()
    parallel: tuple[str, ...] = ()
    # Keys of calls, without their run.
    acted: tuple[str, ...] = ()
    agent: dict[str, Any] = field(default_factory=dict)
    # Long messages that are there before.
    before: int = 0
    # Requests that come into line before the model answers the first.
    line: int = 0


def by_step(*replies: Reply) -> Brain:
    """The n-th reply for the n-th step of the newest run, however often it is asked for."""

    async def think(request: ModelRequest) -> AsyncGenerator[PartDelta | Reply]:
        run_id = request.history[-1].run_id
        assert run_id is not None
        steps = [step_id(run_id, number) for number in range(1, len(replies) + 1)]
        yield PartDelta(0, "content", "Well")
        yield replies[steps.index(request.step_id)]

    return think


async def delete_when_asked(request: ModelRequest) -> AsyncGenerator[PartDelta | Reply]:
    """Calls for every question, and is content with every return."""
    yield calls("look", "delete") if request.history[-1].role == "user" else text("Tidy.")


async def short_of_memory(request: ModelRequest) -> AsyncGenerator[PartDelta | Reply]:
    """A model whose window is half of what it should be."""
    if sum(map(estimate, request.history)) > WINDOW * 0.5:
        raise OutOfRange("too long", reason="LLM_CONTEXT_OVERFLOW", metadata={"limit": "16000", "requested": "20000"})
    yield text("Now it fits.")


async def echo(request: ModelRequest) -> AsyncGenerator[PartDelta | Reply]:
    """Says what it hears."""
    [part] = request.history[-1].parts
    assert isinstance(part, Text)
    yield text(f"re {part.text}")


async def one_turn(client: Client) -> None:
    await client.send(client.world.request("Go."))


async def ask_and_answer(client: Client) -> None:
    await client.send(client.world.request("Tidy up."))
    await client.send(client.world.answer(Decision("call_1", approve=True)))


async def three_in_line(client: Client) -> None:
    sending = []
    for said in ("1", "2", "3"):
        request = client.world.request(said)
        sending.append(asyncio.create_task(client.send(request)))
        await client.entered(request.run_id)
    await asyncio.gather(*sending)


async def in_background(client: Client) -> None:
    await client.send(client.world.request("Go.", background=True))


async def compact(client: Client) -> None:
    ids = client.world.agent_id
    await client.send(TurnRequest(ORGANIZATION, ORGANIZATION, ids, ids, uuid7(), (), 60.0, Options(compact={})))


HEARTBEAT = '{"request_heartbeat": true}'
ASKS = {"type": "requires_approval", "tool_name": "delete"}
REQUIRED = {"type": "required_before_exit", "tool_name": "work"}
SCENARIOS = {
    "three steps": Scenario(
        one_turn,
        by_step(calls("work"), calls("work"), text("Done.")),
        points=6,
        log="user assistant tool assistant tool assistant",
        tools=("work",),
        acted=("1/0", "2/0"),
    ),
    "parallel tools": Scenario(
        one_turn,
        by_step(calls("work", "work", "work"), text("Done.")),
        points=4,
        log="user assistant tool assistant",
        tools=("work",),
        parallel=("work",),
        acted=("1/0", "1/1", "1/2"),
    ),
    "approval": Scenario(
        ask_and_answer,
        delete_when_asked,
        points=5,
        log="user assistant approval tool assistant",
        tools=("look", "delete"),
        acted=("1/0", "1/1"),
        agent={"tool_rules": [ASKS]},
    ),
    "compaction": Scenario(
        one_turn,
        by_step(Reply(calls("work").parts, FULL, "tool_calls"), text("Done.")),
        points=5,
        log="user assistant tool summary assistant",
        tools=("work",),
        acted=("1/0",),
        before=10,
    ),
    "overflow": Scenario(one_turn, short_of_memory, points=4, log="user summary assistant", before=14),
    "asked for compaction": Scenario(compact, echo, points=2, log="summary", before=10),
    "required before exit": Scenario(
        one_turn,
        by_step(text("Bye."), calls("work"), text("Bye now.")),
        points=5,
        log="user assistant user assistant tool assistant",
        tools=("work",),
        acted=("2/0",),
        agent={"tool_rules": [REQUIRED]},
    ),
    "heartbeats": Scenario(
        one_turn,
        by_step(calls("work", arguments=HEARTBEAT), calls("work")),
        points=5,
        log="user assistant tool user assistant tool",
        tools=("work",),
        acted=("1/0", "2/0"),
        agent={"agent_type": "memgpt_agent"},
    ),
    "a line": Scenario(three_in_line, echo, points=10, log="user assistant user assistant user assistant", line=2),
    "in the background": Scenario(
        in_background,
        by_step(calls("work"), text("Done.")),
        points=5,
        log="user assistant tool assistant",
        tools=("work",),
        acted=("1/0",),
    ),
}


@asynccontextmanager
async def stage(
    world: World, scenario: Scenario, checkpoints: Checkpoints, monkeypatch: pytest.MonkeyPatch
) -> AsyncGenerator[tuple[Client, Replica, list[str]]]:
    """The scenario's agent, with a client, the heir, and the keys under which tools acted."""
    await world.add_agent(**scenario.agent)
    receipts: list[str] = []

    async def act(call: Call) -> str:
        # As the tool runner does: a key acts once, and whoever asks again gets its receipt.
        if call.key not in receipts:
            receipts.append(call.key)
        await asyncio.sleep(0)
        return f"{call.name} did {call.key.partition('/')[2]}"

    async with world.replica() as heir, world.replica() as victim:
        for number in range(scenario.before):
            await heir.send(world.request(f"message {number} " + "word " * 1_200))
        client = Client(world, victim, heir, checkpoints)
        brain = client.after_line(scenario.brain, scenario.line) if scenario.line else scenario.brain
        for replica in (heir, victim):
            replica.tools.actions = dict.fromkeys(scenario.tools, act)
            replica.tools.parallel = frozenset(scenario.parallel)
            replica.models.replies = [brain] * 50
        # What anyone may drive, the victim drives while it lives.
        heir.lease_keeper._capacity = 0
        checkpoints.guard(monkeypatch, victim)
        killer = asyncio.create_task(client.kill())
        try:
            async with asyncio.timeout(SECONDS):
                yield client, heir, receipts
        finally:
            killer.cancel()
            await asyncio.gather(killer, return_exceptions=True)


@pytest.mark.parametrize("name", SCENARIOS)
async def test_undisturbed(world: World, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    scenario, checkpoints = SCENARIOS[name], Checkpoints()
    async with stage(world, scenario, checkpoints, monkeypatch) as (client, _, receipts):
        await scenario.play(client)
        assert len(checkpoints.passed) == scenario.points, checkpoints.passed
        await check(scenario, client, receipts)


def deaths() -> Iterator[ParameterSet]:
    """All points of all scenarios, from both sides; one of each is enough where there is little time."""
    for name, scenario in SCENARIOS.items():
        for point, side in product(range(1, scenario.points + 1), ("before", "after")):
            marks = () if (point, side) == (2, "after") else pytest.mark.long
            yield pytest.param(name, point, side, marks=marks, id=f"{name}-{point}-{side}")


@pytest.mark.parametrize(("name", "point", "side"), list(deaths()))
async def test_death(world: World, name: str, point: int, side: str, monkeypatch: pytest.MonkeyPatch) -> None:
    scenario, checkpoints = SCENARIOS[name], Checkpoints(point, after=side == "after")
    async with stage(world, scenario, checkpoints, monkeypatch) as (client, heir, receipts):
        await scenario.play(client)
        assert checkpoints.dead.is_set()
        await check(scenario, client, receipts)
        heir.models.replies = [calls("work"), text("Here I am.")]
        assert end(await heir.send(world.request("And then?"))).failure is None


@pytest.mark.parametrize(
    ("point", "side"),
    [
        pytest.param(3, "before"),
        *(
            pytest.param(*each, marks=pytest.mark.long)
            for each in product((2, 3, 4), ("before", "after"))
            if each != (3, "before")
        ),
    ],
)
async def test_the_heir_dies_too(world: World, point: int, side: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first owner is lost with a tool's return, the second where it loads the run or stores the next fact."""
    scenario, checkpoints = SCENARIOS["three steps"], Checkpoints(3)
    async with stage(world, scenario, checkpoints, monkeypatch) as (client, last, receipts):
        second_checkpoints = Checkpoints(point, after=side == "after")
        async with world.replica() as second:
            second.tools.actions, second.models.replies = last.tools.actions, [scenario.brain] * 50
            second_checkpoints.guard(monkeypatch, second)
            # In place of the heir, which comes after it.
            client._replicas[1] = second
            request = world.request("Go.")
            sending = asyncio.create_task(client.send(request))
            await bury(world, second, second_checkpoints)
            sending.cancel()
            await asyncio.gather(sending, return_exceptions=True)
            last.lease_keeper._capacity = CAPACITY
            events = client.seen[request.run_id]
            await client._read(last, request, events)
            assert end(events).run.fence == 3
            await check(scenario, client, receipts)


# What must hold, whoever died ----------------------------------------------------------------------------


async def check(scenario: Scenario, client: Client, receipts: Sequence[str]) -> None:
    """The log is as it should be, every call acted once, and the conversation is free."""
    world, runs = client.world, list(client.seen)
    rows = await world.pool.fetch(
        "SELECT * FROM agent.messages WHERE agent_id = $1 AND run_id = ANY($2) ORDER BY seq", world.agent_id, runs
    )
    log = [message_from_row(row) for row in rows]
    assert [message.role for message in log] == scenario.log.split()
    answered(log)
    assert [message.seq for message in log] == list(range(log[0].seq, log[0].seq + len(log)))
    # One run after the other; of those in line when their replica died, whoever sent again first is first.
    turns = [run_id for run_id, _ in groupby(message.run_id for message in log)]
    assert Counter(turns) == Counter(runs)
    assert sorted(key.partition("/")[2] for key in receipts) == sorted(scenario.acted)
    head = await world.pool.fetchrow(
        "SELECT active_run_id, waiting, pending_message_id FROM agent.conversation_heads WHERE conversation_id = $1",
        world.agent_id,
    )
    assert tuple(head) == (None, 0, None)
    for table in ("conversation_line", "run_queue"):
        assert not await world.pool.fetchval(f"SELECT count(*) FROM agent.{table} WHERE run_id = ANY($1)", runs)
    for run_id, events in client.seen.items():
        await check_run(world, run_id, events, [message for message in log if message.run_id == run_id])


def answered(log: Sequence[Message]) -> None:
    """Every call has one return, in the next message but clients' answers."""
    rest = [message for message in log if message.role != "approval"]
    for message, following in pairwise(rest):
        returned = [part.call_id for part in following.parts if isinstance(part, Return)]
        # What was approved comes before what never had to wait.
        assert sorted(returned) == sorted(call.id for call in calls_of(message))


async def check_run(world: World, run_id: UUID, events: Sequence[Event], log: Sequence[Message]) -> None:
    """One end; facts without a gap; each message shown once and in order; usage of what was stored."""
    facts = await world.pool.fetch("SELECT * FROM agent.facts WHERE run_id = $1 ORDER BY number", run_id)
    assert [fact["number"] for fact in facts] == list(range(1, len(facts) + 1))
    assert Counter(fact["kind"] for fact in facts)["run_ended"] == 1
    assert facts[-1]["kind"] == "run_ended"
    assert [fact["fence"] for fact in facts] == sorted(fact["fence"] for fact in facts)
    sequences = [event.sequence for event in events]
    assert sequences == sorted(set(sequences))
    assert [type(event) for event in events].count(Ended) == 1
    shown = [event for event in events if isinstance(event, MessagePiece)]
    pieces = [(event.message.id, event.otid) for event in shown]
    assert len(set(pieces)) == len(pieces)
    stored = [message.id for message in log if message.role in ("assistant", "tool", "summary")]
    assert list(dict.fromkeys(event.message.id for event in shown)) == stored
    replied = [fact["body"]["usage"] for fact in facts if fact["kind"] in ("model_replied", "compacted")]
    run = await world.pool.fetchrow("SELECT * FROM agent.runs WHERE id = $1", run_id)
    for figure in ("prompt_tokens", "completion_tokens"):
        assert run["usage"].get(figure, 0) == sum(usage.get(figure, 0) for usage in replied)
    steps = await world.pool.fetch("SELECT number, status FROM agent.steps WHERE run_id = $1 ORDER BY number", run_id)
    replies = sum(fact["kind"] == "model_replied" for fact in facts)
    assert [step["number"] for step in steps] == list(range(1, replies + 1))
    waits = run["stop_reason"] == "requires_approval"
    assert {step["status"] for step in steps} <= ({"success", "pending"} if waits else {"success"})
