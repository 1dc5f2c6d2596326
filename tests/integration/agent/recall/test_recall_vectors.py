"""Vectors of messages: made in the background, whatever dies or fails, and searched beside the words."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import orjson
import pytest

from services.agent.adapters.recall.marks import PostgresVectors
from services.agent.adapters.recall.rankings import PostgresRankings
from services.agent.adapters.recall.tool import PostgresRecall
from services.agent.core.facts import Settings
from services.agent.core.messages import Call, Message, Return, Role, Text
from services.agent.core.ports import CallSite
from services.agent.core.ports_recall import LogKey
from services.agent.core.recall.query import MessageFilter, MessageQuery, Mode
from services.agent.postgres.rows import message_to_row
from services.agent.recall.filling import VectorFiller
from services.agent.recall.searching import Search
from services.agent.resources.agents.eraser import PostgresEraser
from services.common.context import current_or_none
from services.common.engine import make_engine
from services.common.errors import InvalidArgument, NotFound, Unavailable
from services.common.ids import uuid7
from services.common.statement_counter import StatementCounter
from tests.integration.agent.world import ORGANIZATION, World, text, world_on

NOON = datetime(2026, 11, 1, 12, tzinfo=UTC)
CONCEPTS = (("car", "automobile", "vehicle"), ("doctor", "physician"), ("sea", "ocean"), ("dog", "hound"), ("bread",))
_INSERT = """
INSERT INTO agent.messages (
    organization_id, log_id, seq, id, agent_id, conversation_id, role, content, search, created_at)
SELECT $1, h.log_id, h.next_seq - 1 + m.place, m.id, $2, $2, m.role, m.content,
       to_tsvector('english', m.search) || to_tsvector('simple', m.search), m.created_at
FROM agent.conversation_heads h,
    jsonb_to_recordset($3) AS m(place int, id uuid, role text, content jsonb, search text, created_at timestamptz)
WHERE h.conversation_id = $2
"""


@dataclass
class Concepts:
    """An embedding model that knows a few synonyms: a direction for each concept, and one for everything else."""

    calls: list[tuple[UUID | None, str, int]] = field(default_factory=list)
    failing: set[str] = field(default_factory=set)
    refused: str = "\0"
    hold: asyncio.Event | None = None

    async def embed(self, handle: str, texts: Sequence[str], seconds: float) -> list[list[float]]:
        """As `core.ports_recall.Embedder` has it."""
        if self.hold is not None:
            await self.hold.wait()
        if handle in self.failing:
            raise Unavailable("no", reason="LLM_CONNECTION")
        if any(self.refused in text for text in texts):
            raise InvalidArgument("what a text", reason="LLM_BAD_REQUEST")
        caller = current_or_none()
        self.calls.append((None if caller is None else caller.organization_id, handle, len(texts)))
        return [self._vector(text) for text in texts]

    @staticmethod
    def _vector(text: str) -> list[float]:
        words = text.lower().replace(".", " ").replace("?", " ").split()
        found = [float(sum(word in concept for word in words)) for concept in CONCEPTS]
        return [*found, 0.1]


@pytest.fixture
async def world(agent_url: str) -> AsyncIterator[World]:
    """One agent in it, and no vectors yet."""
    async with world_on(agent_url, StatementCounter()) as made:
        await made.pool.execute("TRUNCATE agent.messages, agent.vector_marks CASCADE")
        await made.pool.execute("UPDATE agent.vector_sweep SET log_id = organization_id, next_at = now()")
        yield made


async def tell(world: World, *said: str | tuple[Role, str], agent_id: UUID | None = None) -> list[UUID]:
    """Puts messages into an agent's default conversation, an hour between them."""
    agent_id = agent_id or world.agent_id
    messages = []
    role: Role
    for hour, one in enumerate(said):
        role, content = ("user", one) if isinstance(one, str) else one
        part = Return("call", "read", content) if role == "tool" else Text(content)
        messages.append(Message(uuid7(), role, (part,), NOON + timedelta(hours=hour)))
    rows = [{**message_to_row(message, place, 1), "place": place} for place, message in enumerate(messages, 1)]
    async with world.pool.acquire() as connection, connection.transaction():
        await connection.execute(_INSERT, ORGANIZATION, agent_id, rows)
        await connection.execute(
            "UPDATE agent.conversation_heads SET next_seq = next_seq + $2 WHERE conversation_id = $1",
            agent_id,
            len(rows),
        )
    return [message.id for message in messages]


