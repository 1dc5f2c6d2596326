"""Runs: what became of requests."""

import asyncio
import logging
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from starlette.responses import Response

from gateway.errors.invalid import InvalidRequest
from gateway.openapi.answers import returns
from gateway.openapi.schemas import NULL, array
from gateway.resources.messages.pages import filtered_page
from gateway.resources.messages.schemas import MESSAGE
from gateway.resources.runs.responses import (
    run_metrics_to_rest,
    run_to_rest,
    run_usage_to_rest,
    span_to_rest,
    view_of,
)
from gateway.resources.runs.schemas import RUN, RUN_METRICS, RUN_USAGE, SPAN, STEP
from gateway.resources.runs.steps import steps_to_rest
from gateway.resources.usage import responses as usage
from gateway.rest.paging import FIRST_PAGE, Order, paged, set_order
from gateway.rest.params import Names, RunId, split
from gateway.rest.responses import json_response
from gateway.rest.services import Loci, own_organization
from gateway.turns.speech import SpeechRenderer
from loci.agent.v1 import agent_pb2, run_pb2, run_service_pb2
from loci.common.v1.page_pb2 import PageRequest
from loci.llm.v1 import usage_service_pb2
from services.common.errors import InvalidArgument, LociError
from services.common.fields import enum_numbers

logger = logging.getLogger(__name__)

router = APIRouter(prefix="/runs", tags=["runs"])

_STATUSES = enum_numbers(run_pb2.RunStatus.DESCRIPTOR)
_STOP_REASONS = enum_numbers(agent_pb2.StopReason.DESCRIPTOR)
_ACTIVE = ("created", "running")
# The tokens are the agent service's to tell; nobody waits long for their cost.
_COSTS_SECONDS = 2.0
_ORDERS = {
    "created_at": run_service_pb2.RUN_ORDER_CREATED_AT,
    "duration": run_service_pb2.RUN_ORDER_DURATION,
}


@router.get("")
@returns(array(RUN))
@paged(100, names="before after limit", zero="refused")
async def list_runs(
    loci: Loci,
    agent_id: str | None = None,
    agent_ids: Names = None,
    statuses: Names = None,
    background: bool | None = None,
    stop_reason: str | None = None,
    conversation_id: str | None = None,
    page: PageRequest = FIRST_PAGE,
    order: Order | None = None,
    order_by: Literal["created_at", "duration"] = "created_at",
    active: bool = False,
    ascending: bool = False,
) -> Response:
    """A page of runs, newest (or longest) first. `ascending` is the older name of order=asc."""
    agents = [*split(agent_ids), *([agent_id] if agent_id else [])]
    names = split(statuses)
    if active:
        names = [name for name in names or _ACTIVE if name in _ACTIVE]
        if not names:
            return json_response([])
    set_order(page, ascending=ascending if order is None else order == "asc")
    request = run_service_pb2.ListRunsRequest(
        page=page,
        agent_ids=agents,
        statuses=[run_pb2.RunStatus.ValueType(_status(name)) for name in names],
        conversation_id=conversation_id,
        background=background,
        order_by=_ORDERS[order_by],
    )
    if stop_reason is not None:
        request.stop_reason = agent_pb2.StopReason.ValueType(_number("stop_reason", stop_reason, _STOP_REASONS))
    response = await loci.peers.call(loci.peers.runs.ListRuns, request)
    return json_response([run_to_rest(run) for run in response.runs])


@router.get("/active", deprecated=True)
@returns(array(RUN))
async def list_active_runs(
    loci: Loci, agent_id: str | None = None, agent_ids: Names = None, background: bool | None = None
) -> Response:
    """Runs that have not ended, newest first."""
    return await list_runs(loci, agent_id, agent_ids, background=background, active=True)


@router.get("/{run_id}")
@returns(RUN)
async def retrieve_run(run_id: RunId, loci: Loci) -> Response:
    """One run."""
    request = run_service_pb2.GetRunRequest(run_id=run_id)
    return json_response(run_to_rest((await loci.peers.call(loci.peers.runs.GetRun, request)).run))


