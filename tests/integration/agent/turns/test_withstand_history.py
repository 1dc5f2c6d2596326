"""A turn of an agent with 10,000 messages reads no more than one with 100, whatever became of its conversation."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from services.agent.core.facts import RunStatus
from services.agent.postgres import sql
from services.agent.postgres.conversations import WINDOW_MESSAGES
from services.agent.postgres.rows import input_rows
from services.common.ids import uuid7
from services.common.statement_counter import StatementCounter
from tests.integration.agent.world import ORGANIZATION, World, end, text, world_on

# How long the windows are that a compaction moved.
KEPT = 20

_FILL = """
INSERT INTO agent.messages (organization_id, log_id, seq, id, agent_id, conversation_id, role, content, search)
SELECT $1, $2, n, gen_random_uuid(), $3, $3, CASE WHEN n % 2 = 1 THEN 'user' ELSE 'assistant' END,
       jsonb_build_array(jsonb_build_object('type', 'text', 'text', 'Something was said here, number ' || n)),
       to_tsvector('english', 'Something was said here, number ' || n)
FROM generate_series($4::int, $5::int) n
"""


@dataclass(frozen=True)
class Life:
    """How many messages, in how many segments of equal length, and whether a compaction moved the window."""

    messages: int
    segments: int = 1
    moved: bool = False

    @property
    def window(self) -> int:
        """How many messages are read for a turn."""
        return KEPT if self.moved else min(self.messages, WINDOW_MESSAGES)


LIVES = {
    "young": Life(100),
    "old": Life(10_000),
    "old, in segments": Life(10_000, segments=5),
    "young, compacted": Life(100, moved=True),
    "old, compacted": Life(10_000, moved=True),
    "old, in segments, compacted": Life(10_000, segments=5, moved=True),
}


@pytest.fixture
async def world(agent_url: str) -> AsyncIterator[World]:
    """A world beside the lives of others."""
    async with world_on(agent_url, StatementCounter()) as made:
        others = 2 - await made.pool.fetchval("SELECT count(*) FROM agent.conversation_heads WHERE next_seq > 10000")
        for _ in range(others):
            await live(made, Life(10_000))
        yield made


async def live(world: World, life: Life) -> None:
    """An agent that has lived this life."""
    agent_id = await world.add_agent()
    head = await world.pool.fetchval("SELECT log_id FROM agent.conversation_heads WHERE conversation_id = $1", agent_id)
    logs: list[UUID] = [*(uuid7() for _ in range(life.segments - 1)), head]
    await world.pool.execute("DELETE FROM agent.conversation_segments WHERE conversation_id = $1", agent_id)
    size = life.messages // life.segments
    for number, log_id in enumerate(logs):
        first, last = number * size + 1, (number + 1) * size
        # Each log goes on where the conversation forked from it: what came later there is not its own.
        beyond = 0 if log_id == head else 50
        await world.pool.execute(_FILL, ORGANIZATION, log_id, agent_id, first, last + beyond)
        await world.pool.execute(
            "INSERT INTO agent.conversation_segments"
            " (organization_id, conversation_id, ordinal, log_id, from_seq, to_seq) VALUES ($1, $2, $3, $4, $5, $6)",
            ORGANIZATION,
            agent_id,
            number,
            log_id,
            first,
            last if beyond else None,
        )
    window = (life.segments - 1, life.messages - KEPT + 1) if life.moved else (0, 1)
    await world.pool.execute(
        "UPDATE agent.conversation_heads SET next_seq = $2, window_ordinal = $3, window_seq = $4"
        " WHERE conversation_id = $1",
        agent_id,
        life.messages + 1,
        *window,
    )
    await world.pool.execute("ANALYZE agent.messages, agent.conversation_segments, agent.conversation_heads")


async def plan_of_start(world: World) -> dict[str, Any]:
    """What Postgres did for the statement that begins a turn; it is undone."""
    request = world.request()
    async with world.pool.acquire() as connection:
        transaction = connection.transaction()
        await transaction.start()
        try:
            statement, *values = sql.START.bind(
                organization_id=ORGANIZATION,
                conversation_id=world.agent_id,
                run_id=request.run_id,
                agent_id=world.agent_id,
                user_id=ORGANIZATION,
                worker_id=uuid7(),
                seconds=60.0,
                ancestors=[],
                ceiling=None,
                request_hash=None,
                keys=[],
                options={},
                messages=input_rows(request.messages),
                message_count=1,
                schema_version=1,
                created_at=datetime.now(UTC),
                fits=False,
                most_messages=WINDOW_MESSAGES,
            )
            explained = await connection.fetchval(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {statement}", *values)
        finally:
            await transaction.rollback()
    plan: dict[str, Any] = explained[0]["Plan"]
    return plan


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """A plan's nodes."""
    yield plan
    for part in plan.get("Plans", ()):
        yield from nodes(part)


@pytest.mark.parametrize("name", LIVES)
async def test_what_a_turn_reads(world: World, name: str) -> None:
    life = LIVES[name]
    await live(world, life)
    found = list(nodes(await plan_of_start(world)))
    reads = [node for node in found if node.get("Relation Name") == "messages" and node["Node Type"] != "ModifyTable"]
    assert all(node["Node Type"] == "Index Scan" for node in reads), reads
    of_window = [node for node in reads if node["Index Name"] == "messages_pkey"]
    assert {node["Scan Direction"] for node in of_window} == {"Backward"}
    rows = sum(node["Actual Rows"] * node["Actual Loops"] for node in reads)
    removed = sum(node.get("Rows Removed by Filter", 0) * node["Actual Loops"] for node in reads)
    # The newest segment may be looked at once more to see that it is over.
    assert life.window <= rows <= life.window + life.segments
    assert removed == 0
    assert not [node for node in found if node["Node Type"] == "Sort" and node["Actual Rows"] > 10]


@pytest.mark.usefixtures("by_notice_alone")
@pytest.mark.parametrize("name", LIVES)
async def test_what_a_turn_asks(agent_url: str, name: str) -> None:
    counter = StatementCounter(keep_texts=True)
    async with world_on(agent_url, counter) as world, world.replica() as replica:
        await live(world, LIVES[name])
        await replica.settles()
        await replica.send(world.request())
        await asyncio.sleep(0)
        counter.reset()
        replica.models.replies = [text("Here I am.")]
        assert end(await replica.send(world.request())).run.status is RunStatus.COMPLETED
        await asyncio.sleep(0)
        assert (counter.statements, counter.transactions) == (2, 2), counter.texts
        # After a compaction, where the first turn found too much to show.
        history = [message for message in replica.models.requests[-1].history if message.role != "summary"]
        shown = [message.seq for message in history if message.seq]
        assert shown == list(range(shown[0], shown[0] + len(shown)))
        assert len(shown) >= min(LIVES[name].window, 100)
