"""The inputs and results of a call, in every sandbox: files, output while it runs, programs, state, sessions."""

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest

from services.tool_runner.core.job import MIB, ExitReason, File, Job, Language, Limits, Mode, Output, Result
from services.tool_runner.core.ports import Connection, Ends, Sandbox
from tests.contract.tool_runner.test_tunnel import Tunnel
from tests.polling import until

LIMITS = Limits(seconds=10, memory=256 * MIB, processes=32, disk=16 * MIB, files=4, file_bytes=MIB)
STATE = {
    "id": "agent-1",
    "name": "Ada",
    "memory": {"blocks": [{"label": "human", "value": "old"}, {"label": "persona", "value": "me"}]},
}


def made(result: Result) -> Any:
    assert result.reason is ExitReason.OK, result
    return json.loads(result.result or "")


async def test_files_come_in_read_only(sandbox: Sandbox) -> None:
    source = (
        "import os\n"
        "def tool(path):\n"
        "    tries = [lambda: open(path, 'w'), lambda: os.truncate(path, 0), lambda: os.unlink(path),\n"
        "        lambda: os.rename(path, path + '2'), lambda: open('/inputs/n', 'w'), lambda: os.rmdir('/inputs/a')]\n"
        "    done = []\n"
        "    for number, one in enumerate(tries):\n"
        "        for p in (path, '/inputs', '/inputs/a'):\n"
        "            try: os.chmod(p, 0o777)\n"
        "            except OSError: pass\n"
        "        try: one(); done.append(number)\n"
        "        except OSError: pass\n"
        "    return [open(path, 'rb').read().decode(), done, os.path.getsize('/inputs/big')]"
    )
    inputs = (File("a/b c.txt", b"given"), File("big", bytes(300_000)))
    result = await sandbox.run(Job(source, "tool", {"path": "/inputs/a/b c.txt"}, {}, LIMITS, inputs=inputs))
    assert made(result) == ["given", [], 300_000]
    assert result.files == ()


async def test_what_is_left_in_the_work_directory_comes_back(sandbox: Sandbox) -> None:
    source = (
        "import os\n"
        "def tool():\n"
        "    os.makedirs('sub/__pycache__'); os.mkdir('.hidden')\n"
        "    for name in ('a.txt', 'sub/b.bin', '.secret', '.hidden/c', 'sub/__pycache__/d.pyc'):\n"
        "        open(name, 'wb').write(name.encode() * 3)\n"
        "    os.symlink('/etc/passwd', 'passwd'); os.symlink('/', 'root'); os.mkfifo('fifo')\n"
        "    open('back\\\\slash', 'w'); open('new\\nline', 'w')\n"
        "    open('closed', 'w').write('x'); os.chmod('closed', 0)"
    )
    result = await sandbox.run(Job(source, "tool", {}, {}, LIMITS))
    assert result.reason is ExitReason.OK, result
    assert {file.name: file.content for file in result.files} == {"a.txt": b"a.txt" * 3, "sub/b.bin": b"sub/b.bin" * 3}
    assert result.files_dropped == 6


async def test_files_have_limits_and_survive_a_failure(sandbox: Sandbox) -> None:
    source = (
        "def tool():\n"
        "    open('a', 'wb').write(bytes(600_000)); open('b', 'wb').write(bytes(600_000))\n"
        "    for n in range(6): open(f'c{n}', 'w').write('x')\n"
        "    raise ValueError('after all')"
    )
    result = await sandbox.run(Job(source, "tool", {}, {}, LIMITS))
    assert result.reason is ExitReason.RAISED
    assert [(file.name, len(file.content)) for file in result.files] == [
        ("a", 600_000),
        ("c0", 1),
        ("c1", 1),
        ("c2", 1),
    ]
    assert result.files_dropped == 4


async def test_output_comes_while_the_tool_runs(sandbox: Sandbox) -> None:
    # It goes on when a connection is answered, and that is once what it printed before has come.
    source = (
        "import socket, sys\n"
        "def wait():\n"
        "    with socket.create_connection(('127.0.0.1', 8118)) as gate: gate.recv(1)\n"
        "def tool():\n"
        "    print('one', 'é'); wait()\n"
        "    print('two', file=sys.stderr); wait()\n"
        "    sys.stdout.buffer.write(b'\\xc3'); sys.stdout.flush()\n"
        "    sys.stdout.buffer.write(b'\\xa9 \\xff\\n'); return 1"
    )
    came: list[Output] = []
    waited: list[str] = []

    async def open_gate(connection: Connection) -> None:
        stream = ("stdout", "stderr")[len(waited)]
        waited.append(stream)
        await until(lambda: stream in {output.stream for output in came})
        await connection.write(b".")

    ends = Ends(on_output=came.append, tunnel=Tunnel(open_gate))
    result = await sandbox.run(Job(source, "tool", {}, {}, replace(LIMITS, seconds=30)), ends)
    assert made(result) == 1
    assert waited == ["stdout", "stderr"]
    assert [output.sequence for output in came] == list(range(1, len(came) + 1))
    for stream in waited:
        assert "".join(output.text for output in came if output.stream == stream) == getattr(result, stream)
    assert result.stdout == "one é\né \ufffd\n"


