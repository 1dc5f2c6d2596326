"""Stored messages: all of a tenant, one by one, with another text, and from elsewhere."""

from collections.abc import Iterable

from fastapi import APIRouter
from starlette.responses import Response

from gateway.openapi.answers import returns
from gateway.openapi.schemas import array
from gateway.resources.messages.pages import MessageCursor, check_cursors, filtered_page
from gateway.resources.messages.responses import message, message_type
from gateway.resources.messages.routes import Types, list_messages
from gateway.resources.messages.schemas import MESSAGE
from gateway.resources.messages.stored_requests import CaptureMessages, UpdateMessage
from gateway.rest.paging import FIRST_PAGE, paged
from gateway.rest.params import AgentId, MessageId
from gateway.rest.responses import json_response
from gateway.rest.services import Loci, Services
from gateway.turns.speech import SpeechRenderer
from loci.agent.v1 import message_pb2, message_service_pb2
from loci.common.v1.page_pb2 import PageRequest
from services.common.ids import uuid7

router = APIRouter()

_KINDS = ("user_message", "assistant_message", "system_message")


@router.get("/messages", tags=["messages"])
@returns(array(MESSAGE))
@paged(100, names="after before limit order", cursor=MessageCursor)
async def list_all_messages(
    loci: Loci,
    page: PageRequest = FIRST_PAGE,
    conversation_id: str | None = None,
    include_return_message_types: Types = None,
) -> Response:
    """A page of what was said with all agents, or in one conversation; order and cursors as in an agent's list."""
    if conversation_id is not None:
        place = await loci.conversations.place(conversation_id)
        return await list_messages(
            place.agent_id,
            loci,
            page=page,
            conversation_id=place.conversation_id or "default",
            include_return_message_types=include_return_message_types,
        )
    check_cursors(page)
    request = message_service_pb2.ListAllMessagesRequest(page=page, oldest_first=True)
    types = None if include_return_message_types is None else frozenset(include_return_message_types)
    rpc = loci.peers.messages.ListAllMessages
    return json_response(await filtered_page(loci.peers, rpc, request, types=types, speech=SpeechRenderer()))


@router.get("/messages/{message_id}", tags=["messages"])
@returns(array(MESSAGE))
async def retrieve_message(message_id: MessageId, loci: Loci) -> Response:
    """A stored message, as the list of messages that it shows as."""
    return json_response([message(one) for one in await _shown(loci, message_id)])


@router.patch("/agents/{agent_id}/messages/{message_id}", tags=["agents"], deprecated=True)
@returns(MESSAGE)
async def update_message(agent_id: AgentId, message_id: MessageId, body: UpdateMessage, loci: Loci) -> Response:
    """Gives a message another text: what the model sees from the next turn on, and what searches find.

    What it said before is kept. Compiled prompts, tool calls and returns, answers to approvals and summaries do not
    change by themselves.
    """
    kind = body.message_type or await _kind(loci, message_id, thinks=body.reasoning is not None)
    request = body.request(agent_id, message_id, kind)
    changed = (await loci.peers.call(loci.peers.messages.UpdateMessage, request)).messages
    contents = _spoken(changed)
    return json_response(message(next((one for one in contents if message_type(one) == kind), contents[0])))


@router.post("/agents/{agent_id}/messages/capture", tags=["agents"], include_in_schema=False)
async def capture_messages(agent_id: AgentId, body: CaptureMessages, loci: Loci) -> Response:
    """Stores an exchange that happened elsewhere at the end of a conversation. No model is asked."""
    place = None
    if body.conversation_id is not None:
        place = await loci.conversations.place(body.conversation_id, agent_id)
    request = message_service_pb2.CaptureMessagesRequest(
        agent_id=agent_id,
        conversation_id=place.conversation_id if place else "",
        messages=body.messages(),
        request_id=str(uuid7()),
    )
    stored = (await loci.peers.call(loci.peers.messages.CaptureMessages, request)).messages
    return json_response({"success": True, "messages_created": len(stored), "message_ids": [one.id for one in stored]})


async def _kind(loci: Services, message_id: str, *, thinks: bool) -> str:
    """Returns the type of a message that states none."""
    if thinks:
        return "reasoning_message"
    kinds = [message_type(one) for one in await _shown(loci, message_id)]
    return next((kind for kind in kinds if kind in _KINDS), kinds[0])


async def _shown(loci: Services, message_id: str) -> list[message_pb2.Message]:
    request = message_service_pb2.GetMessageRequest(message_id=message_id)
    return _spoken((await loci.peers.call(loci.peers.messages.GetMessage, request)).messages)


def _spoken(messages: Iterable[message_pb2.Message]) -> list[message_pb2.Message]:
    """Returns as lists show them; a message of which lists show nothing is shown as it is."""
    speech = SpeechRenderer()
    return [part for whole in messages for part in speech.whole(whole)] or list(messages)
