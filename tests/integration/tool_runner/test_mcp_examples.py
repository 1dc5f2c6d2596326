"""Published servers behind a URL: examples of the TypeScript SDK, and FastMCP, with OAuth and without."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from loci.tool.v1 import execution_service_pb2 as execution_pb
from loci.tool.v1 import mcp_pb2 as mcp_pb
from loci.tool.v1 import mcp_service_pb2 as pb
from services.tool_runner.mcp.client import Times
from tests.contract.tool_runner.published import FOLDER, MODULES, pip
from tests.e2e.stack import is_listening, own_port
from tests.integration.tool_runner.harness import tool_runner
from tests.integration.tool_runner.test_mcp_oauth import authorize
from tests.integration.tool_runner.test_mcp_servers import SETTINGS
from tests.polling import wait_until

_EXAMPLES = MODULES / "@modelcontextprotocol/sdk/dist/esm/examples/server"
_FASTMCP = """
import sys
from fastmcp import FastMCP
from fastmcp.server.auth.providers.in_memory import InMemoryOAuthProvider
from mcp.server.auth.settings import ClientRegistrationOptions
port = int(sys.argv[1])
here = f"http://localhost:{port}"
provider = InMemoryOAuthProvider(base_url=here, client_registration_options=ClientRegistrationOptions(enabled=True))
app = FastMCP("calculator", auth=provider if sys.argv[2:] else None)
@app.tool
def add(a: int, b: int) -> int:
    "Adds."
    return a + b
