"""The RPCs of RunService that need no live run: reads from the database, and deletion."""

from datetime import UTC, datetime
from itertools import islice
from typing import Any

from loci.agent.v1 import run_service_pb2 as wire
from loci.agent.v1 import run_service_pb2_grpc
from services.agent.convert.messages import messages_to_proto
from services.agent.resources.agents.ports import ToolCatalogue
from services.agent.resources.messages.convert import message_page
from services.agent.resources.runs.convert import (
    called_names,
    run_list,
    run_metrics_to_proto,
    run_usage_to_proto,
    span_to_proto,
    stored_run_to_proto,
)
from services.agent.resources.runs.model import spans_of
from services.agent.resources.runs.ports import RunStore
from services.agent.resources.steps.convert import step_to_proto
from services.common.context import current
from services.common.errors import InvalidArgument
from services.common.ids import from_public
from services.common.page_requests import page_by_id

_PER_PAGE = 100
_SPANS, _MOST_SPANS = 1_000, 5_000


class StoredRunRpcs(run_service_pb2_grpc.RunServiceServicer):
    """The part of loci.agent.v1.RunService that needs no live run."""

    def __init__(self, runs: RunStore, tools: ToolCatalogue) -> None:
        self._runs = runs
        self._tools = tools

    async def GetRun(self, request: wire.GetRunRequest, context: Any) -> wire.GetRunResponse:
        """Returns one run."""
        run = await self._runs.get(current().organization_id, from_public("run", request.run_id))
        return wire.GetRunResponse(run=stored_run_to_proto(run))

    async def ListRuns(self, request: wire.ListRunsRequest, context: Any) -> wire.ListRunsResponse:
        """Returns one page."""
        runs = await self._runs.list(current().organization_id, run_list(request))
        return wire.ListRunsResponse(runs=map(stored_run_to_proto, runs.items), next_page_token=runs.next_token)

    async def ListRunMessages(self, request: wire.ListRunMessagesRequest, context: Any) -> wire.ListRunMessagesResponse:
        """Returns a page of its messages."""
        run_id = from_public("run", request.run_id)
        page = message_page(request.page, ascending=True)
        stored = await self._runs.messages(current().organization_id, run_id, page)
        # Here, unlike in histories, the order is that of the pieces, too.
        turn = 1 if page.ascending else -1
        messages = [piece for message in stored.items for piece in messages_to_proto(message)[::turn]]
        return wire.ListRunMessagesResponse(messages=messages, next_page_token=stored.next_token)

    async def ListRunSteps(self, request: wire.ListRunStepsRequest, context: Any) -> wire.ListRunStepsResponse:
        """Returns a page of its steps."""
        run_id = from_public("run", request.run_id)
        page = page_by_id(request.page, "step", _PER_PAGE, ascending=True)
        steps = await self._runs.steps(current().organization_id, run_id, page)
        return wire.ListRunStepsResponse(steps=map(step_to_proto, steps.items), next_page_token=steps.next_token)

    async def GetRunUsage(self, request: wire.GetRunUsageRequest, context: Any) -> wire.GetRunUsageResponse:
        """Returns tokens so far."""
        used = await self._runs.usage(current().organization_id, from_public("run", request.run_id))
        return wire.GetRunUsageResponse(usage=run_usage_to_proto(used))

    async def GetRunMetrics(self, request: wire.GetRunMetricsRequest, context: Any) -> wire.GetRunMetricsResponse:
        """Times so far."""
        whole = await self._runs.whole(current().organization_id, from_public("run", request.run_id))
        tools = await self._tools.find(names=called_names(whole))
        return wire.GetRunMetricsResponse(metrics=run_metrics_to_proto(whole, {tool.name: tool.id for tool in tools}))

    async def GetRunTrace(self, request: wire.GetRunTraceRequest, context: Any) -> wire.GetRunTraceResponse:
        """Returns the run as spans."""
        limit = request.limit or _SPANS
        if not 1 <= limit <= _MOST_SPANS:
            raise InvalidArgument(f"limit must be from 1 to {_MOST_SPANS}, not {limit}", reason="PAGE_SIZE_INVALID")
        whole = await self._runs.whole(current().organization_id, from_public("run", request.run_id))
        spans = islice(spans_of(whole, datetime.now(UTC)), limit)
        return wire.GetRunTraceResponse(spans=map(span_to_proto, spans))

    async def DeleteRun(self, request: wire.DeleteRunRequest, context: Any) -> wire.DeleteRunResponse:
        """Erases an ended run."""
        await self._runs.delete(current().organization_id, from_public("run", request.run_id))
        return wire.DeleteRunResponse()
