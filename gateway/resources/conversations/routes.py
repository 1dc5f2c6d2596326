"""Conversations: many per agent at the same time, each with messages of its own."""

from typing import Annotated, Literal

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import Response

from gateway.openapi.answers import returns
from gateway.openapi.schemas import NULL, TEXT, array
from gateway.resources.conversations import requests as bodies
from gateway.resources.conversations.responses import ConversationKey, conversation, written_conversation
from gateway.resources.conversations.schemas import CONVERSATION
from gateway.resources.messages.pages import MessageCursor, drop_strange_cursors, filtered_page
from gateway.resources.messages.routes import Types, fates, list_messages
from gateway.resources.messages.schemas import COMPACTED, EVENT, FATES, MESSAGE, TURN
from gateway.rest.paging import FIRST_PAGE, paged
from gateway.rest.params import (
    AgentFilter,
    AgentId,
    CheckpointRef,
    ConversationId,
    ConversationRef,
    MessageRef,
    NeededAgent,
    unsupported,
)
from gateway.rest.responses import json_response
from gateway.rest.services import Loci, Services
from gateway.turns import responses as turn_responses
from gateway.turns.idempotency import retry_of
from gateway.turns.speech import SpeechRenderer
from gateway.turns.turn_requests import turn_request
from loci.agent.v1 import checkpoint_service_pb2, conversation_service_pb2, message_service_pb2, run_service_pb2
from loci.common.v1.page_pb2 import PageRequest
from services.common.errors import InvalidArgument, NotFound
from services.common.ids import to_public, uuid7

router = APIRouter(tags=["conversations"])

_ORDERS = {
    "created_at": conversation_service_pb2.CONVERSATION_ORDER_CREATED_AT,
    "last_message_at": conversation_service_pb2.CONVERSATION_ORDER_LAST_MESSAGE_AT,
    "last_run_completion": conversation_service_pb2.CONVERSATION_ORDER_LAST_RUN_COMPLETION,
}
_ARCHIVED = {
    "unarchived": conversation_service_pb2.ARCHIVE_STATUS_UNARCHIVED,
    "archived": conversation_service_pb2.ARCHIVE_STATUS_ARCHIVED,
    "all": conversation_service_pb2.ARCHIVE_STATUS_ALL,
}


@router.post("/conversations")
@returns(CONVERSATION)
async def create_conversation(
    agent_id: NeededAgent, loci: Loci, body: bodies.CreateConversation | None = None
) -> Response:
    """Begins a conversation with an agent."""
    request = bodies.create_request(agent_id, body or bodies.CreateConversation())
    try:
        created = await loci.peers.call(loci.peers.conversations.CreateConversation, request)
    except NotFound as error:
        if error.reason != "BLOCK_NOT_FOUND":
            raise
        # A label of the body, not what the request is about.
        raise InvalidArgument(error.message, reason="BLOCK_LABEL_UNKNOWN") from error
    return json_response(written_conversation(created.conversation, await loci.catalogue.models()))


@router.get("/conversations")
@returns(array(CONVERSATION))
@paged(50, names="after before limit order")
async def list_conversations(
    loci: Loci,
    agent_id: AgentFilter = None,
    page: PageRequest = FIRST_PAGE,
    order_by: Literal["created_at", "last_message_at", "last_run_completion"] = "created_at",
    archive_status: Literal["unarchived", "archived", "all"] = "unarchived",
    summary_search: str | None = None,
) -> Response:
    """A page of conversations, newest first; default conversations and hidden ones are not among them."""
    request = conversation_service_pb2.ListConversationsRequest(
        page=page,
        order_by=_ORDERS[order_by],
        agent_id=agent_id or "",
        archive_status=_ARCHIVED[archive_status],
        summary_search=summary_search,
    )
    response = await loci.peers.call(loci.peers.conversations.ListConversations, request)
    models = await loci.catalogue.models()
    return json_response([conversation(one, models, relations=False) for one in response.conversations])


@router.get("/conversations/{conversation_id}")
@returns(CONVERSATION)
async def retrieve_conversation(conversation_id: ConversationId, loci: Loci) -> Response:
    """One conversation."""
    request = conversation_service_pb2.GetConversationRequest(conversation_id=conversation_id)
    response = await loci.peers.call(loci.peers.conversations.GetConversation, request)
    return json_response(conversation(response.conversation, await loci.catalogue.models()))


