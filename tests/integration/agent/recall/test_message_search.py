"""MessageService.SearchMessages, and what it costs: plans over long pasts, with and without an index of vectors."""

import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID

import asyncpg
import pytest

from loci.agent.v1 import conversation_service_pb2
from loci.agent.v1 import message_service_pb2 as wire
from services.agent.adapters.recall.indexes import VectorIndexing
from services.agent.adapters.recall.rankings import PostgresRankings
from services.agent.core.recall.query import MessageFilter, RankedMessage
from services.agent.recall import filling
from services.agent.recall.filling import VectorFiller
from services.common.errors import InvalidArgument, NotFound, Unavailable
from services.common.ids import to_public, uuid7
from tests.integration.agent.admin_world import ORGANIZATION, AdminWorld, admin_world, empty
from tests.integration.agent.world import World, world_on

_MANY = 12_000
_DIMENSIONS = 64
_FILL = """
INSERT INTO agent.messages (
    organization_id, log_id, seq, id, agent_id, conversation_id, role, content, search, created_at)
SELECT $1, h.log_id, n, gen_random_uuid(), $2, $2, CASE n % 2 WHEN 1 THEN 'user' ELSE 'assistant' END,
       jsonb_build_array(jsonb_build_object('type', 'text', 'text', said)),
       to_tsvector('english', said) || to_tsvector('simple', said), now() - interval '1 minute' * ($3 - n)
FROM agent.conversation_heads h, generate_series(1, $3) n,
    LATERAL (SELECT 'Something was said about topic' || n % 100 || ', number' || n AS said) one
WHERE h.conversation_id = $2
"""
# As those of real messages do, they lie in clusters: what is common to a topic, and half as much of a message's own.
_VECTORS = """
INSERT INTO agent.message_vectors (
    organization_id, message_id, agent_id, log_id, seq, role, created_at, model_id, embedding)
SELECT organization_id, id, agent_id, log_id, seq, role, created_at, $2, one.numbers::real[]::vector::halfvec
FROM agent.messages m CROSS JOIN LATERAL (
    SELECT array_agg(topic - floor(topic) + (own - floor(own)) / 2 - 0.75 ORDER BY place) AS numbers
    FROM generate_series(1, $3) place,
        LATERAL (SELECT 43758.5453 * sin(12.9898 * (m.seq % 100) + 78.233 * place) AS topic,
                        43758.5453 * sin(12.9898 * m.seq + 39.425 * place) AS own) random) one
WHERE agent_id = $1
"""


def about(topic: int) -> list[float]:
    """What the vectors of a topic have in common."""
    places = range(1, _DIMENSIONS + 1)
    return [43758.5453 * math.sin(12.9898 * topic + 78.233 * place) % 1 - 0.5 for place in places]


