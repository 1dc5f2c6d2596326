"""Workers in bubblewrap, for machines without a container engine.

What it promises, as the Docker sandbox does: no network, no file of the host but Python's and Node's own and public
certificates (read-only), no other process in sight, no capability, no new privileges, our seccomp rules, an
unprivileged user, work directories in memory with a quota, and nothing left afterwards.
What differs: the tool shares the host's kernel, Python and Node; where no control group can be made (not root),
memory is counted by the worker every 50 ms and by RLIMIT_AS per process, and CPU is not limited.
"""

import asyncio
import os
import platform
import random
import shutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from services.common.processes import Child
from services.tool_runner.core.job import Job, Language, Layer, Limits, SandboxUnavailable
from services.tool_runner.layers.cache import unpack_layer
from services.tool_runner.sandboxes.bubblewrap.cgroups import Cgroup, Cgroups, find_cgroups
from services.tool_runner.sandboxes.bubblewrap.node_runtime import NodeRuntime, find_node
from services.tool_runner.sandboxes.bubblewrap.orphans import end_orphans, mark_of_this_process
from services.tool_runner.sandboxes.bubblewrap.packages import Packages, find_packages
from services.tool_runner.sandboxes.bubblewrap.python_runtime import PythonRuntime, compile_files, find_runtimes
from services.tool_runner.sandboxes.bubblewrap.spec import FIRST_UID, SANDBOXES, command, home_uid
from services.tool_runner.sandboxes.bubblewrap.worker import BubblewrapWorker, StartedBwrap
from services.tool_runner.sandboxes.pool import PooledSandbox
from services.tool_runner.sandboxes.ports import Shape
from services.tool_runner.sandboxes.seccomp import UnsupportedMachine, bpf_filter
from services.tool_runner.sandboxes.worker_files import worker_files

_INSTALL = (
    "install bubblewrap (Debian, Ubuntu: apt-get install bubblewrap) or a container engine (then: make sandbox-image)"
)


@dataclass(frozen=True)
class _Place:
    """The common parts of every sandbox of this host. `files`: the worker, by path below /opt/loci."""

    bwrap: str
    python: PythonRuntime
    files: Mapping[str, bytes]
    seccomp: bytes
    cgroups: Cgroups | None


async def create(warm: int = 1) -> PooledSandbox:
    """Returns the sandbox, proven with one empty call; raises SandboxUnavailable."""
    bwrap = shutil.which("bwrap")
    if sys.platform != "linux" or bwrap is None:
        raise SandboxUnavailable(f"no bubblewrap: {_INSTALL}")
    try:
        seccomp = bpf_filter(platform.machine())
    except UnsupportedMachine as error:
        raise SandboxUnavailable(str(error)) from error
    cgroups = find_cgroups()
    await asyncio.to_thread(end_orphans)
    if cgroups:
        cgroups.reap()
    problem = "no Python 3.11 or newer was found"
    for python in await find_runtimes():
        files = await compile_files(python, worker_files())
        source = BubblewrapSource(_Place(bwrap, python, files, seccomp, cgroups))
        probe = PooledSandbox(source, warm=0)
        try:
            await probe.run(Job("def probe():\n    return 1", "probe", {}, limits=Limits(seconds=5.0)))
        except SandboxUnavailable as error:
            problem = str(error)
        else:
            return PooledSandbox(source, warm)
        finally:
            await probe.close()
    raise SandboxUnavailable(f"bubblewrap is installed but does not work here: {problem}")


