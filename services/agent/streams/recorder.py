"""Writes the frames of runs that are read later or elsewhere: the first at once, then one row per run in 50 ms.

A run never waits for it. While the database is slow, frames of one piece grow into one; what is lost when it is away is
deltas, for which the messages themselves stand in.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from uuid import UUID

from services.agent.core.events import Event, Transient
from services.agent.core.ports_journal import OwnedRun
from services.agent.core.ports_streams import Flush, FrameStore
from services.agent.core.stored_stream import Frame, Tail

FLUSH_SECONDS = 0.05
# After a failure.
_PAUSE = 0.5
HOUR = timedelta(hours=1)
# Partitions that are there before they are needed, and how often they are looked after.
HOURS_AHEAD, KEEPING_SECONDS = 4, 600.0

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Recording:
    organization_id: UUID
    run_hour: datetime
    tail: Tail
    due: float = 0.0
    # Frames that are being written: of owners before this one, too.
    writing: list[Frame] = field(default_factory=list)


class Recorder:
    """Keeps what runs show. `keep` is how long streams are stored; `run` writes until cancelled, then `stop`."""

    def __init__(self, store: FrameStore, *, keep: timedelta) -> None:
        self._store = store
        self._keep = keep
        self._recordings: dict[UUID, _Recording] = {}
        # Those with something to write, whether their run goes on or not.
        self._full: dict[UUID, _Recording] = {}
        self._filled = asyncio.Event()
        self._hours: set[datetime] = set()
        # Called with the runs of which more can be read now.
        self.on_flush: Callable[[Sequence[UUID]], None] = lambda run_ids: None

    def records(self, run_id: UUID) -> bool:
        """Returns whether the run is recorded."""
        return run_id in self._recordings

    def begin(self, owned: OwnedRun, tail: Tail | None = None) -> None:
        """Begins to record a run with `tail`."""
        before = self._full.get(owned.run_id)
        recording = _Recording(owned.organization_id, hour_of(owned.created_at), tail or Tail())
        if before is not None:
            recording.tail.put_back(before.tail.drain())
            recording.due, self._full[owned.run_id] = before.due, recording
        self._recordings[owned.run_id] = recording
        self._note(owned.run_id, recording)

    def put(self, run_id: UUID, event: Event) -> None:
        """Keeps what a recorded run shows, unless a fact holds it."""
        recording = self._recordings.get(run_id)
        if recording is not None and isinstance(event, Transient):
            recording.tail.add(event)
            self._note(run_id, recording)

    def end(self, run_id: UUID) -> None:
        """Writes at once what is kept of a run that is driven here no longer."""
        self._recordings.pop(run_id, None)
        if (recording := self._full.get(run_id)) is not None:
            recording.due = 0.0
            self._filled.set()

    async def run(self) -> None:
        """Writes until cancelled."""
        while True:
            try:
                await self._wait()
                now = asyncio.get_running_loop().time()
                await self._write({run_id: each for run_id, each in self._full.items() if each.due <= now})
            except Exception:  # noqa: BLE001
                # The supervisor of streams: a database that is away comes back, and runs go on without it.
                _log.exception("streams could not be stored")
                await asyncio.sleep(_PAUSE)

    async def stop(self) -> None:
        """Writes what is left, if that can be done."""
        try:
            await self._write(dict(self._full))
        except Exception:  # noqa: BLE001
            # As above.
            _log.exception("the ends of streams were lost")

    async def keep_hours(self) -> None:
        """Makes partitions ahead of time and drops those whose time is over, until cancelled. Every replica does."""
        while True:
            now = datetime.now(UTC)
            try:
                ahead = {hour_of(now) + number * HOUR for number in range(HOURS_AHEAD)}
                await self._store.add_hours(sorted(ahead))
                await self._store.drop_hours(now - self._keep)
                self._hours = ahead | {hour for hour in self._hours if hour + HOUR > now - self._keep}
            except Exception:  # noqa: BLE001
                # As above; there are hours of time.
                _log.exception("the partitions of stored streams could not be looked after")
            await asyncio.sleep(KEEPING_SECONDS)

    def _note(self, run_id: UUID, recording: _Recording) -> None:
        if recording.tail and run_id not in self._full:
            self._full[run_id] = recording
            self._filled.set()

    async def _wait(self) -> None:
        """Returns when something is due."""
        while True:
            self._filled.clear()
            due = min((recording.due for recording in self._full.values()), default=None)
            now = asyncio.get_running_loop().time()
            if due is not None and due <= now:
                return
            try:
                async with asyncio.timeout(None if due is None else due - now):
                    await self._filled.wait()
            except TimeoutError:
                return

    async def _write(self, due: dict[UUID, _Recording]) -> None:
        oldest = datetime.now(UTC) - self._keep
        recordings = {run_id: each for run_id, each in due.items() if each.run_hour + HOUR > oldest}
        for run_id in due:
            del self._full[run_id]
        frames = {run_id: each.tail.drain() for run_id, each in recordings.items()}
        flushes = [Flush(each.organization_id, each.run_hour, key, frames[key]) for key, each in recordings.items()]
        if not flushes:
            return
        try:
            await self._append(flushes)
        except BaseException:
            # Perhaps one of them is gone.
            self._hours.clear()
            for run_id, recording in recordings.items():
                recording = self._full.get(run_id) or self._recordings.get(run_id) or recording
                recording.tail.put_back(frames[run_id])
                self._full[run_id] = recording
            raise
        now = asyncio.get_running_loop().time()
        for recording in recordings.values():
            recording.due = now + FLUSH_SECONDS
        self.on_flush(list(recordings))

    async def _append(self, flushes: Sequence[Flush]) -> None:
        missing = {flush.run_hour for flush in flushes} - self._hours
        if missing:
            await self._store.add_hours(sorted(missing))
            self._hours |= missing
        await self._store.append(flushes)


def hour_of(moment: datetime) -> datetime:
    """Returns the full hour (UTC) that a moment is in: where the frames of a run that was accepted then are kept."""
    return moment.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
