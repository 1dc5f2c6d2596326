"""The promises of every sandbox, tested as a user and as an attacker would."""
# ruff: noqa: E501 (tool sources read better on their own lines)

import asyncio
import json
import time
from typing import Any

import pytest

from services.tool_runner.core.job import MIB, ExitReason, Job, Limits, Result
from services.tool_runner.core.ports import Connection, Ends, Sandbox
from tests.contract.tool_runner.test_tunnel import Tunnel

LIMITS = Limits(seconds=10, memory=256 * MIB, processes=32, disk=16 * MIB)
SECRET = "host-only-7f3a"


async def call(sandbox: Sandbox, source: str, limits: Limits = LIMITS, **arguments: Any) -> Result:
    return await sandbox.run(Job(source, "tool", arguments, {"LETTA_AGENT_ID": "agent-1"}, limits))


async def value(sandbox: Sandbox, source: str, **arguments: Any) -> Any:
    result = await call(sandbox, source, **arguments)
    assert result.reason is ExitReason.OK, result
    assert result.result is not None
    return json.loads(result.result)


async def still_works(sandbox: Sandbox) -> None:
    assert await value(sandbox, "def tool():\n    return 'well'") == "well"


async def test_returns_what_the_tool_returns(sandbox: Sandbox) -> None:
    source = "def tool(a, b=2, *, c=None):\n    print('out')\n    return {'a': a, 'b': b, 'c': c, 'text': 'é\\n\"'}"
    result = await call(sandbox, source, a=[1, {"x": None}])
    assert result.reason is ExitReason.OK
    assert json.loads(result.result or "") == {"a": [1, {"x": None}], "b": 2, "c": None, "text": 'é\n"'}
    assert result.stdout == "out\n"
    assert not result.truncated


async def test_arguments_are_data_and_never_source(sandbox: Sandbox) -> None:
    text = '"""\'); import os; os._exit(1) #\\ \u2028 \x00 {}'
    assert await value(sandbox, "def tool(x):\n    return x", x=text) == text


async def test_gives_the_environment_of_the_call_and_no_other(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOCI_ENCRYPTION_KEY", SECRET)
    names = await value(sandbox, "import os\ndef tool():\n    return dict(os.environ)")
    assert names["LETTA_AGENT_ID"] == "agent-1"
    assert names["HOME"] == "/work"
    assert SECRET not in names.values()


async def test_runs_coroutines_and_fills_what_may_be_left_out(sandbox: Sandbox) -> None:
    source = (
        "import asyncio\nasync def tool(agent_state, x=3):\n    await asyncio.sleep(0)\n    return [agent_state, x]"
    )
    assert await value(sandbox, source) == [None, 3]


async def test_data_that_json_lacks_becomes_what_it_has(sandbox: Sandbox) -> None:
    source = (
        "import dataclasses, datetime, decimal, enum\n"
        "@dataclasses.dataclass\nclass P:\n    x: int\n"
        "class E(enum.Enum):\n    A = 'a'\n"
        "def tool():\n"
        "    return [P(1), datetime.date(2026, 1, 2), decimal.Decimal('1.5'), E.A, {3}, (1, 2), b'x']"
    )
    assert await value(sandbox, source) == [{"x": 1}, "2026-01-02", "1.5", "a", [3], [1, 2], "x"]


async def test_an_exception_is_told_with_the_tools_own_frames(sandbox: Sandbox) -> None:
    source = "import json\ndef tool(x):\n    return helper(x)\n\ndef helper(x):\n    return json.loads(x)"
    result = await sandbox.run(Job(source, "tool", {"x": "{"}, {}, LIMITS))
    assert result.reason is ExitReason.RAISED
    assert result.error is not None
    assert result.error.type == "JSONDecodeError"
    assert "line 3, in tool" in result.error.traceback
    assert "line 6, in helper" in result.error.traceback
    assert "decoder.py" not in result.error.traceback
    assert "running.py" not in result.error.traceback


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ("sys.exit(3)", "SystemExit"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt"),
        ("tool()", "RecursionError"),
    ],
)
async def test_no_exception_escapes(sandbox: Sandbox, body: str, kind: str) -> None:
    result = await call(sandbox, f"import sys\ndef tool():\n    {body}")
    assert result.reason is ExitReason.RAISED
    assert result.error is not None
    assert result.error.type == kind


