"""MCP servers that are ordinary processes of this machine: LOCI_MCP_STDIO=host."""

import asyncio
import contextlib
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from services.tool_runner.mcp.client import McpClient, Target, Times
from services.tool_runner.mcp.homes import Homes
from services.tool_runner.mcp.host_programs import HostProcess, HostPrograms
from services.tool_runner.mcp.protocol.errors import McpProblem
from services.tool_runner.mcp_servers.model import Server, Stdio
from tests.polling import until

# Speaks just enough of the protocol, and starts a process of its own that outlives a polite end.
_SERVER = """
import json, os, subprocess, sys
child = subprocess.Popen(["sleep", "600"])
def say(number, result):
    print(json.dumps({"jsonrpc": "2.0", "id": number, "result": result}), flush=True)
for line in sys.stdin:
    message = json.loads(line)
    method, params = message.get("method"), message.get("params") or {}
    if method == "initialize":
        server = {"name": "host", "version": "1"}
        say(message["id"], {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}},
                            "serverInfo": server})
    elif method == "tools/list":
        say(message["id"], {"tools": [{"name": "look", "inputSchema": {"type": "object"}}]})
    elif method == "tools/call":
        open("kept.txt", "a").write("x")
        seen = [dict(os.environ), os.getcwd(), open("kept.txt").read(), child.pid]
        say(message["id"], {"content": [{"type": "text", "text": json.dumps(seen)}]})
"""
_TIMES = Times(connect=30, list=30, execute=30, idle=300)


def _client(folder: Path, **environment: str) -> McpClient:
    programs = HostPrograms({"PATH": os.environ["PATH"], "HOME": str(folder), **environment}, Homes(folder, 1 << 20))
    return McpClient(allow_private=False, programs=programs, times=_TIMES)


def _target(command: str, *args: str, **env: str) -> Target:
    return Target(uuid4(), Server(id=uuid4(), name="host", transport=Stdio(command=command, args=args, env=env)))


async def _look(client: McpClient, target: Target) -> Any:
    answer = await client.call(target, "look", {}, schema={}, seconds=30, listener=lambda line: None)
    return json.loads(answer["content"][0]["text"])


async def test_it_runs_as_a_child_with_its_own_variables_and_all_of_it_ends(tmp_path: Path) -> None:
    target = _target(Path(sys.executable).name, "-c", _SERVER, MARK="given")
    client = _client(tmp_path, LANG="C.UTF-8", PATH=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    assert [tool["name"] for tool in await client.tools(target)] == ["look"]
    environment, folder, kept, child = await _look(client, target)
    assert {"MARK": "given", "LANG": "C.UTF-8", "HOME": str(tmp_path)}.items() <= environment.items()
    assert not [name for name in environment if name.startswith(("LOCI_", "LETTA_"))]
    assert (folder, kept) == (str(tmp_path / str(target.organization_id) / str(target.server.id)), "x")
    await client.close()
    await until(lambda: not _runs(child))
    again = _client(tmp_path)
    _, _, kept, _ = await _look(again, target)
    assert kept == "xx"
    await again.forget(target.organization_id, target.server.id)
    assert not os.listdir(tmp_path / str(target.organization_id))
    await again.close()


async def test_a_program_that_is_not_there_and_one_that_ends(tmp_path: Path) -> None:
    client = _client(tmp_path)
    with pytest.raises(McpProblem, match="there is no no-such-program on this machine: it is in no folder of PATH"):
        await client.tools(_target("no-such-program"))
    with pytest.raises(McpProblem, match=r"(?s)ended.*ValueError: the cause"):
        await client.tools(_target(sys.executable, "-c", "raise ValueError('the cause')"))
    await client.close()


async def test_a_program_that_is_deaf_is_killed(tmp_path: Path) -> None:
    deaf = "import os, signal, time; signal.signal(15, signal.SIG_IGN); open('pid', 'w').write(str(os.getpid()))\n"
    target = _target(sys.executable, "-c", f"{deaf}time.sleep(600)")
    client = _client(tmp_path)
    asking = asyncio.create_task(client.tools(target))
    file = tmp_path / str(target.organization_id) / str(target.server.id) / "pid"
    await until(lambda: file.exists() and bool(file.read_text()))
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)
    await client.close()
    await until(lambda: not _runs(int(file.read_text())))


_LEAVES = """
import subprocess, sys
left = subprocess.Popen(["sleep", "600"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, start_new_session=True)
print(left.pid, flush=True)
sys.stdin.read()
"""


async def test_of_what_left_its_group_no_pipe_stays_open(tmp_path: Path) -> None:
    before = _pipes()
    process = await HostProcess.start((sys.executable, "-c", _LEAVES), {"PATH": os.environ["PATH"]}, tmp_path)
    left = int(await process.read())
    try:
        await process.close()
        await until(lambda: _pipes() <= before)
    finally:
        os.kill(left, signal.SIGKILL)


def _pipes() -> set[str]:
    """Returns the pipes that this process has open."""
    names = set()
    for each in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):
            names.add(os.readlink(each))
    return {name for name in names if name.startswith("pipe:")}


def _runs(pid: int) -> bool:
    """Returns whether a process runs; one that waits to be reaped does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] != "Z"
    except OSError:
        return False