@pytest.mark.parametrize(
    ("source", "result", "stdout"),
    [
        ("import json\nx = [1]\nprint(__name__)\nx + [2]", [1, 2], "__main__\n"),
        ("def f(): return 3\nprint('x')", None, "x\n"),
        ("{1: object}", "{1: <class 'object'>}", ""),
        ("import sys\nprint('bye')\nsys.exit()", None, "bye\n"),
        ("async def f(): return 'awaited'\nf()", "awaited", ""),
        ("", None, ""),
    ],
)
async def test_scripts_give_the_value_of_their_last_expression(
    sandbox: Sandbox, source: str, result: Any, stdout: str
) -> None:
    ran = await sandbox.run(Job(source, "", {}, {}, LIMITS, mode=Mode.SCRIPT))
    if isinstance(result, str) and result.startswith("{"):
        assert made(ran).startswith("{")
    else:
        assert made(ran) == result
    assert ran.stdout == stdout


async def test_scripts_that_fail_say_where(sandbox: Sandbox) -> None:
    failed = await sandbox.run(Job("x = 1\nx / 0\n", "", {}, {}, LIMITS, mode=Mode.SCRIPT))
    assert failed.reason is ExitReason.RAISED
    assert failed.error is not None
    assert (failed.error.type, "line 2" in failed.error.traceback) == ("ZeroDivisionError", True)
    failed = await sandbox.run(Job("x = = 1", "", {}, {}, LIMITS, mode=Mode.SCRIPT))
    assert failed.error is not None
    assert failed.error.type == "SyntaxError"


async def test_agent_state_is_given_and_its_edits_come_back(sandbox: Sandbox) -> None:
    source = (
        "import json\n"
        "def tool(agent_state: 'AgentState', word):\n"
        "    memory = agent_state.memory\n"
        "    seen = [agent_state.name, agent_state['id'], memory.get_block('human').value,\n"
        "            memory.list_block_labels(), len(agent_state.blocks),\n"
        "            json.loads(json.dumps(agent_state))['name']]\n"
        "    memory.update_block_value(label='human', value=word)\n"
        "    memory.get_block('persona').value += '!'\n"
        "    memory.get_block('persona')['value'] = 'me'\n"
        "    return seen"
    )
    job = Job(source, "tool", {"word": "new"}, {}, LIMITS, agent_state=json.dumps(STATE))
    result = await sandbox.run(job)
    assert made(result) == ["Ada", "agent-1", "old", ["human", "persona"], 2, "Ada"]
    assert result.block_edits == (("human", "new"),)
    without = "def tool(agent_state):\n    return agent_state"
    assert made(await sandbox.run(Job(without, "tool", {}, {}, LIMITS))) is None


async def test_a_program_is_spoken_to_on_its_streams(sandbox: Sandbox) -> None:
    program = (
        "import sys\n"
        "print('ready', file=sys.stderr, flush=True)\n"
        "for line in sys.stdin: print(line.upper(), end='', flush=True)\n"
        "print('over', file=sys.stderr); sys.exit(3)"
    )
    process = await sandbox.open(Job("", "", {}, {}, LIMITS, mode=Mode.PROCESS, argv=("python3", "-c", program)))
    try:
        line = "x" * 400_000 + "\n"  # more than a window
        writing = asyncio.create_task(process.write(line.encode() + b"two\n"))
        got = b""
        async with asyncio.timeout(30):
            while not got.endswith(b"TWO\n"):
                got += await process.read()
            await writing
        assert got == (line + "two\n").upper().encode()
        await until(lambda: "ready" in process.errors)
    finally:
        await process.close()
    assert await process.read() == b""
    with pytest.raises(ConnectionError):
        await process.write(b"x")


