"""Published servers, by the lines that everybody copies, with the settings that the docs name."""

import asyncio
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from services.tool_runner.core.job import HostFolder, HostView
from services.tool_runner.core.ports import Sandbox
from services.tool_runner.mcp.client import Times
from services.tool_runner.mcp.protocol.errors import McpProblem
from tests.contract.tool_runner.folders import open_folder
from tests.contract.tool_runner.published import Published, call, loci, published, target, tools_of
from tests.fakes.http import Exchange, HttpServer, Request


@pytest.fixture(scope="module")
def packages() -> Iterator[Published]:
    """Those of the locks; each is installed by Loci once."""
    with open_folder() as folder, published(folder) as found:
        yield found


@dataclass(frozen=True)
class _Case:
    """A line of a README, the program that it comes to, and calls with what their answers have in them."""

    line: tuple[str, ...]
    program: str
    calls: tuple[tuple[str, dict[str, Any], str], ...]
    args: tuple[str, ...] = field(default=())


_THOUGHT = {"thoughtNumber": 1, "totalThoughts": 2}
_CASES = {
    "everything": _Case(
        ("npx", "-y", "@modelcontextprotocol/server-everything"),
        "mcp-server-everything",
        (("echo", {"message": "hi"}, "Echo: hi"), ("get-sum", {"a": 1, "b": 2}, "The sum of 1 and 2 is 3")),
    ),
    "sequential thinking": _Case(
        ("npx", "-y", "@modelcontextprotocol/server-sequential-thinking"),
        "mcp-server-sequential-thinking",
        (
            (
                "sequentialthinking",
                {"thought": "a", "nextThoughtNeeded": True, **_THOUGHT},
                '"thoughtHistoryLength": 1',
            ),
            (
                "sequentialthinking",
                {"thought": "b", "nextThoughtNeeded": False, **_THOUGHT},
                '"thoughtHistoryLength": 2',
            ),
        ),
    ),
    "chart, whose program reads its words with parseArgs": _Case(
        ("npx", "-y", "@antv/mcp-server-chart"), "mcp-server-chart", ()
    ),
    "calc": _Case(
        ("npx", "@coo-quack/calc-mcp@latest"),
        "calc-mcp",
        (
            ("math", {"expression": "6*7"}, "42"),
            ("base64", {"input": "hi", "action": "encode"}, "aGk="),
        ),
    ),
    "time": _Case(
        ("uvx", "mcp-server-time", "--local-timezone=Europe/Berlin"),
        "mcp-server-time",
        (
            ("get_current_time", {"timezone": "Asia/Tokyo"}, "Asia/Tokyo"),
            (
                "convert_time",
                {"source_timezone": "Asia/Tokyo", "time": "12:00", "target_timezone": "Asia/Kolkata"},
                "08:30",
            ),
        ),
        ("--local-timezone=Europe/Berlin",),
    ),
}


@pytest.mark.parametrize("name", _CASES)
async def test_a_server_lists_its_tools_and_is_called(
    bubblewrap_sandbox: Sandbox, packages: Published, tmp_path: Path, name: str
) -> None:
    case = _CASES[name]
    async with loci(bubblewrap_sandbox, packages, tmp_path) as client:
        server = target(*case.line)
        assert await tools_of(client, server) == await packages.direct(case.program, *case.args)
        for tool, arguments, expected in case.calls:
            assert expected in await call(client, server, tool, arguments)


async def test_the_everything_server_gives_its_resources_and_prompts(
    bubblewrap_sandbox: Sandbox, packages: Published, tmp_path: Path
) -> None:
    async with loci(bubblewrap_sandbox, packages, tmp_path) as client:
        server = target("npx", "-y", "@modelcontextprotocol/server-everything")
        await tools_of(client, server)
        first, *others = await client.listed(server, "resources/list", "resources")
        assert others
        (content,) = (await client.read(server, "resources/read", {"uri": first["uri"]}))["contents"]
        assert content["text"]
        assert await client.listed(server, "resources/templates/list", "resourceTemplates")
        prompts = {prompt["name"]: prompt for prompt in await client.listed(server, "prompts/list", "prompts")}
        arguments = {one["name"]: "Paris" for one in prompts["args-prompt"]["arguments"]}
        wanted = {"name": "args-prompt", "arguments": arguments}
        (message,) = (await client.read(server, "prompts/get", wanted))["messages"]
        assert "Paris" in message["content"]["text"]


async def test_the_filesystem_server_reads_and_writes_the_folder_it_is_given(
    bubblewrap_sandbox: Sandbox, packages: Published, tmp_path: Path
) -> None:
    with open_folder() as shown:
        shown.chmod(0o777)
        (shown / "note.txt").write_text("of the host")
        host = HostView((HostFolder(str(shown), writable=True),))
        server = target("npx", "-y", "@modelcontextprotocol/server-filesystem", str(shown))
        async with loci(bubblewrap_sandbox, packages, tmp_path, host) as client:
            assert await tools_of(client, server) == await packages.direct("mcp-server-filesystem", str(shown))
            text = await call(client, server, "read_text_file", {"path": str(shown / "note.txt")})
            assert text == "of the host"
            await call(client, server, "write_file", {"path": str(shown / "made.txt"), "content": "by the server"})
            assert (shown / "made.txt").read_text() == "by the server"
        async with loci(bubblewrap_sandbox, packages, tmp_path) as client:
            with pytest.raises(McpProblem, match="LOCI_MCP_STDIO_PATHS"):
                await tools_of(client, server)


