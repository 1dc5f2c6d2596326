"""The maker of a container, in a form that a later launcher can check: `host/pid namespace/pid/start time`."""

import os
import platform
from pathlib import Path


def own_name() -> str:
    """Returns the name of this process."""
    return f"{_world()}/{os.getpid()}/{_start_time(os.getpid())}"


def is_dead(name: str) -> bool | None:
    """Returns whether that process has ended; None where it lived in another host, boot or pid namespace."""
    world, _, process = name.rpartition("/")
    world, _, pid = world.rpartition("/")
    if world != _world() or not pid.isdecimal():
        return None
    return _start_time(int(pid)) != process


def _world() -> str:
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot}/{os.stat('/proc/self/ns/pid').st_ino}"
    except OSError:  # not Linux
        return f"{platform.node()}/0"


def _start_time(pid: int) -> str:
    """Returns field 22 of /proc/pid/stat; "" for none, and for one that only waits to be buried (zombie).

    The command before it may hold spaces: counted from its end.
    """
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return _signalled(pid)
    return "" if fields[0] in "ZX" else fields[19]


def _signalled(pid: int) -> str:
    """Returns whether a process has this pid, which is all there is to know where there is no /proc."""
    if Path("/proc/self").exists():
        return ""
    try:
        os.kill(pid, 0)
    except OSError:
        return ""
    return "running"
