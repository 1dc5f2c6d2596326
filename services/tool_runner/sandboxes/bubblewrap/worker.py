"""One worker in bubblewrap: counted from its first moment on, and gone with all that is in there."""

import asyncio
import contextlib
import json
import os
import signal
from collections.abc import Callable
from dataclasses import dataclass

from services.common.processes import Child
from services.tool_runner.core.job import SandboxUnavailable
from services.tool_runner.sandboxes.bubblewrap.cgroups import Cgroup

_CHUNK = 1 << 16
_START_SECONDS = 10.0


@dataclass(frozen=True)
class StartedBwrap:
    """A bwrap: `info` tells of its worker, `errors` what it complains of, a byte on `unblock` lets it go on."""

    child: Child
    info: int
    errors: int
    unblock: int


class BubblewrapWorker:
    """See `ports.Worker`."""

    def __init__(self, started: StartedBwrap, cgroup: Cgroup | None, free: Callable[[], None]) -> None:
        self.counted = cgroup is not None
        self._started = started
        self._child = started.child
        self._cgroup = cgroup
        self._free = free
        self._inside: int | None = None  # a descriptor of process 1 in there
        self._closing: asyncio.Task[None] | None = None

    async def begin(self) -> None:
        """Counts it from its first moment on, then let it start; raises SandboxUnavailable."""
        try:
            pid = await self._learn()
            if self._cgroup:
                self._cgroup.add(pid)
            os.write(self._started.unblock, b"1")
        except (TimeoutError, EOFError, ValueError, KeyError, OSError) as error:
            raise SandboxUnavailable(await self.problem() or str(error)) from error

    async def _learn(self) -> int:
        """Returns the pid of process 1 in there."""
        info = b""
        while b"}" not in info:
            info += await _read_ready(self._started.info)
        pid: int = json.loads(info)["child-pid"]
        self._inside = os.pidfd_open(pid)
        return pid

    async def read(self) -> bytes:
        """See `ports.Worker`."""
        return await self._child.reader.read(_CHUNK)

    async def write(self, data: bytes) -> None:
        """See `ports.Worker`."""
        await self._child.send(data)

    async def problem(self) -> str:
        """See `ports.Worker`."""
        await self._kill()
        status = await self._child.wait()
        os.set_blocking(self._started.errors, False)
        problem = ""
        with contextlib.suppress(BlockingIOError):
            problem = os.read(self._started.errors, _CHUNK).decode("utf-8", "replace").strip()
        return problem or f"bwrap ended, with exit status {status}"

    async def ran_out_of_memory(self) -> bool:
        """See `ports.Worker`."""
        return self._cgroup is not None and self._cgroup.ran_out_of_memory()

    async def _kill(self) -> None:
        # Were bwrap killed while it makes the sandbox, process 1 of that would wait for it for ever.
        with contextlib.suppress(TimeoutError, EOFError, ValueError, KeyError, OSError):
            if self._inside is None:
                await self._learn()
            if self._inside is not None:
                signal.pidfd_send_signal(self._inside, signal.SIGKILL)
        await self._child.end()

    async def close(self) -> None:
        """See `ports.Worker`."""
        # A task of its own: whoever waits for it may be cancelled, and what is in there must go all the same.
        self._closing = self._closing or asyncio.create_task(self._close())
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        await self._kill()
        for descriptor in (self._started.info, self._started.errors, self._started.unblock, self._inside):
            if descriptor is not None:
                os.close(descriptor)
        if self._cgroup:
            await asyncio.to_thread(self._cgroup.remove)
        self._free()


async def _read_ready(descriptor: int) -> bytes:
    """Returns what comes there next; raises EOFError, TimeoutError."""
    loop = asyncio.get_running_loop()
    came: asyncio.Future[bytes] = loop.create_future()

    def take() -> None:
        loop.remove_reader(descriptor)
        if not came.done():
            came.set_result(os.read(descriptor, _CHUNK))

    loop.add_reader(descriptor, take)
    try:
        async with asyncio.timeout(_START_SECONDS):
            if data := await came:
                return data
            raise EOFError
    finally:
        loop.remove_reader(descriptor)
