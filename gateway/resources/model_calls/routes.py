"""Model calls beside turns: what one would be sent, what fills its window, and one that nobody remembers."""

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from gateway.openapi.answers import returns
from gateway.openapi.schemas import OBJECT
from gateway.resources.conversations.requests import SendToConversation
from gateway.resources.messages.requests import SendMessages
from gateway.resources.messages.responses import usage_statistics
from gateway.resources.model_calls.requests import GenerateText
from gateway.resources.model_calls.responses import overview
from gateway.resources.model_calls.schemas import GENERATED, OVERVIEW
from gateway.rest.params import AgentId, ConversationRef
from gateway.rest.responses import json_response
from gateway.rest.services import Loci, Services
from gateway.turns.turn_requests import turn_request
from loci.agent.v1 import message_service_pb2, model_call_service_pb2

router = APIRouter()

# A model thinks meanwhile.
_GENERATE_SECONDS = 600.0


@router.post("/agents/{agent_id}/messages/preview-raw-payload", tags=["agents"])
@returns(OBJECT)
async def preview_request(agent_id: AgentId, body: SendMessages, request: Request, loci: Loci) -> Response:
    """What the provider would be sent for the first model call of this turn, in the provider's own form.

    Nothing is stored, and nobody is asked.
    """
    turn = await turn_request(request, body, agent_id)
    return await _preview(loci, turn, stream=body.streaming and body.stream_tokens)


@router.post("/conversations/{conversation_id}/messages/preview-raw-payload", tags=["conversations"])
@returns(OBJECT)
async def preview_conversation_request(
    conversation_id: ConversationRef, body: SendToConversation, request: Request, loci: Loci
) -> Response:
    """The same in a conversation."""
    place = await loci.conversations.place(conversation_id, body.agent_id)
    turn = await turn_request(request, body, place.agent_id, conversation_id=place.conversation_id)
    return await _preview(loci, turn, stream=body.streaming and body.stream_tokens)


@router.get("/agents/{agent_id}/context", tags=["agents"], deprecated=True)
@returns(OVERVIEW)
async def retrieve_context(agent_id: AgentId, loci: Loci, conversation_id: str | None = None) -> Response:
    """What fills the window of the next model call, and the tokens of each part: estimates, in the measure of the
    provider's last count.
    """
    named = "" if conversation_id in (None, "default", agent_id) else conversation_id
    request = model_call_service_pb2.GetContextWindowRequest(agent_id=agent_id, conversation_id=named)
    return json_response(overview(await loci.peers.call(loci.peers.model_calls.GetContextWindow, request), agent_id))


@router.post("/agents/{agent_id}/generate", tags=["agents"])
@returns(GENERATED)
async def generate_text(agent_id: AgentId, body: GenerateText, loci: Loci) -> Response:
    """One call of the agent's model with the agent's settings, without its prompt, memory, tools and messages."""
    request = body.request(agent_id)
    response = await loci.peers.call(loci.peers.model_calls.GenerateText, request, timeout=_GENERATE_SECONDS)
    return json_response(
        {"content": response.content, "model": response.model, "usage": usage_statistics(response.usage)}
    )


async def _preview(loci: Services, turn: message_service_pb2.TurnRequest, *, stream: bool) -> Response:
    request = model_call_service_pb2.PreviewModelCallRequest(turn=turn, stream_tokens=stream)
    response = await loci.peers.call(loci.peers.model_calls.PreviewModelCall, request)
    return Response(response.body_json, media_type="application/json")