def filler(world: World, embedder: Concepts) -> VectorFiller:
    """One replica's."""
    return VectorFiller(PostgresVectors(world.pool), embedder, world.signer)


async def fill(world: World, embedder: Concepts) -> None:
    """Until nothing is left to do."""
    one = filler(world, embedder)
    await world.pool.execute("UPDATE agent.vector_sweep SET next_at = now()")
    while await one.round():
        pass


async def vectors(world: World) -> set[UUID]:
    """The messages that have one."""
    return {row["message_id"] for row in await world.pool.fetch("SELECT message_id FROM agent.message_vectors")}


@asynccontextmanager
async def searching(world: World, embedder: Concepts | None) -> AsyncIterator[Any]:
    """A function that finds texts."""
    search = Search(PostgresRankings(world.pool), embedder)

    async def find(query: str, mode: Mode = Mode.HYBRID, **options: Any) -> list[str]:
        agent_id = options.pop("agent_id", world.agent_id)
        scope = await search.scope(ORGANIZATION, agent_id, options.pop("conversation_id", None))
        limit = options.pop("limit", 3)
        found, _ = await search.find(scope, MessageQuery(query, limit, mode, MessageFilter(**options)))
        return ["".join(getattr(part, "text", "") for part in one.message.parts) for one in found]

    yield find


async def test_every_message_gets_its_vector_once_whoever_dies(world: World) -> None:
    embedder, dying = Concepts(), Concepts(hold=asyncio.Event())
    ids = await tell(
        world, "The car.", ("assistant", "A doctor."), ("tool", "The sea."), ("system", "Rules."),
        '{"type": "heartbeat", "reason": "go on"}', " ", *(f"Number {n}." for n in range(70)),
    )  # fmt: skip
    # A replica dies while the model works: nobody takes its log before its lease ends, and nothing is half-done.
    lost = asyncio.create_task(filler(world, dying).round())
    while not await world.pool.fetchval("SELECT count(*) FROM agent.vector_marks"):
        await asyncio.sleep(0.01)
    await fill(world, embedder)
    assert await vectors(world) == set()
    lost.cancel()
    await asyncio.gather(lost, return_exceptions=True)
    await world.pool.execute("UPDATE agent.vector_marks SET not_before = now()")
    # Two others find it, and share what there is.
    other = await world.add_agent()
    more = await tell(world, "A dog.", agent_id=other)
    await asyncio.gather(fill(world, embedder), fill(world, embedder))
    await fill(world, embedder)
    assert await vectors(world) == {*ids[:3], *ids[6:], *more}
    assert sum(texts for _, _, texts in embedder.calls) == 3 + 70 + 1
    assert {organization for organization, _, _ in embedder.calls} == {ORGANIZATION}
    # One that was slow is refused what it brings.
    assert dying.hold is not None
    assert await PostgresVectors(world.pool).take([LogKey(ORGANIZATION, uuid7())]) == []
    # What comes later is found by its mark, and costs one message.
    later = await tell(world, ("assistant", "A hound."))
    one = filler(world, embedder)
    one.note(ORGANIZATION, world.agent_id)
    one._unread = dict.fromkeys(one._unread, (0.0, 0.0))
    await world.pool.execute("UPDATE agent.vector_sweep SET next_at = now() + interval '1 hour'")
    assert await one.round()
    assert await vectors(world) >= set(later)
    assert embedder.calls[-1][2] == 1


