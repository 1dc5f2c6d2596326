"""Our seccomp rules, written once and given out twice: as JSON for container engines, as BPF for bubblewrap.

Default deny: a call that is not in `syscalls.py` fails with ENOSYS, as on a kernel that lacks it, so a new
kernel interface is refused until someone decides otherwise. Left out on purpose, among the calls that
container engines may allow: io_uring_*, ptrace, process_vm_*, bpf, perf_event_open, userfaultfd, keyctl and
its family, unshare, setns, mount and its family, System V IPC, POSIX message queues, memfd_create (memory
that no size limit of a file system counts), vmsplice, splice, tee, and every change of identity.

Conditional: `clone` may not ask for a new namespace; `clone3`, whose flags a filter cannot read, fails, and
libc falls back to `clone`; `socket` knows Unix and IP sockets only (no netlink, packet, alg, vsock);
`personality` may only be read or reset.
"""

import errno
import struct
from typing import Any

from services.tool_runner.sandboxes.syscalls import ALLOWED, CONDITIONAL, Numbers

# A machine as `uname -m` says it: column in the tables, AUDIT_ARCH_* value, name in container profiles.
MACHINES = {
    "x86_64": (0, 0xC000003E, "SCMP_ARCH_X86_64"),
    "aarch64": (1, 0xC00000B7, "SCMP_ARCH_AARCH64"),
}
# CLONE_NEWNS, CGROUP, UTS, IPC, USER, PID and NET, as sched.h has them.
_NEW_NAMESPACES = 0x7E020000
_SOCKET_FAMILIES = (1, 2, 10)  # AF_UNIX, AF_INET, AF_INET6
_PERSONALITIES = (0, 0xFFFFFFFF)  # PER_LINUX, query

_LD_ABS, _JEQ, _JSET, _RET = 0x20, 0x15, 0x45, 0x06
_ALLOW, _KILL, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000


class UnsupportedMachine(ValueError):
    """There is no table for this processor; the text names those that have one."""


def container_profile(machine: str) -> dict[str, Any]:
    """Returns the profile in the OCI form that Docker's `--security-opt seccomp=` takes."""
    _, _, architecture = _machine(machine)
    return {
        "defaultAction": "SCMP_ACT_ERRNO",
        "defaultErrnoRet": errno.ENOSYS,
        "architectures": [architecture],
        "syscalls": [
            {"names": sorted(ALLOWED), "action": "SCMP_ACT_ALLOW"},
            _allow("clone", {"value": _NEW_NAMESPACES, "valueTwo": 0, "op": "SCMP_CMP_MASKED_EQ"}),
            *(_allow("socket", {"value": family, "op": "SCMP_CMP_EQ"}) for family in _SOCKET_FAMILIES),
            *(_allow("personality", {"value": value, "op": "SCMP_CMP_EQ"}) for value in _PERSONALITIES),
            # Said aloud: engines older than 23 answer EPERM by default, and libc does not fall back then.
            {"names": ["clone3"], "action": "SCMP_ACT_ERRNO", "errnoRet": errno.ENOSYS},
        ],
    }


def _allow(name: str, argument: dict[str, Any]) -> dict[str, Any]:
    return {"names": [name], "action": "SCMP_ACT_ALLOW", "args": [{"index": 0, **argument}]}


def bpf_filter(machine: str) -> bytes:
    """Returns the same rules as a classic BPF program (`struct sock_filter[]`) over `struct seccomp_data`."""
    column, audit, _ = _machine(machine)
    refuse = _statement(_RET, _ERRNO | errno.ENOSYS)
    allow = _statement(_RET, _ALLOW)
    program = [
        _statement(_LD_ABS, 4),  # seccomp_data.arch
        _jump(_JEQ, audit, 1, 0),
        _statement(_RET, _KILL),
        _statement(_LD_ABS, 0),  # seccomp_data.nr; x32 calls carry a high bit and so match nothing below
    ]
    for number in _numbers(ALLOWED, column):
        program += [_jump(_JEQ, number, 0, 1), allow]
    rules = {
        "clone": [_jump(_JSET, _NEW_NAMESPACES, 1, 0), allow],
        "socket": [line for family in _SOCKET_FAMILIES for line in (_jump(_JEQ, family, 0, 1), allow)],
        "personality": [line for value in _PERSONALITIES for line in (_jump(_JEQ, value, 0, 1), allow)],
    }
    for name, rule in rules.items():
        conditional = CONDITIONAL[name][column]
        if conditional is not None:
            # Over: the low half of the first argument, the rule, and the refusal.
            program += [_jump(_JEQ, conditional, 0, len(rule) + 2), _statement(_LD_ABS, 16), *rule, refuse]
    program.append(refuse)
    return b"".join(program)


def _numbers(table: Numbers, column: int) -> list[int]:
    numbers = (row[column] for row in table.values())
    return sorted(number for number in numbers if number is not None)


def _statement(code: int, value: int) -> bytes:
    return struct.pack("=HBBI", code, 0, 0, value)


def _jump(code: int, value: int, if_true: int, if_false: int) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)


def _machine(machine: str) -> tuple[int, int, str]:
    if machine not in MACHINES:
        raise UnsupportedMachine(f"no seccomp rules for processor {machine!r}; there are for {', '.join(MACHINES)}")
    return MACHINES[machine]
