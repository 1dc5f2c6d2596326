"""A rewind is a saga: it holds its conversation, memory sets the blocks back, and whoever is left finishes it."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from uuid import UUID

import pytest

from loci.agent.v1 import agent_service_pb2
from services.agent.resources.checkpoints.model import CheckpointKind, CheckpointRef, Edit
from services.agent.resources.checkpoints.ports import BlockSeen, NewRewind, RestoreResult, Rewind
from services.agent.resources.checkpoints.rewind_store import PostgresRewinds
from services.agent.resources.checkpoints.rewinds import FINISH_REWIND, Rewinds
from services.agent.resources.checkpoints.store import PostgresCheckpoints
from services.agent.resources.outbox.store import PostgresOutbox
from services.common.errors import Aborted, AlreadyExists, LociError, NotFound, Unavailable
from services.common.ids import from_public, uuid7
from tests.integration.agent.admin_world import ORGANIZATION, block
from tests.integration.agent.travel_world import TravelWorld, travel_world
from tests.integration.agent.world import SECONDS, answered


@pytest.fixture
async def world(urls: tuple[str, str], tmp_path: Path) -> AsyncIterator[TravelWorld]:
    """Both services, without agents."""
    async with travel_world(*urls, tmp_path) as made:
        for table in ("agents", "outbox", "messages"):
            await made.world.pool.execute(f"DELETE FROM agent.{table}")
        yield made


@dataclass
class HeldMemories:
    """Sets blocks back when `gate` is open, or fails; `asked` are the requests, `called` is set with the first."""

    gate: asyncio.Event = field(default_factory=asyncio.Event)
    called: asyncio.Event = field(default_factory=asyncio.Event)
    asked: list[str] = field(default_factory=list)
    failure: LociError | None = None

    async def edits(self, run_ids: Sequence[UUID]) -> Sequence[Edit]:
        return ()

    async def blocks(self, agent_id: UUID, conversation_id: UUID) -> Sequence[BlockSeen]:
        return ()

    async def restore(
        self, agent_id: UUID, conversation_id: UUID, versions: Mapping[UUID, int], request_id: str
    ) -> RestoreResult:
        self.asked.append(request_id)
        self.called.set()
        if self.failure is not None:
            raise self.failure
        await self.gate.wait()
        return RestoreResult({}, frozenset(), frozenset(versions))


class Journey:
    """An agent that was told one, two and three, and is to go back to one."""

    def __init__(self, world: TravelWorld, agent_id: str, run_id: UUID) -> None:
        self.world = world
        self.agent_id = agent_id
        self.memories = HeldMemories()
        pool = world.world.pool
        self.rewinds = Rewinds(PostgresRewinds(pool), PostgresCheckpoints(pool), self.memories)  # type: ignore[arg-type]
        self.new = NewRewind(
            organization_id=ORGANIZATION,
            user_id=ORGANIZATION,
            conversation_id=from_public("agent", agent_id),
            id=uuid7(),
            to=CheckpointRef(CheckpointKind.RUN, run_id),
        )

    async def go(self) -> Rewind:
        return await self.rewinds.make(self.new, from_public("agent", self.agent_id), keep_blocks=False)

    async def leave(self) -> None:
        """It begins, and its replica is lost while memory is asked."""
        going = asyncio.create_task(self.go())
        await self.memories.called.wait()
        going.cancel()
        await asyncio.gather(going, return_exceptions=True)

    async def left(self) -> dict[str, int]:
        """What there is of rewinds."""
        rows = self.world.world.rows
        return {name: await rows(name) for name in ("begun_rewinds", "outbox", "conversation_rewinds")}


@pytest.fixture
async def journey(world: TravelWorld) -> Journey:
    agent = await world.world.create(
        blocks=[block("human", "Nothing yet.")], tool_names=("core_memory_append",), include_base_tools=False
    )
    for said in ("one", "two", "three"):
        await world.say(agent.id, said)
    return Journey(world, agent.id, from_public("run", await world.run_of(agent.id, "one")))


async def refused(call: object) -> LociError:
    with pytest.raises(LociError) as caught:
        await call  # type: ignore[misc]
    return caught.value


async def test_what_is_said_meanwhile_waits_without_a_transaction_and_sees_what_was_left(journey: Journey) -> None:
    world = journey.world
    going = asyncio.create_task(journey.go())
    await journey.memories.called.wait()
    turn = asyncio.create_task(world.say(journey.agent_id, "What now?"))
    pool = world.world.pool
    await answered(lambda: pool.fetchval("SELECT count(*) = 1 FROM agent.conversation_line"))
    open_ones = """SELECT count(*) FROM pg_stat_activity
        WHERE datname = current_database() AND state LIKE 'idle in transaction%'"""
    assert await pool.fetchval(open_ones) == 0
    journey.memories.gate.set()
    async with asyncio.timeout(SECONDS):
        await going
        await turn
    world.peers.heard.clear()
    await world.say(journey.agent_id, "And now?")
    assert world.peers.heard == [["one", "What now?", "And now?"]]
    assert await journey.left() == {"begun_rewinds": 0, "outbox": 0, "conversation_rewinds": 1}


async def test_one_whose_replica_is_lost_is_finished_by_another(journey: Journey) -> None:
    await journey.leave()
    assert await journey.left() == {"begun_rewinds": 1, "outbox": 1, "conversation_rewinds": 0}
    pool = journey.world.world.pool
    outbox = PostgresOutbox(pool)
    assert await outbox.claim([FINISH_REWIND], 1, 60.0) == []
    await pool.execute("UPDATE agent.outbox SET not_before = now() WHERE kind = $1", FINISH_REWIND)
    [order] = await outbox.claim([FINISH_REWIND], 1, 60.0)
    journey.memories.gate.set()
    assert await journey.rewinds.handlers()[FINISH_REWIND](order)
    # It is one request to memory, however often it is made.
    assert journey.memories.asked == [f"rewind {journey.new.id}"] * 2
    assert await journey.left() == {"begun_rewinds": 0, "outbox": 0, "conversation_rewinds": 1}
    assert await journey.world.said(journey.agent_id) == ["one"]
    await journey.world.say(journey.agent_id, "four")
    assert await journey.world.said(journey.agent_id) == ["one", "four"]
    assert await journey.rewinds.handlers()[FINISH_REWIND](order)


async def test_the_same_request_goes_on_with_it(journey: Journey) -> None:
    journey.memories.failure = Unavailable("memory is away", reason="PEER_UNAVAILABLE")
    assert (await refused(journey.go())).reason == "PEER_UNAVAILABLE"
    journey.memories.failure = None
    journey.memories.gate.set()
    made = await journey.go()
    assert await journey.go() == made
    assert len(set(journey.memories.asked)) == 1
    assert await journey.left() == {"begun_rewinds": 0, "outbox": 0, "conversation_rewinds": 1}


async def test_while_it_goes_on_there_is_no_other_and_no_reset(journey: Journey) -> None:
    await journey.leave()
    other = Journey(journey.world, journey.agent_id, journey.new.to.id)
    error = await refused(other.go())
    assert (type(error), error.reason) == (Aborted, "CONVERSATION_BUSY")
    request = agent_service_pb2.ResetMessagesRequest(agent_id=journey.agent_id)
    error = await refused(journey.world.world.call(journey.world.world.agents.ResetMessages, request))
    assert (type(error), error.reason) == (Aborted, "CONVERSATION_BUSY")
    elsewhere = Journey(journey.world, journey.agent_id, uuid7())
    object.__setattr__(elsewhere.new, "id", journey.new.id)
    error = await refused(elsewhere.go())
    assert (type(error), error.reason) == (AlreadyExists, "REWIND_ID_TAKEN")


async def test_what_memory_refuses_changes_nothing(journey: Journey) -> None:
    before = await journey.world.checkpoints(journey.agent_id)
    journey.memories.failure = NotFound("no such version", reason="BLOCK_VERSION_NOT_FOUND")
    assert (await refused(journey.go())).reason == "BLOCK_VERSION_NOT_FOUND"
    assert await journey.world.checkpoints(journey.agent_id) == before
    assert await journey.left() == {"begun_rewinds": 0, "outbox": 0, "conversation_rewinds": 0}
    await journey.world.say(journey.agent_id, "four")
    assert await journey.world.said(journey.agent_id) == ["one", "two", "three", "four"]
