"""Work in the background: what a job is, and the loop that runs them.

A job is a row that names its work; how far that is stands in the rows that it works on, so that whoever takes the job
after a crash goes on there. Replicas share one queue; the lease of a job is renewed while it runs.
"""

import asyncio
import logging
import random
from collections.abc import Mapping
from contextlib import suppress
from uuid import UUID

from services.common.context import CallContext, Signer, use_context
from services.common.errors import LociError
from services.memory.core.ports.jobs import JobStore
from services.memory.jobs.model import Handler, Job, Reschedule, pause_after

logger = logging.getLogger(__name__)
_RENEW_SECONDS = 10.0
_POLL_SECONDS = 1.0
_RETURN_SECONDS = 1.0
_AT_ONCE = 2
# Work that no user waits for.
_NOBODY = UUID(int=0)


class Worker:
    """Runs jobs of this process until it is cancelled."""

    def __init__(self, store: JobStore, handlers: Mapping[str, Handler], signer: Signer, worker_id: UUID) -> None:
        self._store = store
        self._handlers = dict(handlers)
        self._signer = signer
        self._worker_id = worker_id
        self._wake_event = asyncio.Event()

    def wake(self) -> None:
        """Tells the worker that there is something to do now."""
        self._wake_event.set()

    async def run_forever(self) -> None:
        """Claims and runs, a few at a time; a database that is away is met again in the next second."""
        async with asyncio.TaskGroup() as lanes:
            for _ in range(_AT_ONCE):
                lanes.create_task(self._lane())

    async def _lane(self) -> None:
        while True:
            try:
                while await self.run_one():
                    pass
            except Exception:  # a supervisor: whatever it was, the next second is another chance
                logger.exception("the queue of jobs could not be worked on")
            self._wake_event.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._wake_event.wait(), _POLL_SECONDS * random.uniform(0.5, 1.5))

    async def run_one(self) -> bool:
        """Runs one job; False where there was none."""
        job = await self._store.claim(self._worker_id)
        if job is None:
            return False
        caller = CallContext(job.organization_id, _NOBODY, "memory", ("llm_gateway",))
        with use_context(caller, signer=self._signer):
            work = asyncio.create_task(self._handle(job))
        try:
            if not await self._run_leased(job, work):
                return True
        except asyncio.CancelledError:
            await self._give_back(job)
            raise
        later = work.result()
        if later is None:
            await self._store.finish(job, self._worker_id)
        else:
            await self._store.postpone(job, self._worker_id, later)
        return True

    async def _give_back(self, job: Job) -> None:
        """Returns the process stops: nobody shall wait for the end of its lease."""
        try:
            await asyncio.wait_for(self._store.postpone(job, self._worker_id, Reschedule(0.0)), _RETURN_SECONDS)
        except Exception:  # a supervisor: the lease ends by itself
            logger.exception("job %s of %s was not given back", job.kind, job.subject)

    async def _handle(self, job: Job) -> Reschedule | None:
        try:
            return await self._handlers[job.kind](job)
        except LociError as error:
            logger.warning("job %s of %s failed: %s", job.kind, job.subject, error.message)
        except Exception:  # a supervisor: a job that breaks must not stop the others
            logger.exception("job %s of %s failed", job.kind, job.subject)
        return Reschedule(pause_after(job.failures + 1), failed=True)

    async def _run_leased(self, job: Job, work: asyncio.Task[Reschedule | None]) -> bool:
        """Waits for the work under a renewed lease; False when the lease was lost and the work stopped."""
        try:
            while True:
                done, _ = await asyncio.wait({work}, timeout=_RENEW_SECONDS)
                if done:
                    return True
                if not await self._store.renew(job, self._worker_id):
                    logger.warning("job %s of %s was taken over", job.kind, job.subject)
                    return False
        finally:
            if not work.done():
                work.cancel()
                with suppress(asyncio.CancelledError):
                    await work
