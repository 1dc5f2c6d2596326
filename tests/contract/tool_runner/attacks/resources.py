"""Memory, processes, disk, time, signals."""

from services.tool_runner.core.job import ExitReason
from tests.contract.tool_runner.attacks.attack import KILLED, STOPPED, Attack

RESOURCES = (
    Attack(
        "a fork bomb",
        """
while True:
    try: os.fork()
    except OSError: time.sleep(0.01)
""",
        ends=KILLED,
        seconds=2,
    ),
    Attack(
        "a fork bomb that ignores signals",
        """
signal.signal(signal.SIGTERM, signal.SIG_IGN)
for _ in range(10000):
    try:
        if os.fork() == 0: os.setsid()
    except OSError: pass
time.sleep(30)
""",
        ends=KILLED,
        seconds=2,
    ),
    Attack(
        "a thread bomb",
        """
def rest(): time.sleep(30)
count = 0
try:
    while True:
        threading.Thread(target=rest, daemon=True).start(); count += 1
except RuntimeError: pass
return 'OWNED' if count > 500 else 'none'
""",
        ends=KILLED,
    ),
    Attack(
        "a memory bomb",
        """
kept = []
while True: kept.append(bytearray(10**7))
""",
        ends=KILLED,
    ),
    Attack(
        "memory in many processes",
        """
held, hold = os.pipe()
for _ in range(8):
    if os.fork() == 0:
        block = bytearray(64 * 2**20)
        os.write(hold, b'.')
        time.sleep(20); os._exit(0)
os.close(hold)
all_hold = all([os.read(held, 1) for _ in range(8)])
return 'OWNED' if all_hold and os.waitpid(-1, os.WNOHANG) == (0, 0) else 'none'
""",
        ends=KILLED,
        seconds=3,
    ),
    Attack(
        "shared memory",
        """
with open('/dev/shm/x', 'wb') as file:
    for _ in range(4096): file.write(bytes(2**20))
return 'OWNED'
""",
        ends=KILLED,
    ),
    Attack(
        "filling the work directory",
        """
with open('/work/x', 'wb') as file:
    for _ in range(4096): file.write(bytes(2**20))
return 'OWNED'
""",
        ends=KILLED,
    ),
    Attack(
        "filling /tmp with many files",
        """
for name in range(4096):
    with open(f'/tmp/{name}', 'wb') as file: file.write(bytes(2**20))
return 'OWNED'
""",
        ends=KILLED,
    ),
    Attack(
        "a sparse file of a terabyte",
        """
os.truncate(os.open('/work/x', os.O_CREAT | os.O_RDWR), 2**40)
return 'OWNED'
""",
        ends=KILLED,
    ),
    Attack(
        "files without content",
        """
made = 0
try:
    while True:
        os.close(os.open(f'/work/{made}', os.O_CREAT)); made += 1
except OSError: pass
return 'OWNED' if made > 2_000_000 else 'none'
""",
        ends=KILLED,
        seconds=3,
    ),
    Attack(
        "descriptors",
        """
kept = []
try:
    while True: kept.append(os.open('/dev/null', os.O_RDONLY))
except OSError: pass
return 'OWNED' if len(kept) > 5000 else 'none'
""",
    ),
    Attack("a flood on stdout", "while True: os.write(1, b'x' * 65536)", ends=STOPPED),
    Attack(
        "a flood on stderr by a child",
        "subprocess.run([sys.executable, '-c', 'while True: print(\"x\" * 65536)'], stdout=2)",
        ends=STOPPED,
    ),
    Attack(
        "a loop that ignores every signal",
        """
for number in range(1, 65):
    try: signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError): pass
while True: pass
""",
        ends=(ExitReason.TIMEOUT,),
        seconds=1,
    ),
    Attack(
        "sleeping for ever in the kernel",
        """
signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))
os.read(os.pipe()[0], 1)
""",
        ends=(ExitReason.TIMEOUT,),
        seconds=1,
    ),
    Attack(
        "children that stay",
        """
for _ in range(20):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(3600)
        os._exit(0)
return 'none'
""",
        ends=KILLED,
    ),
    Attack(
        "zombies",
        """
for _ in range(30):
    try:
        if os.fork() == 0: os._exit(0)
    except OSError: pass
time.sleep(0.2)
return 'none'
""",
        ends=KILLED,
    ),
    Attack(
        "killing the keeper",
        """
for one in (signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM, signal.SIGINT, signal.SIGSEGV):
    try: os.kill(1, one)
    except OSError: pass
return 'none'
""",
    ),
    Attack(
        "killing everything",
        """
os.kill(-1, signal.SIGKILL)
return 'none'
""",
        ends=KILLED,
    ),
    Attack(
        "more priority",
        """
os.setpriority(os.PRIO_PROCESS, 0, -20)
return 'OWNED'
""",
    ),
    Attack(
        "real time",
        """
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50))
return 'OWNED'
""",
    ),
    Attack(
        "higher limits",
        """
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
return 'OWNED'
""",
    ),
    Attack(
        "escaping the kernel's choice when memory ends",
        """
return writes('/proc/self/oom_score_adj', b'-1000')
""",
    ),
    Attack(
        "a core dump",
        """
resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY,) * 2)
os.abort()
""",
        ends=KILLED,
    ),
    Attack(
        "a stack without end",
        """
sys.setrecursionlimit(10**9)
def deep(): return deep() + deep()
deep()
""",
        ends=KILLED,
    ),
)