async def test_source_that_fails_when_loaded_is_the_tools_failure(sandbox: Sandbox) -> None:
    result = await call(sandbox, "import no_such_module\ndef tool():\n    return 1")
    assert result.reason is ExitReason.RAISED
    assert result.error is not None
    assert result.error.type == "ModuleNotFoundError"


async def test_an_endless_loop_ends_at_its_time(sandbox: Sandbox) -> None:
    source = (
        "import signal\n"
        "def tool():\n"
        "    for s in (signal.SIGTERM, signal.SIGINT, signal.SIGALRM): signal.signal(s, signal.SIG_IGN)\n"
        "    while True: pass"
    )
    began = time.monotonic()
    result = await call(sandbox, source, Limits(seconds=1, memory=256 * MIB))
    assert result.reason is ExitReason.TIMEOUT
    # After its second, and not when everybody else has given up.
    assert 0.9 < time.monotonic() - began < 60
    await still_works(sandbox)


async def test_a_memory_bomb_is_stopped(sandbox: Sandbox) -> None:
    result = await call(sandbox, "def tool():\n    kept = []\n    while True: kept.append(bytearray(10**7))")
    assert result.reason is ExitReason.MEMORY
    await still_works(sandbox)


async def test_memory_counts_for_all_processes_together(sandbox: Sandbox) -> None:
    source = (
        "import os, time\n"
        "def tool():\n"
        "    for _ in range(10):\n"
        "        if os.fork() == 0:\n"
        "            block = bytearray(60 * 2**20)\n"
        "            for i in range(0, len(block), 4096): block[i] = 1\n"
        "            time.sleep(30)\n"
        "    pids = [os.waitpid(-1, 0) for _ in range(10)]\n"
        "    return 'all sixty times ten fit'"
    )
    result = await call(sandbox, source, Limits(seconds=3, memory=256 * MIB))
    assert result.reason in (ExitReason.MEMORY, ExitReason.TIMEOUT)
    await still_works(sandbox)


async def test_a_hundred_megabytes_of_print_are_cut_off(sandbox: Sandbox) -> None:
    result = await call(sandbox, "def tool():\n    for _ in range(100): print('x' * 10**6)")
    assert result.reason is ExitReason.OUTPUT_TOO_LARGE
    assert len(result.stdout) == LIMITS.capture
    assert result.truncated


async def test_a_little_too_much_print_is_cut_and_the_result_kept(sandbox: Sandbox) -> None:
    result = await call(sandbox, "import sys\ndef tool():\n    print('x' * 200000, file=sys.stderr)\n    return 1")
    assert (result.reason, result.result) == (ExitReason.OK, "1")
    assert len(result.stderr) == LIMITS.capture
    assert result.truncated


async def test_a_huge_result_is_refused(sandbox: Sandbox) -> None:
    result = await call(sandbox, "def tool():\n    return 'x' * 2_000_000")
    assert result.reason is ExitReason.OUTPUT_TOO_LARGE
    assert result.error is not None
    assert "2000002 bytes" in result.error.message


@pytest.mark.parametrize(
    ("expression", "shown"),
    [
        ("float('nan')", "NaN"),
        ("[1, float('-inf')]", "-Infinity"),
        ("{(1, 2): 3}", "(1, 2)"),
        ("loop", "[...]"),
        ("deep", "[...]"),
        ("10 ** 5000", "0x31e2"),
        ("endless()", ""),
    ],
)
async def test_a_result_that_is_not_json_becomes_it(sandbox: Sandbox, expression: str, shown: str) -> None:
    source = (
        "def tool():\n"
        "    loop = []\n    loop.append(loop)\n"
        "    deep = 0\n    for _ in range(100_000): deep = [deep]\n"
        "    def endless():\n        while True: yield 1\n"
        f"    return {expression}"
    )
    result = await call(sandbox, source)
    if not shown:
        assert result.reason is ExitReason.OUTPUT_TOO_LARGE
        return
    assert result.reason is ExitReason.OK, result
    assert shown in json.dumps(json.loads(result.result or ""))


