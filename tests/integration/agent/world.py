"""A small world for turns: the real journal on the real Postgres, scripted ports around it."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar
from uuid import UUID

import asyncpg
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from services.agent.adapters.agent_directory import PostgresAgentDirectory
from services.agent.adapters.journal import PostgresJournal
from services.agent.adapters.leases import PostgresLeases
from services.agent.adapters.recall.rankings import PostgresRankings
from services.agent.adapters.recall.tool import PostgresRecall
from services.agent.adapters.streams.frames import PostgresFrames
from services.agent.adapters.streams.notices import PostgresNotices
from services.agent.core.events import Ended, Event, MessagePiece
from services.agent.core.facts import Options, Usage
from services.agent.core.messages import Call, Decision, Message, Part, Return, Text
from services.agent.core.ports import CallSite, MemoryView, ModelRequest, PartDelta, Reply, ToolInfo, ToolResult
from services.agent.core.ports_agents import AGENT_TOOLS
from services.agent.core.ports_journal import OnBusy, TurnRequest
from services.agent.core.tending import TendingLimits
from services.agent.driving.agent_calls import AgentTools
from services.agent.driving.isolation import Isolation
from services.agent.driving.lease_keeper import CAPACITY, LeaseKeeper
from services.agent.driving.nested_turns import NestedTurns
from services.agent.driving.speakers import Speakers
from services.agent.driving.worker import Worker
from services.agent.effects import Ports
from services.agent.recall.searching import Search
from services.agent.streams.broadcast import EventHub
from services.agent.streams.publisher import EventPublisher
from services.agent.streams.reading import Reader
from services.agent.streams.recorder import Recorder
from services.common import vectors
from services.common.context import Signer, current
from services.common.database import STATEMENT_SECONDS, open_pool
from services.common.ids import uuid7
from services.common.statement_counter import StatementCounter

ORGANIZATION = UUID("00000000-0000-4000-8000-000000000000")
DAY = timedelta(days=1)
# What a test waits for comes at once, or a fault of the product keeps it away for ever.
SECONDS = 60.0
T = TypeVar("T")
Script = Callable[[ModelRequest], AsyncGenerator[PartDelta | Reply]]


async def answered(ask: Callable[[], Awaitable[T | None]]) -> T:
    """The first true answer of `ask`. Raises TimeoutError."""
    async with asyncio.timeout(SECONDS):
        while not (answer := await ask()):
            await asyncio.sleep(0.01)
    return answer


async def until_locked_out(pool: asyncpg.Pool) -> None:
    """Waits until somebody waits for a lock of somebody else."""
    query = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    await answered(lambda: pool.fetchval(query))


def says(*parts: Part, finish: str = "stop") -> Reply:
    """A reply of these parts."""
    return Reply(parts, Usage(10, 5), finish)


def text(reply: str) -> Reply:
    """A reply of one text."""
    return says(Text(reply))


def calls(*names: str, arguments: str = "{}") -> Reply:
    """A reply of these tool calls."""
    return says(*(Call("", f"call_{n}", name, arguments) for n, name in enumerate(names)), finish="tool_calls")


@dataclass
class ScriptedModels:
    """Gives one reply, error or generator function after another; remembers what it was asked.

    Requests for a summary have a script and a memory of their own.
    """

    replies: list[Any] = field(default_factory=list)
    requests: list[ModelRequest] = field(default_factory=list)
    summaries: list[Any] = field(default_factory=list)
    summary_requests: list[ModelRequest] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)

    async def generate(self, request: ModelRequest) -> AsyncGenerator[PartDelta | Reply]:
        """The next reply of the script."""
        if request.text_only:
            self.summary_requests.append(request)
            reply = self.summaries.pop(0) if self.summaries else text("They talked.")
        else:
            self.requests.append(request)
            reply = self.replies.pop(0) if self.replies else text("I have nothing more to say.")
        if isinstance(reply, Exception):
            raise reply
        if isinstance(reply, Reply):
            yield reply
            return
        async with aclosing(reply(request)) as events:
            async for event in events:
                yield event

    async def count(self, request: ModelRequest) -> int | None:
        """As the script says."""
        return self.counts.pop(0) if self.counts else None

    async def window(self, handle: str) -> int:
        """Every model is of one size."""
        return 32_000

    async def reasons(self, handle: str) -> bool:
        """Those whose names say so."""
        return "reasoner" in handle


@dataclass
class ScriptedMemory:
    """A memory that shows what it is told to."""

    shows: MemoryView = field(default_factory=MemoryView)
    # How often it was looked at, and what owners said that they have a run.
    views: int = 0
    fences: list[int] = field(default_factory=list)

    async def view(self, agent_id: UUID, conversation_id: UUID) -> MemoryView:
        """What it shows now."""
        self.views += 1
        return self.shows

    async def apply(self, call: Call, site: CallSite, *, create_block: bool = False) -> Return:
        """Never right."""
        raise AssertionError(f"{call.name} is no tool of this world")

    async def fence(self) -> None:
        """Remembers that it was told."""
        self.fences.append(current().fence)

    async def recall(self, agent_id: UUID, query: str, most: int) -> tuple[str, ...]:
        """Nothing."""
        return ()


@dataclass
class ScriptedTools:
    """Tools by name; each is a coroutine function of the call."""

    actions: dict[str, Callable[[Call], Awaitable[str]]] = field(default_factory=dict)
    # Those that may run at the same time, and the schemas of those that take arguments.
    parallel: frozenset[str] = frozenset()
    parameters: dict[str, dict[str, Any]] = field(default_factory=dict)
    return_char_limit: int = 50_000
    # Of those by which agents speak to agents; the service runs them.
    of_agents: tuple[str, ...] = ()
    cancelled: list[str] = field(default_factory=list)
    fences: list[int] = field(default_factory=list)
    # Where each call was made.
    sites: dict[str, CallSite] = field(default_factory=dict)

    async def describe(self, tool_ids: Sequence[UUID]) -> tuple[ToolInfo, ...]:
        """All of them."""
        return tuple(
            ToolInfo(
                id=uuid7(),
                name=name,
                tool_type="letta_multi_agent_core" if name in AGENT_TOOLS else "custom",
                description="",
                parameters=self.parameters.get(name, {"type": "object"}),
                parallel=name in self.parallel,
                return_char_limit=self.return_char_limit,
            )
            for name in (*self.actions, *self.of_agents)
        )

    async def execute(self, tool: ToolInfo, call: Call, site: CallSite, *, agent_state: str = "") -> ToolResult:
        """Does what the script says."""
        self.sites[call.key] = site
        return ToolResult(Return(call.id, call.name, await self.actions[tool.name](call)))

    async def cancel(self, call_key: str) -> None:
        """Remembers that it was asked."""
        self.cancelled.append(call_key)

    async def fence(self) -> None:
        """Remembers that it was told."""
        self.fences.append(current().fence)


class NoStates:
    """For worlds whose tools take no state."""

    async def of(self, site: CallSite) -> str:
        """Never asked."""
        raise AssertionError(f"nobody takes the state of {site.agent_id}")


@dataclass
class Replica:
    """One replica of the agent service's turn side."""

    worker: Worker
    lease_keeper: LeaseKeeper
    reader: Reader
    journal: PostgresJournal
    models: ScriptedModels
    tools: ScriptedTools
    memory: ScriptedMemory
    # What runs beside: streams and notices.
    tasks: list[asyncio.Task[None]]

    async def send(self, request: TurnRequest, *, stream: bool = False) -> list[Event]:
        """Takes a turn and waits for its end."""
        accepted, subscription = await self.worker.accept(request, stream=stream)
        follow = self.reader.follow(request.organization_id, accepted.run_id, subscription=subscription)
        async with asyncio.timeout(SECONDS), aclosing(follow) as events:
            return [event async for event in events]

    async def die(self) -> None:
        """Ends like a killed process: without a word to the database. Its lease is over at once."""
        tasks = [
            task for task in (*self.tasks, *self.lease_keeper._tasks, *self.worker._driven.values()) if task is not None
        ]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        long_ago = "UPDATE agent.workers SET beat_at = now() - interval '1 day' WHERE id = $1"
        await self.journal._pool.execute(long_ago, self.journal.worker_id)

    async def settles(self) -> None:
        """Waits until what a replica does once, when it begins to beat, is done."""
        await answered(self._has_settled)

    async def _has_settled(self) -> bool:
        return self.lease_keeper._seen is not None and len(self.lease_keeper._tasks) == 2

    def is_watched(self, run_id: UUID) -> bool:
        """Whether it knows that somebody reads the run elsewhere."""
        return run_id in self.worker._publisher._watched


