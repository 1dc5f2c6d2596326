"""Runs and steps through the official SDK, in front of scripted services."""

from typing import Any

import pytest
from letta_client import ConflictError, UnprocessableEntityError

from loci.agent.v1 import agent_pb2, run_pb2, run_service_pb2, step_service_pb2
from loci.common.v1.page_pb2 import ORDER_ASCENDING, ORDER_DESCENDING, PageRequest
from services.common.errors import FailedPrecondition, NotFound
from tests.integration.gateway import samples
from tests.integration.gateway.conftest import Edge
from tests.integration.gateway.samples import AGENT_ID, NOON, RUN_ID, STEP_ID
from tests.integration.gateway.scripted import Backend

SECOND = 1_000_000_000
MESSAGE_ID = "message-00000000-0000-4000-8000-000000000001"


def _step(**fields: Any) -> run_pb2.Step:
    given: dict[str, Any] = {
        "id": STEP_ID,
        "run_id": RUN_ID,
        "agent_id": AGENT_ID,
        "model_handle": "openai/gpt",
        "prompt_tokens": 7,
        "completion_tokens": 3,
        "reasoning_tokens": 2,
        "status": run_pb2.STEP_STATUS_SUCCESS,
    }
    return run_pb2.Step(**given | fields)


async def test_a_run_has_the_references_17_fields(edge: Edge, backend: Backend) -> None:
    run = samples.run(
        callback_url="https://example.com/hook",
        callback_sent_at=NOON,
        callback_status_code=503,
        callback_error="the callback was answered with 503",
        metadata_json='{"error":{"message":"Ask again."}}',
        ttft_ns=1,
        total_duration_ns=2,
    )
    backend.on("GetRun", lambda _: run_service_pb2.GetRunResponse(run=run))
    raw = (await edge.http.get(f"/v1/runs/{RUN_ID}")).json()
    found = await edge.sdk.runs.retrieve(RUN_ID)
    assert len(raw) == 17
    assert set(raw) == set(type(found).model_fields)
    assert (found.status, found.stop_reason, found.metadata) == (
        "completed",
        "end_turn",
        {"run_type": "send_message", "error": {"message": "Ask again."}},
    )
    assert (found.callback_status_code, found.callback_error) == (503, "the callback was answered with 503")
    assert found.callback_sent_at is not None


async def test_runs(edge: Edge, backend: Backend) -> None:
    backend.on("ListRuns", lambda _: run_service_pb2.ListRunsResponse(runs=[samples.run()]))
    listed = await edge.sdk.runs.list(
        agent_id=AGENT_ID, active=True, stop_reason="end_turn", background=True, after=RUN_ID
    )
    assert [run.id for run in listed.items] == [RUN_ID]
    await edge.http.get("/v1/runs/?order_by=duration&order=asc&statuses=failed&conversation_id=conv-1")
    await edge.http.get(f"/v1/runs/active?agent_ids={AGENT_ID}")
    first, second, third = backend.requests("ListRuns")
    active = [run_pb2.RUN_STATUS_CREATED, run_pb2.RUN_STATUS_RUNNING]
    assert (list(first.statuses), first.stop_reason) == (active, agent_pb2.STOP_REASON_END_TURN)
    assert (first.background, first.page.after, first.page.order == ORDER_ASCENDING) == (True, RUN_ID, False)
    assert (second.order_by, second.page.order == ORDER_ASCENDING) == (run_service_pb2.RUN_ORDER_DURATION, True)
    assert (list(second.statuses), second.conversation_id) == ([run_pb2.RUN_STATUS_FAILED], "conv-1")
    assert (list(third.statuses), list(third.agent_ids)) == (active, [AGENT_ID])


