"""OpenAI's API with agents in the place of models: chat completions, and the list of what can be asked."""

from typing import Annotated

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import Response

from gateway.errors.invalid import InvalidRequest
from gateway.errors.problems import problem_of_turn
from gateway.openai_api import errors as openai_errors
from gateway.openai_api import side_prompts
from gateway.openai_api.chat import completion, turn_body
from gateway.openai_api.requests import ChatCompletion
from gateway.openai_api.schemas import OPENAI_MODEL
from gateway.openai_api.side_prompts import is_side_prompt
from gateway.openai_api.stream import ChunkRenderer
from gateway.openai_api.taking import agent_named, streamed, taken
from gateway.openapi.answers import returns
from gateway.openapi.schemas import OBJECT
from gateway.resources.model_calls.routes import GENERATE_SECONDS
from gateway.resources.models.schemas import MODELS
from gateway.rest.convert import Rest
from gateway.rest.event_frames import HEADERS
from gateway.rest.paging import MOST_PER_PAGE
from gateway.rest.responses import json_response
from gateway.rest.services import Loci, Services
from gateway.turns import responses as turn_responses
from gateway.turns.turn_requests import turn_request
from gateway.turns.views import View
from loci.agent.v1 import agent_pb2, agent_service_pb2, message_service_pb2
from loci.common.v1.page_pb2 import PageRequest
from services.common.errors import InvalidArgument
from services.common.ids import from_public

router = APIRouter(tags=["openai"])


@router.post("/chat/completions")
@returns(OBJECT, event=OBJECT)
async def complete(body: ChatCompletion, request: Request, loci: Loci) -> Response:
    """A turn of the agent that `model` names: what comes after the last message of role assistant is told to it."""
    wanted = turn_body(body)
    if conversation_id := body.conversation_id:
        _check_conversation(conversation_id)
    agent_id = await agent_named(loci, body.model)
    if is_side_prompt(body):
        return await _answer_aside(loci, body, agent_id)
    turn = await turn_request(request, wanted, agent_id, conversation_id=conversation_id)
    return await taken(loci, turn, lambda: _take(request, loci, turn, body))


async def _take(
    request: Request, loci: Services, turn: message_service_pb2.TurnRequest, body: ChatCompletion
) -> Response:
    if body.stream:
        return await streamed(loci, turn, ChunkRenderer(turn.agent_id, turn.run_id, with_usage=body.with_usage))
    answer = await turn_responses.run_turn(request, loci, turn)
    if answer is None:
        return Response(status_code=499)
    if answer.end.HasField("error"):
        return openai_errors.render(problem_of_turn(answer.end.error)).response()
    return json_response(completion(turn.agent_id, turn_responses.render_messages(answer, View()), answer.end))


async def _answer_aside(loci: Services, body: ChatCompletion, agent_id: str) -> Response:
    """Answers a prompt that is not for the agent: its model does, and nothing is stored."""
    generate = loci.peers.model_calls.GenerateText
    answer = await loci.peers.call(generate, side_prompts.generation(body, agent_id), timeout=GENERATE_SECONDS)
    if not body.stream:
        return json_response(side_prompts.completion(answer, agent_id))
    return Response(
        b"".join(side_prompts.frames(answer, agent_id, body)), media_type="text/event-stream", headers=HEADERS
    )


@router.get("/models")
@returns(MODELS)
async def list_agents(
    loci: Loci, after: str | None = None, limit: Annotated[int, Query(ge=1, le=MOST_PER_PAGE)] = MOST_PER_PAGE
) -> Response:
    """Agents, newest first, as models; `after` and `limit` are for tenants with more than 1,000."""
    request = agent_service_pb2.ListAgentsRequest(page=PageRequest(page_size=limit, after=after), omit_relations=True)
    response = await loci.peers.call(loci.peers.agents.ListAgents, request)
    models = [_model(agent) for agent in response.agents]
    return json_response({"object": "list", "data": models, "has_more": bool(response.next_page_token)})


@router.get("/models/{name:path}")
@returns(OPENAI_MODEL)
async def retrieve_agent(name: str, loci: Loci) -> Response:
    """The agent with this id or name, as a model."""
    request = agent_service_pb2.GetAgentRequest(agent_id=await agent_named(loci, name))
    return json_response(_model((await loci.peers.call(loci.peers.agents.GetAgent, request)).agent))


def _check_conversation(conversation_id: str) -> None:
    try:
        from_public("conv", conversation_id)
    except InvalidArgument as error:
        raise InvalidRequest(error.message, "body", "metadata", "conversation_id") from None


def _model(agent: agent_pb2.Agent) -> Rest:
    return {
        "id": agent.id,
        "object": "model",
        "created": agent.created_at.seconds,
        "owned_by": "loci",
        "name": agent.name,
    }
