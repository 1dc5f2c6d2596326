"""Sandboxes out of workers: kept warm, handed out for one call each (or to one session), and never left behind.

Nothing is started before the first call. From then on some workers of that call's shape wait, started and greeted;
a call takes one at once, or starts its own where none waits, and another is started when the call is through with the
processor. Shapes that nobody asked for in a while are forgotten. A worker that ended while it waited is never handed
out, and one that served a call serves no other, but those of its session.
"""

import asyncio
from collections import deque
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any

from services.tool_runner.core.job import ExitReason, Job, Result, SandboxUnavailable
from services.tool_runner.core.ports import NO_ENDS, Ends, Process
from services.tool_runner.sandboxes.channel import Channel
from services.tool_runner.sandboxes.ports import Shape, WorkerSource, shape_of
from services.tool_runner.sandboxes.protocol.answers import died_result
from services.tool_runner.sandboxes.quiet_period import QuietPeriod

_STARTS_AT_ONCE = 2  # of workers that nobody waits for
_LONG_SECONDS = 0.05  # a call that takes longer does not keep its replacement waiting
_FORGET_SECONDS = 300.0
_SESSION_SECONDS = 60.0
SessionKey = tuple[str, str]  # tenant, session


@dataclass
class _Shelf:
    """The workers of one shape that wait, and how many are on their way; `forget` ends it when nobody asks."""

    ready: deque[Channel] = field(default_factory=deque)
    starting: int = 0
    forget: asyncio.TimerHandle | None = None


@dataclass
class _SessionWorker:
    """A worker between two calls of its session."""

    channel: Channel
    shape: Shape
    expiry: asyncio.TimerHandle


