"""MCP servers with the official client: an agent that calls tools of real ones, and Loci's agents as one."""

import asyncio
import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import letta_client
import mcp_types as types
import pytest
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client

from tests.e2e.conftest import PASSWORD, Providers
from tests.e2e.helpers import BLOCKS
from tests.e2e.stack import Stack, is_listening, own_port, running
from tests.fakes.http import HttpServer
from tests.fakes.mcp_hostile import HostileMcp
from tests.fakes.mcp_packages import NPM_SERVER
from tests.fakes.mcp_server import TOOLS, McpServer
from tests.polling import wait_until

NPM = Path(__file__).parent / "npm-mcp"
REFERENCE = NPM / "node_modules/.bin/mcp-server-everything"
MODEL = "loci/demo"


@pytest.fixture(scope="module")
def stack(providers: Providers) -> Iterator[Stack]:
    """It may speak to this machine, and run servers. Its own: a tool has its plain name only while that is free."""
    more = {"LOCI_ALLOW_PRIVATE_URLS": "1", "LOCI_MCP_STDIO": "true"}
    with running(providers.environment() | more) as started:
        yield started


@pytest.fixture
def port() -> Iterator[int]:
    """A port on which a server may come and go."""
    with own_port() as mine:
        yield mine


def _server(client: Any, name: str, url: str, kind: str = "streamable_http", **config: Any) -> Any:
    return client.mcp_servers.create(server_name=name, config={"mcp_server_type": kind, "server_url": url, **config})


def _returns(response: Any) -> list[Any]:
    return [one for one in response.messages if one.message_type == "tool_return_message"]


def test_an_agent_calls_tools_of_a_server_and_follows_its_changes(client: Any) -> None:
    with McpServer().in_thread() as fake:
        server = _server(client, "calculator", fake.url, custom_headers={"x-key": "s3cret"})
        assert (server.mcp_server_type, server.server_url) == ("streamable_http", fake.url)
        # Nobody logs in here.
        assert server.custom_headers == {"x-key": "s3cret"}
        assert client.mcp_servers.retrieve(server.id).server_name == "calculator"
        assert server.id in [one.id for one in client.mcp_servers.list()]
        tools = {tool.name: tool for tool in client.mcp_servers.tools.list(server.id)}
        assert set(tools) == {tool.name for tool in TOOLS}
        add = client.mcp_servers.tools.retrieve(tools["add"].id, mcp_server_id=server.id)
        assert (add.tool_type, add.tags) == ("external_mcp", ["mcp:calculator"])
        ran = client.mcp_servers.tools.run(add.id, mcp_server_id=server.id, args={"a": 20, "b": 22})
        assert (ran.status, ran.func_return) == ("success", 42)

        agent = client.agents.create(name="mathematician", model=MODEL, memory_blocks=BLOCKS, tool_ids=[add.id])
        response = client.agents.messages.create(agent.id, input="use add with a=1, b=2")
        (returned,) = _returns(response)
        assert (returned.status, returned.tool_return) == ("success", "3")

        other = types.Tool(name="subtract", description="Take away.", input_schema={"type": "object"})
        fake.tools = [*TOOLS[1:], other]
        changes = client.mcp_servers.refresh(server.id)
        assert (changes["added"], changes["deleted"]) == (["subtract"], ["add"])
        # The agent goes on without what is gone, and can be given what is new.
        assert client.agents.tools.list(agent.id) == [] or "add" not in [
            tool.name for tool in client.agents.tools.list(agent.id).items
        ]
        assert client.agents.messages.create(agent.id, input="Hello").stop_reason.stop_reason == "end_turn"

        renamed = client.mcp_servers.update(
            server.id, config={"mcp_server_type": "streamable_http", "server_url": None}, server_name="renamed"
        )
        assert (renamed.server_name, renamed.server_url) == ("renamed", fake.url)
        client.mcp_servers.delete(server.id)
        with pytest.raises(letta_client.NotFoundError):
            client.mcp_servers.retrieve(server.id)


