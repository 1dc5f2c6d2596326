"""Tools in bubblewrap, for machines without a container engine.

What it promises, as the Docker sandbox does: no network, no file of the host but Python's own (read-only), no
other process in sight, no capability, no new privileges, our seccomp rules, an unprivileged user, a work
directory in memory with a quota, one call per sandbox, and nothing left afterwards.
What differs: the tool shares the host's kernel and Python; where no control group can be made (not root),
memory is counted by the worker every 50 ms and by RLIMIT_AS per process, and CPU is not limited.
"""

import asyncio
import json
import os
import platform
import shutil
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from services.common.processes import Child
from services.tool_runner.job import ExitReason, Job, Limits, Result, SandboxUnavailable
from services.tool_runner.sandboxes.bubblewrap_command import FIRST_UID, SANDBOXES, command
from services.tool_runner.sandboxes.cgroups import Cgroup, Cgroups, find_cgroups
from services.tool_runner.sandboxes.exchange import AnswerReader, BadWorker, died
from services.tool_runner.sandboxes.python_runtime import PythonRuntime, find_runtimes
from services.tool_runner.sandboxes.seccomp import UnsupportedMachine, bpf_filter

_WORKER = Path(__file__).with_name("worker.py")
_START_SECONDS = 10.0
_GRACE_SECONDS = 3.0  # on top of the tool's own time, for the worker to notice and answer
_CHUNK = 1 << 16
_INSTALL = (
    "install bubblewrap (Debian, Ubuntu: apt-get install bubblewrap) or a container engine (then: make sandbox-image)"
)


@dataclass(frozen=True)
class _Place:
    """What every sandbox of this host has in common."""

    bwrap: str
    runtime: PythonRuntime
    seccomp: bytes
    cgroups: Cgroups | None


class BubblewrapSandbox:
    """Each call is one `bwrap` process with one worker in it."""

    name = "bubblewrap"
    image = ""

    def __init__(self, place: _Place) -> None:
        self._place = place
        self._program = _WORKER.read_bytes()
        self._free_uids = list(range(FIRST_UID, FIRST_UID + SANDBOXES))

    @classmethod
    async def create(cls) -> "BubblewrapSandbox":
        """Find what is needed and prove it with one empty call; raises SandboxUnavailable."""
        bwrap = shutil.which("bwrap")
        if sys.platform != "linux" or bwrap is None:
            raise SandboxUnavailable(f"no bubblewrap: {_INSTALL}")
        try:
            seccomp = bpf_filter(platform.machine())
        except UnsupportedMachine as error:
            raise SandboxUnavailable(str(error)) from error
        cgroups = find_cgroups()
        if cgroups:
            cgroups.reap()
        problem = "no Python 3.11 or newer was found"
        for runtime in await find_runtimes():
            sandbox = cls(_Place(bwrap, runtime, seccomp, cgroups))
            try:
                await sandbox.run(Job("def probe():\n    return 1", "probe", {}, limits=Limits(seconds=5.0)))
            except SandboxUnavailable as error:
                problem = str(error)
                continue
            return sandbox
        raise SandboxUnavailable(f"bubblewrap is installed but does not work here: {problem}")

    async def run(self, job: Job) -> Result:
        """See `ports.Sandbox`."""
        if not self._free_uids:
            raise SandboxUnavailable(f"{SANDBOXES} sandboxes are at work; try again")
        cgroup = self._new_cgroup(job.limits)
        uid = self._free_uids.pop()
        try:
            async with self._started(job.limits, uid) as worker:
                await worker.greet(cgroup)
                return _blame_memory(await worker.serve(job, counted=cgroup is not None), cgroup, job.limits)
        finally:
            if cgroup:
                await asyncio.to_thread(cgroup.remove)
            self._free_uids.append(uid)

    async def close(self) -> None:
        """Nothing is kept warm."""

    def _new_cgroup(self, limits: Limits) -> Cgroup | None:
        try:
            return self._place.cgroups.create(limits) if self._place.cgroups else None
        except OSError as error:
            raise SandboxUnavailable(f"no control group could be made: {error}") from error

    @asynccontextmanager
    async def _started(self, limits: Limits, uid: int) -> AsyncIterator["_Worker"]:
        """bwrap with a worker in it, about to say hello; gone afterwards."""
        seccomp, program = _pipe_with(self._place.seccomp), _pipe_with(self._program)
        (info, info_write), (errors, errors_write) = os.pipe(), os.pipe()
        theirs = {"seccomp": seccomp, "worker": program, "info": info_write}
        with os.fdopen(info, "rb") as info_file, os.fdopen(errors, "rb") as errors_file:
            try:
                argv = command(self._place.bwrap, self._place.runtime, limits, uid, **theirs)
                child = await Child.start(
                    *argv, environment={}, descriptors=tuple(theirs.values()), errors=errors_write
                )
            except OSError as error:
                raise SandboxUnavailable(f"bubblewrap could not be started: {error}") from error
            finally:
                for descriptor in (*theirs.values(), errors_write):
                    os.close(descriptor)
            try:
                yield _Worker(child, info_file, errors_file)
            finally:
                await child.end()


