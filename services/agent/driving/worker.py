"""The replica as driver of runs. What it owns, and takes over from others, is in lease_keeper.py."""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import aclosing, contextmanager
from dataclasses import dataclass, replace
from uuid import UUID

from services.agent import loop
from services.agent.calls.model_calls import TurnContext, discard
from services.agent.calls.turn_context import turn_context
from services.agent.core.events import Ended
from services.agent.core.facts import Failure
from services.agent.core.ports import MemoryView
from services.agent.core.ports_journal import Acceptance, Fenced, Journal, OwnedRun, TurnRequest
from services.agent.core.ports_streams import Notice
from services.agent.core.turn import CANCELLED, OVERDUE
from services.agent.driving.faults import is_transient
from services.agent.effects import Ports, RunEffects
from services.agent.streams.broadcast import Subscription
from services.agent.streams.publisher import EventPublisher
from services.common.context import CallContext, Signer, use_context
from services.common.telemetry import span

AUDIENCE = ("memory", "llm_gateway", "tool_runner")
# A run that was dropped is left alone for so long, each time twice as long, before it is taken up again.
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 60.0
# A fault of ours comes again: a run that met so many is not driven any more.
MOST_FAULTS = 2

_log = logging.getLogger(__name__)

# Called with the run of the same conversation whose turn it now is, and its home; see Ended.successor.
Succeed = Callable[[UUID, UUID, UUID | None], None]


@dataclass(frozen=True, slots=True)
class _DropCount:
    """The count of times a run was dropped, and of those by a fault of ours; the time until which it is left alone."""

    times: int = 0
    faults: int = 0
    until: float = 0.0

    def again(self, error: Exception) -> "_DropCount":
        faults = self.faults + (not is_transient(error))
        pause = 0.0 if faults >= MOST_FAULTS else min(FIRST_PAUSE * 2.0**self.times, LONGEST_PAUSE)
        return _DropCount(self.times + 1, faults, time.monotonic() + pause)


