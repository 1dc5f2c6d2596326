"""Calls of runs: cancelled before they come, asked for by an owner that is none any more, left by one that lives."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from uuid import UUID, uuid4

import asyncpg

from loci.tool.v1 import execution_service_pb2 as pb
from services.common.context import use_context
from services.common.errors import FailedPrecondition, NotFound
from services.tool_runner.core.model import State
from tests.integration.tool_runner.harness import SIGNER, Service, fails, tool_runner

# Others go on within seconds, or never.
SECONDS = 30.0


@contextmanager
def owner(runner: Service, run_id: UUID, fence: int) -> Iterator[None]:
    """Calls in this block are those of a run's owner."""
    with use_context(replace(runner.caller, run_id=run_id, fence=fence), signer=SIGNER):
        yield


async def test_a_cancel_that_overtakes_its_call_keeps_it_from_running(tool_url: str, tmp_path: Path) -> None:
    async with tool_runner(tool_url, tmp_path) as first:
        organization_id = first.caller.organization_id
        async with tool_runner(tool_url, tmp_path, organization_id=organization_id) as second:
            tool = await first.upsert()
            with owner(first, uuid4(), 1):
                cancelled = await first.cancel("late")
                assert cancelled.outcome == pb.OUTCOME_CANCELLED
                assert "Nothing was run" in cancelled.tool_return
                assert await second.call(tool.id, key="late") == cancelled
                assert await first.cancel("late") == cancelled
            assert (first.sandbox.jobs, second.sandbox.jobs) == ([], [])


async def test_outside_of_runs_a_key_that_nobody_used_stays_free(runner: Service) -> None:
    tool = await runner.upsert()
    runner.sandbox.gate.set()
    with fails(NotFound, "CALL_NOT_FOUND"):
        await runner.cancel("free")
    assert (await runner.call(tool.id, key="free")).outcome == pb.OUTCOME_SUCCESS


async def test_what_a_fenced_owner_asks_for_is_refused(runner: Service) -> None:
    tool, run_id = await runner.upsert(), uuid4()
    runner.sandbox.gate.set()
    with owner(runner, run_id, 1):
        before = await runner.call(tool.id, key="before")
    with owner(runner, run_id, 2):
        for _ in range(2):
            await runner.execution.FenceRun(pb.FenceRunRequest())
    with owner(runner, run_id, 1):
        with fails(FailedPrecondition, "RUN_FENCED"):
            await runner.call(tool.id, key="after")
        assert await runner.call(tool.id, key="before") == before
    with owner(runner, run_id, 2):
        assert (await runner.call(tool.id, key="after")).outcome == pb.OUTCOME_SUCCESS
    with owner(runner, uuid4(), 1):
        assert (await runner.call(tool.id, key="of another run")).outcome == pb.OUTCOME_SUCCESS
    assert len(runner.sandbox.jobs) == 3


async def test_what_a_living_replica_left_reserved_is_run_by_another(tool_url: str, tmp_path: Path) -> None:
    """The answer to its reservation was lost; its other calls keep its lease alive."""
    async with tool_runner(tool_url, tmp_path) as first:
        organization_id = first.caller.organization_id
        async with tool_runner(tool_url, tmp_path, organization_id=organization_id) as second:
            tool = await first.upsert()
            busy = asyncio.ensure_future(first.call(tool.id, key="busy"))
            await first.until_running()
            second.sandbox.gate.set()
            await second.call(tool.id, key="left")
            await _leave_reserved(tool_url, "left", by_owner_of="busy")
            async with asyncio.timeout(SECONDS):
                assert (await second.call(tool.id, key="left")).outcome == pb.OUTCOME_SUCCESS
            assert len(second.sandbox.jobs) == 2
            assert not busy.done()
            first.sandbox.gate.set()
            assert (await busy).outcome == pb.OUTCOME_SUCCESS


async def _leave_reserved(url: str, key: str, *, by_owner_of: str) -> None:
    connection = await asyncpg.connect(url)
    await connection.execute(
        "UPDATE tool_runner.receipts r SET state = $3, outcome = 0, result = '', ended_at = NULL, owner_id = o.owner_id"
        " FROM tool_runner.receipts o"
        " WHERE r.call_key = $1 AND o.call_key = $2 AND o.organization_id = r.organization_id",
        key,
        by_owner_of,
        State.RESERVED,
    )
    await connection.close()
