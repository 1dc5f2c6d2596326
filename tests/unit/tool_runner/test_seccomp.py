"""The seccomp rules: what they let through, and that both forms of them agree."""

import struct

import pytest

from services.tool_runner.sandboxes import seccomp
from services.tool_runner.sandboxes.syscalls import ALLOWED, CONDITIONAL

ALLOW, KILL, ENOSYS = 0x7FFF0000, 0x80000000, 0x00050000 | 38
ARCHES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
NEVER = {"io_uring_setup", "ptrace", "bpf", "unshare", "setns", "mount", "keyctl", "memfd_create", "userfaultfd"}


def decide(program: bytes, arch: int, number: int, argument: int = 0) -> int:
    """Decides as the kernel would: a small interpreter of classic BPF."""
    data = struct.pack("=IIQ6Q", number, arch, 0, argument, 0, 0, 0, 0, 0)
    lines = list(struct.iter_unpack("=HBBI", program))
    at = accumulator = 0
    while True:
        code, if_true, if_false, value = lines[at]
        at += 1
        match code:
            case 0x20:
                (accumulator,) = struct.unpack_from("=I", data, value)
            case 0x15:
                at += if_true if accumulator == value else if_false
            case 0x45:
                at += if_true if accumulator & value else if_false
            case 0x06:
                return int(value)


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_the_filter_allows_what_is_listed_and_nothing_else(machine: str) -> None:
    program, arch = seccomp.bpf_filter(machine), ARCHES[machine]
    column = list(ARCHES).index(machine)
    assert len(program) // 8 < 4096  # the kernel's limit
    allowed = {numbers[column] for numbers in ALLOWED.values() if numbers[column] is not None}
    conditional = {numbers[column]: name for name, numbers in CONDITIONAL.items()}
    for number in range(600):
        expected = ALLOW if number in allowed or conditional.get(number) in ("clone", "personality") else ENOSYS
        assert decide(program, arch, number) == expected, number
        assert decide(program, arch, number | 0x40000000) == ENOSYS
    assert decide(program, 0x40000003, 1) == KILL  # i386


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_the_filter_reads_arguments(machine: str) -> None:
    program, arch, column = seccomp.bpf_filter(machine), ARCHES[machine], list(ARCHES).index(machine)
    clone, socket, personality = (CONDITIONAL[name][column] for name in ("clone", "socket", "personality"))
    assert clone is not None
    assert socket is not None
    assert personality is not None
    assert decide(program, arch, clone, 0x01200011) == ALLOW
    for flag in (0x00020000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000):
        assert decide(program, arch, clone, flag | 17) == ENOSYS
    assert [family for family in range(64) if decide(program, arch, socket, family) == ALLOW] == [1, 2, 10]
    assert decide(program, arch, personality, 0xFFFFFFFF) == ALLOW
    assert decide(program, arch, personality, 0x0040000) == ENOSYS  # ADDR_NO_RANDOMIZE


def test_both_forms_of_the_rules_agree() -> None:
    profile = seccomp.container_profile("x86_64")
    assert profile["defaultAction"] == "SCMP_ACT_ERRNO"
    named = {name for rule in profile["syscalls"] if rule["action"] == "SCMP_ACT_ALLOW" for name in rule["names"]}
    assert named == ALLOWED.keys() | CONDITIONAL.keys()
    assert not NEVER & named
    with pytest.raises(seccomp.UnsupportedMachine, match="riscv"):
        seccomp.container_profile("riscv64")
