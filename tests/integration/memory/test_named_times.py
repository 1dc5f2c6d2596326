"""A question that names a time finds first what was stored then."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from loci.memory.v1 import passage_pb2
from loci.memory.v1 import passage_service_pb2 as pb
from services.common.timestamps import timestamp
from tests.integration.memory.harness import Memory


async def dinners(memory: Memory, embedding: str = "") -> str:
    """The agent that remembers a dinner of each week of 2023."""
    agent = await memory.agent_with()
    begin = datetime(2023, 1, 6, tzinfo=UTC)
    drafts = [
        pb.PassageDraft(
            text=f"Tim: I cooked dish{week} for the neighbours.",
            created_at=timestamp(begin + week * timedelta(weeks=1)),
        )
        for week in range(52)
    ]
    request = pb.CreatePassagesRequest(agent_id=agent, passages=drafts, embedding=embedding)
    await memory.passages.CreatePassages(request)
    return agent


def months(hits: Sequence[Any]) -> set[int]:
    return {hit.passage.created_at.ToDatetime().month for hit in hits}


async def test_what_was_stored_then_comes_first(memory: Memory) -> None:
    for agent in (await dinners(memory), await dinners(memory, "test/concepts")):
        hits = await memory.search(agent, "What did Tim cook in May 2023?", top_k=4)
        assert [hit.passage.created_at.ToDatetime().month for hit in hits] == [5] * 4
        hits = await memory.search(agent, "What did Tim cook on the 11th of August 2023?", top_k=1)
        assert months(hits) == {8}
        # The rest is there still, for a time that was meant otherwise.
        assert len(await memory.search(agent, "What did Tim cook in May 2023?", top_k=50)) == 50
        assert len(await memory.search(agent, "What did Tim cook in May 1993?", top_k=10)) == 10


async def test_whoever_says_when_decides(memory: Memory) -> None:
    agent = await dinners(memory)
    query = "What did Tim cook in May 2023?"
    hits = await memory.search(agent, query, top_k=50, start_time=timestamp(datetime(2023, 8, 1, tzinfo=UTC)))
    assert months(hits) == {8, 9, 10, 11, 12}
    by_words = await memory.search(agent, query, top_k=50, mode=passage_pb2.SEARCH_MODE_TEXT)
    assert months(by_words[:4]) != {5}


async def test_before_and_after_an_event_that_was_told_of(memory: Memory) -> None:
    agent = await dinners(memory)
    trip = pb.PassageDraft(
        text="Ada: the trip to Rome was lovely!", created_at=timestamp(datetime(2023, 6, 15, tzinfo=UTC))
    )
    await memory.passages.CreatePassages(pb.CreatePassagesRequest(agent_id=agent, passages=[trip]))
    before = await memory.search(agent, "What did Tim cook before the trip to Rome?", top_k=20)
    assert months(before) <= {1, 2, 3, 4, 5, 6}
    after = await memory.search(agent, "What did Tim cook after the trip to Rome?", top_k=20)
    assert months(after) <= {6, 7, 8, 9, 10, 11, 12}
    # Of what nobody told nothing is known, and all of it stays.
    assert len(await memory.search(agent, "What did Tim cook before the wedding?", top_k=50)) == 50
