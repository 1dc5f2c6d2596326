"""Background runs: begun without waiting, and joined by run, by conversation, or by a message that was sent."""

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from gateway import answers, convert
from gateway.bodies.messages import AttachRun, SendInBackground
from gateway.body import JsonRoute
from gateway.conversations import DEFAULT
from gateway.params import AgentId, ConversationRef, RunId
from gateway.responses import json_response
from gateway.services import Loci, Services
from gateway.sse import Frames
from gateway.turn_requests import turn_request
from gateway.turns import Rejoined, TurnEvents
from gateway.views import View
from loci.agent.v1 import message_service_pb2, run_service_pb2

router = APIRouter(route_class=JsonRoute)


@router.post("/agents/{agent_id}/messages/async", tags=["agents"])
async def send_in_background(agent_id: AgentId, body: SendInBackground, request: Request, loci: Loci) -> Response:
    """Takes a turn in the background. Answers with its run at once; `callback_url` is POSTed to when it has ended."""
    turn = await turn_request(request, body, agent_id, background=True, callback_url=body.callback_url)
    started = await loci.peers.call(
        loci.peers.messages.StartMessages, message_service_pb2.StartMessagesRequest(turn=turn)
    )
    found = await loci.peers.call(loci.peers.runs.GetRun, run_service_pb2.GetRunRequest(run_id=started.run_id))
    return json_response(convert.run(found.run))


@router.post("/runs/{run_id}/stream", tags=["runs"])
async def stream_run(run_id: RunId, loci: Loci, body: AttachRun | None = None) -> Response:
    """The events of a run after `starting_after`, live until it ends.

    Any run can be joined. It is shown as the request that began it wanted, unless the body says otherwise. Background
    runs can be gone on with after every `seq_id` while their streams are kept, others after whole messages.
    """
    return await _joined(loci, run_service_pb2.StreamRunRequest(run_id=run_id), body or AttachRun())


@router.post("/conversations/{conversation_id}/stream", tags=["conversations"])
async def stream_conversation(conversation_id: ConversationRef, loci: Loci, body: AttachRun | None = None) -> Response:
    """The events of a background run of a conversation: `run_id`, else the one of `otid`, else the active one."""
    body = body or AttachRun()
    meant = run_service_pb2.StreamRunRequest(run_id=body.run_id or "", otid=body.otid or "")
    # A run is found by its id alone; `default` says nothing without an agent.
    if not (body.run_id and conversation_id == DEFAULT and body.agent_id is None):
        place = await loci.conversations.place(conversation_id, body.agent_id)
        meant.agent_id, meant.conversation_id = place.agent_id, place.conversation_id
    return await _joined(loci, meant, body)


async def _joined(loci: Services, meant: run_service_pb2.StreamRunRequest, body: AttachRun) -> Response:
    meant.after_sequence, meant.stream_tokens = body.starting_after, body.stream_tokens is not False
    resumed, pings = body.starting_after > 0, body.include_pings is not False
    meant.with_context = resumed
    turn = TurnEvents(loci.peers, joined=meant, tokens=meant.stream_tokens, window=loci.settings.reattach_window)
    events = turn.events()
    first = await anext(events)
    view = View.joined("" if isinstance(first, Rejoined) else first.attached.view_json, body)
    frames = Frames(
        deltas=view.deltas(resumed=resumed),
        types=view.shown_types,
        spoken=view.speech(resumed=resumed),
        pings=pings,
        numbered=True,
        after=body.starting_after,
    )
    # A reader that leaves again is not the one whose turn it is: nothing is cancelled.
    return answers.begun(loci, first, events, frames, pings=pings)
