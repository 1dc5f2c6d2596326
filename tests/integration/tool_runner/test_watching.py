"""The output of calls, watched on any replica: live, from rows, and from the receipt, with the same numbers."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from loci.tool.v1 import execution_service_pb2 as pb
from services.common.errors import FailedPrecondition, NotFound
from services.tool_runner.core.job import ExitReason, Limits, Result, ToolError
from services.tool_runner.executions import perform
from tests.integration.tool_runner.harness import Client, Service, fails, tool_runner
from tests.integration.tool_runner.test_execution import _Dead

SECRET = "hunter2-and-more"


async def watched(client: Client, key: str, after: int = 0) -> list[tuple[int, str, str]]:
    """Number, kind and text of each event; the receipt's outcome as its text."""
    events: list[tuple[int, str, str]] = []
    async for event in client.execution.StreamExecution(pb.StreamExecutionRequest(call_key=key, after_sequence=after)):
        kind = event.WhichOneof("event")
        assert kind is not None
        text = pb.Outcome.Name(event.receipt.outcome) if kind == "receipt" else getattr(event, kind)
        events.append((event.sequence, kind, text))
    return events


async def query(url: str, statement: str, *values: object) -> Any:
    """The one value that a statement gives."""
    connection = await asyncpg.connect(url)
    try:
        return await connection.fetchval(statement, *values)
    finally:
        await connection.close()


async def rows(url: str) -> int:
    """Pieces of output that are stored."""
    found: int = await query(url, "SELECT count(*) FROM tool_runner.outputs")
    return found


async def until_rows(url: str, count: int) -> None:
    """So many pieces are stored."""
    async with asyncio.timeout(20):
        while await rows(url) < count:
            await asyncio.sleep(0.05)
    assert await rows(url) == count


async def test_every_replica_tells_the_same(tool_url: str, tmp_path: Path) -> None:
    async with tool_runner(tool_url, tmp_path) as first:
        organization_id = first.caller.organization_id
        async with tool_runner(tool_url, tmp_path, organization_id=organization_id) as second:
            tool = await first.upsert()
            first.sandbox.prints = [("stdout", "one"), ("stderr", "two")]
            call = asyncio.ensure_future(first.call(tool.id, key="both"))
            await first.until_running()
            here, there = (asyncio.ensure_future(watched(client, "both")) for client in (first, second))
            await until_rows(tool_url, 2)
            first.sandbox.print("stdout", "three")
            await until_rows(tool_url, 3)
            assert not here.done()
            assert not there.done()
            first.sandbox.result = Result(ExitReason.OK, result="1", stdout="onethree four", stderr="two")
            first.sandbox.gate.set()
            expected = [
                (1, "stdout", "one"),
                (2, "stderr", "two"),
                (3, "stdout", "three"),
                (4, "stdout", " four"),
                (5, "receipt", "OUTCOME_SUCCESS"),
            ]
            assert await here == expected
            assert await there == expected
            receipt = await call
            assert (receipt.stdout, receipt.stderr) == ("onethree four", "two")
            assert await watched(second, "both") == expected
            assert await watched(second, "both", after=3) == expected[3:]
            assert await rows(tool_url) == 0


async def test_a_short_call_stores_no_output_of_its_own(runner: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(perform, "_FIRST_OUTPUT_SECONDS", 60.0)
    tool = await runner.upsert()
    runner.sandbox.prints = [("stdout", "one")]
    runner.sandbox.gate.set()
    await runner.call(tool.id)
    runner.counter.reset()
    await runner.call(tool.id)
    await asyncio.sleep(0)
    assert runner.counter.texts
    assert not any("INSERT INTO tool_runner.outputs" in text for text in runner.counter.texts)


async def test_what_a_dead_owner_left_is_told_and_then_its_receipt(runner: Service, tool_url: str) -> None:
    tool = await runner.upsert()
    dead = _Dead(tool_url, runner)
    await dead.leave(tool.id, "dead", pb.RECEIPT_STATE_STARTED)
    begun = "INSERT INTO tool_runner.outputs VALUES ($1, 'dead', 1, 1, 'begun'), ($1, 'dead', 2, 2, 'bad')"
    await query(tool_url, begun, runner.caller.organization_id)
    expected = [(1, "stdout", "begun"), (2, "stderr", "bad"), (3, "receipt", "OUTCOME_UNSPECIFIED")]
    assert await watched(runner, "dead") == expected
    receipt = await runner.receipt("dead")
    assert (receipt.state, receipt.stdout, receipt.stderr) == (pb.RECEIPT_STATE_UNKNOWN, "begun", "bad")
    assert await rows(tool_url) == 0


async def test_a_call_that_cannot_be_run_ends_its_stream_with_the_reason(runner: Service) -> None:
    tool = await runner.upsert()
    with fails(NotFound, "CALL_NOT_FOUND"):
        await watched(runner, "never")
    runner.sandbox.unavailable = "install bubblewrap"
    with fails(FailedPrecondition, "SANDBOX_UNAVAILABLE"):
        await runner.call(tool.id, key="later")


async def test_a_cancelled_call_keeps_what_it_had_printed(runner: Service) -> None:
    tool = await runner.upsert()
    runner.sandbox.prints = [("stdout", "half")]
    call = asyncio.ensure_future(runner.call(tool.id, key="cancel"))
    await runner.until_running()
    assert (await runner.cancel("cancel")).stdout == "half"
    assert await call == await runner.receipt("cancel")


@pytest.mark.parametrize("reason", [ExitReason.OK, ExitReason.RAISED])
async def test_secrets_are_masked_wherever_they_are_told(runner: Service, tool_url: str, reason: ExitReason) -> None:
    tool = await runner.upsert()
    runner.sandbox.gate.set()
    runner.sandbox.prints = [("stdout", "key hunt"), ("stdout", "er2-and-more"), ("stderr", SECRET)]
    error = None if reason is ExitReason.OK else ToolError("E", SECRET, SECRET)
    result = f'["\\u0068unter2-and-more", "{SECRET}"]' if reason is ExitReason.OK else None
    edits = (("human", f"knows {SECRET}"),)
    runner.sandbox.result = Result(reason, result=result, error=error, block_edits=edits)
    request = pb.ExecuteToolRequest(call_key="secret", tool_id=tool.id, environment={"API_KEY": SECRET})
    receipt = (await runner.execution.ExecuteTool(request)).receipt
    assert SECRET not in str(receipt)
    assert receipt.stdout.startswith("key ***")
    assert runner.sandbox.jobs[0].environment["API_KEY"] == SECRET
    assert SECRET not in await query(tool_url, "SELECT string_agg(r::text, ' ') FROM tool_runner.receipts r")


async def test_a_flood_is_cut_with_a_marker(tool_url: str, tmp_path: Path) -> None:
    async with tool_runner(tool_url, tmp_path, limits=Limits(capture=10)) as runner:
        tool = await runner.upsert()
        runner.sandbox.gate.set()
        runner.sandbox.prints = [("stdout", "x" * 8)] * 100
        receipt = await runner.call(tool.id, key="flood")
        assert receipt.stdout == "x" * 10 + "\n... (cut at 10 bytes)"
        assert [text for _, kind, text in await watched(runner, "flood") if kind == "stdout"] == [
            "x" * 8,
            "xx\n... (cut at 10 bytes)",
        ]