@pytest.fixture
async def service(agent_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[AdminWorld]:
    """The service with no messages."""
    # One server stands for all peers.
    monkeypatch.setattr(filling, "AUDIENCE", ("llm_gateway", "memory"))
    await empty(agent_url, "agent.messages, agent.vector_marks")
    async with admin_world(agent_url, tmp_path) as made:
        yield made


async def fill(service: AdminWorld) -> None:
    """Makes all vectors that are missing."""
    filler = service.built.filler
    assert isinstance(filler, VectorFiller)
    filler._unread.clear()
    await service.pool.execute("UPDATE agent.vector_sweep SET log_id = organization_id, next_at = now()")
    while await filler.round():
        pass


async def test_the_search_of_the_service(service: AdminWorld) -> None:
    agent, other = await service.create(embedding="loci/hash"), await service.create()
    for said in ("My automobile is red.", "It rains.", "A carpet of snow."):
        await service.say(agent.id, said)
    made = conversation_service_pb2.CreateConversationRequest(agent_id=agent.id)
    conversation = (await service.call(service.conversations.CreateConversation, made)).conversation
    await service.say(agent.id, "Another automobile.", conversation.id)
    await service.say(other.id, "It rains here, too.")
    await fill(service)

    async def search(organization_id: UUID = ORGANIZATION, **fields: Any) -> wire.SearchMessagesResponse:
        request = wire.SearchMessagesRequest(**{"roles": ["user"], **fields})
        found: wire.SearchMessagesResponse = await service.call(
            service.messages.SearchMessages, request, organization_id
        )
        return found

    def texts(found: wire.SearchMessagesResponse) -> list[str]:
        return [hit.message.user_message.content[0].text for hit in found.hits]

    both = await search(query="car", agent_id=agent.id, limit=3)
    assert sorted(texts(both)) == ["A carpet of snow.", "Another automobile.", "My automobile is red."]
    assert all(hit.agent_id == agent.id and hit.vector_score > 0.99 for hit in both.hits)
    assert texts(await search(query="automobile red", agent_id=agent.id, limit=1)) == ["My automobile is red."]
    (one,) = (await search(query="automobile", conversation_id=conversation.id, limit=1)).hits
    assert (one.conversation_id, one.HasField("text_score")) == (conversation.id, True)
    rains = texts(await search(query="rains", mode=wire.MESSAGE_SEARCH_MODE_TEXT))
    assert rains == ["It rains.", "It rains here, too."]
    assert texts(await search(limit=2)) == ["It rains here, too.", "Another automobile."]
    in_default = await search(query="automobile", conversation_id=agent.id, mode=wire.MESSAGE_SEARCH_MODE_TEXT)
    assert texts(in_default) == ["My automobile is red."]
    assert (await search(organization_id=uuid7(), query="car")).hits == []
    # Everything that an agent says, each role by its name.
    noted = await search(query="noted", roles=[], mode=wire.MESSAGE_SEARCH_MODE_TEXT)
    assert {hit.message.WhichOneof("message") for hit in noted.hits[:3]} == {"assistant_message"}
    service.peers.failures["Embed"] = [Unavailable("away", reason="LLM_CONNECTION") for _ in range(2)]
    silent = await search(query="automobile", agent_id=agent.id)
    assert sum(hit.HasField("text_score") for hit in silent.hits) == 2
    assert not any(hit.HasField("vector_score") for hit in silent.hits)
    assert list(silent.without_vectors) == ["loci/hash"]
    with pytest.raises(Unavailable):
        await search(query="automobile", agent_id=agent.id, mode=wire.MESSAGE_SEARCH_MODE_VECTOR)
    for wrong in ({"roles": ["robot"]}, {"query": "x" * 10_001}, {"limit": 1_001}, {"limit": -1}):
        with pytest.raises(InvalidArgument) as refused:
            await search(**wrong)
        assert refused.value.reason == "MESSAGE_QUERY_INVALID"
    for unknown, reason in (
        ({"agent_id": to_public("agent", uuid7())}, "AGENT_NOT_FOUND"),
        ({"conversation_id": to_public("conv", uuid7())}, "CONVERSATION_NOT_FOUND"),
        ({"conversation_id": conversation.id, "agent_id": other.id}, "CONVERSATION_NOT_FOUND"),
    ):
        with pytest.raises(NotFound) as missing:
            await search(query="x", **unknown)
        assert missing.value.reason == reason
    await service.delete(agent.id)
    await service.deliver()
    assert await service.rows("message_vectors") == 2


@dataclass
class Explaining:
    """A pool that tells the plan of every statement of a search."""

    pool: asyncpg.Pool
    plans: list[str] = field(default_factory=list)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.pool, name)

    @asynccontextmanager
    async def acquire(self) -> AsyncIterator[Any]:
        """A connection, which explains what it fetches."""
        async with self.pool.acquire() as connection:
            yield _Connection(connection, self.plans)


@dataclass
class _Connection:
    connection: Any
    plans: list[str]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.connection, name)

    async def fetch(self, statement: str, *values: object) -> Any:
        """Explained, then done."""
        rows = await self.connection.fetch(f"EXPLAIN {statement}", *values)
        self.plans.append("\n".join(row[0] for row in rows))
        return await self.connection.fetch(statement, *values)


@pytest.fixture
async def long_past(agent_url: str) -> AsyncIterator[World]:
    """An agent with many messages and vectors, beside another."""
    async with world_on(agent_url) as world:
        await world.pool.execute("TRUNCATE agent.messages, agent.vector_marks CASCADE")
        model = await world.pool.fetchval(
            "INSERT INTO agent.embedding_models (handle, dimensions) VALUES ('loci/hash', $1)"
            " ON CONFLICT (handle, dimensions) DO UPDATE SET handle = excluded.handle RETURNING id",
            _DIMENSIONS,
        )
        for messages in (2_000, _MANY):
            await world.add_agent()
            await world.pool.execute(_FILL, ORGANIZATION, world.agent_id, messages)
            await world.pool.execute(_VECTORS, world.agent_id, model, _DIMENSIONS)
            await world.pool.execute(
                "UPDATE agent.conversation_heads SET next_seq = $2 WHERE conversation_id = $1",
                world.agent_id,
                messages + 1,
            )
        await world.pool.execute("VACUUM ANALYZE agent.messages")
        await world.pool.execute("ANALYZE agent.message_vectors")
        yield world


