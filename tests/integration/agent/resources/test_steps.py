"""Steps, metrics, traces and spans as they are read afterwards, what people say of them, and runs that are erased."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import orjson
import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from loci.agent.v1 import run_pb2
from loci.agent.v1 import run_service_pb2 as wire
from loci.agent.v1 import step_service_pb2 as step_wire
from loci.common.v1.page_pb2 import PageRequest
from services.agent.core import turn
from services.agent.core.messages import Call, Part, Return, Text, parts_to_json
from services.common.errors import FailedPrecondition, InvalidArgument, LociError, NotFound
from services.common.ids import from_public, to_public, uuid7
from tests.integration.agent.admin_world import ORGANIZATION, OTHER_ORGANIZATION, USER, AdminWorld
from tests.page_requests import paged

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
SECOND = 1_000_000_000
FAILURE = {
    "stop_reason": "llm_api_error",
    "error_type": "llm_error",
    "message": "Ask again.",
    "detail": "status 500",
    "reason": "LLM_SERVER_ERROR",
}


async def test_a_step(world: AdminWorld) -> None:
    agent_id, run_id = await _run(world, project_id="shop")
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "cached_input_tokens": 8, "reasoning_tokens": 3}
    step_id = await _step(world, agent_id, run_id, 1, usage=usage, trace_id="ab" * 16)
    step = (await world.call(world.steps.GetStep, step_wire.GetStepRequest(step_id=step_id))).step
    assert (step.id, step.run_id, step.agent_id) == (step_id, to_public("run", run_id), to_public("agent", agent_id))
    assert (step.cached_input_tokens, step.reasoning_tokens, step.HasField("cache_write_tokens")) == (8, 3, False)
    assert (step.trace_id, step.project_id, step.model_handle) == ("ab" * 16, "shop", "openai/gpt-4o-mini")
    assert (step.feedback, list(step.tags)) == (run_pb2.STEP_FEEDBACK_UNSPECIFIED, [])


async def test_the_transaction_of_a_step(world: AdminWorld) -> None:
    agent_id, run_id = await _run(world)
    step_id = await _step(world, agent_id, run_id, 1)

    async def noted(transaction: str, organization_id: UUID = ORGANIZATION) -> run_pb2.Step:
        request = step_wire.SetStepTransactionRequest(step_id=step_id, transaction_id=transaction)
        step: run_pb2.Step = (await world.call(world.steps.SetStepTransaction, request, organization_id)).step
        return step

    assert (await noted("tx-1")).tid == "tx-1"
    assert (await noted("tx-2")).tid == "tx-2"
    assert (await world.call(world.steps.GetStep, step_wire.GetStepRequest(step_id=step_id))).step.tid == "tx-2"
    for wrong in ("", "t" * 201):
        with pytest.raises(InvalidArgument, match="1 to 200"):
            await noted(wrong)
    with pytest.raises(NotFound):
        await noted("tx-3", OTHER_ORGANIZATION)


async def test_metrics_of_steps(world: AdminWorld) -> None:
    agent_id, run_id = await _run(world)
    metrics = {"llm_request_ns": 2 * SECOND, "ttft_ns": SECOND, "tool_execution_ns": SECOND}
    whole = await _metrics(world, await _step(world, agent_id, run_id, 1, metrics=metrics, created_at=_after(3)))
    noon = int(NOON.timestamp()) * SECOND
    assert (whole.step_start_ns, whole.llm_request_start_ns) == (noon + SECOND, noon + SECOND)
    assert (whole.step_ns, whole.llm_request_ns, whole.ttft_ns) == (3 * SECOND, 2 * SECOND, SECOND)
    failed = await _step(world, agent_id, run_id, 2, status="failed", error=FAILURE, metrics={"llm_request_ns": SECOND})
    partial = await _metrics(world, failed)
    assert (partial.llm_request_ns, partial.step_ns) == (SECOND, SECOND)
    assert not partial.HasField("tool_execution_ns")
    assert not partial.HasField("ttft_ns")
    step = (await world.call(world.steps.GetStep, step_wire.GetStepRequest(step_id=failed))).step
    assert (step.error_type, step.error_message, step.error_detail) == ("LLM_SERVER_ERROR", "Ask again.", "status 500")


async def test_metrics_of_a_step_that_failed_in_a_turn(world: AdminWorld) -> None:
    agent = await world.create()
    world.peers.failures["Generate"] = [InvalidArgument("bad schema", reason="LLM_BAD_REQUEST")]
    end = (await world.say(agent.id)).end
    (step_id,) = await _steps(world, agent_id=agent.id)
    metrics = await _metrics(world, step_id)
    assert metrics.llm_request_ns > 0
    assert not metrics.HasField("tool_execution_ns")
    run = (await world.call(world.runs.GetRun, wire.GetRunRequest(run_id=end.run.id))).run
    told = orjson.loads(run.metadata_json)["error"]
    assert (told["error_type"], told["reason"]) == (end.error.error_type, "LLM_BAD_REQUEST")


async def test_pages_and_filters_of_steps(world: AdminWorld) -> None:
    ada, bea = await _run(world), await _run(world, project_id="shop")
    steps = [
        await _step(world, *ada, 1, created_at=_after(1), trace_id="aa" * 16),
        await _step(world, *ada, 2, created_at=_after(2), model_handle="openrouter/openai/gpt-4o", tags=["kind"]),
        await _step(world, *ada, 3, created_at=_after(3), feedback="positive", tags=["kind", "short"]),
        await _step(world, *bea, 1, created_at=_after(4), feedback="negative"),
    ]
    assert await _steps(world) == steps[::-1]
    assert await _steps(world, ascending=True, page_size=2) == steps[:2]
    assert await _steps(world, after=steps[2]) == [steps[1], steps[0]]
    assert await _steps(world, before=steps[0], page_size=2) == [steps[2], steps[1]]
    page = await world.call(world.steps.ListSteps, step_wire.ListStepsRequest(page=PageRequest(page_size=3)))
    assert await _steps(world, page_size=3, page_token=page.next_page_token) == steps[:1]
    for fields, expected in (
        ({"agent_id": to_public("agent", ada[0])}, [2, 1, 0]),
        ({"model": "openai/gpt-4o-mini"}, [3, 2, 0]),
        ({"model": "gpt-4o-mini"}, [3, 2, 0]),
        ({"model": "openai/gpt-4o"}, [1]),
        ({"model": "gpt-4o"}, []),
        ({"feedback": run_pb2.STEP_FEEDBACK_POSITIVE}, [2]),
        ({"has_feedback": True}, [3, 2]),
        ({"has_feedback": False}, [1, 0]),
        ({"tags": ["short", "kind"]}, [2, 1]),
        ({"tags": ["rude"]}, []),
        ({"trace_ids": ["aa" * 16, "bb" * 16]}, [0]),
        ({"start_time": _stamp(2), "end_time": _stamp(3)}, [2, 1]),
        ({"project_id": "shop"}, [3]),
    ):
        assert await _steps(world, **fields) == [steps[place] for place in expected], fields


async def test_messages_of_a_run_and_of_its_steps(world: AdminWorld) -> None:
    agent_id, run_id = await _run(world)
    one, two = await _step(world, agent_id, run_id, 1), await _step(world, agent_id, run_id, 2)
    call, back = Call("k", "c", "conversation_search", "{}"), Return("c", "conversation_search", "none")
    said = [
        await _say(world, agent_id, run_id, 1, "user", Text("Hello")),
        await _say(world, agent_id, run_id, 2, "assistant", call, step_id=one),
        await _say(world, agent_id, run_id, 3, "tool", back, step_id=one),
        await _say(world, agent_id, run_id, 4, "assistant", Text("Hi"), step_id=two),
    ]
    assert await _said_in_run(world, run_id) == said
    assert await _said_in_run(world, run_id, descending=True) == said[::-1]
    assert await _said_in_run(world, run_id, after=said[0], page_size=2) == said[1:3]
    # Earlier and later, whatever the order, which chooses the end of what is left.
    assert await _said_in_run(world, run_id, before=said[3], page_size=2) == said[:2]
    assert await _said_in_run(world, run_id, descending=True, before=said[2]) == [said[1], said[0]]
    assert await _said_in_run(world, run_id, descending=True, after=said[0], page_size=2) == [said[3], said[2]]
    first = wire.ListRunMessagesRequest(run_id=to_public("run", run_id), page=PageRequest(page_size=3))
    token = (await world.call(world.runs.ListRunMessages, first)).next_page_token
    assert await _said_in_run(world, run_id, page_size=3, page_token=token) == said[3:]
    # What was said to the agent is of its run's first step.
    assert await _said_in_step(world, one) == said[:3]
    request = wire.ListRunMessagesRequest(run_id=to_public("run", run_id))
    shown = (await world.call(world.runs.ListRunMessages, request)).messages
    assert [message.step_id for message in shown] == [to_public("step", turn.step_id(run_id, 1)), one, one, two]
    assert await _said_in_step(world, one, descending=True, page_size=1) == [said[2]]
    assert await _said_in_step(world, two) == said[3:]
    for run, fields in ((run_id, {"after": to_public("message", uuid7())}), (run_id, {"page_size": 1_001})):
        with pytest.raises((NotFound, InvalidArgument)):
            await _said_in_run(world, run, **fields)


async def test_messages_of_a_step_whose_calls_waited_for_the_client(world: AdminWorld) -> None:
    agent_id, run_id = await _run(world)
    step_id = await _step(world, agent_id, run_id, 1, stop_reason="requires_approval", created_at=datetime.now(UTC))
    call, back = Call("k", "c", "delete", "{}", gate="approval"), Return("c", "delete", "done")
    asked = await _say(world, agent_id, run_id, 1, "assistant", call, step_id=step_id)
    later = await _run_of(world, agent_id)
    returned = await _say(world, agent_id, later, 2, "tool", back, step_id=step_id)
    request_id, *rest = await _said_in_step(world, step_id)
    # Calls that wait are shown under the id before that of their message; both lead on from there.
    assert (from_public("message", request_id).int, rest) == (from_public("message", asked).int - 1, [returned])
    for cursor in (request_id, asked):
        assert await _said_in_step(world, step_id, after=cursor) == [returned]


async def test_feedback_and_tags(world: AdminWorld) -> None:
    step_id = await _step(world, *await _run(world), 1)
    step = await _feedback(world, step_id, feedback=run_pb2.STEP_FEEDBACK_POSITIVE, add_tags=["kind"])
    assert (step.feedback, list(step.tags)) == (run_pb2.STEP_FEEDBACK_POSITIVE, ["kind"])
    step = await _feedback(world, step_id, add_tags=["short", "kind"])
    assert (step.feedback, list(step.tags)) == (run_pb2.STEP_FEEDBACK_POSITIVE, ["kind", "short"])
    step = await _feedback(world, step_id, feedback=run_pb2.STEP_FEEDBACK_UNSPECIFIED)
    assert (step.feedback, list(step.tags)) == (run_pb2.STEP_FEEDBACK_UNSPECIFIED, ["kind", "short"])
    with pytest.raises(InvalidArgument) as caught:
        await _feedback(world, step_id, add_tags=["x" * 201])
    assert caught.value.reason == "FEEDBACK_INVALID"
    tagging = [_feedback(world, step_id, add_tags=[f"tag {number}"]) for number in range(8)]
    await asyncio.gather(*tagging)
    step = (await world.call(world.steps.GetStep, step_wire.GetStepRequest(step_id=step_id))).step
    assert len(step.tags) == 10


async def test_the_trace_of_a_step(world: AdminWorld) -> None:
    agent_id, run_id = await _run(world)
    whole, streamed, silent = [await _step(world, agent_id, run_id, number) for number in (1, 2, 3)]
    for step_id, response in ((whole, {"choices": []}), (streamed, [{"delta": "Hi"}])):
        await world.pool.execute(
            "INSERT INTO agent.provider_traces (organization_id, step_id, run_id, agent_id, trace)"
            " VALUES ($1, $2, $3, $4, $5)",
            ORGANIZATION, from_public("step", step_id), run_id, agent_id,
            orjson.dumps({"request": {"model": "gpt-4o-mini"}, "response": response}).decode(),
        )  # fmt: skip
    trace = await _trace(world, whole)
    assert (trace.id, trace.step_id) == (whole.replace("step-", "provider_trace-"), whole)
    assert orjson.loads(trace.request_json) == {"model": "gpt-4o-mini"}
    assert orjson.loads(trace.response_json) == {"choices": []}
    assert orjson.loads((await _trace(world, streamed)).response_json) == {"events": [{"delta": "Hi"}]}
    with pytest.raises(NotFound, match="include_trace") as caught:
        await _trace(world, silent)
    assert caught.value.reason == "STEP_TRACE_NOT_FOUND"


async def test_metrics_and_spans_of_a_run(world: AdminWorld) -> None:
    agent_id, run_id = await _run(world)
    metrics = {"llm_request_ns": SECOND, "tool_execution_ns": SECOND}
    step_id = await _step(world, agent_id, run_id, 1, metrics=metrics, created_at=_after(1))
    calls = [Call(f"k{name}", name, name, "{}") for name in ("gone", "conversation_search", "gone")]
    await _say(world, agent_id, run_id, 1, "assistant", *calls, step_id=step_id)
    request = wire.GetRunMetricsRequest(run_id=to_public("run", run_id))
    found = (await world.call(world.runs.GetRunMetrics, request)).metrics
    assert list(found.tool_names) == ["gone", "conversation_search"]
    assert [world.peers.tools[tool_id].name for tool_id in found.tool_ids] == ["conversation_search"]
    assert (found.num_steps, found.run_ns, found.llm_request_ns) == (1, 5 * SECOND, SECOND)
    assert found.run_start_ns == int(NOON.timestamp()) * SECOND
    spans = await _spans(world, run_id)
    assert [span.name for span in spans] == ["run", "agent_step", "llm_request", "tool_execution"]
    assert (spans[0].duration_ns, spans[3].attributes["tools"]) == (5 * SECOND, "gone,conversation_search,gone")
    assert spans == await _spans(world, run_id)
    assert len(await _spans(world, run_id, limit=2)) == 2
    with pytest.raises(InvalidArgument):
        await _spans(world, run_id, limit=5_001)


async def test_runs_by_duration(world: AdminWorld) -> None:
    runs = [(await _run(world, seconds=seconds))[1] for seconds in (3, 1, 2)]
    runs.append((await _run(world, seconds=None))[1])
    ids = [to_public("run", run_id) for run_id in runs]
    longest = await _runs(world)
    assert longest == [ids[0], ids[2], ids[1], ids[3]]
    assert await _runs(world, ascending=True) == longest[::-1]
    assert await _runs(world, after=ids[2]) == longest[2:]
    page = await world.call(world.runs.ListRuns, _by_duration(page_size=1))
    assert await _runs(world, page_size=2, page_token=page.next_page_token) == longest[1:3]


async def test_a_run_is_erased_and_what_was_said_stays(world: AdminWorld) -> None:
    agent_id, run_id = await _run(world)
    step_id = await _step(world, agent_id, run_id, 1)
    await _say(world, agent_id, run_id, 1, "user", Text("Hello"))
    await world.call(world.runs.DeleteRun, wire.DeleteRunRequest(run_id=to_public("run", run_id)))
    with pytest.raises(NotFound):
        await world.call(world.runs.GetRun, wire.GetRunRequest(run_id=to_public("run", run_id)))
    with pytest.raises(NotFound):
        await world.call(world.steps.GetStep, step_wire.GetStepRequest(step_id=step_id))
    assert await world.rows("messages") == 1


@pytest.mark.parametrize("status", ["created", "running"])
async def test_an_active_run_is_not_erased(world: AdminWorld, status: str) -> None:
    _, run_id = await _run(world, seconds=None, status=status)
    with pytest.raises(FailedPrecondition, match="cancel it first") as caught:
        await world.call(world.runs.DeleteRun, wire.DeleteRunRequest(run_id=to_public("run", run_id)))
    assert (caught.value.reason, await world.rows("runs")) == ("RUN_ACTIVE", 1)


async def test_cancelling_a_run_that_has_ended_changes_nothing(world: AdminWorld) -> None:
    agent_id, run_id = await _run(world)
    before = (await world.call(world.runs.GetRun, wire.GetRunRequest(run_id=to_public("run", run_id)))).run
    request = wire.CancelRunsRequest(agent_id=to_public("agent", agent_id), run_ids=[to_public("run", run_id)])
    assert list((await world.call(world.runs.CancelRuns, request)).runs) == [before]
    with pytest.raises(FailedPrecondition, match=r"No active runs to cancel\."):
        await world.call(world.runs.CancelRuns, wire.CancelRunsRequest(agent_id=to_public("agent", agent_id)))


async def test_nothing_is_found_of_others_or_of_deleted_agents(world: AdminWorld) -> None:
    agent_id, run_id = await _run(world)
    step_id = await _step(world, agent_id, run_id, 1)
    for organization_id, deleted in ((OTHER_ORGANIZATION, False), (ORGANIZATION, True)):
        if deleted:
            await world.pool.execute("UPDATE agent.agents SET deleted_at = now()")
        for rpc, request, reason in (
            (world.steps.GetStep, step_wire.GetStepRequest(step_id=step_id), "STEP_NOT_FOUND"),
            (world.steps.GetStepMetrics, step_wire.GetStepMetricsRequest(step_id=step_id), "STEP_NOT_FOUND"),
            (world.steps.GetStepTrace, step_wire.GetStepTraceRequest(step_id=step_id), "STEP_NOT_FOUND"),
            (world.steps.ListStepMessages, step_wire.ListStepMessagesRequest(step_id=step_id), "STEP_NOT_FOUND"),
            (world.steps.SetStepFeedback, step_wire.SetStepFeedbackRequest(step_id=step_id), "STEP_NOT_FOUND"),
            (world.runs.DeleteRun, wire.DeleteRunRequest(run_id=to_public("run", run_id)), "RUN_NOT_FOUND"),
            (world.runs.GetRunTrace, wire.GetRunTraceRequest(run_id=to_public("run", run_id)), "RUN_NOT_FOUND"),
        ):
            with pytest.raises(LociError) as caught:
                await world.call(rpc, request, organization_id)
            assert caught.value.reason == reason
        listed = await world.call(world.steps.ListSteps, step_wire.ListStepsRequest(), organization_id)
        assert list(listed.steps) == []


async def _run(
    world: AdminWorld, *, seconds: float | None = 5, status: str = "completed", project_id: str | None = None
) -> tuple[UUID, UUID]:
    """A stored run of a new agent, which began at noon."""
    agent_id = from_public("agent", (await world.create()).id)
    await world.pool.execute("UPDATE agent.agents SET project_id = $2 WHERE id = $1", agent_id, project_id)
    return agent_id, await _run_of(world, agent_id, seconds=seconds, status=status)


async def _run_of(world: AdminWorld, agent_id: UUID, *, seconds: float | None = 5, status: str = "completed") -> UUID:
    owner = await world.pool.fetchval(
        "INSERT INTO agent.workers (id, beat_at) VALUES ($1, now() + interval '1 hour') RETURNING id", uuid7()
    )
    run_id = uuid7()
    await world.pool.execute(
        "INSERT INTO agent.runs (organization_id, id, agent_id, conversation_id, user_id, status, home_id, deadline,"
        " created_at, started_at, completed_at, worker_id)"
        " VALUES ($1, $2, $3, $3, $4, $5, $6, now() + interval '1 hour', $7, $7, $8, $6)",
        ORGANIZATION, run_id, agent_id, USER, status, owner, NOON, None if seconds is None else _after(seconds),
    )  # fmt: skip
    return run_id


async def _step(world: AdminWorld, agent_id: UUID, run_id: UUID, number: int, **columns: Any) -> str:
    """A stored step; its id."""
    step_id = uuid7()
    values: dict[str, Any] = {
        "organization_id": ORGANIZATION,
        "id": step_id,
        "run_id": run_id,
        "agent_id": agent_id,
        "number": number,
        "status": "success",
        "model_handle": "openai/gpt-4o-mini",
        "attempts": 1,
        "context_window_limit": 32_000,
    } | columns
    places = ", ".join(f"${place}" for place in range(1, len(values) + 1))
    await world.pool.execute(f"INSERT INTO agent.steps ({', '.join(values)}) VALUES ({places})", *values.values())
    return to_public("step", step_id)


async def _say(
    world: AdminWorld, agent_id: UUID, run_id: UUID, seq: int, role: str, *parts: Part, step_id: str | None = None
) -> str:
    """A stored message; its id."""
    message_id = uuid7()
    log_id = await world.pool.fetchval(
        "SELECT log_id FROM agent.conversation_heads WHERE conversation_id = $1", agent_id
    )
    await world.pool.execute(
        "INSERT INTO agent.messages (organization_id, log_id, seq, id, agent_id, conversation_id, run_id, step_id,"
        " fact, role, content) VALUES ($1, $2, $3, $4, $5, $5, $6, $7, 1, $8, $9)",
        ORGANIZATION, log_id, seq, message_id, agent_id, run_id,
        None if step_id is None else from_public("step", step_id), role, parts_to_json(parts),
    )  # fmt: skip
    return to_public("message", message_id)


def _after(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


def _stamp(seconds: float) -> Timestamp:
    stamp = Timestamp()
    stamp.FromDatetime(_after(seconds))
    return stamp


async def _steps(world: AdminWorld, **fields: Any) -> list[str]:
    response = await world.call(world.steps.ListSteps, step_wire.ListStepsRequest(**paged(**fields)))
    return [step.id for step in response.steps]


def _by_duration(**fields: Any) -> wire.ListRunsRequest:
    return wire.ListRunsRequest(**paged(order_by=wire.RUN_ORDER_DURATION, **fields))


async def _runs(world: AdminWorld, **fields: Any) -> list[str]:
    response = await world.call(world.runs.ListRuns, _by_duration(**fields))
    return [run.id for run in response.runs]


async def _metrics(world: AdminWorld, step_id: str) -> run_pb2.StepMetrics:
    request = step_wire.GetStepMetricsRequest(step_id=step_id)
    metrics: run_pb2.StepMetrics = (await world.call(world.steps.GetStepMetrics, request)).metrics
    return metrics


async def _trace(world: AdminWorld, step_id: str) -> run_pb2.ProviderTrace:
    request = step_wire.GetStepTraceRequest(step_id=step_id)
    trace: run_pb2.ProviderTrace = (await world.call(world.steps.GetStepTrace, request)).trace
    return trace


async def _spans(world: AdminWorld, run_id: UUID, limit: int = 0) -> list[run_pb2.Span]:
    request = wire.GetRunTraceRequest(run_id=to_public("run", run_id), limit=limit)
    return list((await world.call(world.runs.GetRunTrace, request)).spans)


async def _feedback(world: AdminWorld, step_id: str, **fields: Any) -> run_pb2.Step:
    request = step_wire.SetStepFeedbackRequest(step_id=step_id, **fields)
    step: run_pb2.Step = (await world.call(world.steps.SetStepFeedback, request)).step
    return step


async def _said_in_run(world: AdminWorld, run_id: UUID, **fields: Any) -> list[str]:
    request = wire.ListRunMessagesRequest(**paged(run_id=to_public("run", run_id), **fields))
    return [message.id for message in (await world.call(world.runs.ListRunMessages, request)).messages]


async def _said_in_step(world: AdminWorld, step_id: str, **fields: Any) -> list[str]:
    request = step_wire.ListStepMessagesRequest(**paged(step_id=step_id, **fields))
    return [message.id for message in (await world.call(world.steps.ListStepMessages, request)).messages]
