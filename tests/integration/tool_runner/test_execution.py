"""A tool acts at most once: receipts, attaching, cancelling, and owners that die."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from uuid import uuid4, uuid5

import asyncpg
import pytest
from google.protobuf.duration_pb2 import Duration
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from loci.tool.v1 import execution_service_pb2 as execution_pb
from loci.tool.v1 import tool_service_pb2 as tool_pb
from services.common import telemetry
from services.common.errors import FailedPrecondition, InvalidArgument, NotFound, Unavailable
from services.tool_runner.core.job import ExitReason, Limits, Result, ToolError
from tests.integration.tool_runner.harness import HeldSandbox, Service, fails, tool_runner

AGENT = f"agent-{uuid4()}"


async def test_a_call_runs_and_leaves_its_receipt(runner: Service) -> None:
    tool = await runner.upsert()
    runner.sandbox.gate.set()
    runner.sandbox.result = Result(ExitReason.OK, result='{"b": 1, "a": "é"}', stdout="out\n", stderr="err")
    request = execution_pb.ExecuteToolRequest(
        call_key="one",
        tool_id=tool.id,
        arguments_json='{"num_sides": 20}',
        agent_id=AGENT,
        timeout=Duration(seconds=9),
        environment={"CITY": "Oslo"},
    )
    receipt = (await runner.execution.ExecuteTool(request)).receipt
    assert (receipt.state, receipt.outcome) == (execution_pb.RECEIPT_STATE_DONE, execution_pb.OUTCOME_SUCCESS)
    assert receipt.result_json == '{"b": 1, "a": "é"}'
    assert receipt.tool_return == "{'b': 1, 'a': 'é'}"
    assert (receipt.stdout, receipt.stderr) == ("out\n", "err")
    assert (receipt.sandbox, receipt.image, receipt.tool_version) == ("held", "held:1", 1)
    assert len(receipt.arguments_hash) == len(receipt.output_hash) == 64
    assert receipt.started_at.ToNanoseconds() <= receipt.ended_at.ToNanoseconds()
    (job,) = runner.sandbox.jobs
    assert (job.function, dict(job.arguments), job.limits.seconds) == ("roll_dice", {"num_sides": 20}, 9.0)
    assert job.environment == {"LETTA_AGENT_ID": AGENT, "LETTA_TOOL_ID": tool.id, "CITY": "Oslo"}
    assert await runner.receipt("one") == receipt


async def test_the_same_key_gets_the_same_result_and_runs_once(runner: Service) -> None:
    tool = await runner.upsert()
    runner.sandbox.gate.set()
    first = await runner.call(tool.id, key="same", num_sides=6)
    again = await runner.call(tool.id, key="same", num_sides=6)
    assert again == first
    assert len(runner.sandbox.jobs) == 1
    with fails(FailedPrecondition, "CALL_KEY_REUSED"):
        await runner.call(tool.id, key="same", num_sides=7)
    await runner.tools.DeleteTool(tool_pb.DeleteToolRequest(tool_id=tool.id))
    assert await runner.call(tool.id, key="same", num_sides=6) == first
    with fails(FailedPrecondition, "CALL_KEY_REUSED"):
        await runner.call(tool.id, key="same", num_sides=7)


async def test_equal_arguments_are_equal_however_they_are_written(runner: Service) -> None:
    tool = await runner.upsert()
    runner.sandbox.gate.set()
    await runner.call(tool.id, key="spaces", num_sides=6)
    request = execution_pb.ExecuteToolRequest(call_key="spaces", tool_id=tool.id, arguments_json='{"num_sides":6}')
    assert (await runner.execution.ExecuteTool(request)).receipt.state == execution_pb.RECEIPT_STATE_DONE


async def test_a_second_request_attaches_and_a_lost_client_changes_nothing(runner: Service) -> None:
    tool = await runner.upsert()
    first = asyncio.ensure_future(runner.call(tool.id, key="attach"))
    await runner.until_running()
    second = asyncio.ensure_future(runner.call(tool.id, key="attach"))
    with fails(FailedPrecondition, "CALL_KEY_REUSED"):
        await runner.call(tool.id, key="attach", num_sides=1)
    assert (await runner.receipt("attach")).state == execution_pb.RECEIPT_STATE_STARTED
    first.cancel()
    await asyncio.sleep(0.2)
    assert not second.done()
    runner.sandbox.gate.set()
    assert (await second).result_json == "7"
    assert (len(runner.sandbox.jobs), runner.sandbox.killed) == (1, 0)


async def test_it_goes_on_when_nobody_waits(runner: Service) -> None:
    tool = await runner.upsert()
    call = asyncio.ensure_future(runner.call(tool.id, key="alone"))
    await runner.until_running()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    runner.sandbox.gate.set()
    assert (await runner.until_state("alone", execution_pb.RECEIPT_STATE_DONE)).result_json == "7"


async def test_cancel_kills(runner: Service) -> None:
    tool = await runner.upsert()
    call = asyncio.ensure_future(runner.call(tool.id, key="cancel"))
    await runner.until_running()
    receipt = await runner.cancel("cancel")
    assert (receipt.state, receipt.outcome) == (execution_pb.RECEIPT_STATE_DONE, execution_pb.OUTCOME_CANCELLED)
    assert "cancelled" in receipt.tool_return
    assert await call == receipt
    assert runner.sandbox.killed == 1
    assert await runner.cancel("cancel") == receipt
    with fails(NotFound, "CALL_NOT_FOUND"):
        await runner.cancel("never")


async def test_cancel_of_a_call_in_line(tool_url: str, tmp_path: Path) -> None:
    async with tool_runner(tool_url, tmp_path, at_once=1) as runner:
        tool = await runner.upsert()
        running = asyncio.ensure_future(runner.call(tool.id, key="running"))
        await runner.until_running()
        waiting = asyncio.ensure_future(runner.call(tool.id, key="waiting"))
        await runner.until_state("waiting", execution_pb.RECEIPT_STATE_RESERVED)
        assert (await runner.cancel("waiting")).outcome == execution_pb.OUTCOME_CANCELLED
        assert (await waiting).outcome == execution_pb.OUTCOME_CANCELLED
        runner.sandbox.gate.set()
        assert (await running).outcome == execution_pb.OUTCOME_SUCCESS
        assert len(runner.sandbox.jobs) == 1


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ('{"num_sides": "six"}', 'num_sides: must be an integer, not "six"'),
        ('{"sides": 6}', "sides: is not an argument of roll_dice; it takes num_sides"),
        ("[1]", "must be a JSON object"),
        ("{", "not valid JSON"),
        ('{"num_sides": NaN}', "NaN is not JSON"),
        ("[" * 100_000, "deeply nested"),
    ],
)
async def test_arguments_that_break_the_schema_run_nothing(runner: Service, arguments: str, text: str) -> None:
    tool = await runner.upsert()
    request = execution_pb.ExecuteToolRequest(call_key="bad", tool_id=tool.id, arguments_json=arguments)
    receipt = (await runner.execution.ExecuteTool(request)).receipt
    assert receipt.outcome == execution_pb.OUTCOME_INVALID_ARGUMENTS
    assert receipt.tool_return.startswith("Nothing was run")
    assert text in receipt.tool_return
    assert (await runner.execution.ExecuteTool(request)).receipt == receipt
    assert runner.sandbox.jobs == []


async def test_null_for_what_may_be_left_out_counts_as_left_out(runner: Service) -> None:
    tool = await runner.upsert()
    runner.sandbox.gate.set()
    receipt = await runner.call(tool.id, num_sides=None, request_heartbeat=True)
    assert receipt.outcome == execution_pb.OUTCOME_SUCCESS
    assert dict(runner.sandbox.jobs[0].arguments) == {}


@pytest.mark.parametrize(
    ("reason", "outcome"),
    [
        (ExitReason.RAISED, execution_pb.OUTCOME_RAISED),
        (ExitReason.TIMEOUT, execution_pb.OUTCOME_TIMEOUT),
        (ExitReason.MEMORY, execution_pb.OUTCOME_OUT_OF_MEMORY),
        (ExitReason.KILLED, execution_pb.OUTCOME_KILLED),
        (ExitReason.OUTPUT_TOO_LARGE, execution_pb.OUTCOME_BAD_OUTPUT),
        (ExitReason.BAD_RESULT, execution_pb.OUTCOME_BAD_OUTPUT),
    ],
)
async def test_every_failure_has_its_outcome_and_a_sentence(
    runner: Service, reason: ExitReason, outcome: execution_pb.Outcome.ValueType
) -> None:
    tool = await runner.upsert()
    runner.sandbox.gate.set()
    runner.sandbox.result = Result(reason, error=ToolError("ValueError", "it is \x00 broken", "  line 1\n"))
    receipt = await runner.call(tool.id)
    assert (receipt.outcome, receipt.result_json) == (outcome, "")
    assert "roll_dice" in receipt.tool_return
    assert "broken" in receipt.tool_return


async def test_long_returns_are_cut_with_a_marker(runner: Service) -> None:
    tool = await runner.upsert(return_char_limit=10)
    runner.sandbox.gate.set()
    runner.sandbox.result = Result(ExitReason.OK, result=json.dumps("x" * 100))
    receipt = await runner.call(tool.id)
    assert receipt.tool_return == "xxxxxxxxxx... [function output was truncated: it has 100 characters, 10 are shown]"


async def test_the_runners_limit_is_the_longest_time(tool_url: str, tmp_path: Path) -> None:
    async with tool_runner(tool_url, tmp_path, limits=Limits(seconds=5)) as runner:
        tool = await runner.upsert()
        runner.sandbox.gate.set()
        request = execution_pb.ExecuteToolRequest(call_key="long", tool_id=tool.id, timeout=Duration(seconds=900))
        await runner.execution.ExecuteTool(request)
        assert runner.sandbox.jobs[0].limits.seconds == 5


async def test_what_cannot_be_run_is_refused(runner: Service) -> None:
    built_in = f"tool-{uuid5(runner.caller.organization_id, 'memory_insert')}"
    await runner.tools.ListTools(tool_pb.ListToolsRequest())
    with fails(FailedPrecondition, "TOOL_NOT_RUNNABLE") as caught:
        await runner.call(built_in)
    assert "memory service" in caught[0].message
    with fails(NotFound, "TOOL_NOT_FOUND"):
        await runner.call(f"tool-{uuid4()}")
    tool = await runner.upsert()
    for fields, reason in (
        ({"call_key": ""}, "CALL_KEY_INVALID"),
        ({"call_key": "k" * 201}, "CALL_KEY_INVALID"),
        ({"tool_id": "nonsense"}, "INVALID_ID"),
        ({"timeout": Duration(seconds=-1)}, "TIMEOUT_INVALID"),
        ({"environment": {"A=B": "x"}}, "ENVIRONMENT_INVALID"),
        ({"environment": {"LD_PRELOAD": "x"}}, "ENVIRONMENT_INVALID"),
    ):
        request = execution_pb.ExecuteToolRequest(**({"call_key": "x", "tool_id": tool.id} | fields))
        with fails(InvalidArgument, reason):
            await runner.execution.ExecuteTool(request)


async def test_without_a_sandbox_nothing_is_held_against_the_next_try(runner: Service) -> None:
    tool = await runner.upsert()
    runner.sandbox.unavailable = "install bubblewrap"
    with fails(FailedPrecondition, "SANDBOX_UNAVAILABLE") as caught:
        await runner.call(tool.id, key="later")
    assert "install bubblewrap" in caught[0].message
    runner.sandbox.unavailable = ""
    runner.sandbox.gate.set()
    assert (await runner.call(tool.id, key="later")).result_json == "7"


async def test_another_tenants_key_is_another_call(runner: Service) -> None:
    tool = await runner.upsert()
    runner.sandbox.gate.set()
    await runner.call(tool.id, key="shared")
    with runner.of(uuid4()):
        with fails(NotFound, "CALL_NOT_FOUND"):
            await runner.receipt("shared")
        with fails(NotFound, "TOOL_NOT_FOUND"):
            await runner.call(tool.id, key="shared")


async def test_receipts_of_an_agent_are_erased(runner: Service) -> None:
    tool = await runner.upsert()
    runner.sandbox.gate.set()
    request = execution_pb.ExecuteToolRequest(call_key="mine", tool_id=tool.id, agent_id=AGENT)
    await runner.execution.ExecuteTool(request)
    await runner.call(tool.id, key="other")
    purge = execution_pb.PurgeReceiptsRequest(agent_id=AGENT)
    assert (await runner.execution.PurgeReceipts(purge)).erased == 1
    assert (await runner.execution.PurgeReceipts(purge)).erased == 0
    assert (await runner.receipt("other")).state == execution_pb.RECEIPT_STATE_DONE


@pytest.mark.timing
async def test_replicas_wait_for_one_another(tool_url: str, tmp_path: Path) -> None:
    async with tool_runner(tool_url, tmp_path) as first:
        organization_id = first.caller.organization_id
        async with tool_runner(tool_url, tmp_path, organization_id=organization_id) as second:
            tool = await first.upsert()
            one = asyncio.ensure_future(first.call(tool.id, key="both"))
            await first.until_running()
            two = asyncio.ensure_future(second.call(tool.id, key="both"))
            await asyncio.sleep(3)  # longer than a lease: it is renewed
            assert not two.done()
            first.sandbox.gate.set()
            assert (await two).result_json == "7"
            assert await one == await two
            assert second.sandbox.jobs == []


async def test_cancel_reaches_the_replica_that_runs_it(tool_url: str, tmp_path: Path) -> None:
    async with tool_runner(tool_url, tmp_path) as first:
        organization_id = first.caller.organization_id
        async with tool_runner(tool_url, tmp_path, organization_id=organization_id) as second:
            tool = await first.upsert()
            call = asyncio.ensure_future(first.call(tool.id, key="far"))
            await first.until_running()
            assert (await second.cancel("far")).outcome == execution_pb.OUTCOME_CANCELLED
            assert (await call).outcome == execution_pb.OUTCOME_CANCELLED
            assert first.sandbox.killed == 1


async def test_a_stopping_replica_says_that_it_does_not_know(tool_url: str, tmp_path: Path) -> None:
    async with tool_runner(tool_url, tmp_path, at_once=1) as first:
        organization_id = first.caller.organization_id
        tool = await first.upsert()
        began = asyncio.ensure_future(first.call(tool.id, key="began"))
        await first.until_running()
        waiting = asyncio.ensure_future(first.call(tool.id, key="waiting"))
        await first.until_state("waiting", execution_pb.RECEIPT_STATE_RESERVED)
        await first.runner.executor.close()
        assert (await began).state == execution_pb.RECEIPT_STATE_UNKNOWN
        with fails(Unavailable, "UNAVAILABLE"):
            await waiting
    async with tool_runner(tool_url, tmp_path, organization_id=organization_id) as second:
        second.sandbox.gate.set()
        lost = await second.call(tool.id, key="began")
        assert lost.state == execution_pb.RECEIPT_STATE_UNKNOWN
        assert "not known" in lost.tool_return
        assert (await second.call(tool.id, key="waiting")).result_json == "7"
        assert len(second.sandbox.jobs) == 1


class _Dead:
    """The remains of a dead replica: its lease is old, and its receipts name it."""

    def __init__(self, url: str, runner: Service) -> None:
        self._url = url
        self._runner = runner

    async def leave(self, tool_id: str, key: str, state: int) -> None:
        """A receipt of a call of `tool_id` with no arguments, as its dead owner had it."""
        self._runner.sandbox.gate.set()
        await self._runner.call(tool_id, key=key)
        connection = await asyncpg.connect(self._url)
        await connection.execute(
            "UPDATE tool_runner.receipts SET state = $2, outcome = 0, owner_id = $3, result = '', tool_return = '',"
            " ended_at = NULL WHERE organization_id = $1 AND call_key = $4",
            self._runner.caller.organization_id,
            state,
            uuid4(),
            key,
        )
        await connection.close()
        self._runner.sandbox.jobs.clear()


async def test_what_a_dead_owner_started_becomes_unknown(runner: Service, tool_url: str) -> None:
    tool = await runner.upsert()
    await _Dead(tool_url, runner).leave(tool.id, "dead", execution_pb.RECEIPT_STATE_STARTED)
    receipt = await runner.call(tool.id, key="dead")
    assert (receipt.state, receipt.outcome) == (
        execution_pb.RECEIPT_STATE_UNKNOWN,
        execution_pb.OUTCOME_UNSPECIFIED,
    )
    assert "was not run again" in receipt.tool_return
    assert runner.sandbox.jobs == []


async def test_what_a_dead_owner_only_reserved_runs(runner: Service, tool_url: str) -> None:
    tool = await runner.upsert()
    await _Dead(tool_url, runner).leave(tool.id, "dead", execution_pb.RECEIPT_STATE_RESERVED)
    assert (await runner.call(tool.id, key="dead")).result_json == "7"
    assert len(runner.sandbox.jobs) == 1


async def test_an_idempotent_tool_runs_again(runner: Service, tool_url: str) -> None:
    tool = await runner.upsert(idempotent=True)
    await _Dead(tool_url, runner).leave(tool.id, "dead", execution_pb.RECEIPT_STATE_STARTED)
    assert (await runner.call(tool.id, key="dead")).result_json == "7"
    assert len(runner.sandbox.jobs) == 1


@pytest.mark.parametrize(
    ("state", "after"),
    [
        (execution_pb.RECEIPT_STATE_RESERVED, execution_pb.OUTCOME_CANCELLED),
        (execution_pb.RECEIPT_STATE_STARTED, execution_pb.OUTCOME_UNSPECIFIED),
    ],
)
async def test_cancel_of_what_a_dead_owner_left(runner: Service, tool_url: str, state: int, after: int) -> None:
    tool = await runner.upsert()
    await _Dead(tool_url, runner).leave(tool.id, "dead", state)
    assert (await runner.cancel("dead")).outcome == after
    assert (await runner.call(tool.id, key="dead")).outcome == after
    assert runner.sandbox.jobs == []


async def test_a_call_costs_few_statements(runner: Service) -> None:
    tool = await runner.upsert()
    runner.sandbox.gate.set()
    await runner.call(tool.id)
    await asyncio.sleep(0)
    runner.counter.reset()
    await runner.call(tool.id)
    await asyncio.sleep(0)
    # The tool, its environment; reserve, start, end. The lease beats when it is time, whatever calls there are.
    texts = [text for text in runner.counter.texts if "tool_runner.leases" not in text]
    assert len(texts) <= 5, texts


async def test_limits_travel_to_the_sandbox(tool_url: str, tmp_path: Path) -> None:
    limits = Limits(memory=100, processes=3)
    held = HeldSandbox()
    held.gate.set()
    async with tool_runner(tool_url, tmp_path, sandbox=held, limits=limits) as runner:
        tool = await runner.upsert()
        await runner.call(tool.id)
    assert held.jobs[0].limits == replace(limits)


async def test_the_sandbox_is_in_the_callers_trace(runner: Service, spans: InMemorySpanExporter) -> None:
    tool = await runner.upsert()
    runner.sandbox.gate.set()
    with telemetry.span("request"):
        await runner.call(tool.id)
    finished = {span.name: span for span in spans.get_finished_spans()}
    run, request = finished["sandbox run"], finished["request"]
    assert run.context is not None
    assert request.context is not None
    assert run.context.trace_id == request.context.trace_id
    assert run.attributes == {"loci.sandbox": "held", "loci.tool": "roll_dice", "loci.exit": "ok"}
