"""ConversationService: parse, call, convert. The tenant and the user come from the verified call context."""

from collections.abc import Callable
from typing import Any

from loci.agent.v1 import conversation_service_pb2 as wire
from loci.agent.v1 import conversation_service_pb2_grpc
from services.agent.convert.authority import check_conversation
from services.agent.resources.conversations.convert import (
    conversation_approval,
    conversation_list,
    conversation_to_proto,
    fork,
    new_id,
    place,
    setting_values,
)
from services.agent.resources.conversations.service import Conversations, ConversationState
from services.common.context import current
from services.common.ids import from_public


class ConversationServicer(conversation_service_pb2_grpc.ConversationServiceServicer):
    """loci.agent.v1.ConversationService. `on_deleted` is called when there is something to clear away."""

    def __init__(self, conversations: Conversations, on_deleted: Callable[[], None]) -> None:
        self._conversations = conversations
        self._on_deleted = on_deleted

    async def CreateConversation(
        self, request: wire.CreateConversationRequest, context: Any
    ) -> wire.CreateConversationResponse:
        """Creates copies of blocks first, the conversation's row last."""
        check_conversation(request, current())
        conversation_id, agent_id = new_id(request.conversation_id), from_public("agent", request.agent_id)
        state = await self._conversations.create(
            current(),
            conversation_id,
            agent_id,
            setting_values(request.conversation),
            request.isolated_block_labels,
        )
        return wire.CreateConversationResponse(conversation=conversation_to_proto(state))

    async def GetConversation(self, request: wire.GetConversationRequest, context: Any) -> wire.GetConversationResponse:
        """Returns one conversation."""
        conversation_id = from_public("conv", request.conversation_id)
        state = await self._conversations.get(
            current().organization_id, conversation_id, relations=not request.omit_relations
        )
        return wire.GetConversationResponse(conversation=conversation_to_proto(state))

    async def ListConversations(
        self, request: wire.ListConversationsRequest, context: Any
    ) -> wire.ListConversationsResponse:
        """Returns one page."""
        page = await self._conversations.list(current().organization_id, conversation_list(request))
        conversations = [conversation_to_proto(ConversationState(each)) for each in page.items]
        return wire.ListConversationsResponse(conversations=conversations, next_page_token=page.next_token)

    async def ListPendingApprovals(
        self, request: wire.ListPendingApprovalsRequest, context: Any
    ) -> wire.ListPendingApprovalsResponse:
        """Returns what waits in each of an agent's conversations."""
        agent_id = from_public("agent", request.agent_id)
        waiting = await self._conversations.waiting(current().organization_id, agent_id)
        return wire.ListPendingApprovalsResponse(approvals=[conversation_approval(agent_id, *each) for each in waiting])

    async def UpdateConversation(
        self, request: wire.UpdateConversationRequest, context: Any
    ) -> wire.UpdateConversationResponse:
        """Changes the fields of the mask."""
        conversation_id = from_public("conv", request.conversation_id)
        state = await self._conversations.update(
            current(), conversation_id, setting_values(request.conversation, request.update_mask.paths)
        )
        return wire.UpdateConversationResponse(conversation=conversation_to_proto(state))

    async def DeleteConversation(
        self, request: wire.DeleteConversationRequest, context: Any
    ) -> wire.DeleteConversationResponse:
        """Deletes it for readers at once; the rest follows."""
        await self._conversations.delete(current(), from_public("conv", request.conversation_id))
        self._on_deleted()
        return wire.DeleteConversationResponse()

    async def ForkConversation(
        self, request: wire.ForkConversationRequest, context: Any
    ) -> wire.ForkConversationResponse:
        """Creates a conversation that shares another's messages."""
        state = await self._conversations.fork(current(), fork(request))
        return wire.ForkConversationResponse(conversation=conversation_to_proto(state))

    async def RecompileConversation(
        self, request: wire.RecompileConversationRequest, context: Any
    ) -> wire.RecompileConversationResponse:
        """Returns the system prompt; the next turn compiles it anew."""
        prompt = await self._conversations.recompile(
            current().organization_id, *place(request), dry_run=request.dry_run
        )
        return wire.RecompileConversationResponse(prompt=prompt)
