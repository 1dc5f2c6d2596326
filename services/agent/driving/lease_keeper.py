"""The replica as owner of runs: it beats its lease and takes over what others lost.

The lease belongs to the replica: one row, beaten every half second, expired after 2.5 s of database time. A run names
its worker and a fence that each claim raises; a driver whose fence is old learns it at its next commit and drops all.
The beat is a task that does nothing else, so that no amount of work delays it; a second task acts on what it saw.
Who was away for a lease judges nobody for another: after a pause of the database others have not beaten yet, either.
"""

import asyncio
import logging
import math
from collections.abc import Callable, Coroutine, Mapping
from typing import Any
from uuid import UUID

from services.agent.core.facts import Failure, StopReason
from services.agent.core.ports_journal import Leases, OwnershipLost, RunCannotBegin, Successor
from services.agent.core.ports_streams import Notice, Notifier
from services.agent.core.releases import NewerRelease
from services.agent.core.turn import CANCELLED
from services.agent.driving.isolation import SUSPECT_CLAIMS, Isolation
from services.agent.driving.worker import MOST_FAULTS, Worker

BEAT_SECONDS = 0.5
# A beat that takes longer is given up: the connection is broken, and the lease lasts 2.5 s.
BEAT_PATIENCE = 1.0
BEATS_PER_REPAIR = 20
# As LEASE of postgres/sql.py says.
LEASE_SECONDS = 2.5
# Runs taken from the queue at once, and while fewer than CAPACITY are driven here.
CLAIMED_AT_ONCE = 16
CAPACITY = 1_024
# A run that was taken over this often without getting anywhere is ended: it kills its owners.
MOST_OWNERS = 20

_GIVEN_UP = Failure(
    StopReason.ERROR,
    "internal_error",
    f"The run was taken over {MOST_OWNERS} times and got no further, so it was given up. What was said is in the "
    "conversation; send a message to go on from there.",
    reason="RUN_GIVEN_UP",
)
_UNREAD = Failure(
    StopReason.ERROR,
    "internal_error",
    "The run was made by a newer release of Loci, and no replica of that took it until its time limit. What was said "
    "is in the conversation; send a message to go on from there.",
    reason="RUN_GIVEN_UP",
)
_FAULTY = Failure(
    StopReason.ERROR,
    "internal_error",
    f"The run met an error of the server {MOST_FAULTS} times and was ended; the conversation goes on with the next "
    "message. The server's log says more.",
    reason="RUN_GIVEN_UP",
)

_log = logging.getLogger(__name__)


