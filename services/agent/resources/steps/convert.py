"""Steps -> protobuf, and what requests about them ask for <- protobuf."""

from typing import Any

import orjson

from loci.agent.v1 import run_pb2, step_service_pb2
from services.agent.resources.runs.model import asked_at, nanoseconds, step_ns
from services.agent.resources.steps.ports import Feedback, StepList, StepTrace, StepView
from services.common.codec import Codec
from services.common.core.storable import storable
from services.common.errors import InvalidArgument
from services.common.ids import to_public
from services.common.page_requests import page_by_id
from services.common.timestamps import timestamp

_STEPS_PER_PAGE = 50
LONGEST_TRANSACTION = 200
_FEEDBACK = {run_pb2.STEP_FEEDBACK_POSITIVE: "positive", run_pb2.STEP_FEEDBACK_NEGATIVE: "negative"}
_steps = Codec(StepView, run_pb2.Step, leave=("usage", "failure", "completed_at", "metrics", "tool_problems"))


def _invalid_time(name: str, problem: str) -> InvalidArgument:
    return InvalidArgument(f"{name} {problem}", reason="TIME_INVALID")


_lists = Codec(StepList, step_service_pb2.ListStepsRequest, leave=("page", "run_id"), refuse=_invalid_time)


def step_list(request: step_service_pb2.ListStepsRequest) -> StepList:
    """Returns which steps to list. Raises Refused, InvalidArgument."""
    return _lists.decode(request, page=page_by_id(request.page, "step", _STEPS_PER_PAGE))


def feedback_of(request: step_service_pb2.SetStepFeedbackRequest) -> Feedback:
    """Returns a person's opinion of a step."""
    return Feedback(request.HasField("feedback"), _FEEDBACK.get(request.feedback), tuple(request.add_tags))


def transaction_of(request: step_service_pb2.SetStepTransactionRequest) -> str:
    """Raises InvalidArgument (STEP_TRANSACTION_INVALID)."""
    text = storable(request.transaction_id)
    if not 1 <= len(text) <= LONGEST_TRANSACTION:
        sentence = f"a transaction id has 1 to {LONGEST_TRANSACTION} characters, not {len(text)}"
        raise InvalidArgument(sentence, reason="STEP_TRANSACTION_INVALID")
    return text


def step_to_proto(step: StepView) -> run_pb2.Step:
    """Returns a step as clients see it."""
    usage, failure = step.usage, step.failure
    return _steps.encode(
        step,
        prompt_tokens=usage.prompt_tokens,
        completion_tokens=usage.completion_tokens,
        cached_input_tokens=usage.cached_input_tokens,
        cache_write_tokens=usage.cache_write_tokens,
        reasoning_tokens=usage.reasoning_tokens,
        error_type="" if failure is None else failure.reason or failure.error_type,
        error_message="" if failure is None else failure.message,
        error_detail="" if failure is None else failure.detail,
        tool_problems=[
            run_pb2.ToolProblem(name=name, problem=why) for name, why in step.metrics.get("tool_problems", ())
        ],
    )


def step_metrics_to_proto(step: StepView) -> run_pb2.StepMetrics:
    """Returns how long a step took, as far as it was measured."""
    began_at = asked_at(step)
    start = None if began_at is None else nanoseconds(began_at)
    return run_pb2.StepMetrics(
        step_id=to_public("step", step.id),
        run_id=to_public("run", step.run_id),
        agent_id=to_public("agent", step.agent_id),
        step_start_ns=start,
        llm_request_start_ns=start,
        step_ns=step_ns(step),
        llm_request_ns=step.metrics.get("llm_request_ns"),
        ttft_ns=step.metrics.get("ttft_ns"),
        tool_execution_ns=step.metrics.get("tool_execution_ns"),
        project_id=step.project_id or "",
    )


def trace_to_proto(step_trace: StepTrace) -> run_pb2.ProviderTrace:
    """Returns a provider's request and answer."""
    step, trace = step_trace.step, orjson.loads(step_trace.trace)
    return run_pb2.ProviderTrace(
        id=to_public("provider_trace", step.id),
        step_id=to_public("step", step.id),
        run_id=to_public("run", step.run_id),
        agent_id=to_public("agent", step.agent_id),
        request_json=_object(trace.get("request"), "body"),
        response_json=_object(trace.get("response"), "events"),
        created_at=timestamp(step_trace.created_at),
        model_handle=step.model_handle,
        llm_request_ns=step.metrics.get("llm_request_ns"),
    )


def _object(value: Any, name: str) -> str:
    """Returns `value` as a JSON object; what is none, such as the events of a stream, stands in it under `name`."""
    return orjson.dumps(value if isinstance(value, dict) else {name: value}).decode()
