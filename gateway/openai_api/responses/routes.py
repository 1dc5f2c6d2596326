"""OpenAI's Responses: turns of an agent, each response the beginning of the next.

A response is a run, and its id holds that of the run. So `previous_response_id` names a conversation, and nothing is
stored for it here.
"""

from collections.abc import Iterable

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from gateway.errors.invalid import InvalidRequest
from gateway.errors.problems import problem_of_turn
from gateway.openai_api import errors as openai_errors
from gateway.openai_api.responses.items import output
from gateway.openai_api.responses.objects import ended, stored
from gateway.openai_api.responses.requests import CreateResponse, bare_id, run_of
from gateway.openai_api.responses.stream import ResponseRenderer
from gateway.openai_api.taking import agent_named, streamed, taken
from gateway.openapi.answers import returns
from gateway.openapi.schemas import OBJECT
from gateway.resources.messages.responses import message
from gateway.rest.convert import Rest
from gateway.rest.responses import json_response
from gateway.rest.services import Loci, Services
from gateway.turns import responses as turn_responses
from gateway.turns.speech import SpeechRenderer
from gateway.turns.turn_requests import turn_request
from gateway.turns.views import View
from loci.agent.v1 import (
    conversation_service_pb2,
    message_pb2,
    message_service_pb2,
    run_pb2,
    run_service_pb2,
)
from loci.common.v1.page_pb2 import ORDER_ASCENDING, PageRequest
from services.common.errors import InvalidArgument, NotFound
from services.common.ids import from_public, to_public, uuid7

router = APIRouter(tags=["openai"])

_DEFAULT = "default"
_MOST_MESSAGES = 1_000


@router.post("/responses")
@returns(OBJECT, event=OBJECT)
async def create_response(body: CreateResponse, request: Request, loci: Loci) -> Response:
    """A turn of the agent that `model` names. It goes on in the conversation of `previous_response_id`, of
    `conversation`, or of the history in `input`; without any of them it begins one.
    """
    wanted = body.turn()
    agent_id = await agent_named(loci, body.model)
    conversation_id = await _conversation(loci, body, agent_id)
    background = bool(body.background and not body.stream)
    turn = await turn_request(request, wanted, agent_id, conversation_id=conversation_id, background=background)
    return await taken(loci, turn, lambda: _take(request, loci, turn, body))


@router.get("/responses/{response_id}")
@returns(OBJECT)
async def retrieve_response(response_id: str, loci: Loci) -> Response:
    """A response as it is now."""
    run = await _run(loci, response_id)
    return json_response(await _stored(loci, run))


@router.post("/responses/{response_id}/cancel")
@returns(OBJECT)
async def cancel_response(response_id: str, loci: Loci) -> Response:
    """Ends a response that is under way."""
    run = await _run(loci, response_id)
    request = run_service_pb2.CancelRunsRequest(agent_id=run.agent_id, run_ids=[run.id])
    await loci.peers.call(loci.peers.runs.CancelRuns, request)
    return await retrieve_response(response_id, loci)


@router.delete("/responses/{response_id}")
@returns(OBJECT)
async def delete_response(response_id: str, loci: Loci) -> Response:
    """Erases a response; what was said stays in its conversation."""
    run = await _run(loci, response_id)
    await loci.peers.call(loci.peers.runs.DeleteRun, run_service_pb2.DeleteRunRequest(run_id=run.id))
    return json_response({"id": response_id, "object": "response", "deleted": True})


async def _take(
    request: Request, loci: Services, turn: message_service_pb2.TurnRequest, body: CreateResponse
) -> Response:
    if body.stream:
        return await streamed(loci, turn, ResponseRenderer(turn, body))
    if turn.background:
        begun = message_service_pb2.StartMessagesRequest(turn=turn)
        started = await loci.peers.call(loci.peers.messages.StartMessages, begun)
        found = run_service_pb2.GetRunRequest(run_id=started.run_id)
        return json_response(await _stored(loci, (await loci.peers.call(loci.peers.runs.GetRun, found)).run))
    answer = await turn_responses.run_turn(request, loci, turn)
    if answer is None:
        return Response(status_code=499)
    if answer.end.HasField("error"):
        return openai_errors.render(problem_of_turn(answer.end.error)).response()
    contents = turn_responses.render_messages(answer, View())
    return json_response(ended(answer.end, output(bare_id(answer.end.run.id), contents), body))


async def _conversation(loci: Services, body: CreateResponse, agent_id: str) -> str:
    """Returns the conversation to go on in, which may be a new one; empty for the agent's default.

    A client that stores nothing with us, and one that brings a history of its own, is in the default conversation, as
    with chat completions.
    """
    if named := _named(body):
        return "" if named == _DEFAULT else named
    if run_id := body.earlier_run():
        found = await loci.peers.call(loci.peers.runs.GetRun, run_service_pb2.GetRunRequest(run_id=run_id))
        if found.run.agent_id != agent_id:
            raise InvalidRequest("the response before this one is another agent's", "body", "previous_response_id")
        conversation_id: str = found.run.conversation_id
        return conversation_id
    if body.store is False or body.has_history():
        return ""
    request = conversation_service_pb2.CreateConversationRequest(
        conversation_id=to_public("conv", uuid7()), agent_id=agent_id
    )
    created = await loci.peers.call(loci.peers.conversations.CreateConversation, request)
    new_id: str = created.conversation.id
    return new_id


def _named(body: CreateResponse) -> str:
    """Returns the conversation that the request names; empty for none. Raises InvalidRequest."""
    named = body.conversation.get("id") if isinstance(body.conversation, dict) else body.conversation
    if not named or named == _DEFAULT:
        return str(named or "")
    try:
        from_public("conv", str(named))
    except InvalidArgument as error:
        raise InvalidRequest(error.message, "body", "conversation") from None
    return str(named)


async def _run(loci: Services, response_id: str) -> run_pb2.Run:
    """Returns the run of a response. Raises NotFound."""
    run_id = run_of(response_id)
    if run_id is None:
        raise NotFound(f"No response has the id {response_id[:80]}", reason="RUN_NOT_FOUND")
    return (await loci.peers.call(loci.peers.runs.GetRun, run_service_pb2.GetRunRequest(run_id=run_id))).run


async def _stored(loci: Services, run: run_pb2.Run) -> Rest:
    page = PageRequest(page_size=_MOST_MESSAGES, order=ORDER_ASCENDING)
    messages = run_service_pb2.ListRunMessagesRequest(run_id=run.id, page=page)
    said = (await loci.peers.call(loci.peers.runs.ListRunMessages, messages)).messages
    used = await loci.peers.call(loci.peers.runs.GetRunUsage, run_service_pb2.GetRunUsageRequest(run_id=run.id))
    return stored(run, used.usage, output(bare_id(run.id), _contents(said)))


def _contents(messages: Iterable[message_pb2.Message]) -> list[Rest]:
    speech = SpeechRenderer()
    return [message(part) for one in messages for part in speech.whole(one)]