async def test_a_model_that_fails_stops_no_other_and_is_tried_again(world: World) -> None:
    embedder = Concepts(failing={"loci/hash"}, refused="pineapple")
    await tell(world, "The car.")
    mine = world.agent_id
    other = await world.add_agent()
    await world.pool.execute("UPDATE agent.agents SET embedding = 'fine/model' WHERE id = $1", other)
    fine = await tell(world, "A doctor.", "A pineapple.", "The sea.", agent_id=other)
    none = await world.add_agent()
    await world.pool.execute("UPDATE agent.agents SET embedding = '' WHERE id = $1", none)
    await tell(world, "Bread.", agent_id=none)
    await fill(world, embedder)
    # What the model refuses is found by its words.
    assert await vectors(world) == {fine[0], fine[2]}
    failed = "SELECT failures, not_before > now() AS later FROM agent.vector_marks WHERE agent_id = $1"
    assert tuple(await world.pool.fetchrow(failed, mine)) == (1, True)
    embedder.failing.clear()
    await world.pool.execute("UPDATE agent.vector_marks SET not_before = now()")
    await fill(world, embedder)
    assert len(await vectors(world)) == 3
    # Another model sees everything again, and a message has one vector.
    await world.pool.execute("UPDATE agent.agents SET embedding = 'loci/hash' WHERE id = $1", other)
    await fill(world, embedder)
    models = "SELECT DISTINCT e.handle FROM agent.message_vectors v JOIN agent.embedding_models e ON e.id = v.model_id"
    assert [row["handle"] for row in await world.pool.fetch(models)] == ["loci/hash"]
    assert len(await vectors(world)) == 3


async def test_hybrid_finds_what_words_and_vectors_miss(world: World) -> None:
    embedder = Concepts()
    said: list[str | tuple[Role, str]] = [
        "We bought a new automobile last week.",
        "The engine number is XK-4711.",
        "My physician says I should rest.",
        "The ocean was cold.",
        ("assistant", "A hound sleeps all day."),
        ("tool", "Bread costs 3 euros."),
        *(f"Something else was said, number {n}." for n in range(60)),
    ]
    await tell(world, *said)
    await fill(world, embedder)
    wanted = {
        "car": "We bought a new automobile last week.",
        "XK-4711": "The engine number is XK-4711.",
        "which doctor": "My physician says I should rest.",
        "dog": "A hound sleeps all day.",
        "cold": "The ocean was cold.",
        "rest": "My physician says I should rest.",
    }
    async with searching(world, embedder) as find:

        async def found(mode: Mode) -> int:
            return sum([answer in await find(query, mode) for query, answer in wanted.items()])

        hits = {mode: await found(mode) for mode in Mode}
        assert hits[Mode.HYBRID] == len(wanted)
        assert max(hits[Mode.TEXT], hits[Mode.VECTOR]) < len(wanted)
        # Roles and dates hold for both halves.
        assert await find("dog bread", roles=("tool",)) == ["Bread costs 3 euros."]
        assert await find("physician ocean", start=NOON + timedelta(hours=2.5), end=NOON + timedelta(hours=3)) == [
            "The ocean was cold."
        ]
        assert await find("", limit=1) == [f"Something else was said, number {59}."]
        embedder.failing.add("loci/hash")
        assert await find("automobile", limit=1) == [wanted["car"]]
        with pytest.raises(Unavailable):
            await find("automobile", Mode.VECTOR)
    site = CallSite(ORGANIZATION, world.agent_id, world.agent_id, uuid7(), uuid7(), Settings(1, "m", "e", "", 32_000))
    call = Call("key", "call", "conversation_search", orjson.dumps({"query": "car", "limit": 1}).decode())
    recall = PostgresRecall(Search(PostgresRankings(world.pool), embedder))
    assert (await recall.search(call, site)).text == "No messages were found."
    embedder.failing.clear()
    (shown,) = orjson.loads((await recall.search(call, site)).text)
    assert shown == {"timestamp": "2026-11-01T12:00:00+00:00", "role": "user", "content": wanted["car"]}


