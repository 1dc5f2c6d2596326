"""Tools of memory, asked for by an owner of a run that is no longer one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from uuid import UUID, uuid4

import pytest

from loci.memory.v1 import agent_memory_service_pb2 as agent_pb
from services.common.context import use_context
from services.common.errors import FailedPrecondition
from tests.integration.memory.harness import SIGNER, Memory, fails

CALLS: dict[str, dict[str, Any]] = {
    "memory_insert": {"label": "human", "new_string": "Ada"},
    "memory": {"command": "create", "path": "/memories/new", "file_text": "Ada", "description": "d"},
    "archival_memory_insert": {"content": "Ada", "tags": []},
    "archival_memory_search": {"query": "Ada"},
    "memory_finish_edits": {},
}


@contextmanager
def owner(memory: Memory, run_id: UUID, fence: int) -> Iterator[None]:
    """Calls in this block are those of a run's owner."""
    with use_context(SIGNER.signed(replace(memory.caller, run_id=run_id, fence=fence))):
        yield


@pytest.mark.parametrize("tool", CALLS)
async def test_what_a_fenced_owner_asks_for_is_refused(memory: Memory, tool: str) -> None:
    agent, run_id = await memory.agent_with(human="h"), uuid4()
    with owner(memory, run_id, 1):
        await memory.apply(agent, tool, call_key=f"{tool} before", **CALLS[tool])
        before = await memory.value(agent, "human")
    with owner(memory, run_id, 2):
        for _ in range(2):
            await memory.agents.FenceRun(agent_pb.FenceRunRequest())
    with owner(memory, run_id, 1):
        with fails(FailedPrecondition, "RUN_FENCED"):
            await memory.apply(agent, tool, call_key=f"{tool} after", **CALLS[tool])
        assert await memory.value(agent, "human") == before
    with owner(memory, run_id, 2):
        await memory.apply(agent, tool, call_key=f"{tool} after", **CALLS[tool])


async def test_of_what_was_done_before_the_answer_stays(memory: Memory) -> None:
    agent, run_id = await memory.agent_with(human="h"), uuid4()
    with owner(memory, run_id, 1):
        told = await memory.apply(agent, "memory_insert", call_key="k", **CALLS["memory_insert"])
    with owner(memory, run_id, 2):
        await memory.agents.FenceRun(agent_pb.FenceRunRequest())
    with owner(memory, run_id, 1):
        again = await memory.apply(agent, "memory_insert", call_key="k", **CALLS["memory_insert"])
    assert again.tool_return == told.tool_return