async def test_a_fork_bomb_is_contained(sandbox: Sandbox) -> None:
    source = "import os\ndef tool():\n    while True:\n        try: os.fork()\n        except OSError: pass"
    result = await call(sandbox, source, Limits(seconds=2, memory=256 * MIB, processes=32))
    assert result.reason in (ExitReason.TIMEOUT, ExitReason.MEMORY)
    await still_works(sandbox)


async def test_threads_and_child_processes_work(sandbox: Sandbox) -> None:
    source = (
        "import multiprocessing, subprocess, sys, threading\n"
        "def square(x): return x * x\n"
        "def tool():\n"
        "    seen = []\n"
        "    threads = [threading.Thread(target=seen.append, args=(i,)) for i in range(4)]\n"
        "    for t in threads: t.start()\n"
        "    for t in threads: t.join()\n"
        "    with multiprocessing.get_context('fork').Pool(2) as pool: squares = pool.map(square, [1, 2, 3])\n"
        "    child = subprocess.run([sys.executable, '-c', 'print(7)'], capture_output=True, text=True)\n"
        "    return [sorted(seen), squares, child.stdout]"
    )
    assert await value(sandbox, source) == [[0, 1, 2, 3], [1, 4, 9], "7\n"]


@pytest.mark.parametrize("address", [("1.1.1.1", 53), ("169.254.169.254", 80), ("127.0.0.1", 22)])
async def test_there_is_no_network(sandbox: Sandbox, address: tuple[str, int]) -> None:
    source = "import socket\ndef tool(host, port):\n    socket.create_connection((host, port), timeout=3)"
    result = await call(sandbox, source, host=address[0], port=address[1])
    assert result.reason is ExitReason.RAISED
    assert result.error is not None
    assert result.error.type in ("OSError", "ConnectionRefusedError")


async def test_only_loopback_is_there(sandbox: Sandbox) -> None:
    source = "def tool():\n    return [l.split(':')[0].strip() for l in open('/proc/net/dev') if ':' in l]"
    assert set(await value(sandbox, source)) <= {
        "lo",
        "tunl0",
        "sit0",
        "ip6tnl0",
        "gre0",
        "gretap0",
        "erspan0",
    }


async def test_files_of_the_host_are_out_of_reach(sandbox: Sandbox, tmp_path_factory: Any) -> None:
    secret = tmp_path_factory.mktemp("host") / "secret"
    secret.write_text(SECRET)
    secret.chmod(0o644)
    source = (
        "import os\n"
        "def tool(paths):\n"
        "    found = []\n"
        "    for path in paths:\n"
        "        try: found.append(open(path).read())\n"
        "        except OSError as error: found.append(type(error).__name__)\n"
        "    return found + [os.path.exists('/var/run/docker.sock'), os.listdir('/root') if os.access('/root', 4) else []]"
    )
    paths = [
        str(secret),
        "/etc/shadow",
        "/etc/hostname.d",
        f"/proc/1/root{secret}",
        f"/proc/self/root{secret}",
    ]
    found = await value(sandbox, source, paths=paths)
    assert SECRET not in json.dumps(found)
    assert found[-2:] == [False, []]


async def test_processes_of_the_host_are_out_of_sight(sandbox: Sandbox) -> None:
    source = "import os\ndef tool():\n    return [os.getpid(), len([p for p in os.listdir('/proc') if p.isdecimal()])]"
    pid, seen = await value(sandbox, source)
    assert pid < 20
    assert seen == 2


async def test_it_has_no_privileges(sandbox: Sandbox) -> None:
    source = (
        "import os\n"
        "def tool():\n"
        "    status = dict(l.split()[:2] for l in open('/proc/self/status') if len(l.split()) > 1)\n"
        "    names = ('CapEff:', 'CapBnd:', 'NoNewPrivs:', 'Seccomp:')\n"
        "    return [os.getuid(), os.getgroups(), *(status[name] for name in names)]"
    )
    uid, groups, effective, bounding, no_new_privileges, seccomp = await value(sandbox, source)
    assert uid == 65534
    assert 0 not in groups
    assert int(effective, 16) == int(bounding, 16) == 0
    assert (no_new_privileges, seccomp) == ("1", "2")