def test_resources_and_prompts_of_a_server(stack: Stack, client: Any) -> None:
    with McpServer().in_thread() as fake, httpx.Client(base_url=stack.url, timeout=30) as http:
        server = _server(client, "librarian", fake.url)
        base = f"/v1/mcp-servers/{server.id}"
        listed = http.get(f"{base}/resources").json()
        assert [one["uri"] for one in listed["resources"]] == ["test://note/1", "test://note/2"]
        (content,) = http.get(f"{base}/resources/read", params={"uri": "test://note/1"}).json()
        assert content["text"].startswith("what test://note/1 says")
        assert [one["name"] for one in http.get(f"{base}/prompts").json()] == ["greet"]
        greeting = {"name": "greet", "arguments": {"who": "Ada"}}
        (message,) = http.post(f"{base}/prompts/get", json=greeting).json()
        assert message["content"]["text"] == "Greet Ada."
        assert http.post(f"{base}/prompts/get", json={"name": "greet"}).status_code == 502
        assert http.get(f"{base}/resources/read").status_code == 422

        names = ("list_mcp_resources", "read_mcp_resource")
        tools = [client.mcp_servers.tools.list(server.id)[0].id]
        tools += [client.tools.list(name=name).items[0].id for name in names]
        agent = client.agents.create(name="reader", model=MODEL, memory_blocks=BLOCKS, tool_ids=tools)
        asked = 'use read_mcp_resource with server="librarian", uri="test://note/2"'
        (read,) = _returns(client.agents.messages.create(agent.id, input=asked))
        assert (read.status, read.tool_return.split(",")[0]) == ("success", "what test://note/2 says")
        client.mcp_servers.delete(server.id)


def test_a_server_that_dies_and_comes_back(client: Any, port: int) -> None:
    with McpServer().in_thread(port) as fake:
        server = _server(client, "mortal", fake.url)
        echo = next(tool for tool in client.mcp_servers.tools.list(server.id) if tool.name == "echo")
        agent = client.agents.create(name="patient", model=MODEL, memory_blocks=BLOCKS, tool_ids=[echo.id])
        (first,) = _returns(client.agents.messages.create(agent.id, input='use echo with text="one"'))
        assert first.tool_return == "one"
    (second,) = _returns(client.agents.messages.create(agent.id, input='use echo with text="two"'))
    assert second.status == "error"
    assert "mortal" in second.tool_return
    with pytest.raises(letta_client.APIStatusError) as down:
        client.mcp_servers.refresh(server.id)
    assert down.value.status_code == 502
    body: Any = down.value.body
    assert body["error"]["type"] == "mcp_connection_error"
    with McpServer().in_thread(port):
        (third,) = _returns(client.agents.messages.create(agent.id, input='use echo with text="three"'))
        assert (third.status, third.tool_return) == ("success", "three")
    client.mcp_servers.delete(server.id)


def test_the_older_routes_by_name(stack: Stack) -> None:
    with McpServer().in_thread() as fake, httpx.Client(base_url=f"{stack.url}/v1/tools/mcp", timeout=30) as http:
        config = {"server_name": "older", "type": "sse", "server_url": fake.sse_url}
        tested = http.post("/servers/test", json=config).json()
        assert [tool["name"] for tool in tested["tools"]] == [tool.name for tool in TOOLS]
        assert "older" in [one["server_name"] for one in http.put("/servers", json=config).json()]
        assert http.put("/servers", json=config).status_code == 409
        assert http.get("/servers").json()["older"]["type"] == "sse"
        listed = {tool["name"]: tool for tool in http.get("/servers/older/tools").json()}
        assert listed["add"]["inputSchema"]["required"] == ["a", "b"]
        assert http.post("/servers/older/add").json()["name"] == "add"
        ran = http.post("/servers/older/tools/echo/execute", json={"args": {"text": "hi"}}).json()
        assert ran == {"result": "hi", "success": True}
        assert http.post("/servers/older/resync").json() == {"added": [], "updated": [], "deleted": []}
        with http.stream("POST", "/servers/connect", json=config) as stream:
            events = [line for line in stream.iter_lines() if line.startswith("data: ")]
        assert [event.split('"event":"')[1].split('"')[0] for event in events] == ["connection_attempt", "success"]
        assert http.patch("/servers/older", json={"server_url": fake.sse_url}).json()["server_url"] == fake.sse_url
        assert "older" not in [one["server_name"] for one in http.delete("/servers/older").json()]
        assert http.get("/servers/older/tools").status_code == 400
        page = http.get("/oauth/callback", params={"state": "<b>unknown</b>", "code": "x"})
        assert (page.status_code, page.headers["content-type"]) == (400, "text/html; charset=utf-8")
        assert "<b>" not in page.text