async def test_what_came_of_a_run(edge: Edge, backend: Backend) -> None:
    said = [samples.said("one"), samples.said("two", number=2)]
    backend.on("GetRun", lambda _: run_service_pb2.GetRunResponse(run=samples.run()))
    backend.on("ListRunMessages", lambda _: run_service_pb2.ListRunMessagesResponse(messages=said))
    backend.on("ListRunSteps", lambda _: run_service_pb2.ListRunStepsResponse(steps=[_step()]))
    usage = samples.turn_end().usage
    backend.on("GetRunUsage", lambda _: run_service_pb2.GetRunUsageResponse(usage=usage))
    page = await edge.sdk.runs.messages.list(RUN_ID, after=MESSAGE_ID, limit=2)
    assert [message.id for message in page.items] == ["message-1", "message-2"]
    [step] = (await edge.sdk.runs.steps.list(RUN_ID, order="asc")).items
    assert (step.total_tokens, step.model, step.provider_name) == (10, "gpt", "openai")
    await edge.sdk.runs.steps.list(RUN_ID)
    assert (await edge.sdk.runs.usage.retrieve(RUN_ID)).total_tokens == 10
    [asked] = backend.requests("ListRunMessages")
    assert (asked.page.page_size, asked.page.after, asked.page.order == ORDER_DESCENDING) == (2, MESSAGE_ID, False)
    assert [request.page.order == ORDER_DESCENDING for request in backend.requests("ListRunSteps")] == [False, True]


async def test_a_page_of_which_nothing_is_shown_is_followed_by_the_next(edge: Edge, backend: Backend) -> None:
    silent = samples.returned("None", call_id="c1")
    silent.tool_return_message.tool_returns[0].name = "send_message"

    def answer(request: run_service_pb2.ListRunMessagesRequest) -> run_service_pb2.ListRunMessagesResponse:
        if request.page.page_token:
            return run_service_pb2.ListRunMessagesResponse(messages=[samples.said("two", number=2)])
        return run_service_pb2.ListRunMessagesResponse(messages=[silent], next_page_token="next")

    backend.on("GetRun", lambda _: run_service_pb2.GetRunResponse(run=samples.run()))
    backend.on("ListRunMessages", answer)
    page = await edge.sdk.runs.messages.list(RUN_ID, limit=1)
    assert [message.id for message in page.items] == ["message-2"]


async def test_a_run_shows_what_its_request_wanted_to_see(edge: Edge, backend: Backend) -> None:
    run = samples.run(view_json='{"types":["assistant_message"]}')
    said = [samples.returned("done"), samples.said("two", number=2)]
    backend.on("GetRun", lambda _: run_service_pb2.GetRunResponse(run=run))
    backend.on("ListRunMessages", lambda _: run_service_pb2.ListRunMessagesResponse(messages=said))
    page = await edge.sdk.runs.messages.list(RUN_ID)
    assert [message.id for message in page.items] == ["message-2"]


async def test_metrics_and_spans_of_a_run(edge: Edge, backend: Backend) -> None:
    metrics = run_pb2.RunMetrics(
        run_id=RUN_ID, agent_id=AGENT_ID, run_start_ns=5, run_ns=SECOND, num_steps=2, tool_names=["f"],
        tool_ids=[samples.TOOL_ID], llm_request_ns=3,
    )  # fmt: skip
    backend.on("GetRunMetrics", lambda _: run_service_pb2.GetRunMetricsResponse(metrics=metrics))
    found = (await edge.http.get(f"/v1/runs/{RUN_ID}/metrics")).json()
    assert found.pop("organization_id").startswith("org-")
    assert found == {
        "id": RUN_ID,
        "agent_id": AGENT_ID,
        "project_id": None,
        "run_start_ns": 5,
        "run_ns": SECOND,
        "num_steps": 2,
        "tools_used": [samples.TOOL_ID],
        "template_id": None,
        "base_template_id": None,
        "tool_names": ["f"],
        "llm_request_ns": 3,
        "tool_execution_ns": 0,
    }
    span = run_pb2.Span(
        trace_id="ab" * 16, span_id="cd" * 8, name="agent_step", start_time=NOON, duration_ns=4, status_code="Ok",
        attributes={"step.id": STEP_ID},
    )  # fmt: skip
    backend.on("GetRunTrace", lambda _: run_service_pb2.GetRunTraceResponse(spans=[span]))
    [told] = await edge.sdk.runs.trace.retrieve(RUN_ID, limit=7)
    assert (told["span_name"], told["duration"], told["span_attributes"]) == ("agent_step", 4, {"step.id": STEP_ID})
    assert backend.requests("GetRunTrace")[0].limit == 7
    assert (await edge.http.get(f"/v1/runs/{RUN_ID}/trace?limit=0")).status_code == 422


