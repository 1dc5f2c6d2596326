"""Attacks that tool code may try, as data. Each is the body of a tool that returns OWNED where it succeeds.

`given` has, from the test: `secret_file` (a readable file of the host), `port` (something listens there on the host's
loopback), `abstract` (a name that something listens on in the host's abstract socket namespace) and `sockets` (paths of
Unix sockets on the host). System calls are made by number, past what libc would refuse by itself.
"""

import platform
from dataclasses import dataclass, field

from services.tool_runner.core.job import ExitReason

OWNED = "OWNED"

PRELUDE = """
import ctypes, errno, glob, json, os, resource, signal, socket, stat, struct, subprocess, sys, threading, time
LIBC = ctypes.CDLL(None, use_errno=True)
def call(number, *arguments):
    LIBC.syscall.restype = ctypes.c_long
    given = [a if isinstance(a, (bytes, ctypes.Array, ctypes.Structure)) else ctypes.c_long(a) for a in arguments]
    returned = LIBC.syscall(ctypes.c_long(number), *given)
    return ("OWNED " + str(returned)) if returned >= 0 else "refused: " + errno.errorcode.get(ctypes.get_errno(), "?")
def reads(path):
    with open(path, "rb") as file:
        return "OWNED " + repr(file.read(64))
def writes(path, data):
    fd = os.open(path, os.O_WRONLY)
    return "OWNED " + str(os.write(fd, data))
def connects(family, kind, address):
    with socket.socket(family, kind) as mine:
        mine.settimeout(2)
        mine.connect(address)
        return "OWNED"
"""

# name: (x86_64, aarch64)
_NUMBERS = {
    "add_key": (248, 217),
    "bpf": (321, 280),
    "init_module": (175, 105),
    "io_uring_setup": (425, 425),
    "kexec_load": (246, 104),
    "keyctl": (250, 219),
    "memfd_create": (319, 279),
    "mount": (165, 40),
    "move_mount": (429, 429),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "open_tree": (428, 428),
    "perf_event_open": (298, 241),
    "pidfd_getfd": (438, 438),
    "pivot_root": (155, 41),
    "process_vm_readv": (310, 270),
    "ptrace": (101, 117),
    "reboot": (169, 142),
    "setns": (308, 268),
    "swapon": (167, 224),
    "syslog": (103, 116),
    "unshare": (272, 97),
    "userfaultfd": (323, 282),
    "clone3": (435, 435),
    "fsopen": (430, 430),
    "msgget": (68, 186),
    "shmget": (29, 194),
    "setuid": (105, 146),
    "chroot": (161, 51),
    "settimeofday": (164, 170),
    "acct": (163, 89),
    "quotactl": (179, 60),
    "lookup_dcookie": (212, 18),
    "vmsplice": (278, 75),
}


def number(name: str) -> int:
    """Of a system call on this machine."""
    return _NUMBERS[name][0 if platform.machine() == "x86_64" else 1]


@dataclass(frozen=True)
class Attack:
    """`body`: of a function with the parameter `given`. `ends`: how the call may end; `seconds`: its time limit."""

    name: str
    body: str
    ends: tuple[ExitReason, ...] = (ExitReason.OK, ExitReason.RAISED)
    seconds: float = 5
    memory_mib: int = 128
    # Sandboxes that do not claim to stop it, each with the reason (docs/sandboxes.md says it, too).
    unclaimed: dict[str, str] = field(default_factory=dict)

    @property
    def source(self) -> str:
        """The tool."""
        lines = [f"    {line}" for line in self.body.strip().splitlines()]
        return f"{PRELUDE}\ndef tool(given):\n" + "\n".join(lines)


def syscall(name: str, *arguments: str) -> Attack:
    return Attack(f"syscall {name}", f"return call({', '.join([str(number(name)), *arguments])})")


KILLED = (ExitReason.KILLED, ExitReason.RAISED, ExitReason.OK, ExitReason.TIMEOUT, ExitReason.MEMORY)
STOPPED = (*KILLED, ExitReason.OUTPUT_TOO_LARGE, ExitReason.BAD_RESULT)
