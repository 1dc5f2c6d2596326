"""A run as spans, worked out from its steps; tags of steps."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from services.agent.core.facts import Failure, RunStatus, StopReason, Usage
from services.agent.resources.runs.model import asked_at, nanoseconds, spans_of, step_ns
from services.agent.resources.runs.ports import RunSteps, StoredRun
from services.agent.resources.steps.model import with_tags
from services.agent.resources.steps.ports import StepView
from services.common.core.refusals import Refused

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
SECOND = 1_000_000_000
RUN, AGENT, ONE, TWO = (UUID(int=number) for number in range(1, 5))
FAILURE = Failure(StopReason.LLM_API_ERROR, "llm_error", "Ask again.")


def after(seconds: float) -> datetime:
    """So long after noon."""
    return NOON + timedelta(seconds=seconds)


def run(**fields: Any) -> StoredRun:
    """A run that took ten seconds."""
    given = StoredRun(
        RUN, AGENT, AGENT, RunStatus.COMPLETED, 1, NOON,
        stop_reason=StopReason.END_TURN, started_at=after(1), first_token_at=after(2), completed_at=after(10),
    )  # fmt: skip
    return replace(given, **fields)


def step(number: int, **fields: Any) -> StepView:
    """A step whose reply was stored three seconds after noon, having taken two."""
    given = StepView(
        id=UUID(int=2 + number),
        run_id=RUN,
        agent_id=AGENT,
        number=number,
        status="success",
        stop_reason=None,
        model_handle="loci/demo",
        attempts=1,
        context_window_limit=32_000,
        usage=Usage(10, 5),
        failure=None,
        prompt_hash="",
        trace_id="",
        created_at=after(3),
        metrics={"llm_request_ns": 2 * SECOND, "tool_execution_ns": SECOND},
    )
    return replace(given, **fields)


@pytest.mark.parametrize(
    ("fields", "took"),
    [
        ({}, 3 * SECOND),
        ({"metrics": {"llm_request_ns": 5}}, 5),
        ({"metrics": {"llm_request_ns": 5, "step_ns": 7}}, 7),
        ({"metrics": {}}, None),
        ({"status": "pending"}, None),
        # The client answered an hour later: its time is not the step's.
        ({"completed_at": after(3_600)}, 3 * SECOND),
    ],
)
def test_how_long_a_step_took(fields: dict[str, Any], took: int | None) -> None:
    assert step_ns(step(1, **fields)) == took


def test_when_the_model_was_asked() -> None:
    assert asked_at(step(1)) == after(1)
    assert asked_at(step(1, metrics={})) is None
    assert nanoseconds(datetime(1970, 1, 1, 0, 0, 1, 5, tzinfo=UTC)) == SECOND + 5_000


def test_spans_of_a_run() -> None:
    steps = (step(1), step(2, created_at=after(9), metrics={"llm_request_ns": SECOND}))
    spans = list(spans_of(RunSteps(run(), steps, {ONE: ("roll", "add")}), NOON))
    told = [(span.name, (span.start - NOON).total_seconds(), span.duration_ns / SECOND) for span in spans]
    assert told == [
        ("run", 0, 10),
        ("time_to_first_token", 0, 2),
        ("agent_step", 1, 3),
        ("llm_request", 1, 2),
        ("tool_execution", 3, 1),
        ("agent_step", 8, 1),
        ("llm_request", 8, 1),
    ]
    root, waited, first, model, tools, second, _ = spans
    assert [span.parent_span_id for span in spans] == [
        "", *[root.span_id] * 2, *[first.span_id] * 2, root.span_id, second.span_id,
    ]  # fmt: skip
    assert len({span.span_id for span in spans}) == 7
    assert {span.trace_id for span in spans} == {RUN.hex}
    assert {span.status_code for span in spans} == {"Ok"}
    assert (tools.attributes["tools"], model.attributes["prompt_tokens"]) == ("roll,add", "10")
    assert waited.parent_span_id == root.span_id


def test_spans_of_a_run_that_failed() -> None:
    failed = step(1, status="failed", failure=FAILURE, metrics={"llm_request_ns": SECOND}, trace_id="ab" * 16)
    whole = RunSteps(run(status=RunStatus.FAILED, failure=FAILURE, first_token_at=None), (failed,), {})
    root, own, model = spans_of(whole, NOON)
    assert [(span.status_code, span.status_message) for span in (root, own, model)] == [("Error", "Ask again.")] * 3
    assert {span.trace_id for span in (root, own, model)} == {"ab" * 16}


def test_spans_of_a_run_that_has_not_ended() -> None:
    going = run(status=RunStatus.RUNNING, completed_at=None, stop_reason=None, first_token_at=None)
    root, own = spans_of(RunSteps(going, (step(1, status="pending", metrics={}),), {}), after(4))
    assert (root.duration_ns, root.status_code) == (4 * SECOND, "Unset")
    assert (own.start, own.duration_ns, own.status_code) == (after(3), 0, "Unset")


def test_tags_are_added_once() -> None:
    assert with_tags(("kind", "short"), ("short", "true")) == ("kind", "short", "true")
    assert with_tags(("kind",), ()) == ("kind",)


@pytest.mark.parametrize("added", [[""], ["x" * 201], ["a\0b"], [str(number) for number in range(101)]])
def test_tags_that_are_refused(added: list[str]) -> None:
    with pytest.raises(Refused) as caught:
        with_tags((), added)
    assert caught.value.reason == "FEEDBACK_INVALID"
