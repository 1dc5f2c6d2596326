"""System calls, privileges, identities."""

from tests.contract.tool_runner.attacks.attack import Attack, number, syscall

KERNEL = (
    syscall("io_uring_setup", "8", "bytes(120)"),
    syscall("bpf", "0", "bytes(64)", "64"),
    syscall("perf_event_open", "bytes(128)", "0", "-1", "-1", "0"),
    syscall("userfaultfd", "0"),
    syscall("keyctl", "0", "-3", "1"),
    syscall("add_key", "b'user'", "b'mine'", "b'x'", "1", "-2"),
    syscall("ptrace", "16", "1", "0", "0"),
    syscall("process_vm_readv", "1", "bytes(16)", "1", "bytes(16)", "1", "0"),
    syscall("pidfd_getfd", "3", "0", "0"),
    syscall("unshare", "0x10000000"),
    syscall("unshare", "0x40000000"),
    syscall("setns", "0", "0"),
    syscall("clone3", "struct.pack('Q', 0x10000000) + bytes(80)", "88"),
    syscall("mount", "b'none'", "b'/work'", "b'tmpfs'", "0", "0"),
    syscall("fsopen", "b'tmpfs'", "0"),
    syscall("open_tree", "-100", "b'/'", "1"),
    syscall("move_mount", "-100", "b'/tmp'", "-100", "b'/work'", "0"),
    syscall("pivot_root", "b'/work'", "b'/work'"),
    syscall("chroot", "b'/work'"),
    syscall("name_to_handle_at", "-100", "b'/'", "struct.pack('II', 128, 0) + bytes(128)", "bytes(8)", "0"),
    syscall("open_by_handle_at", "3", "struct.pack('II', 8, 1) + bytes(8)", "0"),
    syscall("kexec_load", "0", "0", "0", "0"),
    syscall("init_module", "bytes(16)", "16", "b''"),
    syscall("reboot", "0xfee1dead", "672274793", "0", "0"),
    syscall("swapon", "b'/work/x'", "0"),
    syscall("syslog", "3", "bytes(64)", "64"),
    syscall("memfd_create", "b'mine'", "0"),
    syscall("vmsplice", "1", "bytes(16)", "1", "0"),
    syscall("shmget", "0", "4096", "0o1600"),
    syscall("msgget", "0", "0o1600"),
    syscall("setuid", "0"),
    syscall("settimeofday", "struct.pack('qq', 0, 0)", "0"),
    syscall("acct", "b'/work/x'"),
    syscall("quotactl", "0", "0", "0", "0"),
    Attack(
        "a debugger on its own child",
        "child = os.fork()\nif child == 0:\n    time.sleep(5); os._exit(0)\nreturn call("
        + str(number("ptrace"))
        + ", 16, child, 0, 0)",
    ),
    Attack(
        "programs with privileges",
        """
paths = [path for folder in ('/bin', '/usr/bin', '/usr/sbin', '/usr/lib') for path in glob.glob(folder + '/*')]
found = [path for path in paths if os.path.isfile(path) and os.stat(path).st_mode & 0o6000]
return 'OWNED ' + repr(found) if found else 'none'
""",
    ),
    Attack(
        "capabilities",
        """
line = next(line for line in open('/proc/self/status') if line.startswith('CapEff'))
return 'none' if int(line.split()[1], 16) == 0 else 'OWNED ' + line
""",
    ),
    Attack(
        "new privileges",
        """
line = next(line for line in open('/proc/self/status') if line.startswith('NoNewPrivs'))
return 'none' if line.split()[1] == '1' else 'OWNED'
""",
    ),
    Attack(
        "without a filter",
        """
line = next(line for line in open('/proc/self/status') if line.startswith('Seccomp:'))
return 'none' if line.split()[1] == '2' else 'OWNED'
""",
    ),
    Attack(
        "typing into a terminal",
        """
import fcntl
for fd in range(3):
    try:
        fcntl.ioctl(fd, 0x5412, b'x')
        return 'OWNED'
    except OSError: pass
return 'none'
""",
    ),
    Attack(
        "other personalities",
        """
return 'OWNED' if LIBC.personality(0x0040000) != -1 and LIBC.personality(0xffffffff) == 0x0040000 else 'none'
""",
    ),
    Attack("root", "return 'OWNED' if 0 in os.getresuid() + os.getresgid() else 'none'"),
    Attack("other groups", "return 'OWNED ' + repr(os.getgroups()) if 0 in os.getgroups() else 'none'"),
)
