"""Files and devices of the host."""

from tests.contract.tool_runner.attacks.attack import Attack

HOST_FILES = (
    Attack("read a file of the host", "return reads(given['secret_file'])"),
    Attack("read the host's file through /proc/1/root", "return reads('/proc/1/root' + given['secret_file'])"),
    Attack(
        "read the host's file by climbing", "return reads('/work/' + '../' * 40 + given['secret_file'].lstrip('/'))"
    ),
    Attack("read /etc/shadow", "return reads('/etc/shadow')"),
    Attack("environment of the keeper", "return reads('/proc/1/environ')"),
    Attack("memory of the keeper", "return reads('/proc/1/mem')"),
    Attack("descriptors of the keeper", "return 'OWNED ' + repr(os.listdir('/proc/1/fd'))"),
    Attack("physical memory", "return reads('/dev/mem')"),
    Attack("kernel memory", "return reads('/proc/kcore')"),
    Attack("kernel log", "return reads('/dev/kmsg')"),
    Attack(
        "disks",
        """
found = [path for path in glob.glob('/dev/*') if stat.S_ISBLK(os.stat(path).st_mode)]
return reads(found[0]) if found else 'no disk'
""",
    ),
    Attack(
        "a device of our own",
        """
os.mknod('/work/disk', stat.S_IFBLK | 0o600, os.makedev(254, 0))
return reads('/work/disk')
""",
    ),
    Attack(
        "sysrq",
        """
return writes('/proc/sysrq-trigger', b'h')
""",
    ),
    Attack(
        "core pattern",
        """
return writes('/proc/sys/kernel/core_pattern', b'|/work/x')
""",
    ),
    Attack(
        "kernel settings below /sys",
        """
for path in glob.glob('/sys/kernel/*') + glob.glob('/sys/module/*/parameters/*'):
    try:
        os.open(path, os.O_WRONLY)
        return 'OWNED ' + path
    except OSError: pass
return 'none'
""",
    ),
    Attack(
        "writing anywhere but where it may",
        """
for folder in ('/', '/usr/bin', '/etc', '/opt', '/opt/loci', '/loci', '/dev', '/proc', '/sys', '/lib', '/root'):
    try:
        open(folder + '/mine', 'w').close()
        return 'OWNED ' + folder
    except OSError: pass
return 'nowhere'
""",
    ),
    Attack(
        "replacing the worker",
        """
for path in (*glob.glob('/opt/loci/*'), *glob.glob('/loci/*'), sys.executable, '/proc/self/exe', '/proc/1/exe'):
    try:
        os.close(os.open(path, os.O_WRONLY))
        return 'OWNED ' + path
    except OSError: pass
return 'none'
""",
    ),
    Attack(
        "a hard link to what it may not read",
        """
os.link('/etc/shadow', '/work/mine')
return reads('/work/mine')
""",
    ),
    Attack(
        "control groups",
        """
names = ('memory.max', 'pids.max', 'release_agent', 'memory.limit_in_bytes', 'cgroup.procs')
for path in [path for name in names for path in glob.glob('/sys/fs/cgroup/**/' + name, recursive=True)]:
    try:
        os.close(os.open(path, os.O_WRONLY))
        return 'OWNED ' + path
    except OSError: pass
return 'none'
""",
    ),
)