class LeaseKeeper:
    """Owns runs for a worker. `start` before the first request, `stop` after the last."""

    def __init__(
        self,
        leases: Leases,
        worker: Worker,
        notifier: Notifier,
        *,
        capacity: int = CAPACITY,
        isolation: Isolation | None = None,
    ) -> None:
        self._leases = leases
        self._worker = worker
        self._notifier = notifier
        self._capacity = capacity
        self._isolation = isolation
        # Runs of this replica that are driven in processes of their own, or are about to be.
        self._isolated: set[UUID] = set()
        self._seen: Mapping[str, Any] | None = None
        self._act = asyncio.Event()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._answering = False
        self._reaping = False
        self._beaten_at: float | None = None
        self._judges_from = -math.inf
        self._holds = True
        # Told when the lease is lost for so long that others may have the runs, and when it is held again.
        self.on_lease: Callable[[bool], Coroutine[Any, Any, None]] | None = None
        # Told of each device for which there is something at another replica.
        self.on_device_notice: Callable[[UUID], None] = lambda device_id: None
        worker.on_successor = self._succeed
        notifier.on_notice = self._on_notice

    async def start(self) -> None:
        """Registers the replica and begins to beat."""
        await self._leases.register()
        self.begin()

    def begin(self) -> None:
        """Begins to beat a lease that is registered."""
        self._spawn(self._beat())
        self._spawn(self._acting())

    async def drive_one(self, organization_id: UUID, run_id: UUID, fence: int) -> None:
        """Takes a run from its owner, and returns when it has ended or is another's; dropped, it is taken up again."""
        row = await self._leases.adopt(organization_id, run_id, fence)
        if row is None:
            return
        await self._take(row)
        # It is the database that tells.
        while self._worker.drives(run_id) or run_id in (self._seen or {}).get("mine", ()):  # noqa: ASYNC110
            await asyncio.sleep(BEAT_SECONDS)

    async def stop(self) -> None:
        """Hands over all runs and ends the lease."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._worker.stop()
        await self._leases.resign()

    async def _beat(self) -> None:
        beats = 0
        while True:
            try:
                async with asyncio.timeout(BEAT_PATIENCE):
                    self._seen = await self._leases.tick()
                    if not self._seen["alive"]:
                        await self._leases.register()
                self._note_beat()
                self._act.set()
                if beats % BEATS_PER_REPAIR == 0:
                    self._spawn(self._repair())
                beats += 1
            except Exception:  # noqa: BLE001
                # The supervisor of the lease: a database that is away comes back.
                _log.exception("a beat failed")
                self._note_silence()
            await asyncio.sleep(BEAT_SECONDS)

    def _note_beat(self) -> None:
        now = _now()
        if self._beaten_at is not None and now - self._beaten_at > LEASE_SECONDS:
            self._judges_from = now + LEASE_SECONDS
        self._beaten_at = now
        self._tell_lease(True)

    def _note_silence(self) -> None:
        if self._beaten_at is not None and _now() - self._beaten_at > LEASE_SECONDS:
            self._tell_lease(False)

    def _tell_lease(self, holds: bool) -> None:
        if holds is not self._holds:
            self._holds = holds
            if self.on_lease is not None:
                self._spawn(self.on_lease(holds))

    async def _repair(self) -> None:
        try:
            await self._leases.repair()
        except Exception:  # noqa: BLE001
            # As above.
            _log.exception("the queue could not be repaired")

    async def _acting(self) -> None:
        while True:
            await self._act.wait()
            self._act.clear()
            try:
                await self._notice(self._seen or {})
            except Exception:  # noqa: BLE001
                # As above.
                _log.exception("runs could not be taken over")

    async def _notice(self, seen: Mapping[str, Any]) -> None:
        for run_id in seen.get("cancelled", ()):
            if not self._worker.interrupt(run_id, CANCELLED):
                # It was dropped: taken up now, it ends by that.
                self._worker.hasten(run_id)
        mine = zip(seen.get("tenants", ()), seen.get("mine", ()), strict=True)
        lost = [(tenant, run_id) for tenant, run_id in mine if not self._is_driven(run_id)]
        await asyncio.gather(*(self._reclaim(tenant, run_id) for tenant, run_id in lost[:CLAIMED_AT_ONCE]))
        if seen.get("lost") and not self._reaping and _now() >= self._judges_from:
            self._spawn(self._reap())
        if seen.get("overdue") and not self._answering:
            self._spawn(self._answer_overdue())
        if seen.get("ready"):
            await self._claim()

    async def _reap(self) -> None:
        """Runs in a task of its own: whoever holds it up, cancels are heard and queued runs taken."""
        self._reaping = True
        try:
            if orphans := await self._leases.reap():
                _log.warning("a replica was lost; %d runs go to the queue", orphans)
                await self._claim()
        except Exception:  # noqa: BLE001
            # As above; the next beat looks again.
            _log.exception("runs of a lost replica could not be queued")
        finally:
            self._reaping = False

    async def _answer_overdue(self) -> None:
        """Runs in a task of its own: whatever is wrong with what waits, runs are taken over."""
        self._answering = True
        try:
            for organization_id, successor in await self._leases.answer_overdue():
                self._succeed(organization_id, *successor)
        except Exception:  # noqa: BLE001
            # As above; the next beat looks again.
            _log.exception("calls that waited too long could not be answered")
        finally:
            self._answering = False

    def _on_notice(self, notice: Notice, subject_id: UUID) -> None:
        match notice:
            case "queued":
                self._claim_queued(subject_id)
            case "pushed":
                self.on_device_notice(subject_id)
            case _:
                self._worker.on_notice(notice, subject_id)

    def _claim_queued(self, organization_id: UUID) -> None:
        if self._worker.load < self._capacity:
            self._spawn(self._claim_supervised(organization_id))

    async def _claim_supervised(self, organization_id: UUID) -> None:
        try:
            await self._claim(organization_id)
        except Exception:  # noqa: BLE001
            # As above; the next beat looks again.
            _log.exception("queued runs could not be claimed")

    async def _claim(self, organization_id: UUID | None = None) -> None:
        """Takes queued runs while there is room; those of one organization, or in turn those of all."""
        while (room := self._capacity - self._worker.load) > 0:
            rows = await self._leases.claim(min(room, CLAIMED_AT_ONCE), organization_id)
            if rows is None:
                return
            await asyncio.gather(*map(self._take_claimed, rows))
            if not rows:
                return

    async def _reclaim(self, organization_id: UUID, run_id: UUID) -> None:
        if not self._worker.reserve(run_id):
            return
        try:
            row = await self._leases.reclaim(organization_id, run_id)
            if row is not None:
                await self._take(row)
        finally:
            self._worker.unreserve(run_id)

    async def _take_claimed(self, row: Mapping[str, Any]) -> None:
        # Reserved, so that the next beat does not take it for a run that nobody drives.
        reserved = self._worker.reserve(row["id"])
        try:
            await self._take(row)
        finally:
            if reserved:
                self._worker.unreserve(row["id"])

    async def _take(self, row: Mapping[str, Any]) -> None:
        """Drives a claimed run. One that cannot be loaded harms no other."""
        try:
            claims = row["claims"] - len(row["refused_by"])
            if claims > MOST_OWNERS:
                return await self._give_up(row, _GIVEN_UP)
            if self._worker.is_faulty(row["id"]):
                return await self._give_up(row, _FAULTY)
            if self._isolation is not None and claims - self._worker.drops(row["id"]) >= SUSPECT_CLAIMS:
                return self._begin_isolation(self._isolation, row)
            await self._worker.take_over(await self._leases.load(row))
        except OwnershipLost:
            _log.info("run %s has another owner", row["id"])
        except NewerRelease as newer:
            if row["overdue"]:
                return await self._give_up(row, _UNREAD)
            _log.info("run %s is left to a newer release: %s", row["id"], newer)
            await self._leases.hand_back(row)
            self._notifier.tell("queued", row["organization_id"])
        except RunCannotBegin as unusable:
            await self._refuse(row, unusable.failure)
        except Exception as error:  # noqa: BLE001
            # The supervisor of runs: a newer replica may be able to load it, or this one later.
            _log.exception("run %s could not be loaded", row["id"])
            self._worker.drop(row["id"], error)

    def _is_driven(self, run_id: UUID) -> bool:
        return self._worker.drives(run_id) or run_id in self._isolated

    def _begin_isolation(self, isolation: Isolation, row: Mapping[str, Any]) -> None:
        # At once: the next beat must not take it for a run that nobody drives.
        self._isolated.add(row["id"])
        self._spawn(self._isolate(isolation, row))

    async def _isolate(self, isolation: Isolation, row: Mapping[str, Any]) -> None:
        _log.warning("run %s lost its owners %d times and is driven alone", row["id"], row["claims"])
        try:
            await self._worker.let_go(row["id"])
            await isolation.drive(row["organization_id"], row["id"], row["fence"])
        except Exception as error:  # noqa: BLE001
            # As above: whatever became of its process, it is tried again after a pause, here or elsewhere.
            _log.warning("run %s is not driven alone any more: %s", row["id"], error)
            self._worker.drop(row["id"], error)
        finally:
            self._isolated.discard(row["id"])

    async def _refuse(self, row: Mapping[str, Any], failure: Failure) -> None:
        """Ends a run that does not fit its conversation, by the fault of who asked: who is there is told, and says it
        again. What is said in the background waits until it fits, or stays without an answer.
        """
        if row["background"] and failure.reason == "APPROVAL_PENDING":
            self._go_on(row, await self._leases.wait_in_line(row))
            return
        _log.info("run %s was refused: %s", row["id"], failure.message)
        self._go_on(row, await self._leases.give_up(row, failure, keeps_input=row["background"]))

    async def _give_up(self, row: Mapping[str, Any], failure: Failure) -> None:
        _log.error("run %s was given up: %s", row["id"], failure.message)
        self._go_on(row, await self._leases.give_up(row, failure))

    def _go_on(self, row: Mapping[str, Any], successor: Successor | None) -> None:
        self._worker.forget(row["id"])
        if successor is not None:
            self._succeed(row["organization_id"], *successor)

    def _succeed(self, organization_id: UUID, run_id: UUID, home_id: UUID | None) -> None:
        if home_id == self._leases.worker_id:
            self._spawn(self._reclaim(organization_id, run_id))
        elif home_id is None and self._worker.load < self._capacity:
            self._claim_queued(organization_id)
        elif home_id is None:
            self._notifier.tell("queued", organization_id)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _now() -> float:
    return asyncio.get_running_loop().time()
