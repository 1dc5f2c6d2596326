"""Walls that a process builds around itself, by Linux alone. Standard library alone, too.

`hide_process` is for services: what they hold (keys, the database's password) is not shown to other processes of the
same user. `enter_cage` is for children that read hostile data: from then on they read libraries and nothing else,
write nothing, and reach no network. Sources: prctl(2), unshare(2), seccomp(2), the kernel's page on Landlock.
"""

import contextlib
import ctypes
import errno
import os
import platform
import sys
from pathlib import Path

_PR_SET_DUMPABLE, _PR_SET_NO_NEW_PRIVS = 4, 38
_CLONE_NEWUSER, _CLONE_NEWNET = 0x10000000, 0x40000000
# System calls of Landlock have these numbers on every architecture.
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION_FLAG, _PATH_BENEATH = 1, 1
_EXECUTE, _READ_FILE, _READ_FOLDER = 1 << 0, 1 << 2, 1 << 3
# By the kernel's version of Landlock, how many rights there are over files (ABI 1: 13, 2: 14, 3 and 4: 15, 5: 16).
_FILE_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15}
_MOST_FILE_RIGHTS = 16
_BIND_AND_CONNECT = 0b11
# Abstract sockets, and signals to others.
_SCOPES = 0b11
_ROOT = Path(__file__).resolve().parents[2]
# Where Python and the libraries of its modules are; nothing of Loci's data is below.
_LIBRARIES = ("/usr/lib", "/usr/lib64", "/usr/local/lib", "/lib", "/lib64", "/usr/share", "/etc/ld.so.cache")
# What Python and the C library look up there: types of files, and the time zone.
_TABLES = ("/etc/mime.types", "/etc/localtime")
_DEVICES = ("/dev/null", "/dev/urandom", "/dev/random", "/dev/zero")


# Of seccomp: what a parser never calls. socket, connect, execve, execveat, ptrace, process_vm_readv, process_vm_writev,
# io_uring_setup; by the machine, with the number that the kernel has for it (AUDIT_ARCH).
_PR_SET_SECCOMP, _MODE_FILTER = 22, 2
_CLOSED_CALLS = {
    "x86_64": (0xC000003E, (41, 42, 59, 322, 101, 310, 311, 425)),
    "aarch64": (0xC00000B7, (198, 203, 221, 281, 117, 270, 271, 425)),
}
# Calls of another form of x86-64, which could be the same under other numbers.
_OTHER_FORM = 0x40000000
_LOAD, _IS, _IS_AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_REFUSE, _ALLOW = 0x00050000 | errno.EPERM, 0x7FFF0000


class _Instruction(ctypes.Structure):
    _fields_ = (
        ("code", ctypes.c_ushort),
        ("then", ctypes.c_ubyte),
        ("otherwise", ctypes.c_ubyte),
        ("k", ctypes.c_uint),
    )


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.POINTER(_Instruction)))


class _Ruleset(ctypes.Structure):
    _fields_ = (("files", ctypes.c_uint64), ("network", ctypes.c_uint64), ("scopes", ctypes.c_uint64))


class _PathRule(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("rights", ctypes.c_uint64), ("folder", ctypes.c_int32))


def hide_process() -> None:
    """Closes this process's memory and environment to others of its user, in /proc and for debuggers; no core."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def enter_cage() -> None:
    """Keeps this process from files, network and other processes for good, as far as the kernel can."""
    if sys.platform != "linux":
        return
    libc = ctypes.CDLL(None, use_errno=True)
    hide_process()
    libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    # A network of its own, in which there is nothing. Refused in most containers; Landlock closes TCP there.
    libc.unshare(_CLONE_NEWUSER | _CLONE_NEWNET)
    if (version := landlock_version()) >= 1:
        _restrict(libc, version)
    _close_calls(libc)


def landlock_version() -> int:
    """Returns the version of Landlock that the kernel has; less than 1: none."""
    return int(ctypes.CDLL(None).syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), _VERSION_FLAG))


def _restrict(libc: ctypes.CDLL, version: int) -> None:
    rules = _Ruleset(
        files=(1 << _FILE_RIGHTS.get(version, _MOST_FILE_RIGHTS)) - 1,
        network=_BIND_AND_CONNECT if version >= 4 else 0,
        scopes=_SCOPES if version >= 6 else 0,
    )
    # Members that are zero may be there for kernels that do not know them.
    ruleset = libc.syscall(_CREATE_RULESET, ctypes.byref(rules), ctypes.c_size_t(ctypes.sizeof(rules)), 0)
    if ruleset < 0:
        raise OSError(ctypes.get_errno(), "Landlock takes no rules")
    for path in _readable():
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            _allow(libc, ruleset, path)
    if libc.syscall(_RESTRICT_SELF, ruleset, 0) < 0:
        raise OSError(ctypes.get_errno(), "Landlock does not restrict this process")
    os.close(ruleset)


def _readable() -> set[str]:
    ours = (str(_ROOT / name) for name in ("services", "gen"))
    python = (str(Path(each).resolve()) for each in sys.path if each and Path(each).resolve() != _ROOT)
    return {*ours, *python, *_LIBRARIES, *_TABLES, *_DEVICES}


def _allow(libc: ctypes.CDLL, ruleset: int, path: str) -> None:
    folder = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        rights = _EXECUTE | _READ_FILE | (_READ_FOLDER if os.path.isdir(path) else 0)
        rule = _PathRule(rights, folder)
        if libc.syscall(_ADD_RULE, ruleset, _PATH_BENEATH, ctypes.byref(rule), 0) < 0:
            raise OSError(ctypes.get_errno(), f"Landlock takes no rule about {path}")
    finally:
        os.close(folder)


def _close_calls(libc: ctypes.CDLL) -> None:
    """Sockets by a path in the file system are closed to nobody by the others."""
    known = _CLOSED_CALLS.get(platform.machine())
    if known is None:
        return
    machine, calls = known
    # Jumps count from the next instruction; the refusal is the last one.
    length = len(calls) + 6
    steps = [
        (_LOAD, 0, 0, 4),
        (_IS, 0, length - 3, machine),
        (_LOAD, 0, 0, 0),
        (_IS_AT_LEAST, length - 5, 0, _OTHER_FORM),
        *((_IS, length - 2 - place, 0, call) for place, call in enumerate(calls, start=4)),
        (_RETURN, 0, 0, _ALLOW),
        (_RETURN, 0, 0, _REFUSE),
    ]
    instructions = (_Instruction * length)(*(_Instruction(*step) for step in steps))
    program = _Program(length, instructions)
    libc.prctl(_PR_SET_SECCOMP, _MODE_FILTER, ctypes.byref(program), 0, 0)
