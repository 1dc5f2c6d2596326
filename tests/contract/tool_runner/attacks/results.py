"""Results, exceptions and output that are not what they seem."""

from services.tool_runner.core.job import ExitReason
from tests.contract.tool_runner.attacks.attack import STOPPED, Attack

RESULTS = (
    Attack("a result of 100 MB", "return 'x' * 10**8", ends=STOPPED),
    Attack(
        "a result without an end",
        """
class Long(list):
    def __iter__(self):
        while True: yield 'x' * 1000
return Long()
""",
        ends=STOPPED,
        seconds=3,
    ),
    Attack(
        "a deep result",
        """
value = []
for _ in range(100_000): value = [value]
return value
""",
    ),
    Attack(
        "a result that holds itself",
        """
value = []
value.append(value)
return value
""",
    ),
    Attack("not a number", "return [float('nan'), float('inf')]"),
    Attack("half a character", "return '\\ud800'", ends=(*STOPPED,)),
    Attack(
        "a patched json",
        """
json.dumps = lambda *a, **k: '{"reason": "ok", "result": NaN'
return 1
""",
        ends=STOPPED,
    ),
    Attack(
        "a class that lies",
        """
class Str(str):
    def encode(self, *a): return b'OWNED' * 10**7
    def __len__(self): return 1
return Str('x')
""",
        ends=STOPPED,
    ),
    Attack(
        "an exception that cannot be told",
        """
class Bad(Exception):
    def __str__(self): os._exit(0)
raise Bad
""",
        ends=STOPPED,
    ),
    Attack("an exception of 100 MB", "raise ValueError('x' * 10**8)", ends=STOPPED),
    Attack(
        "an answer of its own on every descriptor",
        r"""
answer = json.dumps({'reason': 'ok', 'result': json.dumps('OWN' + 'ED')}).encode()
for kind in (b'\x0c', b'\x06', b'\x04'):
    frame = kind + (32 + len(answer)).to_bytes(4, 'big') + b'0' * 32 + answer
    for fd in range(256):
        try: os.write(fd, frame)
        except OSError: pass
return 'none'
""",
        ends=STOPPED,
    ),
    Attack(
        "the older framing on stdout",
        """
body = json.dumps({'reason': 'ok', 'result': '"OWN' + 'ED"'}).encode()
os.write(1, b'0' * 32 + len(body).to_bytes(4, 'big') + body)
return 'none'
""",
    ),
    Attack(
        "the keeper's descriptors by /proc",
        """
for fd in range(64):
    for flags in (os.O_RDONLY, os.O_WRONLY):
        try:
            os.close(os.open(f'/proc/1/fd/{fd}', flags))
            return 'OWNED ' + str(fd)
        except OSError: pass
return 'none'
""",
    ),
    Attack(
        "speaking after the answer",
        """
def later():
    time.sleep(0.2)
    while True: os.write(1, b'OWN' + b'ED' * 1000)
threading.Thread(target=later, daemon=True).start()
if os.fork() == 0: later()
return 'none'
""",
    ),
    Attack("ending without an answer", "os._exit(0)", ends=(ExitReason.KILLED,)),
    Attack(
        "ending the way a tool does not",
        """
import atexit
atexit.register(lambda: time.sleep(60))
sys.exit(0)
""",
        ends=(ExitReason.RAISED,),
    ),
    Attack(
        "a module that poisons the worker",
        """
sys.modules['json'] = sys.modules['os'] = None
import builtins
builtins.open = builtins.print = builtins.len = None
return 'none'
""",
        ends=STOPPED,
    ),
)