async def words_are_looked_up(long_past: World) -> None:
    """A few words do not read all of a long past."""
    explaining = Explaining(long_past.pool)
    rankings = PostgresRankings(explaining)
    scope = await rankings.scope(ORGANIZATION, long_past.agent_id, None)
    assert scope.messages == _MANY
    for query, found, index in (
        ("number7777", 1, "messages_by_words"),
        ("topic17 number9917", 50, "messages_by_words"),
        ("something said", 50, "messages_by_agent"),
    ):
        explaining.plans.clear()
        ranked = await rankings.by_words(scope, query, MessageFilter(), 50)
        assert len(ranked) == found
        plan = explaining.plans[-1]
        assert index in plan
        assert "Seq Scan" not in plan
    best = await rankings.by_words(scope, "topic17 number9917", MessageFilter(), 1)
    number = await long_past.pool.fetchval("SELECT seq FROM agent.messages WHERE id = $1", best[0].message_id)
    assert number == 9_917
    # Old ones are found by their date although the words stand everywhere.
    first = await long_past.pool.fetchval(
        "SELECT min(created_at) FROM agent.messages WHERE agent_id = $1", long_past.agent_id
    )
    assert len(await rankings.by_words(scope, "something said", MessageFilter(end=first), 50)) == 1
    assert len(await rankings.by_words(scope, "something said", MessageFilter(roles=("user",)), 50)) == 50


async def vectors_are_looked_up(long_past: World, agent_url: str) -> None:
    """Many vectors are searched by their index, once there is one."""
    explaining = Explaining(long_past.pool)
    rankings = PostgresRankings(explaining)
    scope = await rankings.scope(ORGANIZATION, long_past.agent_id, None)
    (model,) = [one for one in await rankings.models(scope) if one.dimensions == _DIMENSIONS]
    vector, *others = map(about, range(8))

    async def nearest(wanted: MessageFilter, to: list[float] = vector) -> tuple[list[RankedMessage], str]:
        explaining.plans.clear()
        found = await rankings.by_vector(scope, model, to, wanted, 10)
        return found, explaining.plans[-1]

    exact = []
    for one in (vector, *others):
        found, plan = await nearest(MessageFilter(), one)
        assert "message_vectors_model" not in plan
        exact.append({each.message_id for each in found})
    assert {len(ids) for ids in exact} == {10}
    await VectorIndexing(long_past.pool, agent_url, memory_mib=64).look()
    rankings = PostgresRankings(explaining)
    # Its graph is built by chance, so that one question says little.
    alike = 0
    for one, ids in zip((vector, *others), exact, strict=True):
        by_index, plan = await nearest(MessageFilter(), one)
        assert f"message_vectors_model_{model.id}" in plan
        alike += len(ids & {each.message_id for each in by_index})
    assert alike >= 8 * 9
    # What came since waits beside the index, and is found.
    log_id = await long_past.pool.fetchval(
        "SELECT log_id FROM agent.conversation_heads WHERE conversation_id = $1", long_past.agent_id
    )
    fresh = await long_past.pool.fetchval(
        "UPDATE agent.message_vectors SET embedding = $2::real[]::vector::halfvec, waiting = true"
        " WHERE log_id = $1 AND seq = 5 RETURNING message_id",
        log_id, vector,
    )  # fmt: skip
    by_index, plan = await nearest(MessageFilter())
    assert by_index[0].message_id == fresh
    # Few are read one by one.
    first = await long_past.pool.fetchval("SELECT created_at FROM agent.message_vectors WHERE message_id = $1", fresh)
    few, plan = await nearest(MessageFilter(end=first))
    assert len(few) == 5
    assert "message_vectors_model" not in plan


async def test_a_long_past_is_not_read_for_a_search(long_past: World, agent_url: str) -> None:
    await words_are_looked_up(long_past)
    await vectors_are_looked_up(long_past, agent_url)