@router.patch("/conversations/{conversation_id}")
@returns(CONVERSATION)
async def update_conversation(conversation_id: ConversationId, body: bodies.UpdateConversation, loci: Loci) -> Response:
    """Changes what the body names. Turns under way keep the settings they began with."""
    request = bodies.update_request(conversation_id, body)
    if request is None:
        unchanged = conversation_service_pb2.GetConversationRequest(conversation_id=conversation_id)
        stored = (await loci.peers.call(loci.peers.conversations.GetConversation, unchanged)).conversation
    else:
        stored = (await loci.peers.call(loci.peers.conversations.UpdateConversation, request)).conversation
    return json_response(written_conversation(stored, await loci.catalogue.models()))


@router.delete("/conversations/{conversation_id}")
@returns(NULL)
async def delete_conversation(conversation_id: ConversationId, loci: Loci) -> Response:
    """Deletes a conversation, its copies of blocks, and those of its messages that no fork shares."""
    request = conversation_service_pb2.DeleteConversationRequest(conversation_id=conversation_id)
    await loci.peers.call(loci.peers.conversations.DeleteConversation, request)
    return json_response(None)


@router.post("/conversations/{conversation_id}/fork")
@returns(CONVERSATION)
async def fork_conversation(
    conversation_id: ConversationRef,
    loci: Loci,
    agent_id: AgentFilter = None,
    hidden: bool = False,
    message_id: MessageRef = None,
    checkpoint_id: CheckpointRef = None,
    isolate_blocks: bool = False,
) -> Response:
    """A new conversation that begins with this one's messages, or with those up to one of them.

    Loci's own: with `checkpoint_id` its window and its copies of blocks are those of a checkpoint, and with
    `isolate_blocks` it has copies of all blocks, as they were then; the agent's blocks stay as they are.
    """
    place = await loci.conversations.place(conversation_id, agent_id)
    if checkpoint_id is not None:
        return await _fork_at(loci, place, checkpoint_id, isolate_blocks=isolate_blocks, hidden=hidden)
    request = conversation_service_pb2.ForkConversationRequest(
        new_conversation_id=to_public("conv", uuid7()),
        conversation_id=place.conversation_id,
        agent_id=place.agent_id,
        message_id=message_id or "",
        hidden=hidden,
    )
    forked = await loci.peers.call(loci.peers.conversations.ForkConversation, request)
    return json_response(written_conversation(forked.conversation, await loci.catalogue.models()))


@router.post("/conversations/{conversation_id}/recompile")
@returns(TEXT)
async def recompile_conversation(
    conversation_id: ConversationRef,
    loci: Loci,
    dry_run: bool = False,
    body: bodies.RecompileConversation | None = None,
) -> Response:
    """The system prompt as a text; unless it is a dry run, the next turn compiles it with the time of then."""
    place = await loci.conversations.place(conversation_id, body.agent_id if body else None)
    return await _recompile(loci, place, dry_run=dry_run)


@router.post("/agents/{agent_id}/recompile", tags=["agents"])
@returns(TEXT)
async def recompile_agent(
    agent_id: AgentId,
    loci: Loci,
    dry_run: bool = False,
    update_timestamp: Annotated[bool, Query(description="The time is updated unless it is a dry run.")] = False,
) -> Response:
    """The same for the agent's default conversation."""
    return await _recompile(loci, ConversationKey(agent_id), dry_run=dry_run)


@router.post("/conversations/{conversation_id}/cancel")
@returns(FATES)
async def cancel_conversation(conversation_id: ConversationRef, loci: Loci, agent_id: AgentFilter = None) -> Response:
    """Asks the conversation's active runs to stop. Answers with the fate of each."""
    place = await loci.conversations.place(conversation_id, agent_id)
    request = run_service_pb2.CancelRunsRequest(agent_id=place.agent_id, conversation_id=place.run_filter)
    return json_response(fates((await loci.peers.call(loci.peers.runs.CancelRuns, request)).runs))


