"""Runs -> protobuf, and what a list of runs asks for <- protobuf."""

from collections.abc import Iterable, Mapping, Sequence
from uuid import UUID

import orjson
from google.protobuf.descriptor import EnumDescriptor

from loci.agent.v1 import agent_pb2, message_service_pb2, run_pb2, run_service_pb2
from services.agent.convert.turns import run_to_proto, usage_to_proto
from services.agent.core.fact_log import failure_to_json
from services.agent.resources.callbacks.service import error_of
from services.agent.resources.runs.model import Span, between, nanoseconds
from services.agent.resources.runs.ports import Callback, RunList, RunSteps, RunUsage, StoredRun
from services.common.ids import from_public, optional_id, to_public
from services.common.page_requests import page_by_id
from services.common.timestamps import timestamp

_RUNS_PER_PAGE = 100


def run_list(request: run_service_pb2.ListRunsRequest) -> RunList:
    """Returns which runs to list. Raises Refused, InvalidArgument."""
    conversation_id = request.conversation_id if request.HasField("conversation_id") else ""
    return RunList(
        page=page_by_id(request.page, "run", _RUNS_PER_PAGE),
        agent_ids=tuple(from_public("agent", agent_id) for agent_id in request.agent_ids),
        statuses=_words(run_pb2.RunStatus.DESCRIPTOR, request.statuses),
        stop_reason=next(iter(_words(agent_pb2.StopReason.DESCRIPTOR, [request.stop_reason])), None),
        conversation_id=optional_id("conv", conversation_id),
        background=request.background if request.HasField("background") else None,
        by_duration=request.order_by == run_service_pb2.RUN_ORDER_DURATION,
    )


def stored_run_to_proto(run: StoredRun) -> run_pb2.Run:
    """Returns a run with all that is stored of it."""
    wire = run_to_proto(run)
    wire.view_json = run.view
    if run.callback is not None:
        _put_callback(wire, run.callback)
    if run.failure is not None:
        wire.metadata_json = orjson.dumps({"error": error_of(failure_to_json(run.failure))}).decode()
    return wire


def run_metrics_to_proto(whole: RunSteps, tool_ids: Mapping[str, UUID]) -> run_pb2.RunMetrics:
    """Returns how long a run took; `tool_ids` are those of the tools that the server still has, by name."""
    run = whole.run
    names = called_names(whole)
    metrics = run_pb2.RunMetrics(
        run_id=to_public("run", run.id),
        agent_id=to_public("agent", run.agent_id),
        num_steps=len(whole.steps),
        tool_names=names,
        tool_ids=[to_public("tool", tool_ids[name]) for name in names if name in tool_ids],
        llm_request_ns=_sum(whole, "llm_request_ns"),
        tool_execution_ns=_sum(whole, "tool_execution_ns"),
        project_id=whole.project_id or "",
    )
    if run.started_at is not None:
        metrics.run_start_ns = nanoseconds(run.started_at)
        if run.completed_at is not None:
            metrics.run_ns = between(run.started_at, run.completed_at)
    return metrics


def called_names(whole: RunSteps) -> Sequence[str]:
    """Returns names of the tools that a run called, each once."""
    return tuple(dict.fromkeys(name for step in whole.steps for name in whole.called.get(step.id, ())))


def span_to_proto(span: Span) -> run_pb2.Span:
    """Returns a stretch of time of a run."""
    return run_pb2.Span(
        trace_id=span.trace_id,
        span_id=span.span_id,
        parent_span_id=span.parent_span_id,
        name=span.name,
        start_time=timestamp(span.start),
        duration_ns=span.duration_ns,
        status_code=span.status_code,
        status_message=span.status_message,
        attributes=span.attributes,
    )


def run_usage_to_proto(used: RunUsage) -> message_service_pb2.TurnUsage:
    """Returns tokens of a run."""
    return usage_to_proto(used.usage, used.steps, used.context_tokens, used.run_ids)


def _put_callback(wire: run_pb2.Run, callback: Callback) -> None:
    wire.callback_url = callback.url
    wire.callback_error = callback.error or ""
    if callback.sent_at is not None:
        wire.callback_sent_at.CopyFrom(timestamp(callback.sent_at))
    if callback.status_code is not None:
        wire.callback_status_code = callback.status_code


def _sum(whole: RunSteps, name: str) -> int:
    return sum(step.metrics.get(name, 0) for step in whole.steps)


def _words(enum: EnumDescriptor, numbers: Iterable[int]) -> tuple[str, ...]:
    """The values as they are stored; the unspecified one stands for any, and one that nobody knows is no run's."""
    prefix = enum.values_by_number[0].name.removesuffix("UNSPECIFIED")
    named = (
        enum.values_by_number[number].name if number in enum.values_by_number else str(number) for number in numbers
    )
    return tuple(name.removeprefix(prefix).lower() for name in named if name != f"{prefix}UNSPECIFIED")
