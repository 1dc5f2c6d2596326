"""Search over the messages of all agents, or of one."""

from collections.abc import Iterable

from fastapi import APIRouter
from starlette.responses import Response

from gateway.openapi.answers import returns
from gateway.openapi.schemas import array
from gateway.resources.archives.responses import without_vectors
from gateway.resources.messages.responses import message, message_type
from gateway.resources.messages.schemas import FOUND
from gateway.resources.messages.stored_requests import SearchMessages
from gateway.rest.convert import Rest, moment
from gateway.rest.responses import json_response
from gateway.rest.services import Loci
from gateway.turns.speech import SpeechRenderer
from loci.agent.v1 import message_pb2, message_service_pb2

router = APIRouter(tags=["messages"])

# The query is embedded meanwhile.
_SEARCH_SECONDS = 60.0
_SHOWN = frozenset({"user_message", "assistant_message", "system_message", "tool_return_message"})


@router.post("/messages/search")
@returns(array(FOUND))
async def search(body: SearchMessages, loci: Loci) -> Response:
    """The messages that answer best to `query`, by meaning and by words; without one the newest."""
    response = await loci.peers.call(loci.peers.messages.SearchMessages, body.request(), timeout=_SEARCH_SECONDS)
    speech = SpeechRenderer()
    results: list[Rest] = []
    for hit in response.hits:
        found = _results(hit, speech.whole(hit.message))
        if body.context:
            context = {side: _context(speech, hit, getattr(hit, side)) for side in ("before", "after")}
            found = [result | {"context": context} for result in found]
        results.extend(found)
    return json_response(results[: body.limit], headers=without_vectors(response.without_vectors))


@router.post("/agents/messages/search")
@returns(array(FOUND))
async def search_of_agents(body: SearchMessages, loci: Loci) -> Response:
    """The same, where older clients look for it."""
    return await search(body, loci)


def _context(
    speech: SpeechRenderer, hit: message_service_pb2.MessageHit, messages: Iterable[message_pb2.Message]
) -> list[Rest]:
    return [result for one in messages for result in _results(hit, speech.whole(one))]


def _results(hit: message_service_pb2.MessageHit, messages: Iterable[message_pb2.Message]) -> list[Rest]:
    return [_result(hit, one) for one in messages if _is_shown(one)]


def _is_shown(source: message_pb2.Message) -> bool:
    return message_type(source) in _SHOWN


def _result(hit: message_service_pb2.MessageHit, source: message_pb2.Message) -> Rest:
    content = message(source)
    return {
        "message_type": content["message_type"],
        "message_id": source.id,
        # Of a tool the text alone, as an agent was told it.
        "content": content["tool_return"] if "tool_return" in content else content["content"],
        "agent_id": hit.agent_id,
        # An agent's default conversation has no id of its own.
        "conversation_id": hit.conversation_id or None,
        "created_at": moment(source.date),
    }
