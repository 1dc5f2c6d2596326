"""WebSockets over which one talks to an agent, in one of its conversations, or to a group."""

from fastapi import APIRouter
from starlette.websockets import WebSocket

from gateway.access import handshakes
from gateway.errors.problems import problem_of
from gateway.resources.conversations.responses import ConversationKey
from gateway.resources.groups.messages import speaker
from gateway.rest.services import Services
from gateway.sockets.agent_socket import AgentSocket
from loci.agent.v1 import agent_service_pb2
from services.common.errors import LociError

router = APIRouter()


@router.websocket("/agents/{agent_id}/ws")
async def talk_to_agent(socket: WebSocket, agent_id: str) -> None:
    """Sends messages to the agent's default conversation; cancel and resume reach all its runs."""
    loci: Services = socket.app.state.services
    try:
        await _check_agent(loci, agent_id)
    except LociError as error:
        await _refuse(socket, error)
        return
    await AgentSocket(socket, loci, ConversationKey(agent_id), conversation=False).serve()


@router.websocket("/conversations/{conversation_id}/ws")
async def talk_in_conversation(socket: WebSocket, conversation_id: str, agent_id: str | None = None) -> None:
    """Sends messages to the conversation; `default` needs `agent_id` in the query."""
    loci: Services = socket.app.state.services
    try:
        place = await loci.conversations.place(conversation_id, agent_id)
        if not place.conversation_id:
            await _check_agent(loci, place.agent_id)
    except LociError as error:
        await _refuse(socket, error)
        return
    await AgentSocket(socket, loci, place, conversation=True).serve()


@router.websocket("/groups/{group_id}/ws")
async def talk_to_group(socket: WebSocket, group_id: str) -> None:
    """Sends messages to the group; each begins a round."""
    loci: Services = socket.app.state.services
    try:
        agent_id = await speaker(loci, group_id)
    except LociError as error:
        await _refuse(socket, error)
        return
    await AgentSocket(socket, loci, ConversationKey(agent_id), conversation=False, group_id=group_id).serve()


async def _check_agent(loci: Services, agent_id: str) -> None:
    await loci.peers.call(loci.peers.agents.GetAgent, agent_service_pb2.GetAgentRequest(agent_id=agent_id))


async def _refuse(socket: WebSocket, error: LociError) -> None:
    await handshakes.refuse(problem_of(error), socket.scope, socket.receive, socket.send)
