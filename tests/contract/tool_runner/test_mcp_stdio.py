"""MCP servers that are programs, in every sandbox that is here: one of the official SDK, and one of npm."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from services.tool_runner.core.job import MIB, NOTHING_SHOWN, HostFolder, HostView, Limits
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
from tests.fakes import mcp_packages
from tests.fakes.package_index import PackageIndex, package_index
from tests.integration.tool_runner.egress_world import Host, hosting
from tests.integration.tool_runner.harness import OneSandbox

_SCRIPT = Path(__file__).parents[2] / "recordings" / "tools" / "mcp_stdio.py"


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheels")
    mcp_packages.fill(folder)
    return folder


@pytest.fixture(scope="module")
def layer_folder() -> Iterator[Path]:
    """One for all tests: the SDK is installed once."""
    with open_folder() as opened:
        yield opened / "made"


@pytest.fixture
def index() -> Iterator[PackageIndex]:
    with package_index() as serving:
        serving.add_npm("@loci/tiny-mcp", "1.0.0", mcp_packages.npm_files())
        serving.add_npm("common-mcp", "1.0.0", mcp_packages.common_files())
        serving._files["/@loci%2ftiny-mcp"] = serving._files["/@loci/tiny-mcp"]
        yield serving


@asynccontextmanager
async def _client(
    sandbox: Sandbox,
    settings: LayerSettings,
    times: Times | None = None,
    host: HostView = NOTHING_SHOWN,
    homes: Homes | None = None,
) -> AsyncIterator[McpClient]:
    egress = Egress(EgressSettings(allow_private=True))
    layers = Layers(settings, OneSandbox(sandbox), egress)
    programs = SandboxPrograms(OneSandbox(sandbox), egress, layers, Limits(), host, homes)
    client = McpClient(allow_private=False, programs=programs, times=times or Times(30, 30, 30, 60))
    yield client
    await client.close()
    await layers.close()


def _showing(*folders: Path, writable: bool = False) -> HostView:
    return HostView(tuple(HostFolder(str(folder), writable) for folder in folders))


def _target(
    command: str, *args: str, env: dict[str, str] | None = None, network: str = "", paths: tuple[str, ...] = ()
) -> Target:
    program = Stdio(command=command, args=args, env=env or {}, network=network, paths=paths)
    return Target(uuid4(), Server(id=uuid4(), name="program", transport=program))


async def _call(client: McpClient, target: Target, tool: str, /, **arguments: Any) -> str:
    answer = await client.call(target, tool, arguments, schema={}, seconds=60, listener=lambda line: None)
    text: str = answer["content"][0]["text"]
    return text


async def _patiently(client: McpClient, target: Target) -> list[Any]:
    """Its tools; the first wait for the packages may be too long for one."""
    for _ in range(4):
        try:
            return await client.tools(target)
        except McpProblem as problem:
            if problem.kind is not Kind.TIMEOUT:
                raise
    raise AssertionError("its packages are still being installed")


async def test_a_server_of_the_sdk_comes_as_a_layer_and_runs_without_network(
    sandbox: Sandbox, wheels: Path, layer_folder: Path
) -> None:
    settings = LayerSettings(layer_folder, pip_index_url="none", pip_find_links=(str(wheels),))
    async with _client(sandbox, settings) as client:
        target = _target("uvx", "--from", "test-mcp-server", mcp_packages.PROGRAM, env={"MARK": "given"})
        tools = await _patiently(client, target)
        assert [tool["name"] for tool in tools][:2] == ["add", "echo"]
        assert await _call(client, target, "add", a=1, b=2) == "3"
        # One process for all calls, with its variables and no others of ours.
        assert await _call(client, target, "environment", name="MARK") == "given"
        assert await _call(client, target, "environment", name="LOCI_ENCRYPTION_KEY") == ""


async def test_a_program_of_npm_is_found_by_its_package(
    sandbox: Sandbox, index: PackageIndex, layer_folder: Path
) -> None:
    settings = LayerSettings(layer_folder, npm_registry=index.url)
    async with _client(sandbox, settings) as client:
        target = _target("npx", "-y", "@loci/tiny-mcp@1.0.0", "--flag", "word", env={"MARK": "given"})
        assert [tool["name"] for tool in await _patiently(client, target)] == ["argv"]
        assert await _call(client, target, "argv") == '[["--flag","word"],"given"]'


async def test_a_program_of_npm_sees_itself_as_npx_would_have_it(
    sandbox: Sandbox, index: PackageIndex, layer_folder: Path
) -> None:
    """`util.parseArgs` reads its own arguments, and `require.main` is its module."""
    async with _client(sandbox, LayerSettings(layer_folder, npm_registry=index.url)) as client:
        target = _target("npx", "-y", "common-mcp", "--mode", "fast")
        assert "mode" in [tool["name"] for tool in await _patiently(client, target)]
        assert await _call(client, target, "mode") == "fast"


async def test_node_reaches_the_hosts_of_network_and_no_others(
    sandbox: Sandbox, index: PackageIndex, layer_folder: Path
) -> None:
    async with hosting(Host()) as host, _client(sandbox, LayerSettings(layer_folder, npm_registry=index.url)) as client:
        place = f"127.0.0.1:{host.port}"
        allowed = _target("npx", "common-mcp", network=json.dumps({"allow": [place]}))
        other = _target("npx", "common-mcp", network=json.dumps({"allow": ["127.0.0.1:9"]}))
        await _patiently(client, allowed)
        for way in ("fetch", "http"):
            assert '"target"' in await _call(client, allowed, way, url=f"http://{place}/x")
            refused = await _call(client, other, way, url=f"http://{place}/x")
            assert '"target"' not in refused, refused


async def test_a_script_of_this_machine_runs_where_its_folder_is_shown(sandbox: Sandbox, layer_folder: Path) -> None:
    settings = LayerSettings(layer_folder)
    with open_folder() as folder:
        script = folder / "server.py"
        script.write_bytes(_SCRIPT.read_bytes())
        async with _client(sandbox, settings, host=_showing(folder)) as client:
            target = _target("python3", str(script), env={"REC_SUFFIX": "!"})
            assert [tool["name"] for tool in await client.tools(target)] == ["echo", "add", "fail"]
            assert await _call(client, target, "echo", text="hi") == "echo: hi !"
            with pytest.raises(McpProblem, match="Read-only file system"):
                await client.tools(_target("python3", "-c", f"open({str(folder / 'other')!r}, 'w')"))
        async with _client(sandbox, settings) as client:
            with pytest.raises(McpProblem, match="LOCI_MCP_STDIO_PATHS"):
                await client.tools(_target("python3", str(script)))


async def test_a_server_sees_those_of_the_folders_that_it_names(sandbox: Sandbox, layer_folder: Path) -> None:
    with open_folder() as code, open_folder() as notes:
        notes.chmod(0o777)
        (code / "server.py").write_bytes(_SCRIPT.read_bytes())
        host = HostView((*_showing(code).folders, *_showing(notes, writable=True).folders))
        writes = f"import pathlib; pathlib.Path({str(notes / 'made')!r}).write_text('x'); raise SystemExit('it wrote')"
        async with _client(sandbox, LayerSettings(layer_folder), host=host) as client:
            own = _target("python3", str(code / "server.py"), paths=(str(code),))
            assert await _call(client, own, "add", a=1, b=2) == "3"
            for paths, told in (
                ((str(code),), "LOCI_MCP_STDIO_PATHS"),
                ((f"{notes}:ro",), "Read-only file system"),
                ((str(notes),), "it wrote"),
                ((str(notes / "made"),), "LOCI_MCP_STDIO_PATHS has to name it"),
            ):
                with pytest.raises(McpProblem, match=told):
                    await client.tools(_target("python3", "-c", writes, paths=paths))


async def test_a_shown_folder_may_be_below_a_closed_one(bubblewrap_sandbox: Sandbox, layer_folder: Path) -> None:
    with open_folder() as folder:
        shown = folder / "closed" / "shown"
        shown.mkdir(parents=True)
        (shown / "server.py").write_bytes(_SCRIPT.read_bytes())
        (folder / "closed" / "secret").write_text("x")
        shown.parent.chmod(0o700)
        async with _client(bubblewrap_sandbox, LayerSettings(layer_folder), host=_showing(shown)) as client:
            target = _target("python3", str(shown / "server.py"))
            assert await _call(client, target, "add", a=1, b=2) == "3"
            with pytest.raises(McpProblem, match="No such file"):
                await client.tools(_target("python3", "-c", f"open({str(folder / 'closed' / 'secret')!r})"))


async def test_a_program_that_ends_is_told_with_its_last_words(sandbox: Sandbox, layer_folder: Path) -> None:
    async with _client(sandbox, LayerSettings(layer_folder)) as client:
        with pytest.raises(McpProblem, match="no such luck"):
            await client.tools(_target("python3", "-c", "import sys; sys.exit('no such luck')"))
        with pytest.raises(McpProblem, match="cannot be started"):
            await client.tools(_target("no-such-program"))


async def test_a_program_that_hangs_floods_or_babbles_ends_in_time(sandbox: Sandbox, layer_folder: Path) -> None:
    times = Times(connect=2, list=2, execute=2, idle=10)
    async with _client(sandbox, LayerSettings(layer_folder), times) as client:
        for source in (
            "import time; time.sleep(60)",
            "while True: print('x' * 1000, flush=True)",
            "import json\nwhile True: print(json.dumps({'jsonrpc': '2.0', 'method': 'notifications/message'}))",
            "import sys\nwhile True: sys.stdout.write('{' * 100000)",
        ):
            with pytest.raises(McpProblem) as caught:
                await client.tools(_target("python3", "-c", source))
            assert caught.value.kind in (Kind.TIMEOUT, Kind.FAILED), caught.value


async def test_what_a_program_prints_instead_of_the_protocol_is_told(
    bubblewrap_sandbox: Sandbox, layer_folder: Path
) -> None:
    times = Times(connect=2, list=2, execute=2, idle=10)
    source = "print('Listening on 8000', flush=True); input(); input()"
    async with _client(bubblewrap_sandbox, LayerSettings(layer_folder), times) as client:
        with pytest.raises(McpProblem, match="printed to stdout, where messages of the protocol belong: 'Listening on"):
            await client.tools(_target("python3", "-c", source))


async def _ask_until_it_ends(client: McpClient, target: Target) -> None:
    for _ in range(300):
        await client.tools(target)
        await asyncio.sleep(0.1)


def _note(count: int = 1) -> str:
    """A server that writes `count` MiB into its working folder, then counts its starts there."""
    return (
        "import os, runpy, sys\n"
        f"open('large', 'wb').write(bytes({count} << 20))\n"
        "open('starts', 'a').write('x')\n"
        "os.environ['REC_SUFFIX'] = open('starts').read()\n"
        f"sys.argv = ['server']; exec(compile({_SCRIPT.read_text()!r}, 'server', 'exec'))"
    )


async def test_what_a_program_wrote_is_there_when_it_runs_again(
    bubblewrap_sandbox: Sandbox, layer_folder: Path, tmp_path: Path
) -> None:
    """After its session ended, in whatever way; and gone with the server."""
    homes = Homes(tmp_path / "homes", 4 * MIB)
    target = _target("python3", "-c", _note())
    for starts in ("x", "xx"):
        async with _client(bubblewrap_sandbox, LayerSettings(layer_folder), homes=homes) as client:
            assert await _call(client, target, "echo", text="hi") == f"echo: hi {starts}"
    unstored = replace(target, stored=False)
    async with _client(bubblewrap_sandbox, LayerSettings(layer_folder), homes=homes) as client:
        assert await _call(client, unstored, "echo", text="hi") == "echo: hi x"
        await client.forget(target.organization_id, target.server.id)
        assert await _call(client, target, "echo", text="hi") == "echo: hi x"
        await client.forget(target.organization_id)
    assert list((tmp_path / "homes").iterdir()) == []


async def test_a_folder_that_is_too_large_ends_its_program_and_says_so(
    bubblewrap_sandbox: Sandbox, layer_folder: Path, tmp_path: Path
) -> None:
    homes = Homes(tmp_path / "homes", 4 * MIB, look_seconds=0.1)
    target = _target("python3", "-c", _note(6))
    async with _client(bubblewrap_sandbox, LayerSettings(layer_folder), homes=homes) as client:
        with pytest.raises(McpProblem, match="LOCI_MCP_HOME_MIB"):
            await _ask_until_it_ends(client, target)
        with pytest.raises(McpProblem, match="more than 4 MiB: LOCI_MCP_HOME_MIB is the limit"):
            await client.tools(target)


async def test_a_package_that_writes_beside_its_code_keeps_what_it_wrote(
    bubblewrap_sandbox: Sandbox, index: PackageIndex, layer_folder: Path, tmp_path: Path
) -> None:
    homes, settings = Homes(tmp_path / "homes", 4 * MIB), LayerSettings(layer_folder, npm_registry=index.url)
    target = _target("npx", "-y", "common-mcp")
    for seen in ("one;", "one;one;"):
        async with _client(bubblewrap_sandbox, settings, homes=homes) as client:
            await _patiently(client, target)
            await _call(client, target, "note", url="one")
            assert await _call(client, target, "notes") == seen


async def test_a_writable_folder_is_written_to(bubblewrap_sandbox: Sandbox, layer_folder: Path) -> None:
    with open_folder() as folder:
        folder.chmod(0o777)
        (folder / "server.py").write_bytes(_SCRIPT.read_bytes())
        source = f"open({str(folder / 'made')!r}, 'w').write('x'); exec(open({str(folder / 'server.py')!r}).read())"
        host = _showing(folder, writable=True)
        async with _client(bubblewrap_sandbox, LayerSettings(layer_folder), host=host) as client:
            assert await client.tools(_target("python3", "-c", source))
        assert (folder / "made").read_text() == "x"


async def test_programs_of_the_machine_are_there_where_they_are_shown(
    bubblewrap_sandbox: Sandbox, layer_folder: Path
) -> None:
    """To be read and run, and not to be changed."""
    shown, settings = HostView(programs=True), LayerSettings(layer_folder)
    async with _client(bubblewrap_sandbox, settings, host=shown) as client:
        with pytest.raises(McpProblem, match="seen by sh"):
            await client.tools(_target("sh", "-c", "echo seen by sh >&2; touch /usr/bin/x"))
        with pytest.raises(McpProblem, match="Read-only file system"):
            await client.tools(_target("sh", "-c", "touch /usr/bin/x"))
    async with _client(bubblewrap_sandbox, settings) as client:
        with pytest.raises(McpProblem, match=r"no program sh\. .*LOCI_MCP_STDIO_PROGRAMS=true"):
            await client.tools(_target("sh", "-c", "true"))


async def test_own_code_runs_as_uv_run_has_it(sandbox: Sandbox, layer_folder: Path) -> None:
    with open_folder() as folder:
        (folder / "server.py").write_bytes(_SCRIPT.read_bytes())
        async with _client(sandbox, LayerSettings(layer_folder), host=_showing(folder)) as client:
            target = _target("uv", "run", "--directory", str(folder), "server.py")
            assert [tool["name"] for tool in await client.tools(target)] == ["echo", "add", "fail"]
            (folder / "pyproject.toml").write_text("[project]")
            with pytest.raises(McpProblem, match="run 'uv sync' there"):
                await client.tools(_target("uv", "run", "--directory", str(folder), "server.py"))