async def test_erasing_a_run(edge: Edge, backend: Backend) -> None:
    backend.on("DeleteRun", lambda _: run_service_pb2.DeleteRunResponse())
    answer = await edge.http.delete(f"/v1/runs/{RUN_ID}")
    assert (answer.status_code, answer.json()) == (200, None)

    def refuse(_: Any) -> Any:
        raise FailedPrecondition("cancel it first", reason="RUN_ACTIVE", metadata={"run_id": RUN_ID})

    backend.on("DeleteRun", refuse)
    answer = await edge.http.delete(f"/v1/runs/{RUN_ID}")
    assert (answer.status_code, answer.headers["x-should-retry"]) == (409, "false")
    assert answer.json() == {"detail": "cancel it first", "run_id": RUN_ID}


async def test_cancelling_where_nothing_runs(edge: Edge, backend: Backend) -> None:
    def refuse(_: Any) -> Any:
        raise FailedPrecondition("No active runs to cancel.", reason="NOTHING_TO_CANCEL")

    backend.on("CancelRuns", refuse)
    with pytest.raises(ConflictError) as caught:
        await edge.sdk.agents.messages.cancel(AGENT_ID)
    assert caught.value.response.json() == {"detail": "No active runs to cancel."}


async def test_a_step_has_the_references_30_fields(edge: Edge, backend: Backend) -> None:
    step = _step(
        status=run_pb2.STEP_STATUS_FAILED, error_type="LLM_SERVER_ERROR", error_message="Ask again.",
        error_detail="status 500", cached_input_tokens=5, cache_write_tokens=1, trace_id="ab" * 16,
        feedback=run_pb2.STEP_FEEDBACK_NEGATIVE, tags=["rude"], project_id="shop", context_window_limit=32_000,
        stop_reason=agent_pb2.STOP_REASON_LLM_API_ERROR,
    )  # fmt: skip
    backend.on("GetStep", lambda _: step_service_pb2.GetStepResponse(step=step))
    raw = (await edge.http.get(f"/v1/steps/{STEP_ID}")).json()
    found = await edge.sdk.steps.retrieve(STEP_ID)
    names = {field.alias or name for name, field in type(found).model_fields.items()}
    assert (len(raw), set(raw)) == (31, names | {"organization_id"})
    assert (found.status, found.stop_reason, found.error_type) == ("failed", "llm_api_error", "LLM_SERVER_ERROR")
    assert found.error_data == {"message": "Ask again.", "detail": "status 500"}
    assert (found.feedback, found.tags, found.project_id) == ("negative", ["rude"], "shop")
    assert (found.total_tokens, found.cached_input_tokens, found.reasoning_tokens) == (10, 5, 2)
    assert found.prompt_tokens_details == {"cached_tokens": 5, "cache_read_tokens": 5, "cache_creation_tokens": 1}
    assert (found.api_model_handle, found.model, found.provider_name) == ("openai/gpt", "gpt", "openai")


async def test_steps_and_their_filters(edge: Edge, backend: Backend) -> None:
    backend.on("ListSteps", lambda _: step_service_pb2.ListStepsResponse(steps=[_step()]))
    page = await edge.sdk.steps.list(
        agent_id=AGENT_ID, model="gpt", feedback="positive", has_feedback=True, tags=["kind", "short"],
        trace_ids=["ab" * 16], start_date="2025-12-01T04:00:00-08:00", end_date="2025-12-01T12:00:01", order="asc",
        limit=3, project_id="shop",
    )  # fmt: skip
    assert [step.id for step in page.items] == [STEP_ID]
    [asked] = backend.requests("ListSteps")
    assert (asked.page.page_size, asked.page.order == ORDER_ASCENDING, asked.agent_id, asked.model) == (
        3,
        True,
        AGENT_ID,
        "gpt",
    )
    assert (asked.feedback, asked.has_feedback) == (run_pb2.STEP_FEEDBACK_POSITIVE, True)
    assert (list(asked.tags), list(asked.trace_ids)) == (["kind", "short"], ["ab" * 16])
    assert (asked.start_time.seconds, asked.end_time.seconds) == (NOON.seconds, NOON.seconds + 1)
    assert asked.project_id == "shop"
    await edge.sdk.steps.list()
    plain = backend.requests("ListSteps")[1]
    assert plain == step_service_pb2.ListStepsRequest(page=PageRequest(page_size=50, order=ORDER_DESCENDING))
    with pytest.raises(UnprocessableEntityError, match="start_date"):
        await edge.sdk.steps.list(start_date="yesterday")


