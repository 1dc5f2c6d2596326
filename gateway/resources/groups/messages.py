"""Talking to groups: requests, answers and streams are those of agents; see docs/groups.md."""

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from gateway.openapi.answers import returns
from gateway.openapi.schemas import NULL, array
from gateway.resources.messages import routes as of_agents
from gateway.resources.messages import stored
from gateway.resources.messages.pages import MessageCursor, check_cursors
from gateway.resources.messages.requests import CancelRuns, SendMessages
from gateway.resources.messages.routes import Types
from gateway.resources.messages.schemas import EVENT, FATES, MESSAGE, TURN
from gateway.resources.messages.stored_requests import UpdateMessage
from gateway.rest.paging import FIRST_PAGE, paged
from gateway.rest.params import GroupId, MessageId
from gateway.rest.responses import json_response
from gateway.rest.services import Loci, Services
from gateway.turns import responses as turn_responses
from gateway.turns.turn_requests import turn_request
from loci.agent.v1 import agent_service_pb2
from loci.agent.v1 import group_service_pb2 as wire
from loci.common.v1.page_pb2 import PageRequest
from services.common.errors import NotFound

router = APIRouter(prefix="/groups/{group_id}", tags=["groups"])
_OLD = APIRouter(deprecated=True)


@router.post("/messages")
@returns(TURN, event=EVENT)
async def send(group_id: GroupId, body: SendMessages, request: Request, loci: Loci) -> Response:
    """A round of the group: answered when it is over, or with streaming=true as server-sent events.

    Each message of the answer has the speaker's `name` and, as `sender_id`, its id. To a sleep-time group's manager
    this is a turn as any other.
    """
    if body.streaming:
        return await send_streaming(group_id, body, request, loci)
    body.check(streams=False)
    return await turn_responses.blocking_turn(request, loci, await turn_request(request, body, group_id), body)


@router.post("/messages/stream")
@returns(event=EVENT)
async def send_streaming(group_id: GroupId, body: SendMessages, request: Request, loci: Loci) -> Response:
    """The same as server-sent events, with stream_tokens what each member says while it says it."""
    body.check(streams=True)
    turn = await turn_request(request, body, group_id, background=body.background)
    return await turn_responses.stream_turn(request, loci, turn, body)


@router.post("/messages/cancel")
@returns(FATES)
async def cancel(group_id: GroupId, loci: Loci, body: CancelRuns | None = None) -> Response:
    """Asks rounds to stop; without a list, all that are active. Who speaks is stopped with them."""
    return await of_agents.cancel(await speaker(loci, group_id), loci, body)


@_OLD.get("/messages")
@returns(array(MESSAGE))
@paged(100, names="after before limit order", cursor=MessageCursor)
async def list_messages(
    group_id: GroupId, loci: Loci, page: PageRequest = FIRST_PAGE, include_return_message_types: Types = None
) -> Response:
    """A page of what was said in the group, as an agent's list. Deprecated in the reference."""
    # Also where nothing was said yet.
    check_cursors(page)
    agent_id = await speaker(loci, group_id)
    try:
        return await of_agents.list_messages(
            agent_id,
            loci,
            page=page,
            conversation_id="default",
            include_return_message_types=include_return_message_types,
        )
    except NotFound:
        # Nothing was said yet.
        return json_response([])


@_OLD.patch("/messages/{message_id}")
@returns(MESSAGE)
async def update_message(group_id: GroupId, message_id: MessageId, body: UpdateMessage, loci: Loci) -> Response:
    """Gives a message of the group another text. Deprecated in the reference."""
    return await stored.update_message(await speaker(loci, group_id), message_id, body, loci)


@_OLD.patch("/reset-messages")
@returns(NULL)
async def reset_messages(group_id: GroupId, loci: Loci) -> Response:
    """Lets the group begin anew; its members keep their own histories. Deprecated in the reference."""
    request = agent_service_pb2.ResetMessagesRequest(agent_id=await speaker(loci, group_id))
    try:
        await loci.peers.call(loci.peers.agents.ResetMessages, request)
    except NotFound:
        # Nothing was said yet.
        return json_response(None)
    return json_response(None)


async def speaker(loci: Services, group_id: str) -> str:
    """Returns the agent whose conversation is the group's: its manager's where it tends one, else one of its own."""
    request = wire.GetGroupRequest(group_id=group_id)
    group = (await loci.peers.call(loci.peers.groups.GetGroup, request)).group
    return group.manager_agent_id if group.manager_type == "sleeptime" else group_id.replace("group-", "agent-", 1)


router.include_router(_OLD)