def test_one_bad_schema_is_isolated(client: Any) -> None:
    async def main() -> None:
        async with HttpServer(HostileMcp()) as hostile:
            url = f"http://127.0.0.1:{hostile.port}/bad-tools"
            server = await asyncio.to_thread(_server, client, "crooked", url)
            assert len(server.tool_problems) == 6
            tools = await asyncio.to_thread(client.mcp_servers.tools.list, server.id)
            assert [tool.name for tool in tools] == ["also_good", "good", "null_schema"]
            await asyncio.to_thread(client.mcp_servers.delete, server.id)

    asyncio.run(main())


@pytest.mark.sandbox
def test_a_program_runs_in_a_sandbox_and_its_secrets_are_masked_in_results(client: Any) -> None:
    arguments = ["--input-type=module", "-e", NPM_SERVER, "--", "program", "word", "--api-key", "k3y-of-it"]
    config = {"mcp_server_type": "stdio", "command": "node", "args": arguments, "env": {"MARK": "/data/visible"}}
    server = client.mcp_servers.create(server_name="program", config=config)
    assert getattr(server, "problem", None) is None
    assert server.env == {"MARK": "/data/visible"}
    (tool,) = client.mcp_servers.tools.list(server.id)
    ran = client.mcp_servers.tools.run(tool.id, mcp_server_id=server.id)
    # It has the key; models are not told, and can use the path.
    assert json.loads(ran.func_return) == [["word", "--api-key", "********"], "/data/visible"]
    changed: Any = client.mcp_servers.update(server.id, config={"paths": ["/srv:ro"]})
    assert (changed.paths, changed.args) == (["/srv:ro"], arguments)
    with pytest.raises(letta_client.APIStatusError, match="/srv is not shown: LOCI_MCP_STDIO_PATHS has to name it"):
        client.mcp_servers.refresh(server.id)
    everything: Any = client.mcp_servers.update(server.id, config={"paths": []})
    assert getattr(everything, "paths", None) is None
    client.mcp_servers.refresh(server.id)
    client.mcp_servers.delete(server.id)


def test_programs_are_off_unless_allowed(guarded_stack: Stack) -> None:
    client = guarded_stack.client(api_key=PASSWORD)
    with pytest.raises(letta_client.BadRequestError, match="LOCI_MCP_STDIO"):
        client.mcp_servers.create(server_name="program", config={"command": "cat", "args": []})
    # Nor is anything on this machine reached.
    with pytest.raises(letta_client.BadRequestError, match="server_url"):
        _server(client, "inside", "http://127.0.0.1:1/mcp")


