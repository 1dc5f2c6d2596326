"""Talking to agents."""

from collections.abc import Iterable
from typing import Annotated

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import Response

from gateway.openapi.answers import returns
from gateway.openapi.schemas import array
from gateway.resources.messages.pages import MessageCursor, check_cursors, filtered_page
from gateway.resources.messages.requests import CancelRuns, Compact, MessageTypeName, SendMessages
from gateway.resources.messages.schemas import COMPACTED, EVENT, FATES, MESSAGE, TURN
from gateway.rest.convert import Rest
from gateway.rest.paging import FIRST_PAGE, paged
from gateway.rest.params import AgentId, unsupported
from gateway.rest.responses import json_response
from gateway.rest.services import Loci
from gateway.turns import responses as turn_responses
from gateway.turns.idempotency import retry_of
from gateway.turns.speech import SpeechRenderer
from gateway.turns.turn_requests import turn_request
from loci.agent.v1 import message_service_pb2, run_pb2, run_service_pb2
from loci.common.v1.page_pb2 import PageRequest
from services.common.ids import to_public, uuid7

router = APIRouter(prefix="/agents/{agent_id}", tags=["agents"])

Types = Annotated[list[MessageTypeName] | None, Query(description="Only messages of these types.")]


@router.post("/messages")
@returns(TURN, event=EVENT)
async def send(agent_id: AgentId, body: SendMessages, request: Request, loci: Loci) -> Response:
    """Takes a turn: answered when it has ended, or with streaming=true as server-sent events.

    The reference refuses streaming=true on this route to clients that are not its SDK of version 1 or later. Loci does
    not: a person with curl may stream.
    """
    if body.streaming:
        return await send_streaming(agent_id, body, request, loci)
    body.check(streams=False)
    return await turn_responses.blocking_turn(request, loci, await turn_request(request, body, agent_id), body)


@router.post("/messages/stream")
@returns(event=EVENT)
async def send_streaming(agent_id: AgentId, body: SendMessages, request: Request, loci: Loci) -> Response:
    """Takes a turn as server-sent events: whole messages, or with stream_tokens=true pieces of them."""
    body.check(streams=True)
    turn = await turn_request(request, body, agent_id, background=body.background)
    return await turn_responses.stream_turn(request, loci, turn, body)


@router.post("/summarize")
@returns(COMPACTED)
async def compact(agent_id: AgentId, request: Request, loci: Loci, body: Compact | None = None) -> Response:
    """Compacts the agent's window now. Answers with the summary and how many messages the window had and has."""
    rpc_request = message_service_pb2.CompactConversationRequest(
        agent_id=agent_id,
        run_id=to_public("run", uuid7()),
        compaction_settings_json=body.settings_json if body else "",
        retry=await retry_of(request),
    )
    return await turn_responses.compact(request, loci, rpc_request)


@router.get("/messages")
@returns(array(MESSAGE))
@paged(100, names="after before limit order", cursor=MessageCursor)
async def list_messages(
    agent_id: AgentId,
    loci: Loci,
    page: PageRequest = FIRST_PAGE,
    conversation_id: str | None = None,
    group_id: str | None = None,
    include_return_message_types: Types = None,
    use_assistant_message: bool = True,
    assistant_message_tool_name: str = "send_message",
    assistant_message_tool_kwarg: str = "message",
) -> Response:
    """A page of what was said with the agent, always oldest first: the newest of all, or with order=asc the oldest.

    `after` means later and `before` earlier, whatever the order. Without `conversation_id` it is of all conversations;
    with `default`, of those in none. `limit` counts stored messages; one may show as several, or as none. With
    use_assistant_message, a call by which an older agent speaks is shown as the message that it is.
    """
    unsupported(group_id=group_id)
    check_cursors(page)
    request = message_service_pb2.ListMessagesRequest(
        agent_id=agent_id,
        conversation_id=agent_id if conversation_id == "default" else conversation_id or "",
        page=page,
        oldest_first=True,
    )
    speech = (
        SpeechRenderer(assistant_message_tool_name, assistant_message_tool_kwarg) if use_assistant_message else None
    )
    types = None if include_return_message_types is None else frozenset(include_return_message_types)
    contents = await filtered_page(loci.peers, loci.peers.messages.ListMessages, request, types=types, speech=speech)
    return json_response(contents)


@router.post("/messages/cancel")
@returns(FATES)
async def cancel(agent_id: AgentId, loci: Loci, body: CancelRuns | None = None) -> Response:
    """Asks runs to stop; without a list, all that are active. Answers with the fate of each."""
    run_ids = body.run_ids if body else None
    request = run_service_pb2.CancelRunsRequest(agent_id=agent_id, run_ids=run_ids)
    # What names no run of the agent cannot be cancelled.
    fates_by_id = dict.fromkeys(run_ids or (), "failed")
    return json_response(fates_by_id | fates((await loci.peers.call(loci.peers.runs.CancelRuns, request)).runs))


def fates(runs: Iterable[run_pb2.Run]) -> Rest:
    """Returns the fates of runs that were asked to stop, by id."""
    # The flag is set at once; a run that is still running will see it.
    ended = (run_pb2.RUN_STATUS_COMPLETED, run_pb2.RUN_STATUS_FAILED)
    return {run.id: "failed" if run.status in ended else "cancelled" for run in runs}