class _Worker:
    """A worker in bubblewrap. What bwrap says of it comes on `info`, what it complains of on `errors`."""

    def __init__(self, child: Child, info: BinaryIO, errors: BinaryIO) -> None:
        self._child = child
        self._info = info
        self._errors = errors
        self._reader = AnswerReader()

    async def greet(self, cgroup: Cgroup | None) -> None:
        """Wait for its hello, and put it into its control group; raises SandboxUnavailable."""
        try:
            async with asyncio.timeout(_START_SECONDS):
                await self._read_until(lambda: self._reader.ready)
            if cgroup:
                # Written before the worker was started, so it does not block.
                cgroup.add(json.loads(os.read(self._info.fileno(), _CHUNK))["child-pid"])
        except TimeoutError:
            raise SandboxUnavailable(f"no worker within {_START_SECONDS:g} s") from None
        except (BadWorker, EOFError, ValueError, OSError) as error:
            status = await self._child.end()
            said = self._errors.read(_CHUNK).decode("utf-8", "replace").strip()
            problem = said or str(error) or f"bwrap ended at once, with exit status {status}"
            raise SandboxUnavailable(problem) from error

    async def serve(self, job: Job, *, counted: bool) -> Result:
        """Its one call; `counted`: memory and processes have their limits outside."""
        memory = 0 if counted else job.limits.memory
        try:
            async with asyncio.timeout(job.limits.seconds + _GRACE_SECONDS):
                await self._child.send(self._reader.expect(job, memory=memory, processes=job.limits.processes))
                await self._read_until(lambda: self._reader.result is not None)
        except TimeoutError:
            return died(ExitReason.TIMEOUT, f"no result after {job.limits.seconds:g} s")
        except BadWorker as error:
            return died(ExitReason.KILLED, str(error))
        except (EOFError, OSError):
            return died(ExitReason.KILLED, "the sandbox ended without an answer")
        assert self._reader.result
        return self._reader.result

    async def _read_until(self, done: Callable[[], bool]) -> None:
        """Take what the worker writes; raises EOFError where it ends first."""
        while not done():
            chunk = await self._child.reader.read(_CHUNK)
            if not chunk:
                raise EOFError
            self._reader.feed(chunk)


def _blame_memory(result: Result, cgroup: Cgroup | None, limits: Limits) -> Result:
    """A process that the kernel killed for its memory only looks killed from inside."""
    if result.reason is not ExitReason.KILLED or not cgroup or not cgroup.ran_out_of_memory():
        return result
    message = f"the tool used more memory than its limit of {limits.memory} bytes"
    return died(ExitReason.MEMORY, message, of=result)


def _pipe_with(data: bytes) -> int:
    """The read end of a pipe that holds `data`, which must fit a pipe (64 KiB)."""
    read, write = os.pipe()
    with open(write, "wb") as pipe:
        pipe.write(data)
    return read
