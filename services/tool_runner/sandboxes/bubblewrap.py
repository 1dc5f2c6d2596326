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

from services.tool_runner.job import ExitReason, Job, Limits, Result, SandboxUnavailable
from services.tool_runner.processes import end_process
from services.tool_runner.sandboxes.cgroups import Cgroup, Cgroups, find_cgroups
from services.tool_runner.sandboxes.exchange import AnswerReader, BadWorker, died
from services.tool_runner.sandboxes.python_runtime import PythonRuntime, find_runtimes
from services.tool_runner.sandboxes.seccomp import UnsupportedMachine, bpf_filter

_WORKER = Path(__file__).with_name("worker.py")
_START_SECONDS = 10.0
_GRACE_SECONDS = 3.0  # on top of the tool's own time, for the worker to notice and answer
_CHUNK = 1 << 16
# Where the runner is root, tools are not: one user per sandbox at work, from a range that systemd's
# allocation table (UIDS-GIDS.md) leaves free.
_FIRST_UID, _SANDBOXES = 60_720, 256
_INSIDE_UID = "65534"
_ENVIRONMENT = {
    "PATH": "/usr/bin:/bin",
    "HOME": "/work",
    "TMPDIR": "/tmp",
    "LANG": "C.UTF-8",
    "USER": "nobody",
}
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
        self._worker = _WORKER.read_bytes()
        self._free_uids = list(range(_FIRST_UID, _FIRST_UID + _SANDBOXES))

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
        async with self._started(job.limits) as (process, cgroup):
            return await self._serve(process, cgroup, job)

    async def close(self) -> None:
        """Nothing is kept warm."""

    async def _serve(self, process: asyncio.subprocess.Process, cgroup: Cgroup | None, job: Job) -> Result:
        reader = AnswerReader()
        try:
            async with asyncio.timeout(_START_SECONDS):
                await _read_until(process, reader, lambda: reader.ready)
        except (TimeoutError, BadWorker, EOFError) as error:
            raise SandboxUnavailable(await _start_problem(process, error)) from error
        counted = cgroup is not None
        memory, processes = (0 if counted else job.limits.memory), job.limits.processes
        try:
            async with asyncio.timeout(job.limits.seconds + _GRACE_SECONDS):
                assert process.stdin
                process.stdin.write(reader.expect(job, memory=memory, processes=processes))
                await process.stdin.drain()
                await _read_until(process, reader, lambda: reader.result is not None)
        except TimeoutError:
            result = died(ExitReason.TIMEOUT, f"no result after {job.limits.seconds:g} s")
        except BadWorker as error:
            result = died(ExitReason.KILLED, str(error))
        except (EOFError, ConnectionError):
            result = died(ExitReason.KILLED, "the sandbox ended without an answer")
        else:
            assert reader.result
            result = reader.result
        return _blame_memory(result, cgroup, job.limits)

    @asynccontextmanager
    async def _started(self, limits: Limits) -> AsyncIterator[tuple[asyncio.subprocess.Process, Cgroup | None]]:
        """A worker about to say hello, in its own control group; nothing of it is left afterwards."""
        if not self._free_uids:
            raise SandboxUnavailable(f"{_SANDBOXES} sandboxes are at work; try again")
        uid = self._free_uids.pop()
        cgroup: Cgroup | None = None
        process: asyncio.subprocess.Process | None = None
        try:
            if self._place.cgroups:
                cgroup = self._place.cgroups.create(limits)
            process, sandboxed = await self._spawn(limits, uid)
            if cgroup and sandboxed:
                cgroup.add(sandboxed)
            yield process, cgroup
        except OSError as error:
            raise SandboxUnavailable(f"bubblewrap could not be started: {error}") from error
        finally:
            if process:
                await end_process(process)
            if cgroup:
                await asyncio.to_thread(cgroup.remove)
            self._free_uids.append(uid)

    async def _spawn(self, limits: Limits, uid: int) -> tuple[asyncio.subprocess.Process, int]:
        """Start bwrap; gives it and the pid of the worker in it, 0 where bwrap failed."""
        seccomp, worker = _pipe_with(self._place.seccomp), _pipe_with(self._worker)
        info, info_write = os.pipe()
        try:
            process = await asyncio.create_subprocess_exec(
                *self._command(limits, uid, seccomp, worker, info_write),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                pass_fds=(seccomp, worker, info_write),
                env={},
            )
        except BaseException:
            os.close(info)
            raise
        finally:
            for descriptor in (seccomp, worker, info_write):
                os.close(descriptor)
        text = await asyncio.to_thread(_read_all, info)
        return process, json.loads(text)["child-pid"] if text else 0

    def _command(self, limits: Limits, uid: int, seccomp: int, worker: int, info: int) -> list[str]:
        runtime, size = self._place.runtime, str(limits.disk)
        command = [
            *_drop_root(uid),
            self._place.bwrap,
            "--unshare-all",
            "--unshare-user",
            "--die-with-parent",
        ]
        command += [
            "--new-session",
            "--as-pid-1",
            "--cap-drop",
            "ALL",
            "--uid",
            _INSIDE_UID,
            "--gid",
            _INSIDE_UID,
        ]
        command += ["--hostname", "sandbox", "--clearenv"]
        for name, value in _ENVIRONMENT.items():
            command += ["--setenv", name, value]
        for path in runtime.mounts:
            command += ["--ro-bind", path, path]
        for target, path in runtime.links:
            command += ["--symlink", target, path]
        command += ["--proc", "/proc", "--dev", "/dev", "--ro-bind-data", str(worker), "/loci/worker.py"]
        for folder in ("/work", "/tmp", "/dev/shm"):
            command += ["--size", size, "--tmpfs", folder]
        command += ["--remount-ro", "/dev", "--remount-ro", "/", "--chdir", "/work"]
        command += ["--info-fd", str(info), "--seccomp", str(seccomp)]
        return [*command, runtime.executable, "-I", "/loci/worker.py"]


