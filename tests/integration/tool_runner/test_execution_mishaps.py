"""Calls that met a mishap: what they leave behind holds nobody up, and nothing of it is told that must not be."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from uuid import UUID, uuid4

import asyncpg
import pytest

from loci.tool.v1 import execution_service_pb2 as execution_pb
from services.common.channel import call_idempotent
from services.common.context import RUN_ROLE, use_context
from services.common.errors import Unavailable
from services.tool_runner.core.job import ExitReason, File, Result
from services.tool_runner.core.model import State
from tests.integration.tool_runner.harness import SIGNER, HeldSandbox, Service, fails, tool_runner


async def _owned(url: str, runner: Service, key: str, owner: UUID, state: State) -> None:
    """Make the receipt one that `owner` has in this state."""
    connection = await asyncpg.connect(url)
    await connection.execute(
        "UPDATE tool_runner.receipts SET state = $3, outcome = 0, owner_id = $4, result = '', ended_at = NULL"
        " WHERE organization_id = $1 AND call_key = $2",
        runner.caller.organization_id,
        key,
        state,
        owner,
    )
    await connection.close()


@pytest.mark.parametrize(
    ("state", "becomes", "runs"),
    [
        (State.RESERVED, execution_pb.RECEIPT_STATE_DONE, 1),
        (State.STARTED, execution_pb.RECEIPT_STATE_UNKNOWN, 0),
    ],
)
async def test_what_this_replica_left_open_is_not_waited_for(
    runner: Service, tool_url: str, state: State, becomes: int, runs: int
) -> None:
    """The database took the statement, and its connection broke before it said so."""
    tool = await runner.upsert()
    runner.sandbox.gate.set()
    await runner.call(tool.id, key="left")
    runner.sandbox.jobs.clear()
    connection = await asyncpg.connect(tool_url)
    own: UUID = await connection.fetchval(
        "SELECT owner_id FROM tool_runner.receipts WHERE organization_id = $1", runner.caller.organization_id
    )
    await connection.close()
    await _owned(tool_url, runner, "left", own, state)
    async with asyncio.timeout(20):
        assert (await runner.call(tool.id, key="left")).state == becomes
    assert len(runner.sandbox.jobs) == runs


async def test_a_call_that_another_replica_took_is_asked_for_again(tool_url: str, tmp_path: Path) -> None:
    async with tool_runner(tool_url, tmp_path, at_once=1) as runner:
        tool = await runner.upsert()
        first = asyncio.ensure_future(runner.call(tool.id, key="first"))
        await runner.until_running()
        second = asyncio.ensure_future(runner.call(tool.id, key="second"))
        await runner.until_state("second", execution_pb.RECEIPT_STATE_RESERVED)
        await _owned(tool_url, runner, "second", uuid4(), State.RESERVED)
        runner.sandbox.gate.set()
        with fails(Unavailable, "UNAVAILABLE"):
            await second
        await first
        assert len(runner.sandbox.jobs) == 1


async def test_a_call_that_a_call_waits_for_does_not_stand_behind_it(tool_url: str, tmp_path: Path) -> None:
    async with tool_runner(tool_url, tmp_path, at_once=1) as runner:
        tool = await runner.upsert()
        outer = asyncio.ensure_future(runner.call(tool.id, key="outer"))
        await runner.until_running()
        inner = []
        for caller in (
            replace(runner.caller, role=RUN_ROLE, run_id=uuid4()),
            replace(runner.caller, ancestors=(uuid4(), uuid4())),
        ):
            with use_context(caller, signer=SIGNER):
                inner.append(asyncio.ensure_future(runner.call(tool.id)))
        await runner.until_running(3)
        runner.sandbox.gate.set()
        for call in (outer, *inner):
            assert (await call).outcome == execution_pb.OUTCOME_SUCCESS


async def test_a_database_that_is_away_for_a_moment_is_asked_again(runner: Service, tool_url: str) -> None:
    """Its connections break, as when it is started anew; the key keeps the call from running twice."""
    tool = await runner.upsert()
    runner.sandbox.gate.set()
    connection = await asyncpg.connect(tool_url)
    try:
        for round_ in range(5):
            request = execution_pb.ExecuteToolRequest(call_key=f"away-{round_}", tool_id=tool.id)
            call = asyncio.ensure_future(call_idempotent(runner.execution.ExecuteTool, request, timeout=60))
            await asyncio.sleep(0.002 * round_)
            await connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
            assert (await call).receipt.state in (execution_pb.RECEIPT_STATE_DONE, execution_pb.RECEIPT_STATE_UNKNOWN)
    finally:
        await connection.close()
    assert len(runner.sandbox.jobs) <= 5


async def test_a_result_that_cannot_be_told_ends_its_call(runner: Service) -> None:
    tool = await runner.upsert()
    runner.sandbox.gate.set()
    runner.sandbox.result = Result(ExitReason.OK, result="9" * 5_000)
    async with asyncio.timeout(20):
        receipt = await runner.call(tool.id, key="huge")
    assert receipt.outcome == execution_pb.OUTCOME_KILLED
    assert "could not be read" in receipt.tool_return


async def test_a_secret_is_hidden_in_names_of_files_and_in_long_results(tool_url: str, tmp_path: Path) -> None:
    secret = "sk-0123456789"
    result = Result(ExitReason.OK, result=f'["{"x" * 40_000}", "{secret}"]', files=(File(f"{secret}.txt", b"x"),))
    async with tool_runner(tool_url, tmp_path, sandbox=HeldSandbox(result=result)) as runner:
        tool = await runner.upsert()
        runner.sandbox.gate.set()
        request = execution_pb.ExecuteToolRequest(call_key="named", tool_id=tool.id, environment={"KEY": secret})
        receipt = (await runner.execution.ExecuteTool(request)).receipt
    assert secret not in str(receipt)
    assert [file.name for file in receipt.files] == ["********.txt"]
