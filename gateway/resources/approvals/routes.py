"""Calls that wait for a person: a route of Loci's own, which the reference lacks."""

import asyncio

from fastapi import APIRouter
from starlette.responses import Response

from gateway.openapi.answers import returns
from gateway.openapi.schemas import array
from gateway.resources.agents.responses import approval_request
from gateway.resources.agents.routes import fetch
from gateway.resources.approvals.schemas import APPROVAL
from gateway.rest.convert import Rest, moment
from gateway.rest.params import AgentId
from gateway.rest.responses import json_response
from gateway.rest.services import Loci
from loci.agent.v1 import conversation_service_pb2 as wire

router = APIRouter(tags=["agents"])


@router.get("/agents/{agent_id}/approvals")
@returns(array(APPROVAL))
async def list_approvals(agent_id: AgentId, loci: Loci) -> Response:
    """The calls that wait in each conversation of the agent, and when its rule answers in a person's place.

    Those that are answered soonest come first; at most 200 conversations.
    """
    request = wire.ListPendingApprovalsRequest(agent_id=agent_id)
    response, _ = await asyncio.gather(
        loci.peers.call(loci.peers.conversations.ListPendingApprovals, request), fetch(loci, agent_id)
    )
    return json_response([_approval(each) for each in response.approvals])


def _approval(waiting: wire.ConversationApproval) -> Rest:
    pending = waiting.approval
    return {
        "conversation_id": waiting.conversation_id or None,
        "due_at": moment(pending.due_at) if pending.HasField("due_at") else None,
        "request": approval_request(pending),
    }