async def test_a_program_that_ends_says_so(sandbox: Sandbox) -> None:
    program = "import sys; print('out'); print('why', file=sys.stderr); sys.exit(3)"
    process = await sandbox.open(Job("", "", {}, {}, LIMITS, mode=Mode.PROCESS, argv=("python3", "-c", program)))
    async with asyncio.timeout(30):
        assert await process.read() == b"out\n"
        assert await process.read() == b""
    assert "why" in process.errors
    assert "exit code 3" in process.errors
    await process.close()
    process = await sandbox.open(Job("", "", {}, {}, LIMITS, mode=Mode.PROCESS, argv=("no-such-program",)))
    async with asyncio.timeout(30):
        assert await process.read() == b""
    assert "no-such-program cannot be started" in process.errors
    await process.close()


async def test_a_session_keeps_its_files_and_nothing_else(sandbox: Sandbox) -> None:
    source = (
        "import os, sys, time\n"
        "def tool(number):\n"
        "    seen = sorted(os.listdir('/work') + os.listdir('/tmp') + os.listdir('/inputs'))\n"
        "    others = len([p for p in os.listdir('/proc') if p.isdecimal()]) - 2\n"
        "    open(f'kept{number}', 'w').write('x'); open('/tmp/gone', 'w').write('x')\n"
        "    if os.fork() == 0: os.setsid(); time.sleep(60)\n"
        "    return [seen, others]"
    )

    async def call(number: int, session: str, tenant: str = "t") -> Result:
        inputs = (File(f"in{number}", b"x"),)
        job = Job(source, "tool", {"number": number}, {}, LIMITS, inputs=inputs, session=session, tenant=tenant)
        return await sandbox.run(job)

    first = await call(1, "t:1")
    assert made(first) == [["in1"], 0]
    second = await call(2, "t:1")
    assert made(second) == [["in2", "kept1"], 0]
    assert [file.name for file in second.files] == ["kept2"]
    assert made(await call(3, "t:2")) == [["in3"], 0]
    assert made(await call(4, "t:1", tenant="u")) == [["in4"], 0]
    await sandbox.end_session("t:1")
    assert made(await call(5, "t:1")) == [["in5"], 0]
    await sandbox.end_session("t:1")
    await sandbox.end_session("t:2")


async def test_calls_of_a_session_at_the_same_time_do_not_wait(sandbox: Sandbox) -> None:
    source = "import time\ndef tool(x):\n    time.sleep(0.5)\n    return x"
    jobs = [Job(source, "tool", {"x": x}, {}, LIMITS, session="t:9", tenant="t") for x in range(3)]
    assert [made(result) for result in await asyncio.gather(*map(sandbox.run, jobs))] == [0, 1, 2]
    await sandbox.end_session("t:9")


async def test_typescript_runs(sandbox: Sandbox) -> None:
    source = (
        "import { writeFileSync, readFileSync } from 'node:fs';\n"
        "interface Point { x: number }\n"
        "export async function tool(p: Point, path: string): Promise<object> {\n"
        "  console.log('hi', process.env.A); console.error('err');\n"
        "  writeFileSync('made.txt', 'x'.repeat(p.x));\n"
        "  let written = true; try { writeFileSync(path, 'x') } catch { written = false }\n"
        "  return { double: p.x * 2, text: readFileSync(path, 'utf8'), written };\n"
        "}"
    )
    job = Job(
        source,
        "tool",
        {"p": {"x": 4}, "path": "/inputs/a"},
        {"A": "b"},
        LIMITS,
        Language.NODE,
        inputs=(File("a", b"in"),),
    )
    for _ in range(2):
        result = await sandbox.run(job)
        assert made(result) == {"double": 8, "text": "in", "written": False}
        assert (result.stdout, result.stderr) == ("hi b\n", "err\n")
        assert result.files == (File("made.txt", b"xxxx"),)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("throw new TypeError('no')", ExitReason.RAISED),
        ("for (;;) {}", ExitReason.TIMEOUT),
        ("const kept: Buffer[] = []; for (;;) kept.push(Buffer.alloc(1e7, 1))", ExitReason.MEMORY),
        ("for (;;) process.stdout.write('x'.repeat(1e6))", ExitReason.OUTPUT_TOO_LARGE),
        ("process.kill(process.pid, 'SIGKILL')", ExitReason.KILLED),
        ("const a: any = {}; a.a = a; return a", ExitReason.OK),
    ],
)
async def test_typescript_is_limited_as_python_is(sandbox: Sandbox, body: str, reason: ExitReason) -> None:
    # But for the one of them, time is not what ends it: Node starts and compiles within it, too.
    seconds = 3 if reason is ExitReason.TIMEOUT else 30
    limits = Limits(seconds=seconds, memory=256 * MIB, processes=32, disk=16 * MIB)
    result = await sandbox.run(Job(f"function tool(): any {{ {body} }}", "tool", {}, {}, limits, Language.NODE))
    assert result.reason is reason, result