async def test_the_git_server_reads_the_repository_it_is_given(
    bubblewrap_sandbox: Sandbox, packages: Published, tmp_path: Path
) -> None:
    with open_folder() as repository:
        _git(repository, "init", "-q")
        (repository / "a.txt").write_text("x")
        _git(repository, "add", "a.txt")
        _git(repository, "-c", "user.name=a", "-c", "user.email=a@b.c", "commit", "-qm", "the first commit")
        shown, at = (HostFolder(str(repository)),), {"repo_path": str(repository)}
        server = target("uvx", "mcp-server-git", "--repository", str(repository))
        async with loci(bubblewrap_sandbox, packages, tmp_path, HostView(shown, programs=True)) as client:
            direct = await packages.direct("mcp-server-git", "--repository", str(repository))
            assert await tools_of(client, server) == direct
            assert "the first commit" in await call(client, server, "git_log", at)
            assert "nothing to commit" in await call(client, server, "git_status", at)
        async with loci(bubblewrap_sandbox, packages, tmp_path, HostView(shown)) as client:
            with pytest.raises(McpProblem, match="LOCI_MCP_STDIO_PROGRAMS=true"):
                await tools_of(client, server)


async def test_what_servers_wrote_is_there_when_they_run_again(
    bubblewrap_sandbox: Sandbox, packages: Published, tmp_path: Path
) -> None:
    """By their documented commands: one writes beside its package, the others into their working folder."""
    memory = target("npx", "-y", "@modelcontextprotocol/server-memory")
    sqlite = target("uvx", "mcp-server-sqlite", "--db-path", "test.db")
    excel = target("uvx", "excel-mcp-server", "stdio")
    entity = {"name": "Loci", "entityType": "thing", "observations": ["remembers"]}
    book = {"filepath": "/work/book.xlsx"}
    async with loci(bubblewrap_sandbox, packages, tmp_path) as client:
        assert await tools_of(client, memory) == await packages.direct("mcp-server-memory")
        assert await tools_of(client, sqlite) == await packages.direct(
            "mcp-server-sqlite", "--db-path", str(tmp_path / "direct.db")
        )
        assert await tools_of(client, excel) == await packages.direct("excel-mcp-server", "stdio")
        await call(client, memory, "create_entities", {"entities": [entity]})
        await call(client, sqlite, "create_table", {"query": "CREATE TABLE notes (text TEXT)"})
        await call(client, sqlite, "write_query", {"query": "INSERT INTO notes VALUES ('kept')"})
        await call(client, excel, "create_workbook", book)
        await call(client, excel, "write_data_to_excel", {**book, "sheet_name": "Sheet1", "data": [["kept", 1]]})
    async with loci(bubblewrap_sandbox, packages, tmp_path) as client:
        assert '"Loci"' in await call(client, memory, "read_graph", {})
        assert "kept" in await call(client, sqlite, "read_query", {"query": "SELECT * FROM notes"})
        assert "kept" in await call(client, excel, "read_data_from_excel", {**book, "sheet_name": "Sheet1"})


@pytest.mark.parametrize("way", ["idle", "too slow", "killed"])
async def test_the_memory_server_remembers_whatever_ended_it(
    bubblewrap_sandbox: Sandbox, packages: Published, tmp_path: Path, way: str
) -> None:
    """Idle for longer than sessions are kept, ended by a call that took too long, or killed."""
    server = target("npx", "-y", "@modelcontextprotocol/server-memory")
    entity = {"name": "Loci", "entityType": "thing", "observations": ["remembers"]}
    async with loci(bubblewrap_sandbox, packages, tmp_path, times=Times(30, 30, 60, 1.0)) as client:
        await tools_of(client, server)
        await call(client, server, "create_entities", {"entities": [entity]})
        (session,) = client._lines.values()
        if way == "too slow":
            with pytest.raises(McpProblem):
                await client.call(server, "read_graph", {}, schema={}, seconds=0.0, listener=lambda line: None)
        elif way == "killed":
            await session.close()
        async with asyncio.timeout(30):
            while session.alive:
                await asyncio.sleep(0.05)
        assert '"Loci"' in await call(client, server, "read_graph", {})


async def test_servers_reach_the_pages_that_their_network_allows(
    bubblewrap_sandbox: Sandbox, packages: Published, tmp_path: Path
) -> None:
    """One in Python, and one in Node, which is itself a client of another server."""
    page = HttpServer(_page)
    await page.start()
    here = f"127.0.0.1:{page.port}"
    async with loci(bubblewrap_sandbox, packages, tmp_path) as client:
        options = ("--ignore-robots-txt", "--allow-private-ips")
        fetch = target("uvx", "mcp-server-fetch", *options, network={"allow": [here]})
        assert await tools_of(client, fetch) == await packages.direct("mcp-server-fetch", *options)
        assert "a page for fetch" in await call(client, fetch, "fetch", {"url": f"http://{here}/page"})
        gzip = target("npx", "-y", "@modelcontextprotocol/server-everything", network={"allow": [here]})
        await tools_of(client, gzip)
        arguments = {"name": "a.gz", "data": f"http://{here}/page", "outputType": "resourceLink"}
        assert "Error" not in await call(client, gzip, "gzip-file-as-resource", arguments)
    await page.stop()


async def _page(request: Request, exchange: Exchange) -> None:
    await exchange.send(200, {"content-type": "text/html"}, b"<html><body><p>a page for fetch</p></body></html>")


def _git(folder: Path, *words: str) -> None:
    git = shutil.which("git")
    if git is None:
        pytest.skip("there is no git")
    subprocess.run([git, "-C", str(folder), *words], check=True)
