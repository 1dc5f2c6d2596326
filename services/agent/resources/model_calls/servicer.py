"""ModelCallService: parse, call, convert. The tenant comes from the verified call context."""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from loci.agent.v1 import model_call_service_pb2 as wire
from loci.agent.v1 import model_call_service_pb2_grpc
from services.agent.convert.inputs import messages_from_proto
from services.agent.convert.options import options_from_proto
from services.agent.resources.model_calls.convert import (
    answer_to_proto,
    options_of,
    prompt_of,
    schema_of,
    window_to_proto,
)
from services.agent.resources.model_calls.service import StandaloneModelCalls
from services.common.context import current
from services.common.ids import from_public, uuid7


class ModelCallServicer(model_call_service_pb2_grpc.ModelCallServiceServicer):
    """loci.agent.v1.ModelCallService."""

    def __init__(self, calls: StandaloneModelCalls) -> None:
        self._calls = calls

    async def GetContextWindow(
        self, request: wire.GetContextWindowRequest, context: Any
    ) -> wire.GetContextWindowResponse:
        """Returns how the window is filled now."""
        place = _place(request.agent_id, request.conversation_id)
        return window_to_proto(await self._calls.window(current().organization_id, *place))

    async def PreviewModelCall(
        self, request: wire.PreviewModelCallRequest, context: Any
    ) -> wire.PreviewModelCallResponse:
        """Returns the request that the provider would get."""
        turn = request.turn
        body = await self._calls.preview(
            current().organization_id,
            *_place(turn.agent_id, turn.conversation_id),
            messages_from_proto(turn.messages, uuid7(), datetime.now(UTC)),
            options_from_proto(turn),
            stream=request.stream_tokens,
        )
        return wire.PreviewModelCallResponse(body_json=body)

    async def GenerateText(self, request: wire.GenerateTextRequest, context: Any) -> wire.GenerateTextResponse:
        """Makes one call that is not stored."""
        agent_id = from_public("agent", request.agent_id)
        prompt, options, schema = prompt_of(request), options_of(request), schema_of(request)
        answer = await self._calls.generate(
            current().organization_id, agent_id, prompt, request.system_prompt, options, schema
        )
        return answer_to_proto(answer)


def _place(agent_id: str, conversation_id: str) -> tuple[UUID, UUID]:
    agent = from_public("agent", agent_id)
    return agent, from_public("conv", conversation_id) if conversation_id else agent