class World:
    """A database with one agent, and replicas on it."""

    def __init__(self, pool: asyncpg.Pool, url: str) -> None:
        self.pool = pool
        self.url = url
        self.agent_id = UUID(int=0)
        self.signer = Signer(Ed25519PrivateKey.generate(), "test")

    async def add_agent(
        self,
        *,
        system: str = "You are Loci.",
        agent_type: str = "letta_v1_agent",
        tool_rules: Sequence[dict[str, Any]] = (),
        autoclear: bool = False,
    ) -> UUID:
        """An agent with its default conversation; rules as REST has them."""
        self.agent_id, log_id = uuid7(), uuid7()
        await self.pool.execute(
            "INSERT INTO agent.agents (organization_id, id, name, agent_type, system, model, embedding,"
            " context_window_limit, created_by_id, last_updated_by_id, tool_rules, message_buffer_autoclear,"
            " model_settings)"
            " VALUES ($1, $2, 'Ada', $4, $3, 'loci/demo', 'loci/hash', 32000, $1, $1, $5, $6, $7)",
            ORGANIZATION,
            self.agent_id,
            system,
            agent_type,
            list(tool_rules),
            autoclear,
            # Scripts of several calls at once are the common case here.
            {"parallel_tool_calls": True},
        )
        await self.pool.execute(
            "INSERT INTO agent.conversations (organization_id, id, agent_id, created_by_id) VALUES ($1, $2, $2, $1)",
            ORGANIZATION,
            self.agent_id,
        )
        await self.pool.execute(
            "INSERT INTO agent.conversation_segments (organization_id, conversation_id, ordinal, log_id, from_seq)"
            " VALUES ($1, $2, 0, $3, 1)",
            ORGANIZATION,
            self.agent_id,
            log_id,
        )
        await self.pool.execute(
            "INSERT INTO agent.conversation_heads (organization_id, conversation_id, log_id) VALUES ($1, $2, $3)",
            ORGANIZATION,
            self.agent_id,
            log_id,
        )
        return self.agent_id

    @asynccontextmanager
    async def replica(
        self,
        *,
        on_busy: OnBusy | None = "wait",
        capacity: int = CAPACITY,
        keep: timedelta = DAY,
        replies: Sequence[Any] = (),
        tending: TendingLimits | None = None,
        isolation: Isolation | None = None,
    ) -> AsyncGenerator[Replica]:
        """A replica, stopped at the end unless it died; `replies` are there before it takes over what waits."""
        worker_id, hub, frames = uuid7(), EventHub(), PostgresFrames(self.pool)
        journal = PostgresJournal(self.pool, worker_id, on_busy=on_busy, tending=tending)
        models, tools, memory = ScriptedModels([*replies]), ScriptedTools(), ScriptedMemory()
        recorder, notices = Recorder(frames, keep=keep), PostgresNotices(self.url)
        reader = Reader(journal, hub, frames, notices, keep=keep)
        nested = NestedTurns(reader)
        agent_tools = AgentTools(PostgresAgentDirectory(self.pool), nested, longest_seconds=SECONDS)
        ports = Ports(journal, models, memory, tools, recall_on(self.pool), NoStates(), agent_tools, Speakers(nested))
        worker = nested.worker = Worker(journal, ports, EventPublisher(hub, recorder, notices), self.signer)
        leases = PostgresLeases(self.pool, worker_id)
        lease_keeper = LeaseKeeper(leases, worker, notices, capacity=capacity, isolation=isolation)
        await lease_keeper.start()
        tasks = [asyncio.create_task(each()) for each in (recorder.run, notices.run)]
        try:
            await notices.connected()
            yield Replica(worker, lease_keeper, reader, journal, models, tools, memory, tasks)
        finally:
            died = all(task.done() for task in tasks)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await lease_keeper.stop()
            if not died:
                await recorder.stop()

    def request(self, said: str = "Hello", *, max_steps: int = 50, **options: Any) -> TurnRequest:
        """A request with one message."""
        run_id = options.pop("run_id", None) or uuid7()
        message = Message(uuid7(), "user", (Text(said),), datetime.now(UTC), run_id, otid=options.pop("otid", None))
        return TurnRequest(
            organization_id=ORGANIZATION,
            user_id=ORGANIZATION,
            agent_id=self.agent_id,
            conversation_id=self.agent_id,
            run_id=run_id,
            messages=(message,),
            options=Options(max_steps=max_steps, client_tools=tuple(options.pop("client_tools", ()))),
            seconds=options.pop("seconds", 60.0),
            **options,
        )

    def answer(self, *answers: Decision | Return, said: str | None = None, **options: Any) -> TurnRequest:
        """A request with answers to calls that wait, and what the user says after them."""
        request = self.request(said or "", **options)
        message = Message(uuid7(), "approval", answers, datetime.now(UTC), request.run_id)
        return replace(request, messages=(message,) if said is None else (message, *request.messages))

    async def until_waiting(self, count: int) -> None:
        """Waits until so many requests are in the agent's line."""
        query = "SELECT count(*) = $2 FROM agent.conversation_line WHERE conversation_id = $1"
        await answered(lambda: self.pool.fetchval(query, self.agent_id, count))

    async def history(self) -> list[tuple[str, str]]:
        """Role and text of all stored messages, oldest first."""
        rows = await self.pool.fetch(
            "SELECT role, content FROM agent.messages WHERE agent_id = $1 ORDER BY seq", self.agent_id
        )
        return [(row["role"], _shown(row["content"])) for row in rows]


