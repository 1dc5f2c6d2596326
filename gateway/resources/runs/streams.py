"""Background runs: begun without waiting, and joined by run, by conversation, or by a message that was sent."""

from typing import Annotated

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import Response

from gateway.openapi.answers import returns
from gateway.resources.conversations.responses import DEFAULT, ConversationKey
from gateway.resources.messages.requests import AttachRun, SendInBackground
from gateway.resources.messages.schemas import EVENT
from gateway.resources.runs.responses import run_to_rest
from gateway.resources.runs.schemas import RUN
from gateway.rest.params import AgentId, ConversationRef, RunId
from gateway.rest.responses import json_response
from gateway.rest.services import Loci, Services
from gateway.turns import responses as turn_responses
from gateway.turns.reattach import is_read_to_end, reattach, resumed_from
from gateway.turns.turn_requests import turn_request
from loci.agent.v1 import message_service_pb2, run_service_pb2
from services.common.errors import FailedPrecondition, NotFound

router = APIRouter()

# A run is answered as it was accepted, however far it has come since.
_BEGUN = {"status": "created", **dict.fromkeys(("completed_at", "stop_reason", "ttft_ns", "total_duration_ns"))}


@router.post("/agents/{agent_id}/messages/async", tags=["agents"])
@returns(RUN)
async def send_in_background(agent_id: AgentId, body: SendInBackground, request: Request, loci: Loci) -> Response:
    """Takes a turn in the background. Answers with its run at once; `callback_url` is POSTed to when it has ended."""
    turn = await turn_request(request, body, agent_id, background=True, callback_url=body.callback_url)
    started = await loci.peers.call(
        loci.peers.messages.StartMessages, message_service_pb2.StartMessagesRequest(turn=turn)
    )
    response = await loci.peers.call(loci.peers.runs.GetRun, run_service_pb2.GetRunRequest(run_id=started.run_id))
    return json_response(run_to_rest(response.run) | (_BEGUN if started.started else {}))


@router.post("/runs/{run_id}/stream", tags=["runs"])
@returns(event=EVENT)
async def stream_run(run_id: RunId, request: Request, loci: Loci, body: AttachRun | None = None) -> Response:
    """The events of a run after `starting_after`, live until it ends.

    Any run can be joined. It is shown as the request that began it wanted, unless the body says otherwise. Background
    runs can be gone on with after every `seq_id` while their streams are kept, others after whole messages.
    """
    return await _run(loci, run_id, resumed_from(request, body or AttachRun()))


@router.get("/runs/{run_id}/stream", tags=["runs"])
@returns(event=EVENT)
async def follow_run(run_id: RunId, request: Request, loci: Loci, options: Annotated[AttachRun, Query()]) -> Response:
    """The same for a browser's EventSource: options in the query, and `Last-Event-ID` says from where on.

    204, at which an EventSource comes back no more, for one that knows the run to its end.
    """
    options = resumed_from(request, options)
    if await is_read_to_end(loci, run_id, options.starting_after):
        return Response(status_code=204)
    return await _run(loci, run_id, options)


@router.post("/conversations/{conversation_id}/stream", tags=["conversations"])
@returns(event=EVENT)
async def stream_conversation(
    conversation_id: ConversationRef, request: Request, loci: Loci, body: AttachRun | None = None
) -> Response:
    """The events of a background run of a conversation: `run_id`, else the one of `otid`, else the active one."""
    body = resumed_from(request, body or AttachRun())
    rpc_request = run_service_pb2.StreamRunRequest(run_id=body.run_id or "", otid=body.otid or "")
    # A run is found by its id alone; `default` says nothing without an agent.
    if not (body.run_id and conversation_id == DEFAULT and body.agent_id is None):
        place = await _place(loci, conversation_id, body.agent_id)
        rpc_request.agent_id, rpc_request.conversation_id = place.agent_id, place.conversation_id
    return await _joined(loci, rpc_request, body)


async def _place(loci: Services, conversation_id: str, agent_id: str | None) -> ConversationKey:
    """Raises FailedPrecondition (NO_ACTIVE_RUN) for a conversation that is not there: no run of it is active."""
    try:
        return await loci.conversations.place(conversation_id, agent_id)
    except NotFound as error:
        sentence = f"No active runs found: {error.message}"
        raise FailedPrecondition(sentence, reason="NO_ACTIVE_RUN") from error


async def _run(loci: Services, run_id: str, body: AttachRun) -> Response:
    return await _joined(loci, run_service_pb2.StreamRunRequest(run_id=run_id), body)


async def _joined(loci: Services, target: run_service_pb2.StreamRunRequest, body: AttachRun) -> Response:
    return turn_responses.resume_stream(loci, await reattach(loci, target, body), pings=body.include_pings is not False)
