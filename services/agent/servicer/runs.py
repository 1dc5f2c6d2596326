"""What RunService reads from the database: runs, their messages, steps and tokens."""

from typing import Any

from loci.agent.v1 import run_service_pb2 as wire
from loci.agent.v1 import run_service_pb2_grpc
from services.agent.convert.messages import messages_to_proto
from services.agent.convert.runs import run_list, run_usage_to_proto, step_to_proto
from services.agent.convert.turns import run_to_proto
from services.agent.ports_admin import Runs
from services.agent.servicer.refusals import refusals
from services.common.context import current
from services.common.ids import from_public


class RunReads(run_service_pb2_grpc.RunServiceServicer):
    """The part of loci.agent.v1.RunService that needs no live run."""

    def __init__(self, runs: Runs) -> None:
        self._runs = runs

    async def GetRun(self, request: wire.GetRunRequest, context: Any) -> wire.GetRunResponse:
        """One run."""
        run = await self._runs.get(current().organization_id, from_public("run", request.run_id))
        return wire.GetRunResponse(run=run_to_proto(run))

    async def ListRuns(self, request: wire.ListRunsRequest, context: Any) -> wire.ListRunsResponse:
        """One page."""
        with refusals():
            page = await self._runs.list(current().organization_id, run_list(request))
        return wire.ListRunsResponse(runs=map(run_to_proto, page.items), next_page_token=page.next_token)

    async def ListRunMessages(self, request: wire.ListRunMessagesRequest, context: Any) -> wire.ListRunMessagesResponse:
        """All its messages, oldest first."""
        stored = await self._runs.messages(current().organization_id, from_public("run", request.run_id))
        shown = [piece for message in stored for piece in messages_to_proto(message)]
        return wire.ListRunMessagesResponse(messages=shown)

    async def ListRunSteps(self, request: wire.ListRunStepsRequest, context: Any) -> wire.ListRunStepsResponse:
        """All its steps, oldest first."""
        steps = await self._runs.steps(current().organization_id, from_public("run", request.run_id))
        return wire.ListRunStepsResponse(steps=map(step_to_proto, steps))

    async def GetRunUsage(self, request: wire.GetRunUsageRequest, context: Any) -> wire.GetRunUsageResponse:
        """Tokens so far."""
        used = await self._runs.usage(current().organization_id, from_public("run", request.run_id))
        return wire.GetRunUsageResponse(usage=run_usage_to_proto(used))
