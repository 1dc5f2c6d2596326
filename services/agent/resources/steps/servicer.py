"""StepService: steps as they are stored, and what people thought of them."""

from typing import Any

from loci.agent.v1 import step_service_pb2 as wire
from loci.agent.v1 import step_service_pb2_grpc
from services.agent.convert.messages import messages_to_proto
from services.agent.resources.messages.convert import message_page
from services.agent.resources.steps.convert import (
    feedback_of,
    step_list,
    step_metrics_to_proto,
    step_to_proto,
    trace_to_proto,
    transaction_of,
)
from services.agent.resources.steps.ports import StepStore
from services.common.context import current
from services.common.ids import from_public


class StepServicer(step_service_pb2_grpc.StepServiceServicer):
    """loci.agent.v1.StepService."""

    def __init__(self, steps: StepStore) -> None:
        self._steps = steps

    async def GetStep(self, request: wire.GetStepRequest, context: Any) -> wire.GetStepResponse:
        """Returns one step."""
        step = await self._steps.get(current().organization_id, from_public("step", request.step_id))
        return wire.GetStepResponse(step=step_to_proto(step))

    async def ListSteps(self, request: wire.ListStepsRequest, context: Any) -> wire.ListStepsResponse:
        """Returns one page."""
        steps = await self._steps.list(current().organization_id, step_list(request))
        return wire.ListStepsResponse(steps=map(step_to_proto, steps.items), next_page_token=steps.next_token)

    async def ListStepMessages(
        self, request: wire.ListStepMessagesRequest, context: Any
    ) -> wire.ListStepMessagesResponse:
        """Returns a page of its messages."""
        step_id = from_public("step", request.step_id)
        page = message_page(request.page, ascending=True)
        stored = await self._steps.messages(current().organization_id, step_id, page)
        messages = [piece for message in stored.items for piece in messages_to_proto(message)]
        return wire.ListStepMessagesResponse(messages=messages, next_page_token=stored.next_token)

    async def SetStepFeedback(self, request: wire.SetStepFeedbackRequest, context: Any) -> wire.SetStepFeedbackResponse:
        """Stores a person's opinion of a step."""
        step_id = from_public("step", request.step_id)
        step = await self._steps.set_feedback(current().organization_id, step_id, feedback_of(request))
        return wire.SetStepFeedbackResponse(step=step_to_proto(step))

    async def SetStepTransaction(
        self, request: wire.SetStepTransactionRequest, context: Any
    ) -> wire.SetStepTransactionResponse:
        """Stores the caller's own transaction of a step."""
        step_id, transaction = from_public("step", request.step_id), transaction_of(request)
        step = await self._steps.set_transaction(current().organization_id, step_id, transaction)
        return wire.SetStepTransactionResponse(step=step_to_proto(step))

    async def GetStepMetrics(self, request: wire.GetStepMetricsRequest, context: Any) -> wire.GetStepMetricsResponse:
        """Returns how long it took."""
        step = await self._steps.get(current().organization_id, from_public("step", request.step_id))
        return wire.GetStepMetricsResponse(metrics=step_metrics_to_proto(step))

    async def GetStepTrace(self, request: wire.GetStepTraceRequest, context: Any) -> wire.GetStepTraceResponse:
        """Returns the provider's request and answer."""
        trace = await self._steps.trace(current().organization_id, from_public("step", request.step_id))
        return wire.GetStepTraceResponse(trace=trace_to_proto(trace))
