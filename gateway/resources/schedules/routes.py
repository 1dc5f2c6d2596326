"""Messages that are sent to an agent at their time."""

from typing import Annotated
from uuid import UUID, uuid5

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from gateway.openapi.answers import returns
from gateway.resources.schedules.requests import CreateSchedule
from gateway.resources.schedules.responses import schedule
from gateway.resources.schedules.schemas import DONE, SCHEDULE, SCHEDULED, SCHEDULES
from gateway.rest.paging import FIRST_PAGE, paged
from gateway.rest.params import AgentId, checked_id
from gateway.rest.responses import json_response
from gateway.rest.services import Loci
from gateway.turns.idempotency import retry_of
from loci.agent.v1 import schedule_service_pb2
from loci.common.v1.page_pb2 import PageRequest
from services.common.ids import to_public

router = APIRouter(prefix="/agents/{agent_id}/schedule", tags=["agents"])

ScheduleId = Annotated[str, checked_id("schedule")]
# Of ids that follow from the keys of requests.
_KEYS = UUID("b5a1a4a6-8f0e-4f3c-9c93-0f5b7f4d8a10")
_PER_PAGE = 100


@router.post("")
@router.post("/", include_in_schema=False)
@returns(SCHEDULED)
async def create_schedule(agent_id: AgentId, body: CreateSchedule, request: Request, loci: Loci) -> Response:
    """Sends messages to the agent at their time, each time as a background run of its default conversation."""
    # A client that repeats its request gets what the first made.
    key = loci.call_keys.of(await retry_of(request), request.scope["path"])
    rpc_request = schedule_service_pb2.CreateScheduleRequest(
        agent_id=agent_id,
        schedule_id=to_public("schedule", uuid5(_KEYS, key)),
        input=body.input(),
        time=body.schedule.time(),
    )
    created = schedule((await loci.peers.call(loci.peers.schedules.CreateSchedule, rpc_request)).schedule)
    return json_response({"id": created["id"], "next_scheduled_at": created["next_scheduled_time"]})


@router.get("")
@router.get("/", include_in_schema=False)
@returns(SCHEDULES)
@paged(_PER_PAGE, names="after limit", empty={"scheduled_messages": [], "has_next_page": False})
async def list_schedules(agent_id: AgentId, loci: Loci, page: PageRequest = FIRST_PAGE) -> Response:
    """Returns a page of the agent's schedules, finished ones too; oldest first."""
    request = schedule_service_pb2.ListSchedulesRequest(agent_id=agent_id, page=page)
    response = await loci.peers.call(loci.peers.schedules.ListSchedules, request)
    return json_response(
        {"scheduled_messages": list(map(schedule, response.schedules)), "has_next_page": bool(response.next_page_token)}
    )


@router.get("/{scheduled_message_id}")
@returns(SCHEDULE)
async def get_schedule(agent_id: AgentId, scheduled_message_id: ScheduleId, loci: Loci) -> Response:
    """Returns a schedule."""
    request = schedule_service_pb2.GetScheduleRequest(agent_id=agent_id, schedule_id=scheduled_message_id)
    return json_response(schedule((await loci.peers.call(loci.peers.schedules.GetSchedule, request)).schedule))


@router.delete("/{scheduled_message_id}")
@returns(DONE)
async def delete_schedule(agent_id: AgentId, scheduled_message_id: ScheduleId, loci: Loci) -> Response:
    """Deletes a schedule. A run that has begun goes on."""
    request = schedule_service_pb2.DeleteScheduleRequest(agent_id=agent_id, schedule_id=scheduled_message_id)
    await loci.peers.call(loci.peers.schedules.DeleteSchedule, request)
    return json_response({"success": True})
