"""Published servers from the registries, by the lines that everybody copies, with the settings that the docs name."""

import json
import shutil
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from services.tool_runner.core.job import NOTHING_SHOWN, HostFolder, HostView, Limits
from services.tool_runner.core.ports import Sandbox
from services.tool_runner.egress.egress import Egress, EgressSettings
from services.tool_runner.layers.install_job import LayerSettings
from services.tool_runner.layers.layers import Layers
from services.tool_runner.mcp.client import McpClient, Target, Times
from services.tool_runner.mcp.homes import Homes
from services.tool_runner.mcp.protocol.errors import Kind, McpProblem
from services.tool_runner.mcp.stdio import SandboxPrograms
from services.tool_runner.mcp_servers.model import Server, Stdio
from tests.contract.tool_runner.folders import open_folder
from tests.integration.tool_runner.harness import OneSandbox

pytestmark = pytest.mark.long


@asynccontextmanager
async def _client(sandbox: Sandbox, folder: Path, host: HostView = NOTHING_SHOWN) -> AsyncIterator[McpClient]:
    egress = Egress(EgressSettings())
    layers = Layers(LayerSettings(folder / "layers"), OneSandbox(sandbox), egress)
    homes = Homes(folder / "homes", 1 << 28)
    programs = SandboxPrograms(OneSandbox(sandbox), egress, layers, Limits(), host, homes)
    client = McpClient(allow_private=False, programs=programs, times=Times(30, 30, 30, 60))
    yield client
    await client.close()
    await layers.close()


def _target(command: str, *args: str) -> Target:
    return Target(uuid4(), Server(id=uuid4(), name="program", transport=Stdio(command=command, args=args)))


async def _names(client: McpClient, target: Target) -> set[str]:
    """Its tools; the first wait for the packages may be too long for one."""
    for _ in range(10):
        try:
            return {tool["name"] for tool in await client.tools(target)}
        except McpProblem as problem:
            if problem.kind is not Kind.TIMEOUT:
                raise
    raise AssertionError("its packages are still being installed")


async def _call(client: McpClient, target: Target, tool: str, /, **arguments: Any) -> str:
    answer = await client.call(target, tool, arguments, schema={}, seconds=60, listener=lambda line: None)
    assert not answer.get("isError"), answer
    text: str = answer["content"][0]["text"]
    return text


async def test_the_filesystem_server_reads_and_writes_the_folder_it_is_given(bubblewrap_sandbox: Sandbox) -> None:
    with open_folder() as folder, open_folder() as shown:
        shown.chmod(0o777)
        (shown / "note.txt").write_text("of the host")
        host = HostView((HostFolder(str(shown), writable=True),))
        line = ("npx", "-y", "@modelcontextprotocol/server-filesystem", str(shown))
        async with _client(bubblewrap_sandbox, folder, host) as client:
            target = _target(*line)
            assert {"read_text_file", "write_file", "list_directory"} <= await _names(client, target)
            assert await _call(client, target, "read_text_file", path=str(shown / "note.txt")) == "of the host"
            await _call(client, target, "write_file", path=str(shown / "made.txt"), content="by the server")
            assert (shown / "made.txt").read_text() == "by the server"
        async with _client(bubblewrap_sandbox, folder) as client:
            with pytest.raises(McpProblem, match="LOCI_MCP_STDIO_PATHS"):
                await _names(client, _target(*line))


async def test_the_git_server_reads_the_repository_it_is_given(bubblewrap_sandbox: Sandbox) -> None:
    with open_folder() as folder, open_folder() as repository:
        _git(repository, "init", "-q")
        (repository / "a.txt").write_text("x")
        _git(repository, "add", "a.txt")
        _git(repository, "-c", "user.name=a", "-c", "user.email=a@b.c", "commit", "-qm", "the first commit")
        shown = (HostFolder(str(repository)),)
        line = ("uvx", "mcp-server-git", "--repository", str(repository))
        async with _client(bubblewrap_sandbox, folder, HostView(shown, programs=True)) as client:
            target = _target(*line)
            assert {"git_log", "git_status"} <= await _names(client, target)
            assert "the first commit" in await _call(client, target, "git_log", repo_path=str(repository))
            assert "nothing to commit" in await _call(client, target, "git_status", repo_path=str(repository))
        async with _client(bubblewrap_sandbox, folder, HostView(shown)) as client:
            with pytest.raises(McpProblem, match="LOCI_MCP_STDIO_PROGRAMS=true"):
                await _names(client, _target(*line))


async def test_the_memory_server_remembers_when_it_runs_again(bubblewrap_sandbox: Sandbox) -> None:
    """By its documented command, which has it write beside its package."""
    with open_folder() as folder:
        target = _target("npx", "-y", "@modelcontextprotocol/server-memory")
        async with _client(bubblewrap_sandbox, folder) as client:
            assert {"create_entities", "read_graph"} <= await _names(client, target)
            entity = {"name": "Loci", "entityType": "thing", "observations": ["remembers"]}
            await _call(client, target, "create_entities", entities=[entity])
        async with _client(bubblewrap_sandbox, folder) as client:
            graph = json.loads(await _call(client, target, "read_graph"))
            assert [one["name"] for one in graph["entities"]] == ["Loci"]


def _git(folder: Path, *words: str) -> None:
    git = shutil.which("git")
    if git is None:
        pytest.skip("there is no git")
    subprocess.run([git, "-C", str(folder), *words], check=True)
