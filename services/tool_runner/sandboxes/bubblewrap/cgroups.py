"""Control groups for bubblewrap: one per sandbox, so that memory and processes are counted together.

Works on hand-made v1 hierarchies and on v2, where this process may write there (mostly: where it is root).
Without them the worker itself watches memory and the kernel counts processes per user; see `source.py`.
"""

import contextlib
import os
import secrets
import signal
import time
from dataclasses import dataclass
from pathlib import Path

from services.tool_runner.core.job import Limits
from services.tool_runner.sandboxes.ports import Shape

_PREFIX = "loci-sandbox-"
_CONTROLLERS = ("memory", "pids", "cpu")
_CPU_PERIOD = 100_000  # microseconds
_REMOVE_SECONDS = 2.0


@dataclass(frozen=True)
class Cgroup:
    """One group: a folder in v2, a folder per controller in v1."""

    folders: dict[str, Path]

    def add(self, pid: int) -> None:
        """Moves a process in; its children are born in it."""
        for folder in set(self.folders.values()):
            (folder / "cgroup.procs").write_text(str(pid))

    def ran_out_of_memory(self) -> bool:
        """Returns whether the kernel killed a process of the group for its memory."""
        for name in ("memory.events", "memory.oom_control"):
            with contextlib.suppress(OSError):
                lines = (self.folders["memory"] / name).read_text().splitlines()
                return any(line.startswith("oom_kill ") and line != "oom_kill 0" for line in lines)
        return False

    def remove(self) -> None:
        """Kills what is left in the group and removes it."""
        until = time.monotonic() + _REMOVE_SECONDS
        for folder in set(self.folders.values()):
            while not _remove(folder) and time.monotonic() < until:
                _kill_members(folder)
                time.sleep(0.005)


def _remove(folder: Path) -> bool:
    try:
        folder.rmdir()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def _kill_members(folder: Path) -> None:
    with contextlib.suppress(OSError):
        for pid in (folder / "cgroup.procs").read_text().split():
            os.kill(int(pid), signal.SIGKILL)


class Cgroups:
    """Makes groups below `roots` (controller: folder); see `find_cgroups`."""

    def __init__(self, roots: dict[str, Path], *, unified: bool) -> None:
        self._roots = roots
        self._unified = unified

    def create(self, limits: Limits | Shape) -> Cgroup:
        """Returns a group with these limits; raises OSError."""
        name = f"{_PREFIX}{os.getpid()}-{secrets.token_hex(4)}"
        group = Cgroup({controller: root / name for controller, root in self._roots.items()})
        try:
            for folder in set(group.folders.values()):
                folder.mkdir()
            self._limit(group, limits)
        except OSError:
            group.remove()
            raise
        return group

    def reap(self) -> None:
        """Removes the groups that processes now dead left behind."""
        for root in set(self._roots.values()):
            for folder in root.glob(_PREFIX + "*"):
                if not Path("/proc", folder.name.split("-")[2]).exists():
                    Cgroup({"": folder}).remove()

    def _limit(self, group: Cgroup, limits: Limits | Shape) -> None:
        memory, pids, cpu = group.folders["memory"], group.folders["pids"], group.folders.get("cpu")
        quota = str(int(limits.cpus * _CPU_PERIOD))
        (pids / "pids.max").write_text(str(limits.processes))
        if self._unified:
            (memory / "memory.max").write_text(str(limits.memory))
            _write_if_there(memory / "memory.swap.max", "0")
        else:
            (memory / "memory.limit_in_bytes").write_text(str(limits.memory))
            _write_if_there(memory / "memory.memsw.limit_in_bytes", str(limits.memory))
        if cpu and self._unified:
            (cpu / "cpu.max").write_text(f"{quota} {_CPU_PERIOD}")
        elif cpu:
            (cpu / "cpu.cfs_period_us").write_text(str(_CPU_PERIOD))
            (cpu / "cpu.cfs_quota_us").write_text(quota)


def _write_if_there(file: Path, text: str) -> None:
    if file.exists():
        file.write_text(text)


def find_cgroups(mount: Path = Path("/sys/fs/cgroup")) -> Cgroups | None:
    """Groups that this process can make and limit by memory and processes; None where it cannot."""
    unified = (mount / "cgroup.controllers").exists()
    roots = _v2_roots(mount) if unified else {c: mount / c for c in _CONTROLLERS if (mount / c).is_dir()}
    if not {"memory", "pids"} <= roots.keys():
        return None
    cgroups = Cgroups(roots, unified=unified)
    try:
        cgroups.create(Limits()).remove()
    except OSError:
        return None
    return cgroups


def _v2_roots(mount: Path) -> dict[str, Path]:
    """Returns a folder of our own below the root group, with the controllers handed down to it."""
    try:
        have = set((mount / "cgroup.controllers").read_text().split())
        controllers = [controller for controller in _CONTROLLERS if controller in have]
        home = mount / "loci.sandboxes"
        home.mkdir(exist_ok=True)
        for folder in (mount, home):
            (folder / "cgroup.subtree_control").write_text(" ".join(f"+{controller}" for controller in controllers))
    except OSError:
        return {}
    return dict.fromkeys(controllers, home)