@router.delete("/{run_id}")
@returns(NULL)
async def delete_run(run_id: RunId, loci: Loci) -> Response:
    """Erases a run with its steps and traces; what was said stays in its conversation. An active one is refused."""
    await loci.peers.call(loci.peers.runs.DeleteRun, run_service_pb2.DeleteRunRequest(run_id=run_id))
    return json_response(None)


@router.get("/{run_id}/messages")
@returns(array(MESSAGE))
@paged(100, "asc")
async def list_run_messages(
    run_id: RunId,
    loci: Loci,
    page: PageRequest = FIRST_PAGE,
) -> Response:
    """Returns the messages of a run, the input included, oldest first, as far as the request for it wanted to see it.

    `limit` counts stored messages, as everywhere.
    """
    run = (await loci.peers.call(loci.peers.runs.GetRun, run_service_pb2.GetRunRequest(run_id=run_id))).run
    types = view_of(run.view_json).get("types")
    request = run_service_pb2.ListRunMessagesRequest(run_id=run_id, page=page)
    rpc = loci.peers.runs.ListRunMessages
    return json_response(await filtered_page(loci.peers, rpc, request, types=types, speech=SpeechRenderer()))


@router.get("/{run_id}/steps")
@returns(array(STEP))
@paged(100)
async def list_run_steps(
    run_id: RunId,
    loci: Loci,
    page: PageRequest = FIRST_PAGE,
) -> Response:
    """The model calls of a run, newest first."""
    request = run_service_pb2.ListRunStepsRequest(run_id=run_id, page=page)
    response = await loci.peers.call(loci.peers.runs.ListRunSteps, request)
    return json_response(await steps_to_rest(loci, response.steps))


@router.get("/{run_id}/usage")
@returns(RUN_USAGE)
async def retrieve_run_usage(run_id: RunId, loci: Loci) -> Response:
    """Tokens of a run so far, and what they cost, where the llm gateway can be asked."""
    request = run_service_pb2.GetRunUsageRequest(run_id=run_id)
    response, costs = await asyncio.gather(loci.peers.call(loci.peers.runs.GetRunUsage, request), _costs(run_id, loci))
    return json_response(run_usage_to_rest(response.usage) | costs)


async def _costs(run_id: str, loci: Loci) -> dict[str, Any]:
    request = usage_service_pb2.GetRunUsageRequest(run_id=run_id)
    try:
        return usage.of_run(await loci.peers.call(loci.peers.usage.GetRunUsage, request, timeout=_COSTS_SECONDS))
    except LociError as error:
        logger.warning("what run %s cost is not known now: %r", run_id, error)
        return {}


@router.get("/{run_id}/metrics")
@returns(RUN_METRICS)
async def retrieve_run_metrics(run_id: RunId, loci: Loci) -> Response:
    """How long a run took, and which tools it called."""
    request = run_service_pb2.GetRunMetricsRequest(run_id=run_id)
    response = await loci.peers.call(loci.peers.runs.GetRunMetrics, request)
    return json_response(run_metrics_to_rest(response.metrics, own_organization()))


@router.get("/{run_id}/trace")
@returns(array(SPAN))
async def retrieve_run_trace(
    run_id: RunId, loci: Loci, limit: Annotated[int, Query(ge=1, le=5_000)] = 1_000
) -> Response:
    """A run as spans, worked out from what is stored of its steps; no tracing backend is needed."""
    request = run_service_pb2.GetRunTraceRequest(run_id=run_id, limit=limit)
    response = await loci.peers.call(loci.peers.runs.GetRunTrace, request)
    return json_response([span_to_rest(span) for span in response.spans])


def _status(name: str) -> int:
    """Raises InvalidArgument: unlike other values, a wrong status is 400."""
    if name not in _STATUSES:
        raise InvalidArgument(f"{name[:80]!r} is not a valid RunStatus: give some of {', '.join(_STATUSES)}")
    return _STATUSES[name]


def _number(parameter: str, name: str, numbers: Mapping[str, int]) -> int:
    if name not in numbers:
        names = ", ".join(numbers)
        raise InvalidRequest(f"`{parameter}`: {name[:80]!r} is not one of {names}", "query", parameter)
    return numbers[name]
