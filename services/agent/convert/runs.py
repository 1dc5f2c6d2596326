"""Runs and steps -> protobuf, and what a list of runs asks for <- protobuf."""

from collections.abc import Iterable

from google.protobuf.descriptor import EnumDescriptor

from loci.agent.v1 import agent_pb2, message_service_pb2, run_pb2, run_service_pb2
from services.agent.convert.agents import stop_reason
from services.agent.convert.lists import page
from services.agent.convert.messages import timestamp
from services.agent.convert.turns import usage_to_proto
from services.agent.ports_admin import RunList, RunUsage, StepView
from services.common.ids import from_public, to_public

_RUNS_PER_PAGE = 100


def run_list(request: run_service_pb2.ListRunsRequest) -> RunList:
    """Which runs to list. Raises Refused, InvalidArgument."""
    conversation_id = request.conversation_id if request.HasField("conversation_id") else ""
    return RunList(
        page=page(request, "run", _RUNS_PER_PAGE),
        agent_ids=tuple(from_public("agent", agent_id) for agent_id in request.agent_ids),
        statuses=_words(run_pb2.RunStatus.DESCRIPTOR, request.statuses),
        stop_reason=next(iter(_words(agent_pb2.StopReason.DESCRIPTOR, [request.stop_reason])), None),
        conversation_id=from_public("conv", conversation_id) if conversation_id else None,
        background=request.background if request.HasField("background") else None,
    )


def step_to_proto(step: StepView) -> run_pb2.Step:
    """A step as clients see it."""
    return run_pb2.Step(
        id=to_public("step", step.id),
        run_id=to_public("run", step.run_id),
        agent_id=to_public("agent", step.agent_id),
        number=step.number,
        status=run_pb2.StepStatus.Value(f"STEP_STATUS_{step.status.upper()}"),
        model_handle=step.model_handle,
        attempts=step.attempts,
        stop_reason=stop_reason(step.stop_reason),
        prompt_tokens=step.usage.prompt_tokens,
        completion_tokens=step.usage.completion_tokens,
        cached_input_tokens=step.usage.cached_input_tokens,
        cache_write_tokens=step.usage.cache_write_tokens,
        reasoning_tokens=step.usage.reasoning_tokens,
        error_type="" if step.failure is None else step.failure.reason or step.failure.error_type,
        error_message="" if step.failure is None else step.failure.message,
        created_at=timestamp(step.created_at),
        context_window_limit=step.context_window_limit,
        prompt_hash=step.prompt_hash,
        trace_id=step.trace_id,
    )


def run_usage_to_proto(used: RunUsage) -> message_service_pb2.TurnUsage:
    """Tokens of a run."""
    return usage_to_proto(used.usage, used.steps, used.context_tokens)


def _words(enum: EnumDescriptor, numbers: Iterable[int]) -> tuple[str, ...]:
    """The values as they are stored; the unspecified one stands for any, and one that nobody knows is no run's."""
    prefix = enum.values_by_number[0].name.removesuffix("UNSPECIFIED")
    named = (
        enum.values_by_number[number].name if number in enum.values_by_number else str(number) for number in numbers
    )
    return tuple(name.removeprefix(prefix).lower() for name in named if name != f"{prefix}UNSPECIFIED")