@router.post("/conversations/{conversation_id}/messages")
@returns(TURN, event=EVENT)
async def send_to_conversation(
    conversation_id: ConversationRef, body: bodies.SendToConversation, request: Request, loci: Loci
) -> Response:
    """Takes a turn, as server-sent events unless the body says streaming=false.

    While one is streamed by this route, another is 409 here; all others wait in line. `on_busy` and LOCI_BUSY say
    otherwise. In the background (background=true) a request with the same otids is the same request.
    """
    body.check(streams=body.streaming)
    place = await loci.conversations.place(conversation_id, body.agent_id)
    turn = await turn_request(
        request,
        body,
        place.agent_id,
        conversation_id=place.conversation_id,
        background=body.background,
        locks=body.streaming,
    )
    return await (turn_responses.stream_turn if body.streaming else turn_responses.blocking_turn)(
        request, loci, turn, body
    )


@router.get("/conversations/{conversation_id}/messages")
@returns(array(MESSAGE))
@paged(100, names="after before limit order", cursor=MessageCursor)
async def list_conversation_messages(
    conversation_id: ConversationRef,
    loci: Loci,
    agent_id: AgentFilter = None,
    page: PageRequest = FIRST_PAGE,
    group_id: str | None = None,
    include_return_message_types: Types = None,
) -> Response:
    """A page of the conversation's history, in the order asked for, what it was forked with included.

    `after` means later and `before` earlier, whatever the order; what names no message of it is ignored. `default` is
    listed as by its agent's route.
    """
    try:
        place = await loci.conversations.place(conversation_id, agent_id)
        if not place.conversation_id:
            return await list_messages(
                place.agent_id,
                loci,
                page=page,
                conversation_id="default",
                group_id=group_id,
                include_return_message_types=include_return_message_types,
            )
        unsupported(group_id=group_id)
        drop_strange_cursors(page)
        request = message_service_pb2.ListMessagesRequest(
            agent_id=place.agent_id, conversation_id=place.conversation_id, page=page, ignore_unknown_cursors=True
        )
        types = None if include_return_message_types is None else frozenset(include_return_message_types)
        rpc = loci.peers.messages.ListMessages
        return json_response(await filtered_page(loci.peers, rpc, request, types=types, speech=SpeechRenderer()))
    except NotFound as error:
        if error.reason != "CONVERSATION_NOT_FOUND":
            raise
        # As in the reference: what is not there has no messages.
        return json_response([])


@router.post("/conversations/{conversation_id}/compact")
@returns(COMPACTED)
async def compact_conversation(
    conversation_id: ConversationRef, request: Request, loci: Loci, body: bodies.CompactConversation | None = None
) -> Response:
    """Compacts the conversation's window now. Answers with the summary and how many messages the window had and has."""
    body = body or bodies.CompactConversation()
    place = await loci.conversations.place(conversation_id, body.agent_id)
    rpc_request = message_service_pb2.CompactConversationRequest(
        agent_id=place.agent_id,
        conversation_id=place.conversation_id,
        run_id=to_public("run", uuid7()),
        compaction_settings_json=body.settings_json,
        retry=await retry_of(request),
    )
    return await turn_responses.compact(request, loci, rpc_request)


async def _fork_at(
    loci: Services, place: ConversationKey, checkpoint_id: str, *, isolate_blocks: bool, hidden: bool
) -> Response:
    request = checkpoint_service_pb2.ForkConversationAtCheckpointRequest(
        new_conversation_id=to_public("conv", uuid7()),
        conversation_id=place.conversation_id,
        agent_id=place.agent_id,
        checkpoint_id=checkpoint_id,
        isolate_blocks=isolate_blocks,
        hidden=hidden,
    )
    forked = await loci.peers.call(loci.peers.checkpoints.ForkConversationAtCheckpoint, request)
    return json_response(written_conversation(forked.conversation, await loci.catalogue.models()))


async def _recompile(loci: Services, place: ConversationKey, *, dry_run: bool) -> Response:
    request = conversation_service_pb2.RecompileConversationRequest(
        conversation_id=place.conversation_id, agent_id=place.agent_id, dry_run=dry_run
    )
    return json_response((await loci.peers.call(loci.peers.conversations.RecompileConversation, request)).prompt)
