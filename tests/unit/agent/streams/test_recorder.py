"""How often streams are written, in virtual time: the first of a run at once, then one row in 50 ms."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any
from uuid import UUID, uuid4

from services.agent.core.events import Delta
from services.agent.core.messages import Text
from services.agent.core.ports_streams import Flush
from services.agent.core.stored_stream import DeltaFrame
from services.agent.streams.recorder import FLUSH_SECONDS, Recorder
from tests.virtual_time import run


@dataclass
class Store:
    """Frames that are kept in memory; each write takes `seconds`."""

    seconds: float = 0.0
    # When a write began, and what it had of each run.
    writes: list[tuple[float, dict[UUID, str]]] = field(default_factory=list)

    async def append(self, flushes: Sequence[Flush]) -> None:
        texts = {
            flush.run_id: "".join("".join(frame.texts) for frame in flush.frames if isinstance(frame, DeltaFrame))
            for flush in flushes
        }
        self.writes.append((asyncio.get_running_loop().time(), texts))
        await asyncio.sleep(self.seconds)

    async def add_hours(self, hours: Sequence[datetime]) -> None:
        """There are always enough."""


async def record(store: Store, runs: Sequence[UUID], deltas: int, pause: float) -> None:
    """Records a delta of every run after each pause."""
    recorder = Recorder(store, keep=timedelta(hours=1))  # type: ignore[arg-type]
    writing = asyncio.create_task(recorder.run())
    for run_id in runs:
        owned: Any = SimpleNamespace(run_id=run_id, organization_id=UUID(int=0), created_at=datetime.now(UTC))
        recorder.begin(owned)
    for number in range(deltas):
        for run_id in runs:
            recorder.put(run_id, Delta(number + 1, run_id, run_id, "o", Text(f"{number} ")))
        await asyncio.sleep(pause)
    for run_id in runs:
        recorder.end(run_id)
    await asyncio.sleep(1)
    writing.cancel()
    await asyncio.gather(writing, return_exceptions=True)
    await recorder.stop()


def written(store: Store, run_id: UUID) -> str:
    """All that was written of a run."""
    return "".join(texts.get(run_id, "") for _, texts in store.writes)


def test_a_run_costs_twenty_rows_a_second() -> None:
    store, run_id = Store(), uuid4()
    run(record(store, [run_id], 2_000, 0.001))
    assert written(store, run_id) == "".join(f"{number} " for number in range(2_000))
    assert store.writes[0][0] == 0.0
    # Two seconds; 0 and 2 are among them.
    assert 40 <= len(store.writes) <= 42
    pauses = [later - sooner for (sooner, _), (later, _) in zip(store.writes, store.writes[1:], strict=False)]
    assert min(pauses[:-1]) > FLUSH_SECONDS - 1e-6


def test_many_runs_are_written_together() -> None:
    store, runs = Store(), [uuid4() for _ in range(100)]
    run(record(store, runs, 200, 0.01))
    assert all(written(store, run_id) == written(store, runs[0]) for run_id in runs)
    assert len(store.writes) <= 42


def test_a_slow_database_gets_fewer_and_longer_rows() -> None:
    store, run_id = Store(seconds=0.5), uuid4()
    run(record(store, [run_id], 2_000, 0.001))
    assert written(store, run_id) == "".join(f"{number} " for number in range(2_000))
    assert len(store.writes) <= 6
