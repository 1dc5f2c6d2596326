"""Results of old calls are forgotten, in portions; those of this month are kept."""

from __future__ import annotations

from datetime import timedelta
from uuid import uuid4

from services.memory.agent_tools.retention import forget_old_calls
from services.memory.agent_tools.store import PostgresCalls
from tests.integration.memory.harness import Memory

OLD = """
INSERT INTO memory.applied_calls (
    organization_id, call_key, agent_id, tool_name, arguments_hash, tool_return, is_error, created_at)
SELECT $1, 'old' || number, $1, 't', '', '', false, now() - interval '31 days' FROM generate_series(1, 2500) AS number
"""


async def test_old_results_are_forgotten_and_new_ones_kept(memory: Memory) -> None:
    agent = await memory.agent_with(human="")
    await memory.apply(agent, "core_memory_append", call_key="new", label="human", content="x")
    await memory.pool.execute(OLD, uuid4())
    calls = PostgresCalls(memory.pool)
    assert await calls.forget(timedelta(days=30), 100) == 100
    await forget_old_calls(calls)
    assert await calls.forget(timedelta(days=30), 100) == 0
    await memory.apply(agent, "core_memory_append", call_key="new", label="human", content="x")
    assert await memory.value(agent, "human") == "x"