@contextmanager
def _reference(mode: str, port: int) -> Iterator[None]:
    environment = {"PATH": os.environ["PATH"], "PORT": str(port)}
    process = subprocess.Popen([REFERENCE, mode], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_until(lambda: is_listening(port), 60)
        yield
    finally:
        process.kill()
        process.wait()


@pytest.mark.skipif(not REFERENCE.exists(), reason="needs: npm ci --prefix tests/e2e/npm-mcp")
@pytest.mark.parametrize(
    ("mode", "kind", "path"), [("streamableHttp", "streamable_http", "/mcp"), ("sse", "sse", "/sse")]
)
def test_the_reference_server_of_npm(client: Any, port: int, mode: str, kind: str, path: str) -> None:
    with _reference(mode, port):
        server = _server(client, f"everything {kind}", f"http://127.0.0.1:{port}{path}", kind)
        # The first of the two has the plain names.
        listed = client.mcp_servers.tools.list(server.id)
        tools = {tool.metadata["mcp"].get("tool_name", tool.name): tool for tool in listed}

        def run(name: str, **args: Any) -> Any:
            return client.mcp_servers.tools.run(tools[name].id, mcp_server_id=server.id, args=args)

        assert run("echo", message="hi").func_return == "Echo: hi"
        assert run("get-sum", a=1, b=2).func_return == "The sum of 1 and 2 is 3."
        assert run("get-structured-content", location="New York").func_return["conditions"]
        picture = run("get-tiny-image").func_return
        assert [part["type"] for part in picture] == ["text", "image", "text"]
        told = run("trigger-long-running-operation", duration=0.2, steps=2)
        assert told.stdout == ["[progress 1/2]\n[progress 2/2]\n"]
        assert run("get-sum", a="one", b=2).status == "error"
    assert run("echo", message="hi").status == "error"
    with _reference(mode, port):
        assert run("echo", message="back").func_return == "Echo: back"


def test_agents_are_tools_for_clients_of_mcp(stack: Stack, client: Any) -> None:
    agent = client.agents.create(
        name="Tour Guide", description="Knows the town.", model=MODEL, memory_blocks=BLOCKS, tags=["mcp"]
    )

    async def main() -> None:
        heard: list[str] = []

        async def told(progress: float, total: float | None, message: str | None) -> None:
            heard.append(message or "")

        async with Client(streamable_http_client(f"{stack.url}/mcp")) as mcp:
            listed = {tool.name: tool for tool in (await mcp.list_tools()).tools}
            assert {"list_agents", "send_message", "read_memory", "Tour_Guide"} <= listed.keys()
            assert listed["Tour_Guide"].description == "Knows the town."

            async def call(name: str, **arguments: Any) -> Any:
                result: Any = await mcp.call_tool(name, arguments, progress_callback=told)
                return result.is_error, result.content[0].text

            assert agent.id in (await call("list_agents"))[1]
            failed, reply = await call("send_message", agent="Tour Guide", message="My name is Ada.")
            assert (failed, bool(reply)) == (False, True)
            assert "assistant_message" in heard
            assert (await call("Tour_Guide", message="Hello"))[0] is False
            assert '"label":"human"' in (await call("read_memory", agent=agent.id))[1]
            assert await call("send_message", agent="nobody", message="Hello") == (
                True,
                "there is no agent named 'nobody'; list_agents tells ids",
            )
            assert (await call("send_message", agent=agent.id))[0] is True

    asyncio.run(main())
    said = client.agents.messages.list(agent.id, limit=50).items
    assert "My name is Ada." in [one.content for one in said if one.message_type == "user_message"]


def test_the_endpoint_is_behind_the_password(guarded_stack: Stack) -> None:
    initialize = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        },
    }
    headers = {"accept": "application/json, text/event-stream"}
    url = f"{guarded_stack.url}/mcp"
    assert httpx.post(url, json=initialize, headers=headers, timeout=30).status_code == 401
    authorized = headers | {"authorization": f"Bearer {PASSWORD}"}
    allowed = httpx.post(url, json=initialize, headers=authorized, timeout=30)
    assert (allowed.status_code, '"name":"loci"' in allowed.text) == (200, True)
    # The state is what a browser shows, and all that it has.
    assert httpx.get(f"{guarded_stack.url}/v1/tools/mcp/oauth/callback?state=x", timeout=30).status_code == 400
    assert httpx.get(f"{guarded_stack.url}/v1/mcp-servers/", timeout=30).status_code == 401
