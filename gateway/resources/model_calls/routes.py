"""Model calls beside turns: what one would be sent, what fills its window, and one that nobody remembers."""

from fastapi import APIRouter, HTTPException
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
from services.common.errors import LociError

router = APIRouter()

# A model thinks meanwhile.
GENERATE_SECONDS = 600.0


@router.post("/agents/{agent_id}/messages/preview-raw-payload", tags=["agents"])
@returns(OBJECT)
async def preview_request(agent_id: AgentId, body: SendMessages, request: Request, loci: Loci) -> Response:
    """Returns the first request of this turn to the provider, in the provider's own form.

    Nothing is stored, and nobody is asked.
    """
    turn = await turn_request(request, body, agent_id)
    return await _preview(loci, turn, stream=body.streaming and body.stream_tokens)


@router.post("/conversations/{conversation_id}/messages/preview-raw-payload", tags=["conversations"])
@returns(OBJECT)
async def preview_conversation_request(
    conversation_id: ConversationRef, body: SendToConversation, request: Request, loci: Loci
) -> Response:
    """Does the same in a conversation."""
    place = await loci.conversations.place(conversation_id, body.agent_id)
    turn = await turn_request(request, body, place.agent_id, conversation_id=place.conversation_id)
    return await _preview(loci, turn, stream=body.streaming and body.stream_tokens)


@router.get("/agents/{agent_id}/context", tags=["agents"], deprecated=True)
@returns(OVERVIEW)
async def retrieve_context(agent_id: AgentId, loci: Loci, conversation_id: str | None = None) -> Response:
    """Returns the parts of the window of the next model call with their tokens: estimates, in the measure of the
    provider's last count.
    """
    named = "" if conversation_id in (None, "default", agent_id) else conversation_id
    request = model_call_service_pb2.GetContextWindowRequest(agent_id=agent_id, conversation_id=named)
    return json_response(overview(await loci.peers.call(loci.peers.model_calls.GetContextWindow, request), agent_id))


@router.post("/agents/{agent_id}/generate", tags=["agents"])
@returns(GENERATED)
async def generate_text(agent_id: AgentId, body: GenerateText, loci: Loci) -> Response:
    """Calls the agent's model once with its settings, without its prompt, memory, tools and messages.

    Whatever the provider refuses or fails at is a 502.
    """
    request = body.request(agent_id)
    try:
        response = await loci.peers.call(loci.peers.model_calls.GenerateText, request, timeout=GENERATE_SECONDS)
    except LociError as error:
        if not error.reason.startswith("LLM_"):
            raise
        raise HTTPException(502, f"The model's provider failed: {error.message}") from None
    # It is no step, and its tokens are in no context.
    usage = usage_statistics(response.usage)
    usage |= {"step_count": 0, "context_tokens": None, "cache_write_tokens": usage["cache_write_tokens"] or None}
    return json_response(
        {"content": response.content, "model": response.model.partition("/")[2] or response.model, "usage": usage}
    )


async def _preview(loci: Services, turn: message_service_pb2.TurnRequest, *, stream: bool) -> Response:
    request = model_call_service_pb2.PreviewModelCallRequest(turn=turn, stream_tokens=stream)
    response = await loci.peers.call(loci.peers.model_calls.PreviewModelCall, request)
    return Response(response.body_json, media_type="application/json")