# Numbers on x86_64 and aarch64; each must fail as if it did not exist or were forbidden.
DENIED = {
    "io_uring_setup": (425, 425),
    "ptrace": (101, 117),
    "bpf": (321, 280),
    "unshare": (272, 97),
    "mount": (165, 40),
    "keyctl": (250, 219),
    "userfaultfd": (323, 282),
    "perf_event_open": (298, 241),
    "memfd_create": (319, 279),
    "setuid": (105, 146),
    "process_vm_readv": (310, 270),
    "clone3": (435, 435),
    "shmget": (29, 194),
}


async def test_dangerous_system_calls_are_refused(sandbox: Sandbox) -> None:
    source = (
        "import ctypes, platform\n"
        "def tool(calls):\n"
        "    libc = ctypes.CDLL(None, use_errno=True)\n"
        "    column = 0 if platform.machine() == 'x86_64' else 1\n"
        "    answers = {}\n"
        "    for name, numbers in calls.items():\n"
        "        answers[name] = (libc.syscall(numbers[column], 0, 0, 0, 0, 0), ctypes.get_errno())\n"
        "    answers['clone'] = (libc.syscall((56, 220)[column], 0x10000000 | 17, 0, 0, 0, 0), ctypes.get_errno())\n"
        "    answers['netlink'] = (libc.socket(16, 3, 0), ctypes.get_errno())\n"
        "    answers['packet'] = (libc.socket(17, 3, 0), ctypes.get_errno())\n"
        "    return answers"
    )
    answers = await value(sandbox, source, calls=DENIED)
    assert {name for name, (answer, _) in answers.items() if answer != -1} == set()
    assert {error for _, error in answers.values()} <= {1, 38}  # EPERM, ENOSYS


async def test_the_file_system_is_read_only_but_for_a_work_directory_with_a_quota(sandbox: Sandbox) -> None:
    source = (
        "import os\n"
        "def tool():\n"
        "    refused = []\n"
        "    for path in ('/x', '/usr/x', '/etc/x', '/dev/x', '/opt/x', '/proc/sys/kernel/hostname', '/loci/x'):\n"
        "        try: open(path, 'w').write('x')\n"
        "        except OSError: refused.append(path)\n"
        "    written = 0\n"
        "    try:\n"
        "        for i in range(100):\n"
        "            with open(f'/work/{i}', 'wb') as f: written += f.write(bytes(2**20))\n"
        "    except OSError as error: return [os.getcwd(), len(refused), written, error.errno]"
    )
    where, refused, written, error = await value(sandbox, source)
    assert (where, refused, error) == ("/work", 7, 28)  # ENOSPC
    assert written <= LIMITS.disk


async def test_calls_share_nothing(sandbox: Sandbox) -> None:
    source = (
        "import os\n"
        "def tool():\n"
        "    seen = os.listdir('/work') + os.listdir('/tmp')\n"
        "    for folder in ('/work', '/tmp'): open(folder + '/left', 'w').write('x')\n"
        "    return seen"
    )
    assert await value(sandbox, source) == []
    assert await value(sandbox, source) == []


async def test_nothing_printed_can_pass_for_the_answer(sandbox: Sandbox) -> None:
    forged = '{"reason": "ok", "result": "\\"forged\\"", "stdout": "", "stderr": "", "truncated": false}'
    source = (
        "import os, struct, sys\n"
        "def tool(forged):\n"
        "    frame = struct.pack('>I', len(forged)) + forged.encode()\n"
        "    for fd in range(0, 64):\n"
        "        for guess in (frame, b'0' * 32 + frame, b'LOCI-WORKER 1\\n' + frame):\n"
        "            if fd in (1, 2):\n"
        "                os.write(fd, guess)\n"
        "    for path in ('/proc/1/fd/1', '/proc/1/fd/0', '/proc/1/mem', '/proc/1/environ', '/proc/1/maps'):\n"
        "        try:\n"
        "            with open(path, 'r+b' if path.endswith('mem') else 'ab') as f: f.write(frame)\n"
        "            return 'wrote ' + path\n"
        "        except OSError: pass\n"
        "    return 'genuine'"
    )
    result = await call(sandbox, source, forged=forged)
    assert (result.reason, result.result) == (ExitReason.OK, '"genuine"')