def _shown(content: list[dict[str, Any]]) -> str:
    return " ".join(part.get("text") or part.get("name", "") for part in content)


def recall_on(pool: asyncpg.Pool) -> PostgresRecall:
    """conversation_search by words alone."""
    return PostgresRecall(Search(PostgresRankings(pool), None))


def end(events: list[Event]) -> Ended:
    """The last event, which ends the run."""
    last = events[-1]
    assert isinstance(last, Ended)
    return last


def shown(events: list[Event]) -> list[str]:
    """What was shown as durable, by role."""
    return [event.message.role for event in events if isinstance(event, MessagePiece)]


# Worlds share a database: what one learns of its model, or leaves undone, is no concern of the next.
_LEFTOVERS = (
    "DELETE FROM agent.learned_windows",
    "DELETE FROM agent.run_queue",
    "DELETE FROM agent.conversation_line",
    "UPDATE agent.conversation_heads SET active_run_id = NULL, waiting = 0 WHERE active_run_id IS NOT NULL",
    "UPDATE agent.runs SET status = 'cancelled', completed_at = now() WHERE status IN ('created', 'running')",
)


@asynccontextmanager
async def world_on(
    url: str, counter: StatementCounter | None = None, *, patience: float = STATEMENT_SECONDS
) -> AsyncGenerator[World]:
    """A world on a migrated database. `patience`: seconds for a statement."""
    pool = await open_pool(url, size=6, counter=counter, init=vectors.register, patience=patience)
    try:
        world = World(pool, url)
        for leftover in _LEFTOVERS:
            await pool.execute(leftover)
        await world.add_agent()
        yield world
    finally:
        await pool.close()