class PooledSandbox:
    """See `ports.Sandbox`. `warm`: how many workers of each shape in use wait; 0: every call starts its own."""

    def __init__(
        self,
        source: WorkerSource,
        warm: int = 1,
        *,
        forget_seconds: float = _FORGET_SECONDS,
        session_seconds: float = _SESSION_SECONDS,
    ) -> None:
        self.name = source.name
        self.image = source.image
        self._source = source
        self._warm = warm
        self._forget_seconds = forget_seconds
        self._session_seconds = session_seconds
        self._shelves: dict[Shape, _Shelf] = {}
        self._sessions: dict[SessionKey, _SessionWorker] = {}
        self._starting = asyncio.Semaphore(_STARTS_AT_ONCE)
        self._quiet = QuietPeriod()
        self._in_use: set[Channel] = set()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._closed = False

    async def run(self, job: Job, ends: Ends = NO_ENDS) -> Result:
        """See `ports.Sandbox`."""
        shape = shape_of(job)
        self._quiet.disturb()
        long = asyncio.get_running_loop().call_later(_LONG_SECONDS, self._refill, shape)
        try:
            channel, result = await self._serve(job, shape, ends)
        finally:
            long.cancel()
            self._quiet.disturb()
            self._refill(shape)
        await self._let_go(channel, job, shape)
        return result

    async def open(self, job: Job, ends: Ends = NO_ENDS) -> Process:
        """See `ports.Sandbox`."""
        shape = shape_of(job)
        channel, _ = await self._take(job, shape)
        try:
            process = await channel.open(job, ends)
        except BaseException:
            await self._end(channel)
            raise
        # Closing a process ends its worker without this one being told.
        self._in_use = {one for one in self._in_use if not one.closed}
        self._refill(shape)
        return process

    async def end_session(self, session: str) -> None:
        """See `ports.Sandbox`."""
        for key in [key for key in self._sessions if key[1] == session]:
            await self._end_held(key)

    async def close(self) -> None:
        """See `ports.Sandbox`. Calls that still run are killed."""
        self._closed = True
        shelves, self._shelves = self._shelves, {}
        for shelf in shelves.values():
            self._clear(shelf)
        for key in list(self._sessions):
            await self._end_held(key)
        for channel in list(self._in_use):
            await self._end(channel)
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._source.close()

    async def _serve(self, job: Job, shape: Shape, ends: Ends) -> tuple[Channel, Result]:
        """Returns the result, and who gave it; on any other way out the worker is gone."""
        while True:
            channel, fresh = await self._take(job, shape)
            try:
                result = await channel.serve(job, ends)
                return channel, await _with_memory_blamed(channel, result, job)
            except SandboxUnavailable:  # it ended while it waited, and had no job
                await self._end(channel)
                if fresh:
                    raise
            except BaseException:
                await self._end(channel)
                raise

    async def _take(self, job: Job, shape: Shape) -> tuple[Channel, bool]:
        """Returns a worker, and whether it was started for this call; raises SandboxUnavailable."""
        if self._closed:
            raise SandboxUnavailable("the tool runner is stopping")
        held = self._sessions.pop((job.tenant, job.session), None) if job.session else None
        if held:
            held.expiry.cancel()
            if held.shape == shape and held.channel.idle:
                return held.channel, False
            self._spawn(self._end(held.channel))
        ready = self._shelf(shape).ready
        while ready:
            channel = ready.popleft()
            if channel.idle:
                return self._use(channel), False
            self._spawn(channel.close())
        return self._use(await self._start(shape, job.tenant)), True

    def _use(self, channel: Channel) -> Channel:
        self._in_use.add(channel)
        return channel

    async def _start(self, shape: Shape, tenant: str) -> Channel:
        channel = Channel(await self._source.start(shape, tenant))
        try:
            await channel.greet()
        except BaseException:
            await self._finish(channel.close())
            raise
        return channel

    async def _let_go(self, channel: Channel, job: Job, shape: Shape) -> None:
        """Keeps it for its session after its call, or ends it; nobody waits for the end of one that answered."""
        key = (job.tenant, job.session)
        if channel.usable and job.session and key not in self._sessions and not self._closed:
            loop = asyncio.get_running_loop()
            expiry = loop.call_later(self._session_seconds, lambda: self._spawn(self._end_held(key)))
            self._sessions[key] = _SessionWorker(channel, shape, expiry)
        elif channel.usable:
            self._spawn(self._end_in_time(channel))
        else:
            await self._end(channel)

    async def _end_held(self, key: SessionKey) -> None:
        if held := self._sessions.pop(key, None):
            held.expiry.cancel()
            await self._end(held.channel)

    async def _end_in_time(self, channel: Channel) -> None:
        """Ends one that has answered: nothing of the tool is left in it."""
        await self._quiet.wait(lambda: not self._closed)
        await self._end(channel)

    async def _end(self, channel: Channel) -> None:
        self._in_use.discard(channel)
        await self._finish(channel.close())

    async def _finish(self, work: Coroutine[Any, Any, None]) -> None:
        """Does the work to its end, even where whoever waits for it is cancelled."""
        task = self._spawn(work)
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            await asyncio.wait([task])
            raise

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _shelf(self, shape: Shape) -> _Shelf:
        """Returns the shelf, in use from now on for as long as shapes are remembered."""
        shelf = self._shelves.setdefault(shape, _Shelf())
        if shelf.forget:
            shelf.forget.cancel()
        shelf.forget = asyncio.get_running_loop().call_later(self._forget_seconds, self._forget, shape)
        return shelf

    def _forget(self, shape: Shape) -> None:
        if shelf := self._shelves.pop(shape, None):
            self._clear(shelf)

    def _clear(self, shelf: _Shelf) -> None:
        if shelf.forget:
            shelf.forget.cancel()
        while shelf.ready:
            self._spawn(shelf.ready.popleft().close())

    def _refill(self, shape: Shape) -> None:
        """Starts what is missing of a shape that is still in use."""
        if not shape.kept_warm:
            return
        shelf = self._shelves.get(shape)
        while shelf and not self._closed and len(shelf.ready) + shelf.starting < self._warm:
            shelf.starting += 1
            self._spawn(self._add_one(shelf, shape))

    async def _add_one(self, shelf: _Shelf, shape: Shape) -> None:
        channel: Channel | None = None
        try:
            async with self._starting:
                # As long as a quarter waits, calls need no other just now.
                await self._quiet.wait(lambda: not self._closed and len(shelf.ready) > self._warm // 4)
                if self._shelves.get(shape) is shelf:
                    channel = await self._start(shape, "")
        except SandboxUnavailable:
            return  # the next call meets the same problem, and reports it
        finally:
            shelf.starting -= 1
        if channel and self._shelves.get(shape) is shelf:
            shelf.ready.append(channel)
        elif channel:
            await channel.close()


async def _with_memory_blamed(channel: Channel, result: Result, job: Job) -> Result:
    """Returns the result; a process that the kernel killed for its memory only looks killed from inside."""
    if result.reason is not ExitReason.KILLED or not await channel.ran_out_of_memory():
        return result
    message = f"the tool used more memory than its limit of {job.limits.memory} bytes"
    return died_result(ExitReason.MEMORY, message, of=result)
