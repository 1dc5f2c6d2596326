"""Receipts are listed, kept for a while, and swept; source runs without being a tool."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

from google.protobuf.timestamp_pb2 import Timestamp

from loci.common.v1.page_pb2 import PageRequest
from loci.tool.v1 import execution_service_pb2 as pb
from loci.tool.v1 import tool_pb2
from services.common.errors import InvalidArgument, NotFound
from services.tool_runner.core.job import ExitReason, File, Mode, Result
from tests.integration.tool_runner.harness import ROLL, Service, fails, tool_runner
from tests.integration.tool_runner.test_files import names, upload
from tests.integration.tool_runner.test_watching import query, rows
from tests.page_requests import paged

AGENT, RUN, STEP = f"agent-{uuid4()}", f"run-{uuid4()}", f"step-{uuid4()}"
TWO = '''
def helper(a, b=1):
    print("helping")
    return a + b

def tool(a: int) -> int:
    """Add.

    Args:
        a: a number
    """
    return helper(a)
'''


async def keys(runner: Service, **wanted: Any) -> list[str]:
    return [
        one.call_key
        for one in (await runner.execution.ListReceipts(pb.ListReceiptsRequest(**paged(**wanted)))).receipts
    ]


async def test_a_receipt_says_who_called_what_under_which_limits(runner: Service) -> None:
    tool = await runner.upsert()
    runner.sandbox.gate.set()
    runner.sandbox.result = Result(ExitReason.OK, result="1", block_edits=(("human", "Ada"),))
    request = pb.ExecuteToolRequest(call_key="whose", tool_id=tool.id, agent_id=AGENT, run_id=RUN, step_id=STEP)
    receipt = (await runner.execution.ExecuteTool(request)).receipt
    assert (receipt.tool_name, receipt.agent_id, receipt.run_id, receipt.step_id) == ("roll_dice", AGENT, RUN, STEP)
    assert json.loads(receipt.limits_json)["memory"] == 512 * 1024 * 1024
    assert [(edit.label, edit.value) for edit in receipt.block_edits] == [("human", "Ada")]
    assert receipt.reserved_at.ToNanoseconds() <= receipt.started_at.ToNanoseconds()
    assert await runner.receipt("whose") == receipt


async def test_lists_filter_and_page(runner: Service) -> None:
    tool, other = await runner.upsert(), await runner.upsert(TWO)
    runner.sandbox.gate.set()
    for key, tool_id, fields in (
        ("one.1", tool.id, {"agent_id": AGENT, "run_id": RUN}),
        ("two/2", tool.id, {"agent_id": AGENT}),
        ("three", other.id, {"arguments_json": "[]"}),
    ):
        await runner.execution.ExecuteTool(pb.ExecuteToolRequest(call_key=key, tool_id=tool_id, **fields))  # type: ignore[arg-type]
    assert await keys(runner) == ["three", "two/2", "one.1"]
    assert await keys(runner, agent_id=AGENT) == ["two/2", "one.1"]
    assert await keys(runner, run_id=RUN) == ["one.1"]
    assert await keys(runner, tool_id=other.id) == ["three"]
    assert await keys(runner, outcomes=[pb.OUTCOME_INVALID_ARGUMENTS]) == ["three"]
    assert await keys(runner, states=[pb.RECEIPT_STATE_RESERVED, pb.RECEIPT_STATE_STARTED]) == []
    moment = Timestamp()
    moment.FromDatetime(datetime.now(UTC) - timedelta(hours=1))
    assert (await keys(runner, until=moment), len(await keys(runner, since=moment))) == ([], 3)
    seen, token = [], ""
    while True:
        page = await runner.execution.ListReceipts(
            pb.ListReceiptsRequest(page=PageRequest(page_size=1, page_token=token))
        )
        seen += [one.call_key for one in page.receipts]
        assert all(not one.tool_return for one in page.receipts)
        if not (token := page.next_page_token):
            break
    assert seen == ["three", "two/2", "one.1"]
    refused: tuple[tuple[dict[str, Any], str], ...] = (
        ({"page_size": 1_001}, "PAGE_SIZE_INVALID"),
        ({"page_token": "!"}, "PAGE_TOKEN_INVALID"),
        ({"states": [9]}, "RECEIPT_FILTER_INVALID"),
        ({"run_id": "nonsense"}, "INVALID_ID"),
    )
    for wanted, reason in refused:
        with fails(InvalidArgument, reason):
            await keys(runner, **wanted)
    with runner.of(uuid4()):
        assert await keys(runner) == []


async def test_old_receipts_go_with_their_files_and_those_of_running_calls_stay(tool_url: str, tmp_path: Path) -> None:
    async with tool_runner(tool_url, tmp_path, receipt_days=30) as runner:
        tool = await runner.upsert()
        runner.sandbox.result = Result(ExitReason.OK, result="1", files=(File("made.txt", b"x"),))
        runner.sandbox.gate.set()
        await runner.call(tool.id, key="done")
        runner.sandbox.gate.clear()
        live = asyncio.ensure_future(runner.call(tool.id, key="live"))
        await runner.until_running(2)
        await upload(runner, "old.txt", b"")
        organization_id = runner.caller.organization_id
        for table, column in (("receipts", "reserved_at"), ("files", "created_at")):
            older = (
                f"UPDATE tool_runner.{table} SET {column} = {column} - interval '31 days' WHERE organization_id = $1"
            )
            await query(tool_url, older, organization_id)
        await query(tool_url, "INSERT INTO tool_runner.outputs VALUES ($1, 'gone', 1, 1, 'x')", organization_id)
        await upload(runner, "new.txt", b"")
        swept = await asyncio.gather(runner.runner.sweeper.sweep(), runner.runner.sweeper.sweep())
        assert sum(swept) == 2  # the receipt that has ended, and the file that was uploaded
        assert await keys(runner) == ["live"]
        assert await names(runner) == ["new.txt"]
        assert await rows(tool_url) == 0
        runner.sandbox.gate.set()
        assert (await live).outcome == pb.OUTCOME_SUCCESS


async def test_source_runs_once_in_the_sandbox_and_is_no_tool(runner: Service) -> None:
    runner.sandbox.gate.set()
    request = pb.RunSourceRequest(
        call_key="source",
        tool=tool_pb2.Tool(source_code=ROLL),
        arguments_json='{"num_sides": 4}',
        environment={"CITY": "Oslo"},
    )
    receipt = (await runner.execution.RunSource(request)).receipt
    assert (receipt.tool_return, receipt.tool_name, receipt.sandbox) == ("7", "roll_dice", "held")
    assert (await runner.execution.RunSource(request)).receipt == receipt
    (job,) = runner.sandbox.jobs
    assert (job.function, job.mode, job.environment["CITY"]) == ("roll_dice", Mode.CALL, "Oslo")
    with fails(NotFound, "TOOL_NOT_FOUND"):
        await runner.call(receipt.tool_id)
    with fails(InvalidArgument, "TOOL_SOURCE_INVALID"):
        broken = tool_pb2.Tool(source_code="def broken(:")
        await runner.execution.RunSource(pb.RunSourceRequest(call_key="broken", tool=broken))


async def test_a_function_that_is_named_is_the_one_that_runs(runner: Service) -> None:
    runner.sandbox.gate.set()
    for name, function in (("", "tool"), ("tool", "tool"), ("helper", "helper")):
        request = pb.RunSourceRequest(
            call_key=f"of {name}",
            tool=tool_pb2.Tool(source_code=TWO),
            function_name=name,
            arguments_json='{"a": 2}',
        )
        receipt = (await runner.execution.RunSource(request)).receipt
        assert receipt.outcome == pb.OUTCOME_SUCCESS, receipt.tool_return
        assert runner.sandbox.jobs[-1].function == function
    with fails(InvalidArgument, "TOOL_SCHEMA_INVALID"):
        request = pb.RunSourceRequest(call_key="no", tool=tool_pb2.Tool(source_code=TWO), function_name="nobody")
        await runner.execution.RunSource(request)


async def test_state_and_client_reach_those_that_take_them(runner: Service) -> None:
    runner.sandbox.gate.set()
    source = 'def stateful(agent_state):\n    """Look."""\n    return 1\n'
    with_state, without = await runner.upsert(source), await runner.upsert()
    assert with_state.takes_agent_state
    state = '{"id": "agent-1"}'
    for tool in (with_state, without):
        request = pb.ExecuteToolRequest(
            call_key=tool.name, tool_id=tool.id, agent_state_json=state, client_token="loci-run-x", run_id=RUN
        )
        await runner.execution.ExecuteTool(request)
    first, second = runner.sandbox.jobs
    assert (first.agent_state, second.agent_state) == (state, "")
    assert first.client
    assert first.environment["LETTA_BASE_URL"] == "http://loci"
    assert "loci-run-x" not in str(dict(first.environment))
    assert (first.tenant, first.session) == (str(runner.caller.organization_id), "")
