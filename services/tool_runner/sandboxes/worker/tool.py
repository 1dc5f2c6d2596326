"""The process that the user's code runs in: how it becomes one, is limited, and ends with all that it started."""

import contextlib
import ctypes
import fcntl
import os
import resource
import signal
import struct
import sys
from collections.abc import Callable, Mapping
from typing import Any

from .files import INPUTS
from .outcome import frame
from .running import run

LIBC = ctypes.CDLL(None)
_PR_SET_DUMPABLE = 4
_ABOVE_ALL = 64  # descriptors from here on are free while those of a new process are put in place
_OPEN_FILES = 1024

# Landlock (linux/landlock.h): the numbers are the same on every machine. Its third version is the first that
# knows of truncating; before the second, it forbids moving files between folders altogether.
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_LANDLOCK_VERSION, _PATH_BENEATH, _NEEDED_VERSION = 1, 1, 3
_WRITE_FILE, _TRUNCATE = 1 << 1, 1 << 14
_CHANGES = _WRITE_FILE | sum(1 << bit for bit in range(4, 15))


def fork_python(job: dict[str, Any], environment: Mapping[str, str], ends: Mapping[int, int]) -> int:
    """Forks: the keeper's copy runs the job, its outcome goes to descriptor 3. `ends`: its descriptors, by number."""

    def body() -> None:
        os.environ.update(environment)
        _find_layer()
        limit(0, job["limits"])
        _limit_memory(job["limits"])
        for stream in (sys.stdout, sys.stderr):
            stream.reconfigure(encoding="utf-8", errors="replace", line_buffering=True)  # type: ignore[union-attr]
        me = os.getpid()
        outcome = run(job)
        if os.getpid() != me:  # a copy that the tool forked came back through here
            os._exit(0)
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
        with open(3, "wb") as pipe:
            pipe.write(frame(outcome))
        os._exit(0)

    return _fork(body, ends, locked=job["inputs"])


def _find_layer() -> None:
    """Puts its packages before those that are installed, not before Python's own."""
    if layer := os.environ.get("PYTHONPATH"):
        installed = (place for place, path in enumerate(sys.path) if path.endswith("packages"))
        sys.path.insert(next(installed, len(sys.path)), layer)


def fork_program(
    argv: list[str], environment: Mapping[str, str], ends: Mapping[int, int], limits: Mapping[str, Any] | None
) -> int:
    """Returns a program; what keeps it from starting is written to its stderr, and it ends with 127."""

    def body() -> None:
        if limits:
            limit(0, limits)
        for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them, and what it starts would, too
            signal.signal(number, signal.SIG_DFL)
        try:
            os.execvpe(argv[0], argv, {**os.environ, **environment})
        except OSError as error:
            os.write(2, f"{argv[0]} cannot be started: {error.strerror}\n".encode())
        os._exit(127)

    return _fork(body, ends, locked=True)


def _fork(body: Callable[[], None], ends: Mapping[int, int], *, locked: bool) -> int:
    child = os.fork()
    if child:
        return child
    try:
        _become(ends, locked=locked)
        body()
    finally:
        os._exit(70)  # nothing of this process may go on as the keeper


def _become(ends: Mapping[int, int], *, locked: bool) -> None:
    """Gives up the keeper's descriptors and its privacy."""
    os.setsid()
    high = {number: fcntl.fcntl(source, fcntl.F_DUPFD, _ABOVE_ALL) for number, source in ends.items()}
    for number, source in high.items():
        os.dup2(source, number)
    for descriptor in map(int, os.listdir("/proc/self/fd")):
        if descriptor not in ends:
            with contextlib.suppress(OSError):
                os.close(descriptor)
    LIBC.prctl(_PR_SET_DUMPABLE, 1, 0, 0, 0)
    # Of the two, the kernel is to choose the tool when memory runs out.
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000")
    if locked:
        _lock_inputs()


def limit(child: int, limits: Mapping[str, Any]) -> None:
    """Limits its files and processes, before it has anything of the user. 0: this process."""
    wanted = [
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, limits["disk"]),
        (resource.RLIMIT_NOFILE, _OPEN_FILES),
    ]
    if limits["processes"]:
        wanted.append((resource.RLIMIT_NPROC, limits["processes"]))
    for what, value in wanted:
        resource.prlimit(child, what, (value, value))


def _limit_memory(limits: Mapping[str, Any]) -> None:
    """Limits memory of this process; Node's reserves far more than it uses, and is watched alone."""
    if limits["memory"]:
        resource.setrlimit(resource.RLIMIT_AS, (limits["memory"], limits["memory"]))


def _lock_inputs() -> None:
    """Lets this process, and what it starts, change nothing in /inputs, whoever owns it; see the package's text."""
    syscall = LIBC.syscall
    syscall.restype = ctypes.c_long
    if syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), _LANDLOCK_VERSION) < _NEEDED_VERSION:
        return
    handled = ctypes.c_uint64(_CHANGES)
    rules = syscall(_CREATE_RULESET, ctypes.byref(handled), ctypes.c_size_t(8), 0)
    if rules < 0:
        return
    for name in os.listdir("/"):
        if f"/{name}" != INPUTS:
            _allow_below(rules, f"/{name}")
    syscall(_RESTRICT_SELF, rules, 0)
    os.close(rules)


def _allow_below(rules: int, place: str) -> None:
    try:
        descriptor = os.open(place, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    allowed = _CHANGES if os.path.isdir(place) else _WRITE_FILE | _TRUNCATE
    LIBC.syscall(_ADD_RULE, rules, _PATH_BENEATH, struct.pack("=Qi", allowed, descriptor), 0)
    os.close(descriptor)


def be_keeper() -> None:
    """Hides this process from the tool's, and adopts every process that loses its parent."""
    LIBC.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    LIBC.prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER: process 1 is one already
    # Process 1 is deaf to every signal it has no handler for; Python gave it one.
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def end_all() -> None:
    """Kills every process of the sandbox but this one, and waits until they are gone."""
    while True:
        if os.getpid() == 1:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(-1, signal.SIGKILL)
        else:  # in a test, outside of a sandbox
            for pid in _descendants():
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def _descendants() -> list[int]:
    parents: dict[int, int] = {}
    for entry in filter(str.isdecimal, os.listdir("/proc")):
        pid = int(entry)
        with contextlib.suppress(OSError), open(f"/proc/{pid}/stat") as file:
            parents[pid] = int(file.read().rpartition(")")[2].split()[1])
    found = [os.getpid()]
    for above in found:
        found += [child for child, parent in parents.items() if parent == above]
    return found[1:]


def resident_bytes() -> int:
    """Returns the memory of every process of the sandbox but the keeper."""
    total = 0
    for pid in os.listdir("/proc"):
        if pid.isdecimal() and int(pid) != os.getpid():
            with contextlib.suppress(OSError), open(f"/proc/{pid}/statm") as file:
                total += int(file.read().split()[1])
    return total * resource.getpagesize()


def memory_kills() -> int:
    """Returns how often the kernel killed a process of the sandbox for its memory, over all its calls.

    The sandbox's own control group knows, where it is shown inside: its v2 file, then its v1 file.
    """
    for name in ("/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control"):
        with contextlib.suppress(OSError), open(name) as file:
            return sum(int(line.split()[1]) for line in file if line.startswith("oom_kill "))
    return 0
