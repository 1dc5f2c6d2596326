"""TransferService: parse, call, convert. The tenant and the user come from the verified call context."""

from collections.abc import AsyncIterator
from typing import Any

from loci.agent.v1 import transfer_service_pb2 as wire
from loci.agent.v1 import transfer_service_pb2_grpc
from services.agent.resources.transfers.convert import Frames, import_part, stored_to_proto
from services.agent.resources.transfers.model import ImportPart
from services.agent.resources.transfers.service import Transfers
from services.common.context import current
from services.common.ids import from_public, to_public


class TransferServicer(transfer_service_pb2_grpc.TransferServiceServicer):
    """loci.agent.v1.TransferService."""

    def __init__(self, transfers: Transfers) -> None:
        self._transfers = transfers

    async def ImportAgents(
        self, request_iterator: AsyncIterator[wire.ImportAgentsRequest], context: Any
    ) -> wire.ImportAgentsResponse:
        """Imports all of it or nothing."""
        imported = await self._transfers.import_agents(current(), _parts(request_iterator))
        agent_ids = (to_public("agent", each) for each in imported.agent_ids)
        return wire.ImportAgentsResponse(agent_ids=agent_ids, messages=imported.messages)

    async def BatchFindAgents(self, request: wire.BatchFindAgentsRequest, context: Any) -> wire.BatchFindAgentsResponse:
        """Returns those that are there."""
        agent_ids = [from_public("agent", each) for each in request.agent_ids]
        agents = await self._transfers.find(current().organization_id, agent_ids)
        return wire.BatchFindAgentsResponse(agent_ids=(to_public("agent", each) for each in agents))

    async def StreamStoredMessages(
        self, request: wire.StreamStoredMessagesRequest, context: Any
    ) -> AsyncIterator[wire.StreamStoredMessagesResponse]:
        """Streams the messages of a conversation, with all that a provider wants back."""
        agent_id = from_public("agent", request.agent_id)
        conversation_id = from_public("conv", request.conversation_id) if request.conversation_id else agent_id
        frames = Frames()
        stored = self._transfers.messages(
            current().organization_id, agent_id, conversation_id, whole=request.whole_history
        )
        async for message, in_context in stored:
            for frame in frames.add(stored_to_proto(message, in_context=in_context)):
                yield frame
        for frame in frames.rest():
            yield frame


async def _parts(requests: AsyncIterator[wire.ImportAgentsRequest]) -> AsyncIterator[ImportPart]:
    async for request in requests:
        yield import_part(request)