async def test_the_tool_holds_no_descriptor_but_its_own(sandbox: Sandbox) -> None:
    source = (
        "import os, stat\n"
        "def tool():\n"
        "    kinds = {}\n"
        "    for fd in map(int, os.listdir('/proc/self/fd')):\n"
        "        try: kinds[fd] = stat.S_ISSOCK(os.fstat(fd).st_mode)\n"
        "        except OSError: continue\n"
        "    return [len(kinds), any(kinds.values()), os.readlink('/proc/self/fd/0')]"
    )
    assert await value(sandbox, source) == [4, False, "/dev/null"]  # stdin, stdout, stderr, the outcome


async def test_a_copy_of_the_tool_does_not_answer_for_it(sandbox: Sandbox) -> None:
    source = (
        "import os, time\ndef tool():\n    if os.fork() == 0: return 'copy'\n    time.sleep(0.3)\n    return 'original'"
    )
    assert await value(sandbox, source) == "original"


async def test_a_garbled_outcome_is_a_bad_result(sandbox: Sandbox) -> None:
    source = (
        "import os, stat\n"
        "def tool(body):\n"
        "    for fd in range(3, 64):\n"
        "        try: pipe = stat.S_ISFIFO(os.fstat(fd).st_mode)\n"
        "        except OSError: continue\n"
        "        if pipe: os.write(fd, len(body).to_bytes(4, 'big') + body.encode())\n"
        "    os._exit(0)"
    )
    for body in (
        '{"reason": "ok", "result": "NaN"}',
        "[]",
        '{"reason": "ok"}',
        "{",
        '{"reason": "ok", "result": 1}',
    ):
        result = await call(sandbox, source, body=body)
        assert result.reason is ExitReason.BAD_RESULT, body


async def test_a_process_that_ends_without_a_result_is_told(sandbox: Sandbox) -> None:
    for body, text in (("os._exit(7)", "exit code 7"), ("os.kill(os.getpid(), 11)", "SIGSEGV")):
        result = await call(sandbox, f"import os\ndef tool():\n    {body}")
        assert result.reason is ExitReason.KILLED
        assert result.error is not None
        assert text in result.error.message


async def test_the_keeper_cannot_be_killed(sandbox: Sandbox) -> None:
    source = (
        "import os, signal\n"
        "def tool():\n"
        "    for s in range(1, 32):\n"
        "        if s != signal.SIGCHLD:\n"
        "            try: os.kill(1, s)\n"
        "            except OSError: pass\n"
        "    return 'alive'"
    )
    assert await value(sandbox, source) == "alive"


async def test_children_do_not_outlive_the_call(sandbox: Sandbox) -> None:
    source = (
        "import os, time\n"
        "def tool():\n"
        "    if os.fork() == 0:\n"
        "        os.setsid()\n"
        "        if os.fork() == 0: time.sleep(600)\n"
        "        time.sleep(600)\n"
        "    return 'gone'"
    )
    # A call that waited for them would end by its time.
    assert await value(sandbox, source) == "gone"


async def test_cancelling_kills_the_call(sandbox: Sandbox) -> None:
    await still_works(sandbox)
    begun = asyncio.Event()
    source = "import time\ndef tool():\n    print('begun', flush=True)\n    time.sleep(600)"
    job = Job(source, "tool", {}, {}, Limits(seconds=600))
    running = asyncio.create_task(sandbox.run(job, Ends(on_output=lambda _: begun.set())))
    await asyncio.wait_for(begun.wait(), 30)
    running.cancel()
    async with asyncio.timeout(60):
        with pytest.raises(asyncio.CancelledError):
            await running
    await still_works(sandbox)


async def test_calls_run_side_by_side(sandbox: Sandbox) -> None:
    await still_works(sandbox)
    # None of them ends before all have begun.
    source = (
        "import socket\n"
        "def tool(x):\n"
        "    with socket.create_connection(('127.0.0.1', 8118)) as gate: return [x, gate.recv(1).decode()]"
    )
    everybody = asyncio.Barrier(4)

    async def meet(connection: Connection) -> None:
        await everybody.wait()
        await connection.write(b".")

    limits = Limits(seconds=60, memory=256 * MIB, processes=32, disk=16 * MIB)
    jobs = [Job(source, "tool", {"x": x}, {}, limits) for x in range(4)]
    results = await asyncio.gather(*(sandbox.run(job, Ends(tunnel=Tunnel(meet))) for job in jobs))
    assert [json.loads(result.result or "null") for result in results] == [[x, "."] for x in range(4)]