async def test_feedback(edge: Edge, backend: Backend) -> None:
    backend.on("SetStepFeedback", lambda _: step_service_pb2.SetStepFeedbackResponse(step=_step()))
    await edge.sdk.steps.feedback.create(STEP_ID, feedback="positive", tags=["kind"])
    await edge.sdk.steps.feedback.create(STEP_ID, feedback=None)
    await edge.sdk.steps.feedback.create(STEP_ID, tags=["short"])
    given, taken_back, tagged = backend.requests("SetStepFeedback")
    assert (given.feedback, list(given.add_tags)) == (run_pb2.STEP_FEEDBACK_POSITIVE, ["kind"])
    assert (taken_back.HasField("feedback"), taken_back.feedback) == (True, run_pb2.STEP_FEEDBACK_UNSPECIFIED)
    assert (tagged.HasField("feedback"), list(tagged.add_tags)) == (False, ["short"])


async def test_metrics_and_messages_of_a_step(edge: Edge, backend: Backend) -> None:
    metrics = run_pb2.StepMetrics(step_id=STEP_ID, run_id=RUN_ID, agent_id=AGENT_ID, llm_request_ns=SECOND)
    backend.on("GetStepMetrics", lambda _: step_service_pb2.GetStepMetricsResponse(metrics=metrics))
    said = [samples.called(("c1", "f", "{}")), samples.returned("done")]
    backend.on("ListStepMessages", lambda _: step_service_pb2.ListStepMessagesResponse(messages=said))
    found = await edge.sdk.steps.metrics.retrieve(STEP_ID)
    assert (found.id, found.run_id, found.llm_request_ns) == (STEP_ID, RUN_ID, SECOND)
    assert (found.tool_execution_ns, found.step_ns, found.project_id) == (None, None, None)
    page = await edge.sdk.steps.messages.list(STEP_ID, order="desc", limit=5)
    assert [message.message_type for message in page.items] == ["tool_call_message", "tool_return_message"]
    assert [
        (request.page.page_size, request.page.order == ORDER_DESCENDING)
        for request in backend.requests("ListStepMessages")
    ] == [(5, True)]


async def test_the_trace_of_a_step(edge: Edge, backend: Backend) -> None:
    trace = run_pb2.ProviderTrace(
        id=STEP_ID.replace("step-", "provider_trace-"), step_id=STEP_ID, run_id=RUN_ID, agent_id=AGENT_ID,
        request_json='{"model":"gpt"}', response_json='{"events":[]}', created_at=NOON, model_handle="openai/gpt",
        llm_request_ns=12_345_678,
    )  # fmt: skip
    backend.on("GetStepTrace", lambda _: step_service_pb2.GetStepTraceResponse(trace=trace))
    found = await edge.sdk.steps.trace.retrieve(STEP_ID)
    assert found is not None
    assert (found.request_json, found.response_json) == ({"model": "gpt"}, {"events": []})
    assert (found.step_id, found.latency_ms, found.call_type) == (STEP_ID, 12, "agent_step")
    raw = (await edge.http.get(f"/v1/telemetry/{STEP_ID}")).json()
    assert set(raw) == set(type(found).model_fields)

    def missing(_: Any) -> Any:
        raise NotFound("nothing is kept: send with `include_trace`", reason="STEP_TRACE_NOT_FOUND")

    backend.on("GetStepTrace", missing)
    assert await edge.sdk.steps.trace.retrieve(STEP_ID) is None


async def test_an_id_that_is_none(edge: Edge) -> None:
    for path in ("steps/step-1", "steps/step-1/trace"):
        answer = await edge.http.get(f"/v1/{path}")
        assert answer.status_code == 422
        assert answer.json()["examples"]
    answer = await edge.http.get("/v1/runs/run-1/metrics")
    assert answer.status_code == 400
    assert answer.json()["detail"].startswith("Invalid run ID format: 'run-1'")
    answer = await edge.http.get("/v1/runs/?statuses=odd")
    assert answer.status_code == 400
    assert "'odd' is not a valid RunStatus" in answer.json()["detail"]
