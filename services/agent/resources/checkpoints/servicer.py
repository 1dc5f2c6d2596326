"""CheckpointService: parse, call, convert. The tenant and the user come from the verified call context."""

from typing import Any

from loci.agent.v1 import checkpoint_service_pb2 as wire
from loci.agent.v1 import checkpoint_service_pb2_grpc
from services.agent.resources.checkpoints.convert import (
    CHECKPOINTS_PER_PAGE,
    checkpoint_ref,
    checkpoint_to_proto,
    fork_to_proto,
    rewind_to_proto,
    where,
)
from services.agent.resources.checkpoints.service import Checkpoints
from services.agent.resources.conversations.convert import conversation_to_proto, new_id
from services.common.context import current
from services.common.ids import from_public, uuid7
from services.common.page_requests import allow, page_by, page_by_id


class CheckpointServicer(checkpoint_service_pb2_grpc.CheckpointServiceServicer):
    """loci.agent.v1.CheckpointService."""

    def __init__(self, checkpoints: Checkpoints) -> None:
        self._checkpoints = checkpoints

    async def ListCheckpoints(self, request: wire.ListCheckpointsRequest, context: Any) -> wire.ListCheckpointsResponse:
        """Returns one page."""
        place = where(request)
        allow(request.page, "page_size", "page_token", "after")
        page = page_by(request.page, checkpoint_ref, CHECKPOINTS_PER_PAGE)
        listed = await self._checkpoints.list(
            current().organization_id, place, size=page.size, token=page.token, after=page.after
        )
        checkpoints = [checkpoint_to_proto(each, place.conversation_id) for each in listed.items]
        return wire.ListCheckpointsResponse(checkpoints=checkpoints, next_page_token=listed.next_token)

    async def RewindConversation(
        self, request: wire.RewindConversationRequest, context: Any
    ) -> wire.RewindConversationResponse:
        """Ends the conversation earlier; erases nothing."""
        rewind = await self._checkpoints.rewind(
            current(),
            where(request),
            checkpoint_ref(request.checkpoint_id),
            keep_blocks=request.keep_blocks,
            rewind_id=from_public("rewind", request.rewind_id) if request.rewind_id else uuid7(),
        )
        return wire.RewindConversationResponse(rewind=rewind_to_proto(rewind))

    async def ListRewinds(self, request: wire.ListRewindsRequest, context: Any) -> wire.ListRewindsResponse:
        """Returns one page."""
        allow(request.page, "page_size", "page_token")
        page = page_by_id(request.page, "rewind", CHECKPOINTS_PER_PAGE)
        rewinds = await self._checkpoints.rewinds(
            current().organization_id, where(request), size=page.size, token=page.token
        )
        return wire.ListRewindsResponse(rewinds=map(rewind_to_proto, rewinds.items), next_page_token=rewinds.next_token)

    async def ForkConversationAtCheckpoint(
        self, request: wire.ForkConversationAtCheckpointRequest, context: Any
    ) -> wire.ForkConversationAtCheckpointResponse:
        """Creates a conversation that shares another's messages up to a checkpoint."""
        state = await self._checkpoints.fork(
            current(),
            where(request),
            checkpoint_ref(request.checkpoint_id),
            new_id(request.new_conversation_id),
            isolate_blocks=request.isolate_blocks,
            hidden=request.hidden,
        )
        return wire.ForkConversationAtCheckpointResponse(conversation=conversation_to_proto(state))

    async def ForkAgent(self, request: wire.ForkAgentRequest, context: Any) -> wire.ForkAgentResponse:
        """Creates an agent that shares another's past."""
        new_agent_id = from_public("agent", request.new_agent_id) if request.new_agent_id else uuid7()
        described, inheritance = await self._checkpoints.fork_agent(
            current(), where(request), checkpoint_ref(request.checkpoint_id), new_agent_id, request.name
        )
        return fork_to_proto(described, inheritance)
