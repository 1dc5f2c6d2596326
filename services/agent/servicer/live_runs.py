"""RunService: what is read from the database, and what concerns live runs."""

from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any
from uuid import UUID

import grpc

from loci.agent.v1 import run_service_pb2 as wire
from services.agent.convert.turns import attached, event_to_proto, run_to_proto
from services.agent.events import Delta
from services.agent.facts import RunStatus
from services.agent.ports_admin import ToolCatalogue
from services.agent.ports_runs import RunList, Runs
from services.agent.reading import Reader
from services.agent.servicer.runs import RunReads
from services.agent.worker import Worker
from services.common.context import current
from services.common.errors import FailedPrecondition
from services.common.ids import from_public
from services.common.paging import Page

# Active runs of one agent that one call cancels at most.
MOST_CANCELLED = 1_000


class RunServicer(RunReads):
    """loci.agent.v1.RunService."""

    def __init__(self, runs: Runs, tools: ToolCatalogue, worker: Worker, reader: Reader) -> None:
        super().__init__(runs, tools)
        self._worker = worker
        self._reader = reader

    async def StreamRun(
        self, request: wire.StreamRunRequest, context: grpc.aio.ServicerContext[Any, Any]
    ) -> AsyncIterator[wire.StreamRunResponse]:
        """The events of a run from a position on."""
        run_id = from_public("run", request.run_id)
        run = await self._runs.get(current().organization_id, run_id)
        yield wire.StreamRunResponse(event=attached(run.id, started=False))
        follow = self._reader.follow(current().organization_id, run_id, after=request.after_sequence)
        async with aclosing(follow) as events:
            async for event in events:
                if request.stream_tokens or not isinstance(event, Delta):
                    yield wire.StreamRunResponse(event=event_to_proto(event, run_id))

    async def CancelRuns(
        self, request: wire.CancelRunsRequest, context: grpc.aio.ServicerContext[Any, Any]
    ) -> wire.CancelRunsResponse:
        """Asks runs to stop."""
        organization_id = current().organization_id
        agent_id = from_public("agent", request.agent_id)
        if request.run_ids:
            asked = [from_public("run", run_id) for run_id in request.run_ids]
            found = [await self._runs.get(organization_id, run_id) for run_id in asked]
            runs = [(run.id, run.conversation_id) for run in found]
        else:
            conversation_id = from_public("conv", request.conversation_id) if request.conversation_id else None
            runs = await self._active(organization_id, agent_id, conversation_id)
            # Their runs have ended, but what they want to do can still be called off.
            runs += await self._worker.waiting_runs(organization_id, agent_id, conversation_id)
            if not runs:
                raise FailedPrecondition("No active runs to cancel.", reason="NOTHING_TO_CANCEL")
        await self._worker.cancel(organization_id, runs)
        now = [await self._runs.get(organization_id, run_id) for run_id, _ in runs]
        return wire.CancelRunsResponse(runs=map(run_to_proto, now))

    async def _active(
        self, organization_id: UUID, agent_id: UUID, conversation_id: UUID | None
    ) -> list[tuple[UUID, UUID]]:
        wanted = RunList(
            page=Page(MOST_CANCELLED),
            agent_ids=(agent_id,),
            statuses=(RunStatus.CREATED, RunStatus.RUNNING),
            conversation_id=conversation_id,
        )
        return [(run.id, run.conversation_id) for run in (await self._runs.list(organization_id, wanted)).items]