app.run(transport="http", host="localhost", port=port, show_banner=False)
"""
_LONGER = replace(SETTINGS, times=Times(30, 30, 30, 60))

pytestmark = pytest.mark.skipif(
    not _EXAMPLES.exists(), reason="needs Node's: npm ci --prefix tests/e2e/npm-mcp-servers"
)


@pytest.fixture(scope="module")
def fastmcp(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fastmcp")
    whole = ("--no-deps", "--only-binary", ":all:", "--require-hashes", "--no-compile")
    pip("install", *whole, "--target", str(folder), "-r", str(FOLDER / "fastmcp.lock"))
    return folder


@contextmanager
def _running(port: int, *command: str, **environment: str) -> Iterator[str]:
    kept = {"PATH": os.environ["PATH"], **environment}
    process = subprocess.Popen(command, env=kept, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_until(lambda: is_listening(port), 90)
        yield f"http://localhost:{port}/mcp"
    finally:
        process.kill()
        process.wait()


def _create(url: str) -> pb.CreateMcpServerRequest:
    transport = mcp_pb.McpTransport(streamable_http=mcp_pb.HttpMcpTransport(server_url=url))
    return pb.CreateMcpServerRequest(name="example", transport=transport)


async def _tools(service: Any, server: mcp_pb.McpServer) -> dict[str, Any]:
    listed = await service.mcp.ListMcpTools(pb.ListMcpToolsRequest(id=server.id))
    return {tool.name: tool for tool in listed.tools}


async def test_an_example_with_tasks_offers_what_can_be_called(tool_url: str, tmp_path: Path) -> None:
    with own_port() as port:
        example = str(_EXAMPLES / "simpleStreamableHttp.js")
        with _running(port, "node", example, MCP_PORT=str(port)) as url:
            async with tool_runner(tool_url, tmp_path, mcp=_LONGER, organization_id=uuid4()) as service:
                server = (await service.mcp.CreateMcpServer(_create(url))).server
                assert (server.status, server.problem) == (mcp_pb.MCP_STATUS_CONNECTED, "")
                tools = await _tools(service, server)
                assert {"greet", "multi-greet", "list-files"} <= tools.keys()
                tasks = {problem.name: problem.problem for problem in server.tool_problems}
                assert tasks.keys() == {"delay", "collect-user-info-task"}
                assert all("taskSupport" in problem for problem in tasks.values())
                assert "Ada" in (await service.call(tools["greet"].id, name="Ada")).tool_return
                greetings = await service.call(tools["multi-greet"].id, name="Ada")
                assert (greetings.outcome, "Ada" in greetings.tool_return) == (execution_pb.OUTCOME_SUCCESS, True)


async def test_an_example_gives_resources_and_prompts_and_is_told_that_nobody_is_asked(
    tool_url: str, tmp_path: Path
) -> None:
    with own_port() as port:
        example = str(_EXAMPLES / "simpleStreamableHttp.js")
        with _running(port, "node", example, MCP_PORT=str(port)) as url:
            async with tool_runner(tool_url, tmp_path, mcp=_LONGER, organization_id=uuid4()) as service:
                server = (await service.mcp.CreateMcpServer(_create(url))).server
                listed = await service.mcp.ListMcpResources(pb.ListMcpResourcesRequest(id=server.id))
                uris = [one["uri"] for one in json.loads(listed.resources_json)]
                assert "https://example.com/greetings/default" in uris
                read = pb.ReadMcpResourceRequest(id=server.id, uri=uris[0])
                assert json.loads((await service.mcp.ReadMcpResource(read)).contents_json)[0]["text"]
                prompt = pb.GetMcpPromptRequest(id=server.id, name="greeting-template", arguments={"name": "Ada"})
                assert "Ada" in (await service.mcp.GetMcpPrompt(prompt)).messages_json
                asks = (await _tools(service, server))["collect-user-info"]
                refused = await service.call(asks.id, infoType="contact")
                assert "elicitation" in refused.tool_return.lower()


async def _give_leave(url: str, tool_url: str, folder: Path) -> None:
    async with tool_runner(tool_url, folder, mcp=_LONGER, organization_id=uuid4()) as service:
        server = (await service.mcp.CreateMcpServer(_create(url))).server
        assert server.status == mcp_pb.MCP_STATUS_OAUTH_REQUIRED
        wanted = pb.StreamConnectRequest(id=server.id, callback_url="http://127.0.0.1:8283")
        events = await authorize(service, service, wanted)
        assert events[-1].event == pb.MCP_CONNECT_EVENT_SUCCESS, events[-1].message
        tools = {tool.name: tool for tool in events[-1].tools}
        name, arguments = ("add", {"a": 1, "b": 2}) if "add" in tools else ("greet", {"name": "3"})
        for _ in range(2):
            assert "3" in (await service.call(tools[name].id, **arguments)).tool_return
        again = (await service.mcp.RefreshMcpServer(pb.RefreshMcpServerRequest(id=server.id))).server
        assert again.status == mcp_pb.MCP_STATUS_CONNECTED


async def test_an_example_behind_the_sdks_own_authorization_server(tool_url: str, tmp_path: Path) -> None:
    with own_port() as port, own_port() as granting:
        example, ports = str(_EXAMPLES / "simpleStreamableHttp.js"), {"MCP_PORT": str(port)}
        with _running(port, "node", example, "--oauth", MCP_AUTH_PORT=str(granting), **ports) as url:
            await _give_leave(url, tool_url, tmp_path)


async def test_fastmcp_behind_its_own_authorization_server(tool_url: str, tmp_path: Path, fastmcp: Path) -> None:
    with own_port() as port:
        command = (sys.executable, "-P", "-c", _FASTMCP, str(port), "oauth")
        with _running(port, *command, PYTHONPATH=str(fastmcp), HOME=str(tmp_path)) as url:
            await _give_leave(url, tool_url, tmp_path)


async def test_fastmcp_in_the_open(tool_url: str, tmp_path: Path, fastmcp: Path) -> None:
    with own_port() as port:
        command = (sys.executable, "-P", "-c", _FASTMCP, str(port))
        with _running(port, *command, PYTHONPATH=str(fastmcp), HOME=str(tmp_path)) as url:
            async with tool_runner(tool_url, tmp_path, mcp=_LONGER, organization_id=uuid4()) as service:
                server = (await service.mcp.CreateMcpServer(_create(url))).server
                add = (await _tools(service, server))["add"]
                for a in (1, 2):
                    assert (await service.call(add.id, a=a, b=2)).tool_return == str(a + 2)
