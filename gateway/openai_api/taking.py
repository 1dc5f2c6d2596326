"""Shared steps of the routes of OpenAI's dialects: the agent that a request calls its model, and its stream."""

from collections.abc import Awaitable, Callable

from starlette.responses import Response

from gateway.errors.invalid import InvalidRequest
from gateway.openai_api.stream import AnswerRenderer
from gateway.openai_api.unanswered import give_up_calls
from gateway.rest.services import Services
from gateway.turns import responses as turn_responses
from gateway.turns.events import TurnEvents
from loci.agent.v1 import agent_service_pb2, message_service_pb2
from loci.common.v1.page_pb2 import PageRequest
from services.common.errors import Aborted, InvalidArgument, NotFound
from services.common.ids import from_public

# As LiteLLM and others name a model of a provider.
_PROVIDER = "letta/"


async def agent_named(loci: Services, name: str) -> str:
    """Returns the id of the agent that a request calls its model: by id, as letta/ and its id, or by a name that is
    unique.
    """
    agent_id = name.removeprefix(_PROVIDER)
    try:
        from_public("agent", agent_id)
    except InvalidArgument:
        request = agent_service_pb2.ListAgentsRequest(
            page=PageRequest(page_size=2), name=name, show_hidden=True, omit_relations=True
        )
        agents = (await loci.peers.call(loci.peers.agents.ListAgents, request)).agents
    else:
        return agent_id
    if not agents:
        raise NotFound("Agent not found", reason="AGENT_NOT_FOUND", metadata={"name": name})
    if len(agents) > 1:
        raise InvalidRequest(f"several agents are named {name!r}; give the id of one", "body", "model")
    only: str = agents[0].id
    return only


async def taken(
    loci: Services, turn: message_service_pb2.TurnRequest, take: Callable[[], Awaitable[Response]]
) -> Response:
    """Returns what `take` answers to a turn; where calls that nobody answers keep it waiting, those are given up."""
    try:
        return await take()
    except Aborted as error:
        await give_up_calls(loci, turn, error)
        return await take()


async def streamed(loci: Services, turn: message_service_pb2.TurnRequest, frames: AnswerRenderer) -> Response:
    """Returns a turn as a stream."""
    turn_events = TurnEvents(loci.peers, turn=turn, tokens=True, window=loci.settings.reattach_window)
    events = turn_events.events()
    # What fails before the first event has a status of its own.
    first = await anext(events)
    on_disconnect = turn_responses.leave_callback(loci, turn, turn_events)
    return turn_responses.event_stream(loci, first, events, frames, pings=True, on_disconnect=on_disconnect)
