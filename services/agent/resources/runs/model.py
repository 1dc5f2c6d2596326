"""When the parts of a run began and how long they took, worked out from what is stored of its steps. Pure.

A step's row is written when its reply is stored, so the model was asked that much earlier as the call took, and the
tools began there. No clock but the database's is involved.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from services.agent.core.facts import RunStatus
from services.agent.resources.runs.ports import RunSteps
from services.agent.resources.steps.ports import StepView

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ENDED = {RunStatus.COMPLETED: "Ok", RunStatus.FAILED: "Error", RunStatus.CANCELLED: "Ok"}
_STEP_ENDED = {"success": "Ok", "failed": "Error", "cancelled": "Ok"}


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of time; see loci.agent.v1.Span."""

    trace_id: str
    span_id: str
    parent_span_id: str
    name: str
    start: datetime
    duration_ns: int
    status_code: str = "Ok"
    status_message: str = ""
    attributes: dict[str, str] = field(default_factory=dict)


def nanoseconds(moment: datetime) -> int:
    """Returns the nanoseconds since 1970."""
    return between(_EPOCH, moment)


def between(start: datetime, end: datetime) -> int:
    """Nanoseconds from one moment to another; never below zero."""
    return max(0, (end - start) // timedelta(microseconds=1) * 1_000)


def asked_at(step: StepView) -> datetime | None:
    """Returns when the model was asked; None where the call was not measured."""
    took = step.metrics.get("llm_request_ns")
    return None if took is None else step.created_at - timedelta(microseconds=took / 1_000)


def step_ns(step: StepView) -> int | None:
    """How long a step took, without a wait for the client; None while its tools run, or where nothing was measured."""
    if step.status == "pending":
        return None
    parts = [step.metrics[name] for name in ("llm_request_ns", "tool_execution_ns") if name in step.metrics]
    whole: int | None = step.metrics.get("step_ns", sum(parts) if parts else None)
    return whole


def spans_of(whole: RunSteps, now: datetime) -> Iterator[Span]:
    """Yields the run, the wait for its first token, and each step with its model call and its tools, in this order."""
    run = whole.run
    trace_id = next((step.trace_id for step in whole.steps if step.trace_id), run.id.hex)
    root = Span(
        trace_id,
        _span_id(run.id.hex, "run"),
        "",
        "run",
        run.created_at,
        between(run.created_at, run.completed_at or now),
        _ENDED.get(run.status, "Unset"),
        "" if run.failure is None else run.failure.message,
        {"run.id": f"run-{run.id}", "agent.id": f"agent-{run.agent_id}", "run.status": run.status.value}
        | ({} if run.stop_reason is None else {"run.stop_reason": run.stop_reason.value}),
    )
    yield root
    if run.first_token_at is not None:
        waited = between(run.created_at, run.first_token_at)
        span_id = _span_id(run.id.hex, "time_to_first_token")
        yield Span(trace_id, span_id, root.span_id, "time_to_first_token", run.created_at, waited)
    for step in whole.steps:
        yield from _step_spans(step, whole.called.get(step.id, ()), root)


def _step_spans(step: StepView, called: tuple[str, ...], root: Span) -> Iterator[Span]:
    begun = asked_at(step) or step.created_at
    status = _STEP_ENDED.get(step.status, "Unset")
    message = "" if step.failure is None else step.failure.message
    own = Span(
        root.trace_id,
        _span_id(step.id.hex, "agent_step"),
        root.span_id,
        "agent_step",
        begun,
        step_ns(step) or 0,
        status,
        message,
        {"step.id": f"step-{step.id}", "step.number": str(step.number), "step.attempts": str(step.attempts)},
    )
    yield own
    if (took := step.metrics.get("llm_request_ns")) is not None:
        tokens = {"prompt_tokens": step.usage.prompt_tokens, "completion_tokens": step.usage.completion_tokens}
        attributes = {"model": step.model_handle} | {name: str(count) for name, count in tokens.items()}
        span_id = _span_id(step.id.hex, "llm_request")
        failed = ("Error", message) if step.status == "failed" and not called else ("Ok", "")
        yield Span(root.trace_id, span_id, own.span_id, "llm_request", begun, took, *failed, attributes)
    if (took := step.metrics.get("tool_execution_ns")) is not None:
        attributes = {"tools": ",".join(called)}
        span_id = _span_id(step.id.hex, "tool_execution")
        yield Span(root.trace_id, span_id, own.span_id, "tool_execution", step.created_at, took, attributes=attributes)


def _span_id(owner: str, name: str) -> str:
    return hashlib.sha256(f"{owner}:{name}".encode()).hexdigest()[:16]
