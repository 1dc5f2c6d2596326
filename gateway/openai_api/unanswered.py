"""Calls of the client's tools that the client does not answer: a chat that goes on without them gives them up."""

from gateway.rest.services import Services
from loci.agent.v1 import agent_service_pb2, message_service_pb2, run_service_pb2
from services.common.errors import Aborted

_PENDING = "APPROVAL_PENDING"


async def give_up_calls(loci: Services, turn: message_service_pb2.TurnRequest, error: Aborted) -> None:
    """Gives up the calls that keep a conversation waiting, so that `turn` can be taken.

    Raises `error` where it is another one or names no request, where the turn answers calls, and where a call waits for
    an approval: that is for people to give.
    """
    pending_id = error.metadata.get("pending_request_id")
    if error.reason != _PENDING or not pending_id or any(message.answers for message in turn.messages):
        raise error
    request = message_service_pb2.GetMessageRequest(message_id=pending_id)
    messages = (await loci.peers.call(loci.peers.messages.GetMessage, request)).messages
    pending = next(one for one in messages if one.WhichOneof("message") == "approval_request_message")
    sought = agent_service_pb2.GetAgentRequest(agent_id=turn.agent_id)
    agent = (await loci.peers.call(loci.peers.agents.GetAgent, sought)).agent
    own = {tool.name for tool in agent.tools} - {tool.name for tool in turn.options.client_tools}
    if any(call.name in own for call in pending.approval_request_message.tool_calls):
        raise error
    cancel = run_service_pb2.CancelRunsRequest(agent_id=turn.agent_id, run_ids=[pending.run_id])
    await loci.peers.call(loci.peers.runs.CancelRuns, cancel)