def _drop_root(uid: int) -> list[str]:
    """Become `uid` first where this process is root: to /proc/sys, host root is root in any namespace."""
    if os.geteuid() != 0:
        return []
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        raise SandboxUnavailable("the program setpriv (package util-linux) is needed to run tools without root")
    return [setpriv, f"--reuid={uid}", f"--regid={uid}", "--clear-groups", "--inh-caps=-all", "--"]


async def _read_until(process: asyncio.subprocess.Process, reader: AnswerReader, done: Callable[[], bool]) -> None:
    """Feed what the worker writes to `reader`; raises EOFError where it ends first."""
    assert process.stdout
    while not done():
        chunk = await process.stdout.read(_CHUNK)
        if not chunk:
            raise EOFError
        reader.feed(chunk)


async def _start_problem(process: asyncio.subprocess.Process, error: Exception) -> str:
    """Why the worker never said hello, in bwrap's words where it left some."""
    await end_process(process)
    assert process.stderr
    said = (await process.stderr.read(2000)).decode("utf-8", "replace").strip()
    return said or str(error) or f"no worker within {_START_SECONDS:g} s"


def _blame_memory(result: Result, cgroup: Cgroup | None, limits: Limits) -> Result:
    """A process that the kernel killed for its memory only looks killed from inside."""
    if result.reason is not ExitReason.KILLED or not cgroup or not cgroup.ran_out_of_memory():
        return result
    message = f"the tool used more memory than its limit of {limits.memory} bytes"
    return died(ExitReason.MEMORY, message, of=result)


def _read_all(descriptor: int) -> bytes:
    with open(descriptor, "rb") as pipe:
        return pipe.read()


def _pipe_with(data: bytes) -> int:
    """The read end of a pipe that holds `data`, which must fit a pipe (64 KiB)."""
    read, write = os.pipe()
    with open(write, "wb") as pipe:
        pipe.write(data)
    return read
