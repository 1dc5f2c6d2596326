"""Published packages of MCP servers, as pinned in tests/e2e/npm-mcp-servers: from a mirror for Loci, and run directly.

Loci is told the lines that their READMEs have. `direct` lists the same server with the official client and no Loci.
"""

import json
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from mcp.client.session import ClientSession
from mcp.client.stdio import StdioServerParameters, stdio_client

from services.tool_runner.core.job import NOTHING_SHOWN, HostView, Limits
from services.tool_runner.core.ports import Sandbox
from services.tool_runner.egress.egress import Egress, EgressSettings
from services.tool_runner.layers.install_job import LayerSettings
from services.tool_runner.layers.layers import Layers
from services.tool_runner.mcp.client import McpClient, Target, Times
from services.tool_runner.mcp.homes import Homes
from services.tool_runner.mcp.protocol.errors import Kind, McpProblem
from services.tool_runner.mcp.stdio import SandboxPrograms
from services.tool_runner.mcp_servers.model import Server, Stdio
from tests.fakes.npm_mirror import npm_mirror
from tests.integration.tool_runner.harness import OneSandbox

FOLDER = Path(__file__).parents[2] / "e2e" / "npm-mcp-servers"
MODULES = FOLDER / "node_modules"
_TIMES = Times(30, 30, 60, 60)
_RUN = (
    "import sys; from importlib.metadata import entry_points; sys.argv = sys.argv[1:]; "
    "sys.exit(next(e for e in entry_points(group='console_scripts') if e.name == sys.argv[0]).load()())"
)


def pip(*words: str) -> None:
    """Runs pip, which has the index that this machine has; what it downloads has the hashes of the lock."""
    quiet = ("--quiet", "--disable-pip-version-check", "--no-input")
    done = subprocess.run([sys.executable, "-m", "pip", words[0], *quiet, *words[1:]], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2_000:]


class Published:
    """The packages: `registry` of npm, `wheels` of Python, and both `installed` for who runs them directly."""

    def __init__(self, registry: str, folder: Path) -> None:
        self.registry = registry
        self.wheels, self.installed = folder / "wheels", folder / "installed"
        self.layers = folder / "layers"

    def fill(self, folder: Path) -> None:
        """Downloads the wheels, those too that an older Python needs, which a sandbox may have."""
        whole = ("--no-deps", "--only-binary", ":all:", "--require-hashes")
        lock = FOLDER / "python.lock"
        for number, part in enumerate(_parts(lock.read_text())):
            (folder / f"{number}.lock").write_text(part)
            pip("download", *whole, "--dest", str(self.wheels), "-r", str(folder / f"{number}.lock"))
        known = ("--no-index", "--find-links", str(self.wheels))
        pip("install", *whole, *known, "--no-compile", "--target", str(self.installed), "-r", str(lock))

    async def direct(self, program: str, *args: str) -> dict[str, Any]:
        """Returns the tools of a program of the packages, by name, as the official client lists them."""
        if (MODULES / ".bin" / program).exists():
            parameters = StdioServerParameters(command=str(MODULES / ".bin" / program), args=list(args))
        else:
            python = ["-P", "-c", _RUN, program, *args]
            environment = {"PYTHONPATH": str(self.installed), "PATH": "/usr/bin:/bin"}
            parameters = StdioServerParameters(command=sys.executable, args=python, env=environment)
        async with stdio_client(parameters) as streams, ClientSession(*streams) as session:
            await session.initialize()
            return {tool.name: tool.input_schema for tool in (await session.list_tools()).tools}


def _parts(lock: str) -> list[str]:
    """Returns the lock without its conditions, in parts that have each package once."""
    parts: list[dict[str, str]] = []
    for entry in re.split(r"\n(?=\S)", lock):
        name = entry.partition("==")[0]
        part = next((part for part in parts if name not in part), None)
        if part is None:
            parts.append(part := {})
        part[name] = re.sub(r" ; [^\n]* \\\n", " \\\\\n", entry)
    return ["\n".join(part.values()) for part in parts]


@contextmanager
def published(folder: Path) -> Iterator[Published]:
    """Yields the packages; skips where they are not installed."""
    if not (MODULES / ".package-lock.json").exists():
        pytest.skip("needs Node's: npm ci --prefix tests/e2e/npm-mcp-servers")
    with npm_mirror(MODULES) as registry:
        packages = Published(registry, folder)
        packages.fill(folder)
        yield packages


@asynccontextmanager
async def loci(
    sandbox: Sandbox, packages: Published, folder: Path, host: HostView = NOTHING_SHOWN, times: Times = _TIMES
) -> AsyncIterator[McpClient]:
    """Yields the client of MCP servers, with those packages and no others; `folder` has the homes of servers."""
    egress = Egress(EgressSettings(allow_private=True))
    settings = LayerSettings(
        packages.layers,
        pip_index_url="none",
        pip_find_links=(str(packages.wheels),),
        npm_registry=packages.registry,
    )
    layers = Layers(settings, OneSandbox(sandbox), egress)
    homes = Homes(folder / "homes", 1 << 28)
    programs = SandboxPrograms(OneSandbox(sandbox), egress, layers, Limits(), host, homes)
    client = McpClient(allow_private=True, programs=programs, times=times)
    try:
        yield client
    finally:
        await client.close()
        await layers.close()


def target(*line: str, network: Mapping[str, Any] | None = None, env: Mapping[str, str] | None = None) -> Target:
    """Returns a server that is a program, by its command line."""
    text = json.dumps(network) if network else ""
    program = Stdio(command=line[0], args=line[1:], network=text, env=env or {})
    return Target(uuid4(), Server(id=uuid4(), name="program", transport=program))


async def tools_of(client: McpClient, server: Target) -> dict[str, Any]:
    """Returns the schemas of its tools, by name; the first wait for the packages may be too long for one."""
    for _ in range(12):
        try:
            return {tool["name"]: tool["inputSchema"] for tool in await client.tools(server)}
        except McpProblem as problem:
            if problem.kind is not Kind.TIMEOUT:
                raise
    raise AssertionError("its packages are still being installed")


async def call(client: McpClient, server: Target, tool: str, arguments: Mapping[str, Any]) -> str:
    """Returns the texts that a tool answers."""
    answer = await client.call(server, tool, dict(arguments), schema={}, seconds=60, listener=lambda line: None)
    text = "\n".join(part.get("text", "") for part in answer["content"])
    assert not answer.get("isError"), text
    return text
