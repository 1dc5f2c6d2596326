"""RunService: what is read from the database, and what concerns live runs."""

from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing, suppress
from typing import Any
from uuid import UUID

import grpc

from loci.agent.v1 import run_service_pb2 as wire
from services.agent.convert.turns import event_to_proto, first_event, otid_key, run_to_proto
from services.agent.core.events import Delta
from services.agent.core.facts import RunStatus
from services.agent.core.ports_streams import BackgroundRuns
from services.agent.driving.worker import Worker
from services.agent.resources.agents.ports import ToolCatalogue
from services.agent.resources.runs.ports import RunList, RunStore, StoredRun
from services.agent.resources.runs.servicer import StoredRunRpcs
from services.agent.streams.reading import Reader
from services.common.context import current
from services.common.core.paging import Page
from services.common.errors import FailedPrecondition, NotFound
from services.common.ids import from_public, optional_id

# Active runs of one agent that one call cancels at most.
MOST_CANCELLED = 1_000


class RunServicer(StoredRunRpcs):
    """loci.agent.v1.RunService."""

    def __init__(
        self, runs: RunStore, tools: ToolCatalogue, worker: Worker, reader: Reader, attaching: BackgroundRuns
    ) -> None:
        super().__init__(runs, tools)
        self._worker = worker
        self._reader = reader
        self._attaching = attaching

    async def StreamRun(
        self, request: wire.StreamRunRequest, context: grpc.aio.ServicerContext[Any, Any]
    ) -> AsyncIterator[wire.StreamRunResponse]:
        """Yields the events of a run from a position on."""
        organization_id = current().organization_id
        run_id = await self._meant(organization_id, request)
        if request.stream_tokens:
            await self._reader.check_kept(organization_id, run_id, request.after_sequence)
        follow = self._reader.follow(
            organization_id, run_id, after=request.after_sequence, wants_context=request.with_context
        )
        view = await self._attaching.view(organization_id, run_id)
        yield wire.StreamRunResponse(event=first_event(run_id, started=False, view=view))
        async with aclosing(follow) as events:
            async for event in events:
                if request.stream_tokens or not isinstance(event, Delta):
                    yield wire.StreamRunResponse(event=event_to_proto(event, run_id))

    async def _meant(self, organization_id: UUID, request: wire.StreamRunRequest) -> UUID:
        """Returns the run that a request means: by its id, else by an otid, else the one that is active."""
        if request.run_id:
            run = await self._runs.get(organization_id, from_public("run", request.run_id))
            if request.agent_id and not (run.background and run.conversation_id == _conversation(request)):
                sentence = (
                    f"{request.run_id} was not created in background mode in this conversation: no stream is kept"
                )
                raise FailedPrecondition(sentence, reason="RUN_NOT_BACKGROUND")
            return run.id
        conversation_id = _conversation(request)
        if request.otid:
            run_id = await self._attaching.by_key(organization_id, otid_key(conversation_id, request.otid))
            if run_id is None:
                sentence = (
                    f"No run found for otid={request.otid}. No background run of this conversation began with it."
                )
                raise NotFound(sentence, reason="RUN_NOT_FOUND")
            return run_id
        active = await self._attaching.active(organization_id, conversation_id)
        if active is None:
            sentence = "No active runs found for this conversation that were created in background mode."
            raise FailedPrecondition(sentence, reason="NO_ACTIVE_RUN")
        return active

    async def CancelRuns(
        self, request: wire.CancelRunsRequest, context: grpc.aio.ServicerContext[Any, Any]
    ) -> wire.CancelRunsResponse:
        """Asks runs to stop."""
        organization_id = current().organization_id
        agent_id = from_public("agent", request.agent_id)
        if request.run_ids:
            run_ids = [from_public("run", run_id) for run_id in request.run_ids]
            runs = [(run.id, run.conversation_id) for run in await self._of_agent(organization_id, agent_id, run_ids)]
        else:
            conversation_id = optional_id("conv", request.conversation_id)
            runs = await self._active(organization_id, agent_id, conversation_id)
            # Their runs have ended, but what they want to do can still be called off.
            runs += await self._worker.waiting_runs(organization_id, agent_id, conversation_id)
            if not runs:
                raise FailedPrecondition("No active runs to cancel.", reason="NOTHING_TO_CANCEL")
        await self._worker.cancel(organization_id, runs)
        now = [await self._runs.get(organization_id, run_id) for run_id in dict(runs)]
        # What waits in a fork was asked for by a run of its source, which stays as it is.
        return wire.CancelRunsResponse(runs=[run_to_proto(run) for run in now if (run.id, run.conversation_id) in runs])

    async def _of_agent(self, organization_id: UUID, agent_id: UUID, run_ids: Sequence[UUID]) -> list[StoredRun]:
        """Returns the runs that are the agent's: who may reach one agent alone must not stop another's."""
        runs = []
        for run_id in run_ids:
            with suppress(NotFound):
                runs.append(await self._runs.get(organization_id, run_id))
        return [run for run in runs if run.agent_id == agent_id]

    async def _active(
        self, organization_id: UUID, agent_id: UUID, conversation_id: UUID | None
    ) -> list[tuple[UUID, UUID]]:
        filters = RunList(
            page=Page(MOST_CANCELLED),
            agent_ids=(agent_id,),
            statuses=(RunStatus.CREATED, RunStatus.RUNNING),
            conversation_id=conversation_id,
        )
        return [(run.id, run.conversation_id) for run in (await self._runs.list(organization_id, filters)).items]


def _conversation(request: wire.StreamRunRequest) -> UUID:
    """Returns the conversation that a request names; the default one has the agent's id."""
    agent_id = from_public("agent", request.agent_id)
    return from_public("conv", request.conversation_id) if request.conversation_id else agent_id