class Worker:
    """Drives runs in this process, each in a task that outlives the request it came with."""

    def __init__(self, journal: Journal, ports: Ports, publisher: EventPublisher, signer: Signer) -> None:
        self._journal = journal
        self._ports = ports
        self._publisher = publisher
        self._hub = publisher.hub
        self._notifier = publisher.notifier
        self._signer = signer
        # Runs that this process drives or is about to; None until the driver is there.
        self._driven: dict[UUID, asyncio.Task[None] | None] = {}
        self._effects: dict[UUID, RunEffects] = {}
        # Those of them that wait for others, with the number of runs that each waits for.
        self._resting: Counter[UUID] = Counter()
        self._dropped: dict[UUID, _DropCount] = {}
        self.on_successor: Succeed = lambda organization_id, run_id, home_id: None
        # Told the tenant and the conversation of each run that was driven here.
        self.on_run_end: Callable[[UUID, UUID], None] = lambda organization_id, conversation_id: None

    def drives(self, run_id: UUID) -> bool:
        """Returns whether the run is driven here, or about to be, or was dropped a moment ago."""
        return run_id in self._driven or self._dropped.get(run_id, _DropCount()).until > time.monotonic()

    @property
    def load(self) -> int:
        """Returns how many runs are driven here and do not wait for others: those that they wait for need a place."""
        return len(self._driven) - len(self._resting.keys() & self._driven.keys())

    @contextmanager
    def rests(self, run_id: UUID | None) -> Iterator[None]:
        """Marks a run as waiting for another one in this block; None: nothing waits but a caller."""
        if run_id is None:
            yield
            return
        self._resting[run_id] += 1
        try:
            yield
        finally:
            self._resting[run_id] -= 1
            if not self._resting[run_id]:
                del self._resting[run_id]

    async def stop(self) -> None:
        """Lets go of all runs; the lease hands them over."""
        drivers = [task for task in self._driven.values() if task is not None]
        for task in drivers:
            task.cancel()
        await asyncio.gather(*drivers, return_exceptions=True)

    # Requests ------------------------------------------------------------------------------------------

    async def accept(self, request: TurnRequest, *, stream: bool) -> tuple[Acceptance, Subscription | None]:
        """Stores a request and drives it if its turn has come. The first reader misses no event."""
        context = _context(request)
        view = None
        if not (request.background or request.options.group):
            # It may well be driven here at once.
            with use_context(context, signer=self._signer):
                view = asyncio.ensure_future(self._ports.memory.view(request.agent_id, request.conversation_id))
        self._driven.setdefault(request.run_id, None)
        owned = None
        try:
            accepted = await self._journal.accept(request)
            owned = accepted.owned
        finally:
            if owned is None:
                self.unreserve(request.run_id)
            if view is not None and (owned is None or owned.came_late):
                discard(view)
                view = None
        if accepted.successor is not None:
            self.on_successor(request.organization_id, *accepted.successor)
        if accepted.interrupts is not None:
            await self.cancel(request.organization_id, [(accepted.interrupts, request.conversation_id)])
        if owned is None:
            return accepted, None
        self._publisher.open(owned)
        subscription = self._hub.subscribe(request.run_id)
        self._drive(owned, view, stream=stream)
        return accepted, subscription

    async def cancel(self, organization_id: UUID, runs: list[tuple[UUID, UUID]]) -> list[UUID]:
        """Asks runs, given with their conversations, to stop; the ids it reached."""
        reached = await self._journal.cancel(organization_id, runs)
        for run_id in reached:
            if not self.interrupt(run_id, CANCELLED):
                self._notifier.tell("cancelled", run_id)
        return reached

    def on_notice(self, notice: Notice, run_id: UUID) -> None:
        """Takes a notice of another replica about a run."""
        match notice:
            case "shown":
                self._hub.wake(run_id)
            case "watched":
                self._publisher.watch(run_id)
            case "cancelled":
                self.interrupt(run_id, CANCELLED)

    async def waiting_runs(
        self, organization_id: UUID, agent_id: UUID, conversation_id: UUID | None
    ) -> list[tuple[UUID, UUID]]:
        """Returns runs of an agent whose calls wait for the client, with their conversations; of one conversation, if
        given.
        """
        return await self._journal.waiting_runs(organization_id, agent_id, conversation_id)

    async def withdraw(self, organization_id: UUID, conversation_id: UUID, run_id: UUID) -> None:
        """Takes a request out of its line, unless somebody reads it again or it has begun."""
        if not self._hub.is_read(run_id):
            await self._journal.withdraw(organization_id, conversation_id, run_id)

    # Driving -------------------------------------------------------------------------------------------

    def reserve(self, run_id: UUID) -> bool:
        """Marks a run as about to be driven here; False when it is."""
        if self.drives(run_id):
            return False
        self._driven[run_id] = None
        return True

    def unreserve(self, run_id: UUID) -> None:
        """Takes back `reserve`: the run is not driven after all."""
        if self._driven.get(run_id) is None:
            self._driven.pop(run_id, None)

    def drop(self, run_id: UUID, error: Exception) -> None:
        """Leaves a run that could not be driven alone for a while, longer each time, or ends it; see `is_faulty`."""
        self._dropped[run_id] = self._dropped.get(run_id, _DropCount()).again(error)

    def is_faulty(self, run_id: UUID) -> bool:
        """Returns whether a run meets a fault of ours whenever it is driven."""
        return self._dropped.get(run_id, _DropCount()).faults >= MOST_FAULTS

    def drops(self, run_id: UUID) -> int:
        """Returns how often a run was dropped here: so many of its claims cost nobody's life."""
        return self._dropped.get(run_id, _DropCount()).times

    def hasten(self, run_id: UUID) -> None:
        """Leaves a run that was dropped alone no longer."""
        if (dropped := self._dropped.get(run_id)) is not None:
            self._dropped[run_id] = replace(dropped, until=0.0)

    def forget(self, run_id: UUID) -> None:
        """Forgets how often a run was dropped: it has ended."""
        self._dropped.pop(run_id, None)

    async def take_over(self, owned: OwnedRun) -> None:
        """Drives a run that was claimed; a driver with an older fence is ended first."""
        await self.let_go(owned.run_id)
        self._publisher.open(owned, is_taken_over=True)
        self._drive(owned)

    async def let_go(self, run_id: UUID) -> None:
        """Ends the driver of a run that was claimed since."""
        driver = self._driven.get(run_id)
        if driver is not None:
            driver.cancel()
            await asyncio.wait((driver,))

    def interrupt(self, run_id: UUID, failure: Failure) -> bool:
        """Stops a run that is driven here; False when it is not."""
        effects = self._effects.get(run_id)
        if effects is not None and not effects.interruption.done():
            effects.interruption.set_result(failure)
        return effects is not None

    def _drive(self, owned: OwnedRun, view: "asyncio.Future[MemoryView] | None" = None, *, stream: bool = True) -> None:
        context = _context(owned)
        with use_context(context, signer=self._signer):
            ports = self._ports
            around = turn_context(owned, ports.memory, ports.tools, view, ports.pictures)
            task = asyncio.create_task(self._run(owned, around, stream=stream), name=f"run {owned.run_id}")
        self._driven[owned.run_id] = task

    async def _run(self, owned: OwnedRun, context: TurnContext, *, stream: bool) -> None:
        effects = RunEffects(owned, self._ports, context, stream=stream)
        self._effects[owned.run_id] = effects
        timer = asyncio.get_running_loop().call_later(owned.seconds_left, self.interrupt, owned.run_id, OVERDUE)
        turn = owned.turn
        if owned.cancel_requested or owned.seconds_left <= 0:
            turn = replace(turn, interruption=CANCELLED if owned.cancel_requested else OVERDUE)
        try:
            with span("run", run_id=str(owned.run_id), agent_id=str(owned.agent_id)):
                async with aclosing(loop.run(turn, effects)) as events:
                    async for event in events:
                        self._publisher.show(owned.run_id, event)
                        if isinstance(event, Ended):
                            self._succeed(owned.organization_id, event)
            self.forget(owned.run_id)
        except Fenced:
            _log.warning("run %s has another owner", owned.run_id)
        except Exception as error:  # noqa: BLE001
            # The supervisor of runs: whatever happened, the run is taken up again after a pause, or ended.
            _log.exception("run %s was dropped", owned.run_id)
            self.drop(owned.run_id, error)
        finally:
            timer.cancel()
            context.discard()
            self.on_run_end(owned.organization_id, owned.conversation_id)
            self._effects.pop(owned.run_id, None)
            if self._driven.get(owned.run_id) is asyncio.current_task():
                self._driven.pop(owned.run_id, None)
                self._publisher.close(owned.run_id)

    def _succeed(self, organization_id: UUID, event: Ended) -> None:
        for successor in (*event.begun, *((event.successor,) if event.successor is not None else ())):
            self.on_successor(organization_id, *successor)


def _context(run: TurnRequest | OwnedRun) -> CallContext:
    return CallContext(
        run.organization_id,
        run.user_id,
        "agent",
        AUDIENCE,
        run_id=run.run_id,
        ancestors=run.ancestors,
        ceiling=run.ceiling,
        # Who accepts a request drives its run first, if at all.
        fence=run.fence if isinstance(run, OwnedRun) else 1,
    )
