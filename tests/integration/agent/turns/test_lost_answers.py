"""A database that stores a commit and whose answer is lost: the run goes on, and no model is paid twice."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator

import pytest

from services.agent.core.facts import RunStatus
from services.agent.core.ports import ModelRequest, PartDelta, Reply
from services.common.database import open_pool
from tests.integration.agent.world import SECONDS, text, world_on
from tests.postgres_line import PostgresLine


@pytest.fixture
async def line(agent_url: str) -> AsyncIterator[PostgresLine]:
    """A line to the agent's database."""
    async with PostgresLine(agent_url).serving() as line:
        yield line


@pytest.mark.parametrize("arrives", [True, False], ids=["stored", "never sent"])
async def test_a_commit_whose_answer_is_lost_is_found_or_made_again(
    line: PostgresLine, agent_url: str, arrives: bool
) -> None:
    async with world_on(line.url, patience=0.5) as world:
        asked: list[ModelRequest] = []

        async def reply(request: ModelRequest) -> AsyncGenerator[PartDelta | Reply]:
            asked.append(request)
            (line.fall_silent if arrives else line.swallow)()
            asyncio.get_running_loop().call_later(1.0, line.speak)
            yield text("Paid for.")

        request = world.request()
        ended = "SELECT status FROM agent.runs WHERE id = $1 AND completed_at IS NOT NULL"
        async with world.replica(replies=[reply]) as replica, await open_pool(agent_url, size=1) as direct:
            await replica.worker.accept(request, stream=False)
            async with asyncio.timeout(SECONDS):
                while (status := await direct.fetchval(ended, request.run_id)) is None:
                    await asyncio.sleep(0.05)
        assert status == RunStatus.COMPLETED
        assert len(asked) == 1
        facts = await world.pool.fetch(
            "SELECT number FROM agent.facts WHERE run_id = $1 ORDER BY number", request.run_id
        )
        assert [row["number"] for row in facts] == list(range(1, len(facts) + 1))
        said = "SELECT count(*) FROM agent.messages WHERE role = 'assistant' AND run_id = $1"
        assert await world.pool.fetchval(said, request.run_id) == 1
