"""The replica as owner of runs: it drives them, beats its lease, takes over what others lost.

The lease belongs to the replica: one row, beaten every half second, expired after 2.5 s of database time. A run
names its worker and a fence that each claim raises; a driver whose fence is old learns it at its next commit and
drops all.
"""

import asyncio
import logging
from collections.abc import Coroutine
from contextlib import aclosing
from dataclasses import replace
from typing import Any
from uuid import UUID

from services.agent import loop
from services.agent.adapters.journal import Accepted, PostgresJournal, TurnRequest
from services.agent.broadcast import Hub, Subscription
from services.agent.effects import Ports, RunEffects
from services.agent.events import Ended
from services.agent.ports import Fenced, MemoryView, Owned, ToolInfo
from services.agent.turn import CANCELLED, Failure, overdue
from services.common.context import CallContext, Signer, use_context
from services.common.telemetry import span

BEAT_SECONDS = 0.5
# Runs this replica takes from the queue at most; requests that come to it directly are not counted.
CAPACITY = 256
# A run that was taken over this often is ended: it kills its owners.
MOST_OWNERS = 20
AUDIENCE = ("memory", "llm_gateway", "tool_runner")

_log = logging.getLogger(__name__)


class Worker:
    """Drives runs in this process. `start` before the first request, `stop` after the last."""

    def __init__(self, journal: PostgresJournal, ports: Ports, hub: Hub, signer: Signer) -> None:
        self._journal = journal
        self._ports = ports
        self._hub = hub
        self._signer = signer
        # Runs that this process drives or is about to; None until the driver is there.
        self._driven: dict[UUID, asyncio.Task[None] | None] = {}
        self._effects: dict[UUID, RunEffects] = {}
        self._wake = asyncio.Event()
        self._beats: asyncio.Task[None] | None = None
        self._background: set[asyncio.Task[Any]] = set()

    async def start(self) -> None:
        """Registers the replica and begins to beat."""
        await self._journal.register()
        self._beats = asyncio.create_task(self._beat(), name="beats")

    async def stop(self) -> None:
        """Hands over all runs and ends the lease."""
        drivers = [task for task in self._driven.values() if task is not None]
        for task in (*drivers, *self._background, *filter(None, (self._beats,))):
            task.cancel()
        await asyncio.gather(*drivers, *self._background, *filter(None, (self._beats,)), return_exceptions=True)
        await self._journal.resign()

    # Requests --------------------------------------------------------------------------------------------

    async def accept(self, request: TurnRequest, *, stream: bool) -> tuple[Accepted, Subscription | None]:
        """Stores a request and drives it if its turn has come. The first reader misses no event."""
        context = self._context(request.organization_id, request.user_id, request.run_id, request.ancestors)
        with use_context(context, signer=self._signer):
            view = asyncio.ensure_future(self._ports.memory.view(request.agent_id))
            fresh = self._driven.setdefault(request.run_id, None) is None
            try:
                accepted = await self._journal.accept(request)
            finally:
                if fresh and self._driven[request.run_id] is None:
                    del self._driven[request.run_id]
        if accepted.owned is None:
            _discard(view)
            return accepted, None
        self._hub.open(request.run_id)
        subscription = self._hub.subscribe(request.run_id)
        self._drive(accepted.owned, view, stream=stream)
        return accepted, subscription

    async def cancel(self, organization_id: UUID, runs: list[tuple[UUID, UUID]]) -> list[UUID]:
        """Asks runs, given with their conversations, to stop; the ids it reached."""
        reached = await self._journal.cancel(organization_id, runs)
        for run_id in reached:
            self._interrupt(run_id, CANCELLED)
        return reached

    async def withdraw(self, organization_id: UUID, conversation_id: UUID, run_id: UUID) -> None:
        """Takes a run out of its line, unless somebody reads it again or it has begun."""
        if not self._hub.is_read(run_id):
            await self._journal.withdraw(organization_id, conversation_id, run_id)

    # Driving ---------------------------------------------------------------------------------------------

    def _drive(self, owned: Owned, view: "asyncio.Future[MemoryView] | None" = None, *, stream: bool = True) -> None:
        context = self._context(owned.organization_id, owned.user_id, owned.run_id, owned.ancestors)
        with use_context(context, signer=self._signer):
            if view is None:
                view = asyncio.ensure_future(self._ports.memory.view(owned.agent_id))
            tools = asyncio.ensure_future(self._ports.tools.describe(owned.turn.settings.tool_ids))
            task = asyncio.create_task(self._run(owned, view, tools, stream=stream), name=f"run {owned.run_id}")
        self._driven[owned.run_id] = task

    async def _run(
        self,
        owned: Owned,
        view: "asyncio.Future[MemoryView]",
        tools: "asyncio.Future[tuple[ToolInfo, ...]]",
        *,
        stream: bool,
    ) -> None:
        effects = RunEffects(owned, self._ports, view, tools, stream=stream)
        self._effects[owned.run_id] = effects
        timer = asyncio.get_running_loop().call_later(
            max(0.0, owned.seconds_left), self._interrupt, owned.run_id, overdue(owned.seconds_left)
        )
        turn = replace(owned.turn, interruption=CANCELLED) if owned.cancel_requested else owned.turn
        try:
            with span("run", run_id=str(owned.run_id), agent_id=str(owned.agent_id)):
                async with aclosing(loop.run(turn, effects)) as events:
                    async for event in events:
                        self._hub.publish(owned.run_id, event)
                        if isinstance(event, Ended) and event.successor is not None:
                            self._succeed(*event.successor)
        except Fenced:
            _log.warning("run %s has another owner", owned.run_id)
        except Exception:  # noqa: BLE001
            # The supervisor of runs: whatever happened, the run is taken up again at the next beat.
            _log.exception("run %s was dropped", owned.run_id)
        finally:
            timer.cancel()
            _discard(view)
            _discard(tools)
            self._effects.pop(owned.run_id, None)
            if self._driven.get(owned.run_id) is asyncio.current_task():
                self._driven.pop(owned.run_id, None)
                self._hub.close(owned.run_id)

    def _interrupt(self, run_id: UUID, failure: Failure) -> None:
        effects = self._effects.get(run_id)
        if effects is not None and not effects.interruption.done():
            effects.interruption.set_result(failure)

    def _succeed(self, run_id: UUID, home_id: UUID | None) -> None:
        if home_id == self._journal.worker_id:
            self._spawn(self._reclaim(run_id))
        elif home_id is None:
            self._wake.set()

    def _context(self, organization_id: UUID, user_id: UUID, run_id: UUID, ancestors: tuple[UUID, ...]) -> CallContext:
        return CallContext(organization_id, user_id, "agent", AUDIENCE, run_id=run_id, ancestors=ancestors)

    # The lease -------------------------------------------------------------------------------------------

    async def _beat(self) -> None:
        beats = 0
        while True:
            try:
                await self._notice(await self._journal.tick())
                beats += 1
                if beats % 20 == 0:
                    await self._journal.repair_queue()
            except Exception:  # noqa: BLE001
                # The supervisor of the lease: a database that is away comes back.
                _log.exception("a beat failed")
            self._wake.clear()
            try:
                async with asyncio.timeout(BEAT_SECONDS):
                    await self._wake.wait()
            except TimeoutError:
                continue

    async def _notice(self, seen: Any) -> None:
        if not seen["alive"]:
            await self._journal.register()
        for run_id in seen["cancelled"]:
            self._interrupt(run_id, CANCELLED)
        for run_id in seen["mine"]:
            if run_id not in self._driven:
                await self._reclaim(run_id)
        if seen["lost"]:
            orphans = await self._journal.reap()
            _log.warning("a replica was lost; %d runs go to the queue", orphans)
        if seen["ready"] or seen["lost"]:
            await self._claim()

    async def _claim(self) -> None:
        while len(self._driven) < CAPACITY:
            claimed = await self._journal.claim(CAPACITY - len(self._driven))
            for owned in claimed:
                await self._take_over(owned)
            if not claimed:
                return

    async def _reclaim(self, run_id: UUID) -> None:
        self._driven.setdefault(run_id, None)
        try:
            owned = await self._journal.reclaim(run_id)
        finally:
            if self._driven.get(run_id) is None:
                self._driven.pop(run_id, None)
        if owned is not None:
            await self._take_over(owned)

    async def _take_over(self, owned: Owned) -> None:
        driver = self._driven.get(owned.run_id)
        if driver is not None:
            driver.cancel()
            await asyncio.wait((driver,))
        if owned.fence > MOST_OWNERS:
            owned = replace(owned, turn=replace(owned.turn, interruption=_HOPELESS))
        self._hub.open(owned.run_id)
        self._drive(owned)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)


_HOPELESS = replace(
    overdue(0.0),
    message=f"The run was taken over {MOST_OWNERS} times and never ended; it was given up.",
    reason="RUN_GIVEN_UP",
)


def _discard(future: "asyncio.Future[Any]") -> None:
    """Nobody will ask for it any more; its error, if any, is of no interest."""
    future.cancel()
    future.add_done_callback(lambda done: None if done.cancelled() else done.exception())
