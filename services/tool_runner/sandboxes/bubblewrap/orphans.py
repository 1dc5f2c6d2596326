"""Processes of bwrap whose service is dead: marked in their command line, ended at the next start.

Sandboxes end with their service by themselves, but for one that was just being made.
"""

import contextlib
import functools
import os
import signal
from pathlib import Path

from services.tool_runner.sandboxes.launcher.owner import is_dead, own_name

_PREFIX = "loci-owner:"


@functools.cache
def mark_of_this_process() -> str:
    """Returns a mark for the command line of what this process starts."""
    return _PREFIX + own_name()


def end_orphans() -> None:
    """Kills what carries the mark of a process that is dead."""
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal() and (descriptor := _open_pidfd(int(folder.name))) is not None:
            with contextlib.suppress(OSError):
                if _is_orphan(folder):
                    signal.pidfd_send_signal(descriptor, signal.SIGKILL)
            os.close(descriptor)


def _open_pidfd(pid: int) -> int | None:
    """Returns a descriptor of the process, so that no later one of its number is meant."""
    try:
        return os.pidfd_open(pid)
    except OSError:
        return None


def _is_orphan(folder: Path) -> bool:
    words = (folder / "cmdline").read_bytes().split(b"\0")
    marks = [word.decode("utf-8", "replace") for word in words if word.startswith(_PREFIX.encode())]
    return any(is_dead(mark.removeprefix(_PREFIX)) for mark in marks)
