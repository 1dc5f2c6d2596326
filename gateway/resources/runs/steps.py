"""Steps: the model calls of runs, what they took, and what people thought of them."""

from collections.abc import Iterable
from datetime import datetime
from typing import Literal

from fastapi import APIRouter
from google.protobuf.timestamp_pb2 import Timestamp
from starlette.responses import Response

from gateway.errors.invalid import InvalidRequest
from gateway.openapi.answers import returns
from gateway.openapi.schemas import array, maybe
from gateway.resources.messages.pages import filtered_page
from gateway.resources.messages.schemas import MESSAGE
from gateway.resources.runs.requests import StepFeedback
from gateway.resources.runs.responses import provider_trace_to_rest, step_metrics_to_rest, step_to_rest
from gateway.resources.runs.schemas import PROVIDER_TRACE, STEP, STEP_METRICS
from gateway.rest.convert import Rest
from gateway.rest.paging import FIRST_PAGE, paged
from gateway.rest.params import Names, StepId, split
from gateway.rest.responses import json_response
from gateway.rest.services import Loci, Services, own_organization
from gateway.turns.speech import SpeechRenderer
from loci.agent.v1 import run_pb2, step_service_pb2
from loci.common.v1.page_pb2 import PageRequest
from services.common.errors import LociError
from services.common.timestamps import timestamp

router = APIRouter(tags=["steps"])

_FEEDBACK = {"positive": run_pb2.STEP_FEEDBACK_POSITIVE, "negative": run_pb2.STEP_FEEDBACK_NEGATIVE}


@router.get("/steps")
@returns(array(STEP))
@paged(50)
async def list_steps(
    loci: Loci,
    page: PageRequest = FIRST_PAGE,
    order_by: Literal["created_at"] = "created_at",
    start_date: str | None = None,
    end_date: str | None = None,
    model: str | None = None,
    agent_id: str | None = None,
    trace_ids: Names = None,
    feedback: Literal["positive", "negative"] | None = None,
    has_feedback: bool | None = None,
    tags: Names = None,
    project_id: str | None = None,
) -> Response:
    """A page of steps, newest first. `model` is a handle or a model's name; of tags and trace ids, any will do."""
    request = step_service_pb2.ListStepsRequest(
        page=page,
        agent_id=agent_id or "",
        model=model or "",
        feedback=_FEEDBACK[feedback] if feedback else run_pb2.STEP_FEEDBACK_UNSPECIFIED,
        has_feedback=has_feedback,
        tags=split(tags),
        trace_ids=split(trace_ids),
        start_time=_time("start_date", start_date),
        end_time=_time("end_date", end_date),
        project_id=project_id or "",
    )
    response = await loci.peers.call(loci.peers.steps.ListSteps, request)
    return json_response(await steps_to_rest(loci, response.steps))


@router.get("/steps/{step_id}")
@returns(STEP)
async def retrieve_step(step_id: StepId, loci: Loci) -> Response:
    """One step."""
    request = step_service_pb2.GetStepRequest(step_id=step_id)
    step = (await loci.peers.call(loci.peers.steps.GetStep, request)).step
    return json_response((await steps_to_rest(loci, [step]))[0])


@router.get("/steps/{step_id}/messages")
@returns(array(MESSAGE))
@paged(100, "asc")
async def list_step_messages(
    step_id: StepId,
    loci: Loci,
    page: PageRequest = FIRST_PAGE,
) -> Response:
    """The reply of a step and the returns of its tools, oldest first; of a run's first step the input, too."""
    request = step_service_pb2.ListStepMessagesRequest(step_id=step_id, page=page)
    rpc = loci.peers.steps.ListStepMessages
    return json_response(await filtered_page(loci.peers, rpc, request, speech=SpeechRenderer()))


@router.patch("/steps/{step_id}/feedback")
@returns(STEP)
async def give_feedback(step_id: StepId, loci: Loci, body: StepFeedback) -> Response:
    """Says what a person thought of a step."""
    response = await loci.peers.call(loci.peers.steps.SetStepFeedback, body.request(step_id))
    return json_response((await steps_to_rest(loci, [response.step]))[0])


@router.patch("/steps/{step_id}/transaction/{transaction_id}")
@returns(STEP)
async def note_transaction(step_id: StepId, transaction_id: str, loci: Loci) -> Response:
    """Notes the caller's own transaction of a step, by which it pays or is paid; the step's `tid`."""
    request = step_service_pb2.SetStepTransactionRequest(step_id=step_id, transaction_id=transaction_id)
    step = (await loci.peers.call(loci.peers.steps.SetStepTransaction, request)).step
    return json_response((await steps_to_rest(loci, [step]))[0])


@router.get("/steps/{step_id}/metrics")
@returns(STEP_METRICS)
async def retrieve_step_metrics(step_id: StepId, loci: Loci) -> Response:
    """How long a step took; null where it was not measured, or not reached."""
    request = step_service_pb2.GetStepMetricsRequest(step_id=step_id)
    response = await loci.peers.call(loci.peers.steps.GetStepMetrics, request)
    return json_response(step_metrics_to_rest(response.metrics, own_organization()))


@router.get("/steps/{step_id}/trace")
@router.get("/telemetry/{step_id}", deprecated=True)
@returns(maybe(PROVIDER_TRACE))
async def retrieve_step_trace(step_id: StepId, loci: Loci) -> Response:
    """Returns the provider's request and its answer, where the message was sent with `include_trace`; else null."""
    request = step_service_pb2.GetStepTraceRequest(step_id=step_id)
    try:
        response = await loci.peers.call(loci.peers.steps.GetStepTrace, request)
    except LociError as error:
        if error.reason not in ("STEP_TRACE_NOT_FOUND", "STEP_NOT_FOUND"):
            raise
        return json_response(None)
    return json_response(provider_trace_to_rest(response.trace))


async def steps_to_rest(loci: Services, steps: Iterable[run_pb2.Step]) -> list[Rest]:
    """Returns steps with where their models are asked, as far as that is known now."""
    models, organization = (await loci.catalogue.models()).chat, own_organization()
    return [
        step_to_rest(step, organization, model.endpoint if (model := models.get(step.model_handle)) else "")
        for step in steps
    ]


def _time(parameter: str, text: str | None) -> Timestamp | None:
    """Returns a moment in ISO 8601; without an offset it is UTC. Raises InvalidRequest."""
    if text is None:
        return None
    try:
        return timestamp(datetime.fromisoformat(text))
    except (ValueError, OverflowError):
        sentence = f"`{parameter}`: {text[:80]!r} is not a time in ISO 8601, such as 2026-01-29T15:01:19-08:00"
        raise InvalidRequest(sentence, "query", parameter) from None
