"""The launcher's work: runs calls in threads, keeps a few workers warm, lets calls be cancelled."""

import threading
from dataclasses import replace

from services.tool_runner.job import ExitReason, Job, Limits, Result, SandboxUnavailable
from services.tool_runner.sandboxes.exchange import died
from services.tool_runner.sandboxes.launcher.engine import Engine, Worker
from services.tool_runner.sandboxes.launcher.spec import clip, shape


class Pool:
    """Started workers of one shape, each for one call. It fills once the first call came, not before."""

    def __init__(self, engine: Engine, size: int) -> None:
        self._engine = engine
        self._size = size
        self._limits = Limits()
        self._ready: list[Worker] = []
        self._fillers: set[threading.Thread] = set()
        self._closed = False
        self._lock = threading.Lock()

    def take(self, limits: Limits) -> Worker:
        """A worker for these limits, warm where one is there; raises SandboxUnavailable."""
        warm: Worker | None = None
        if shape(limits) == shape(self._limits):
            with self._lock:
                warm = self._ready.pop() if self._ready else None
            self._refill()
        return warm or self._engine.start(limits)

    def close(self) -> None:
        """Remove what is warm, and what is just being made."""
        with self._lock:
            self._closed = True
            fillers = list(self._fillers)
        for filler in fillers:
            filler.join()
        for worker in self._ready:
            worker.remove()

    def _refill(self) -> None:
        with self._lock:
            missing = 0 if self._closed else self._size - len(self._ready) - len(self._fillers)
            fillers = [threading.Thread(target=self._add_one, daemon=True) for _ in range(missing)]
            self._fillers.update(fillers)
        for filler in fillers:
            filler.start()

    def _add_one(self) -> None:
        worker: Worker | None = None
        try:
            worker = self._engine.start(self._limits)
        except SandboxUnavailable:
            return  # the next call meets the same problem and reports it
        finally:
            with self._lock:
                self._fillers.discard(threading.current_thread())
                self._ready += [worker] if worker else []


class Call:
    """One call, which another thread may cancel at any moment, before it has a worker too."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._cancelled = False
        self._worker: Worker | None = None

    def run(self, pool: Pool, job: Job) -> Result:
        """Take a worker and serve; raises SandboxUnavailable. `finish` comes after it, always."""
        job = replace(job, limits=clip(job.limits))
        worker = pool.take(job.limits)
        with self._lock:
            self._worker = worker
            cancelled = self._cancelled
        return died(ExitReason.KILLED, "cancelled before it began") if cancelled else worker.serve(job)

    def finish(self) -> None:
        """Remove the worker: after the answer is given, because it takes longer than most calls."""
        with self._lock:
            worker, self._worker = self._worker, None
        if worker:
            worker.remove()

    def cancel(self) -> None:
        """Kill it; `run` then returns soon."""
        with self._lock:
            self._cancelled = True
            worker = self._worker
        if worker:
            worker.kill()
