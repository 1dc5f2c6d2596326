"""A database that stores a commit and whose answer is lost: the run goes on, and no model is paid twice."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator

import pytest

from services.agent.core.facts import RunStatus
from services.agent.core.ports import ModelRequest, PartDelta, Reply
from tests.integration.agent.world import ORGANIZATION, SECONDS, World, end, text, world_on
from tests.postgres_line import PostgresLine


@pytest.fixture
async def line(agent_url: str) -> AsyncIterator[PostgresLine]:
    """A line to the agent's database."""
    async with PostgresLine(agent_url).serving() as line:
        yield line


@pytest.mark.parametrize("arrives", [True, False], ids=["stored", "never sent"])
async def test_a_commit_whose_answer_is_lost_is_found_or_made_again(line: PostgresLine, arrives: bool) -> None:
    async with world_on(line.url, patience=0.5) as world:
        asked: list[ModelRequest] = []

        async def reply(request: ModelRequest) -> AsyncGenerator[PartDelta | Reply]:
            asked.append(request)
            (line.fall_silent if arrives else line.swallow)()
            asyncio.get_running_loop().call_later(1.0, line.speak)
            yield text("Paid for.")

        request = world.request()
        async with world.replica(replies=[reply]) as replica, asyncio.timeout(SECONDS):
            await replica.worker.accept(request, stream=False)
            events = [event async for event in replica.reader.follow(ORGANIZATION, request.run_id)]
        assert end(events).run.status is RunStatus.COMPLETED
        assert len(asked) == 1
        assert await _facts(world) == list(range(1, len(await _facts(world)) + 1))
        said = await world.pool.fetch("SELECT content FROM agent.messages WHERE role = 'assistant'")
        assert len(said) == 1


async def _facts(world: World) -> list[int]:
    rows = await world.pool.fetch("SELECT number FROM agent.facts ORDER BY number")
    return [row["number"] for row in rows]