class BubblewrapSource:
    """Each worker is one `bwrap` process."""

    name = "bubblewrap"
    image = ""

    def __init__(self, place: _Place) -> None:
        self._place = place
        # In no order: the kernel counts processes by user, and another runner of this machine begins somewhere else.
        self._free_uids = random.sample(range(FIRST_UID, FIRST_UID + SANDBOXES), SANDBOXES)
        self._node: NodeRuntime | None = None
        self._packages: Packages | None = None
        self._finding = asyncio.Lock()

    async def start(self, shape: Shape, tenant: str) -> BubblewrapWorker:
        """See `ports.WorkerSource`. Nothing is of a tenant."""
        if shape.language is Language.NODE:
            async with self._finding:
                self._node = self._node or await find_node()
        elif self._packages is None:
            async with self._finding:
                self._packages = self._packages or await self._find_packages()
        layer = await _unpack(shape.layer) if shape.layer else None
        uid, free = await self._user(shape)
        cgroup: Cgroup | None = None
        try:
            cgroup = self._new_cgroup(shape)
            started = await self._run_bwrap(shape, uid, layer)
            worker = BubblewrapWorker(started, cgroup, free)
        except BaseException:
            if cgroup:
                cgroup.remove()
            free()
            raise
        try:
            await worker.begin()
        except BaseException:
            await worker.close()
            raise
        return worker

    async def _user(self, shape: Shape) -> tuple[int, Callable[[], None]]:
        """Returns the user of a worker, where this process is root, and what frees it."""
        if home := shape.host.home:
            try:
                await asyncio.to_thread(give_home, home, home_uid(home))
            except OSError as error:
                raise SandboxUnavailable(f"the program's folder {home} cannot be used: {error}") from error
            return home_uid(home), lambda: None
        if not self._free_uids:
            raise SandboxUnavailable(f"{SANDBOXES} sandboxes are at work; try again")
        uid = self._free_uids.pop()
        return uid, lambda: self._free_uids.append(uid)

    async def close(self) -> None:
        """Workers end each for itself."""
        node, self._node = self._node, None
        if node:
            await asyncio.to_thread(node.discard)
        packages, self._packages = self._packages, None
        if packages:
            await asyncio.to_thread(packages.discard)

    async def _find_packages(self) -> Packages:
        is_same = self._place.python.version == sys.version_info[:2]
        return await asyncio.to_thread(find_packages) if is_same else Packages()

    def _new_cgroup(self, shape: Shape) -> Cgroup | None:
        try:
            return self._place.cgroups.create(shape) if self._place.cgroups else None
        except OSError as error:
            raise SandboxUnavailable(f"no control group could be made: {error}") from error

    async def _run_bwrap(self, shape: Shape, uid: int, layer: Path | None) -> StartedBwrap:
        """Starts bwrap, which waits with the start of the worker until it may go on."""
        place = self._place
        files = {path: _pipe_with(content) for path, content in place.files.items()}
        etc = {name: _pipe_with(content) for name, content in _etc(shape).items()}
        seccomp = _pipe_with(place.seccomp)
        (info, info_write), (errors, errors_write), (block, unblock) = os.pipe(), os.pipe(), os.pipe()
        theirs = (*files.values(), *etc.values(), seccomp, info_write, block)
        try:
            argv = command(
                place.bwrap,
                shape,
                uid,
                python=place.python,
                packages=self._packages or Packages(),
                node=self._node if shape.language is Language.NODE else None,
                layer=layer,
                files=files,
                etc=etc,
                seccomp=seccomp,
                info=info_write,
                block=block,
                mark=mark_of_this_process(),
            )
            child = await Child.start(*argv, environment={}, descriptors=theirs, errors=errors_write)
        except BaseException as error:
            for descriptor in (info, errors, unblock):
                os.close(descriptor)
            if isinstance(error, OSError):
                raise SandboxUnavailable(f"bubblewrap could not be started: {error}") from error
            raise
        finally:
            for descriptor in (*theirs, errors_write):
                os.close(descriptor)
        return StartedBwrap(child, info, errors, unblock)


def give_home(home: str, uid: int) -> None:
    """Makes a home that user's, where this process is root; it has been, but for the first time."""
    if os.geteuid() != 0 or os.stat(home).st_uid == uid:
        return
    for _, folders, files, here in os.fwalk(home):
        for name in (*folders, *files):
            os.chown(name, uid, uid, dir_fd=here, follow_symlinks=False)
    os.chown(home, uid, uid)  # last: it says that all of it is done


def _etc(shape: Shape) -> dict[str, bytes]:
    """Returns the files by which programs find the hosts that their sandbox answers for."""
    if not shape.host.names:
        return {}
    lines = ("127.0.0.1 localhost", *(f"{address} {name}" for name, address in shape.host.names))
    return {"hosts": "".join(f"{line}\n" for line in lines).encode(), "nsswitch.conf": b"hosts: files\n"}


async def _unpack(layer: Layer) -> Path:
    try:
        return await asyncio.to_thread(unpack_layer, layer)
    except OSError as error:
        raise SandboxUnavailable(f"the tool's packages could not be unpacked: {error}") from error


def _pipe_with(data: bytes) -> int:
    """Returns the read end of a pipe that holds `data`, which must fit a pipe (64 KiB)."""
    read, write = os.pipe()
    with open(write, "wb") as pipe:
        pipe.write(data)
    return read