async def test_nobody_finds_what_is_not_theirs(world: World) -> None:
    embedder = Concepts()
    mine, ids = world.agent_id, await tell(world, "My car.", "The sea.")
    other = await world.add_agent()
    await tell(world, "Your car.", agent_id=other)
    stranger, log_id = UUID(int=7), uuid7()
    await world.pool.execute(
        "INSERT INTO agent.messages"
        " (organization_id, log_id, seq, id, agent_id, conversation_id, role, content, search)"
        " SELECT $1, $2, 1, gen_random_uuid(), $3, $3, role, content, search FROM agent.messages WHERE id = $4",
        stranger, log_id, mine, ids[0],
    )  # fmt: skip
    await fill(world, embedder)
    await world.pool.execute(
        "INSERT INTO agent.message_vectors SELECT $1, m.id, agent_id, log_id, 1, role, created_at, 1, $2"
        " FROM agent.messages m WHERE organization_id = $1",
        stranger, (await world.pool.fetchval("SELECT embedding FROM agent.message_vectors LIMIT 1")),
    )  # fmt: skip
    # A fork has the past of the other up to a place.
    fork = await world.add_agent()
    head = await world.pool.fetchval("SELECT log_id FROM agent.conversation_heads WHERE conversation_id = $1", mine)
    await world.pool.execute(
        "INSERT INTO agent.inherited_segments VALUES ($1, $2, 0, $3, 1, 1)", ORGANIZATION, fork, head
    )
    async with searching(world, embedder) as find:
        for mode in Mode:
            assert sorted(await find("car sea", mode, agent_id=mine, limit=9)) == ["My car.", "The sea."]
            assert await find("car sea", mode, agent_id=other, limit=9) == ["Your car."]
            assert await find("car sea", mode, agent_id=fork, limit=9) == ["My car."]
            assert sorted(await find("car sea", mode, agent_id=None, limit=9)) == ["My car.", "The sea.", "Your car."]
            assert await find("car sea", mode, agent_id=other, conversation_id=other) == ["Your car."]
        assert await find("", agent_id=None, limit=9) == ["The sea.", "Your car.", "My car."]
        assert await find("", agent_id=fork) == ["My car."]
        for wrong in ({"agent_id": uuid7()}, {"agent_id": other, "conversation_id": mine}):
            with pytest.raises(NotFound):
                await find("car", **wrong)


async def test_what_is_erased_leaves_no_vector(world: World, agent_url: str) -> None:
    embedder = Concepts()
    await tell(world, "My car.")
    gone, other = world.agent_id, await world.add_agent()
    kept = await tell(world, "Your car.", agent_id=other)
    await fill(world, embedder)
    engine = make_engine(agent_url)
    try:
        await world.pool.execute("UPDATE agent.agents SET deleted_at = now() WHERE id = $1", gone)
        async with searching(world, embedder) as find:
            assert await find("car", agent_id=None) == ["Your car."]
        assert await PostgresEraser(engine).erase(ORGANIZATION, gone)
    finally:
        await engine.dispose()
    assert await vectors(world) == set(kept)
    assert await world.pool.fetchval("SELECT count(*) FROM agent.vector_marks") == 1
    await world.pool.execute("DELETE FROM agent.messages WHERE agent_id = $1", other)
    await fill(world, embedder)
    assert await world.pool.fetchval("SELECT count(*) FROM agent.vector_marks") == 0


async def test_a_turn_pays_nothing_for_vectors(world: World) -> None:
    embedder = Concepts()
    background = filler(world, embedder)
    async with world.replica() as replica:
        replica.worker.on_run_end = background.note
        replica.models.replies = [text("The sea."), text("A dog.")]
        await replica.send(world.request("The ocean?"))
        assert background._unread.keys() == {(ORGANIZATION, world.agent_id)}
    await fill(world, embedder)
    assert len(await vectors(world)) == 2
