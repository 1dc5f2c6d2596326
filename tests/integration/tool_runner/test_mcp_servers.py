"""MCP servers over gRPC: a real Postgres, and real servers of the official SDK."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import asyncpg
import mcp_types as types
import pytest
from google.protobuf.field_mask_pb2 import FieldMask

from loci.common.v1.page_pb2 import PageRequest
from loci.tool.v1 import execution_service_pb2 as execution_pb
from loci.tool.v1 import mcp_pb2 as mcp_pb
from loci.tool.v1 import mcp_service_pb2 as service_pb
from loci.tool.v1 import tool_pb2
from loci.tool.v1 import tool_service_pb2 as tool_pb
from services.common.errors import (
    AlreadyExists,
    FailedPrecondition,
    Internal,
    InvalidArgument,
    NotFound,
    Unavailable,
)
from services.tool_runner.mcp.client import Times
from services.tool_runner.mcp_servers.wiring import McpSettings
from tests.fakes.http import HttpServer
from tests.fakes.mcp_hostile import HostileMcp
from tests.fakes.mcp_server import TOOLS, McpServer
from tests.integration.tool_runner.harness import Service, fails, tool_runner

SETTINGS = McpSettings(allow_private=True, times=Times(5, 5, 5, 30))
MASK = "********"


@asynccontextmanager
async def _running(url: str, folder: Path, **given: Any) -> AsyncIterator[tuple[Service, McpServer]]:
    async with McpServer().serving() as server, tool_runner(url, folder, mcp=SETTINGS, **given) as service:
        yield service, server


def _http(url: str, **given: Any) -> mcp_pb.McpTransport:
    return mcp_pb.McpTransport(streamable_http=mcp_pb.HttpMcpTransport(server_url=url, **given))


async def _create(service: Service, name: str, url: str, **given: Any) -> mcp_pb.McpServer:
    request = service_pb.CreateMcpServerRequest(name=name, transport=_http(url, **given))
    return (await service.mcp.CreateMcpServer(request)).server


async def _tools(service: Service, server: mcp_pb.McpServer) -> list[tool_pb2.Tool]:
    return list((await service.mcp.ListMcpTools(service_pb.ListMcpToolsRequest(id=server.id))).tools)


async def _refresh(service: Service, server: mcp_pb.McpServer) -> service_pb.RefreshMcpServerResponse:
    return await service.mcp.RefreshMcpServer(service_pb.RefreshMcpServerRequest(id=server.id))


async def test_a_servers_tools_are_in_the_catalogue_and_run(tool_url: str, tmp_path: Path) -> None:
    async with _running(tool_url, tmp_path) as (service, fake):
        server = await _create(service, "calculator", fake.url)
        assert (server.status, server.problem, server.name) == (mcp_pb.MCP_STATUS_CONNECTED, "", "calculator")
        tools = {tool.name: tool for tool in await _tools(service, server)}
        add = tools["add"]
        assert (add.tool_type, list(add.tags)) == (tool_pb2.TOOL_TYPE_EXTERNAL_MCP, ["mcp:calculator"])
        assert (add.source_type, add.source_code, add.mcp_server_id) == ("python", "", server.id)
        assert json.loads(add.json_schema_json)["parameters"]["required"] == ["a", "b"]
        listed = await service.tools.ListTools(
            tool_pb.ListToolsRequest(tool_types=[tool_pb2.TOOL_TYPE_EXTERNAL_MCP], page=PageRequest(page_size=100))
        )
        assert {tool.id for tool in listed.tools} == {tool.id for tool in tools.values()}

        receipt = await service.call(add.id, a=1, b=2)
        assert (receipt.outcome, receipt.tool_return, receipt.sandbox) == (execution_pb.OUTCOME_SUCCESS, "3", "mcp")
        raised = await service.call(tools["fail"].id, why="no disk")
        assert raised.outcome == execution_pb.OUTCOME_RAISED
        assert "no disk" in raised.tool_return
        assert raised.stderr == ""
        # The server itself looks at its arguments.
        await service.call(add.id, a="one", b=2)
        assert len(fake.calls) == 3
        slow = await service.call(tools["slow"].id, seconds=0.01)
        assert slow.stdout == "[progress 1/2] half\n[info] working\n"
        picture = json.loads((await service.call(tools["picture"].id)).result_json)
        assert [item["type"] for item in picture] == ["text", "image"]
        assert picture[1]["source"]["media_type"] == "image/png"

        run = service_pb.RunMcpToolRequest(id=server.id, tool_name="echo", arguments_json='{"text": "hi"}')
        assert (await service.mcp.RunMcpTool(run)).receipt.tool_return == "hi"


async def test_the_same_call_is_made_once(tool_url: str, tmp_path: Path) -> None:
    async with _running(tool_url, tmp_path) as (service, fake):
        server = await _create(service, "once", fake.url)
        slow = next(tool for tool in await _tools(service, server) if tool.name == "slow")
        receipts = await asyncio.gather(*(service.call(slow.id, key="one", seconds=0.2) for _ in range(5)))
        assert {receipt.tool_return for receipt in receipts} == {"done"}
        assert len(fake.calls) == 1


async def test_a_refresh_follows_the_server_and_keeps_what_a_user_changed(tool_url: str, tmp_path: Path) -> None:
    async with _running(tool_url, tmp_path) as (service, fake):
        server = await _create(service, "changing", fake.url)
        before = {tool.name: tool for tool in await _tools(service, server)}
        await service.tools.UpdateTool(
            tool_pb.UpdateToolRequest(
                tool_id=before["echo"].id,
                tool=tool_pb2.Tool(tags=["mine"], default_requires_approval=True),
                update_mask=FieldMask(paths=["tags", "default_requires_approval"]),
            )
        )
        await service.tools.UpdateTool(
            tool_pb.UpdateToolRequest(
                tool_id=before["fail"].id,
                tool=tool_pb2.Tool(description="Never call this."),
                update_mask=FieldMask(paths=["description"]),
            )
        )
        with fails(FailedPrecondition, "TOOL_READ_ONLY"):
            await service.tools.UpdateTool(
                tool_pb.UpdateToolRequest(
                    tool_id=before["fail"].id,
                    tool=tool_pb2.Tool(source_code="def fail(): pass"),
                    update_mask=FieldMask(paths=["source_code"]),
                )
            )
        new = types.Tool(name="subtract", description="Take away.", input_schema={"type": "object", "properties": {}})
        echo = TOOLS[1].model_copy(update={"description": "Say it twice."})
        why = {"type": "object", "properties": {"why": {"type": "string", "maxLength": 9}}, "required": ["why"]}
        fail = TOOLS[2].model_copy(update={"description": "Fail better.", "input_schema": why})
        fake.tools = [echo, fail, *TOOLS[3:], new]
        changes = await _refresh(service, server)
        assert (list(changes.added), list(changes.updated), list(changes.deleted)) == (
            ["subtract"],
            ["echo", "fail"],
            ["add"],
        )
        after = {tool.name: tool for tool in await _tools(service, server)}
        assert (after["echo"].description, list(after["echo"].tags)) == ("Say it twice.", ["mine"])
        assert after["echo"].default_requires_approval
        assert json.loads(after["fail"].json_schema_json) == {
            "name": "fail",
            "description": "Never call this.",
            "parameters": why,
        }
        again = await _refresh(service, server)
        assert (list(again.added), list(again.updated), list(again.deleted)) == ([], [], [])
        # One that comes back is the one that agents had.
        fake.tools = list(TOOLS)
        await _refresh(service, server)
        assert {tool.name: tool.id for tool in await _tools(service, server)}["add"] == before["add"].id


async def test_names_that_are_taken_get_the_servers_behind_them(tool_url: str, tmp_path: Path) -> None:
    async with _running(tool_url, tmp_path) as (service, fake):
        await service.upsert('def echo() -> str:\n    """Say it."""\n    return "it"\n')
        schema = {"type": "object", "properties": {}}
        fake.tools = [types.Tool(name=name, input_schema=schema) for name in ("echo", "web_search", "a b", "a/b")]
        first = await _create(service, "one", fake.url)
        assert [tool.name for tool in await _tools(service, first)] == ["a_b", "a_b_one", "echo_one", "web_search_one"]
        second = await _create(service, "a server with a long name", fake.url)
        assert [tool.name for tool in await _tools(service, second)][:2] == [
            "a_b_a_server_with_a_long",
            "a_b_a_server_with_a_long_2",
        ]


async def test_secrets_are_masked_sealed_and_kept_where_the_mask_comes_back(tool_url: str, tmp_path: Path) -> None:
    async with _running(tool_url, tmp_path) as (service, fake):
        fake.token = "s3cret-token"
        server = await _create(
            service,
            "closed",
            fake.url,
            auth_header="Authorization",
            auth_token="s3cret-token",
            custom_headers={"x-key": "s3cret-header"},
        )
        assert server.status == mcp_pb.MCP_STATUS_CONNECTED
        shown = server.transport.streamable_http
        assert (shown.auth_token, dict(shown.custom_headers)) == (MASK, {"x-key": MASK})
        connection = await asyncpg.connect(tool_url)
        row = await connection.fetchrow("SELECT * FROM tool_runner.mcp_servers")
        await connection.close()
        assert b"s3cret" not in repr(tuple(row.values())).encode()
        back = service_pb.UpdateMcpServerRequest(
            id=server.id, name="renamed", transport=server.transport, update_mask=FieldMask(paths=["name", "transport"])
        )
        assert (await service.mcp.UpdateMcpServer(back)).server.name == "renamed"
        assert (await _refresh(service, server)).server.status == mcp_pb.MCP_STATUS_CONNECTED
        assert {tag for tool in await _tools(service, server) for tag in tool.tags} == {"mcp:renamed"}
        assert {headers.get("x-key") for headers in fake.headers} == {"s3cret-header"}
        gone = service_pb.UpdateMcpServerRequest(
            id=server.id,
            transport=_http(fake.url),
            update_mask=FieldMask(paths=["transport.auth_token", "transport.auth_header"]),
        )
        changed = (await service.mcp.UpdateMcpServer(gone)).server
        assert changed.transport.streamable_http.auth_token == ""
        # Nobody has asked it since; its tools are those that were read before.
        assert changed.status == mcp_pb.MCP_STATUS_UNSPECIFIED
        assert await _tools(service, server)
        with fails(FailedPrecondition, "MCP_OAUTH_REQUIRED"):
            await _refresh(service, server)


async def test_secrets_are_shown_where_the_operator_says_so(tool_url: str, tmp_path: Path) -> None:
    async with _running(tool_url, tmp_path, shows_secrets=True) as (service, fake):
        own = {"x-key": "s3cret", "Accept": "text/plain"}
        server = await _create(service, "open", fake.url, custom_headers=own)
        # The protocol's own header holds; the client's is kept all the same.
        assert {headers.get("accept") for headers in fake.headers} != {"text/plain"}
        request = service_pb.GetMcpServerRequest(id=server.id)
        present = (await service.mcp.GetMcpServer(request)).server
        (listed,) = (await service.mcp.ListMcpServers(service_pb.ListMcpServersRequest())).servers
        for shown in (server, present, listed):
            assert dict(shown.transport.streamable_http.custom_headers) == own


async def test_what_is_no_server_is_refused(tool_url: str, tmp_path: Path) -> None:
    async with _running(tool_url, tmp_path) as (service, fake):
        await _create(service, "taken", fake.url)
        with fails(AlreadyExists, "MCP_SERVER_NAME_TAKEN"):
            await _create(service, "taken", fake.url)
        for bad in (
            _http("ftp://example.com"),
            _http("http://user:password@example.com"),
            _http(fake.url, auth_token="without a header"),
            _http(fake.url, custom_headers={"no header": "x"}),
            _http(fake.url, custom_headers={"x-key": MASK}),
            mcp_pb.McpTransport(),
        ):
            with fails(InvalidArgument, "MCP_SERVER_INVALID"):
                await service.mcp.CreateMcpServer(service_pb.CreateMcpServerRequest(name="bad", transport=bad))
        with fails(FailedPrecondition, "MCP_STDIO_DISABLED"):
            program = mcp_pb.McpTransport(stdio=mcp_pb.StdioMcpTransport(command="cat"))
            await service.mcp.CreateMcpServer(service_pb.CreateMcpServerRequest(name="bad", transport=program))
        with fails(NotFound, "MCP_SERVER_NOT_FOUND"):
            await service.mcp.GetMcpServer(service_pb.GetMcpServerRequest(id=f"mcp_server-{uuid4()}"))


async def test_one_bad_schema_is_isolated_and_reported(tool_url: str, tmp_path: Path) -> None:
    async with HttpServer(HostileMcp()) as hostile, tool_runner(tool_url, tmp_path, mcp=SETTINGS) as service:
        server = await _create(service, "bad", f"http://127.0.0.1:{hostile.port}/bad-tools")
        assert server.status == mcp_pb.MCP_STATUS_CONNECTED
        assert [tool.name for tool in await _tools(service, server)] == ["also_good", "good", "null_schema"]
        problems = {problem.name: problem.problem for problem in server.tool_problems}
        assert "nested deeper" in problems["deep"]
        assert "not a JSON Schema" in problems["a list"]
        assert len(problems) == 6


async def test_a_dropped_call_is_told_as_unknown_and_not_made_again(tool_url: str, tmp_path: Path) -> None:
    hostile = HostileMcp()
    async with HttpServer(hostile) as web, tool_runner(tool_url, tmp_path, mcp=SETTINGS) as service:
        server = await _create(service, "dropping", f"http://127.0.0.1:{web.port}/well")
        drop = service_pb.UpdateMcpServerRequest(
            id=server.id,
            transport=_http(f"http://127.0.0.1:{web.port}/drop"),
            update_mask=FieldMask(paths=["transport.server_url"]),
        )
        await service.mcp.UpdateMcpServer(drop)
        (act,) = await _tools(service, server)
        receipt = await service.call(act.id)
        assert receipt.outcome == execution_pb.OUTCOME_RAISED
        assert "not known" in receipt.tool_return
        assert hostile.calls == 1


async def test_a_server_that_is_down_is_stored_and_found_again(tool_url: str, tmp_path: Path) -> None:
    async with tool_runner(tool_url, tmp_path, mcp=SETTINGS) as service:
        fake = McpServer()
        async with fake.serving():
            port = fake.port
        server = await _create(service, "later", fake.url)
        assert server.status == mcp_pb.MCP_STATUS_FAILED
        assert "cannot be reached" in server.problem
        with fails(Unavailable, "MCP_UNREACHABLE"):
            await _refresh(service, server)
        async with McpServer().serving(port):
            assert len((await _refresh(service, server)).added) == len(TOOLS)


async def test_a_deleted_server_takes_its_tools_along_and_tenants_are_apart(tool_url: str, tmp_path: Path) -> None:
    async with _running(tool_url, tmp_path) as (service, fake):
        server = await _create(service, "gone", fake.url)
        tools = await _tools(service, server)
        with service.of(uuid4()), fails(NotFound, "MCP_SERVER_NOT_FOUND"):
            await service.mcp.DeleteMcpServer(service_pb.DeleteMcpServerRequest(id=server.id))
        with service.of(uuid4()):
            other = await _create(service, "gone", fake.url)
            assert {tool.id for tool in await _tools(service, other)}.isdisjoint(tool.id for tool in tools)
        await service.mcp.DeleteMcpServer(service_pb.DeleteMcpServerRequest(id=server.id))
        with fails(NotFound, "TOOL_NOT_FOUND"):
            await service.call(tools[0].id)
        assert not (await service.mcp.ListMcpServers(service_pb.ListMcpServersRequest())).servers


async def test_a_server_is_tried_without_being_stored(tool_url: str, tmp_path: Path) -> None:
    async with _running(tool_url, tmp_path) as (service, fake):
        tried = await service.mcp.TestMcpServer(service_pb.TestMcpServerRequest(transport=_http(fake.url)))
        assert [tool.name for tool in tried.tools] == [tool.name for tool in TOOLS]
        assert {tool.id for tool in tried.tools} == {""}
        assert not (await service.mcp.ListMcpServers(service_pb.ListMcpServersRequest())).servers


@pytest.mark.parametrize("stored", [True, False])
async def test_connecting_tells_what_happens(tool_url: str, tmp_path: Path, stored: bool) -> None:
    async with _running(tool_url, tmp_path) as (service, fake):
        server_id = (await _create(service, "watched", fake.url)).id if stored else ""
        request = service_pb.StreamConnectRequest(id=server_id, name="watched", transport=_http(fake.url))
        events = [event async for event in service.mcp.StreamConnect(request)]
        assert [event.event for event in events] == [
            service_pb.MCP_CONNECT_EVENT_CONNECTION_ATTEMPT,
            service_pb.MCP_CONNECT_EVENT_SUCCESS,
        ]
        assert len(events[-1].tools) == len(TOOLS)
        request.id, request.name = "", "nobody"
        request.transport.CopyFrom(_http("http://127.0.0.1:9/"))
        *_, last = [event async for event in service.mcp.StreamConnect(request)]
        assert last.event == service_pb.MCP_CONNECT_EVENT_ERROR


async def test_there_are_at_most_200(tool_url: str, tmp_path: Path) -> None:
    closed = replace(SETTINGS, times=Times(0.05, 0.05, 0.05, 1))
    async with tool_runner(tool_url, tmp_path, mcp=closed) as service:
        url = "http://127.0.0.1:9/"
        await asyncio.gather(*(_create(service, f"server {number}", url) for number in range(200)))
        with fails(InvalidArgument, "MCP_SERVER_INVALID"):
            await _create(service, "one more", url)


async def test_slow_calls_of_a_server_keep_no_other_call_waiting(tool_url: str, tmp_path: Path) -> None:
    """They wait for somebody else: the slots of this machine, one here, are not theirs."""
    settings = replace(SETTINGS, times=Times(5, 5, 60, 60))
    async with (
        McpServer().serving() as fake,
        tool_runner(tool_url, tmp_path, mcp=settings, at_once=1) as service,
    ):
        slow = {tool.name: tool for tool in await _tools(service, await _create(service, "one", fake.url))}["slow"]
        other = await _tools(service, await _create(service, "other", fake.url))
        quick = {tool.name: tool for tool in other}["echo_other"]
        keys = [f"call-{uuid4()}" for _ in range(8)]
        calls = [asyncio.create_task(service.call(slow.id, key=key, seconds=60)) for key in keys]
        for key in keys:
            await service.until_state(key, execution_pb.RECEIPT_STATE_STARTED)
        receipt = await service.call(quick.id, text="hi")
        assert receipt.outcome == execution_pb.OUTCOME_SUCCESS
        assert not any(call.done() for call in calls)
        await asyncio.gather(*map(service.cancel, keys))
        await asyncio.gather(*calls)


async def test_the_status_is_what_the_last_call_showed(tool_url: str, tmp_path: Path) -> None:
    async with _running(tool_url, tmp_path) as (service, fake):
        server = await _create(service, "changing", fake.url)
        echo = {tool.name: tool for tool in await _tools(service, server)}["echo"]
        fake.token, fake.challenge = "wanted", ""
        await service.call(echo.id, text="a")
        seen = (await service.mcp.GetMcpServer(service_pb.GetMcpServerRequest(id=server.id))).server
        assert seen.status == mcp_pb.MCP_STATUS_OAUTH_REQUIRED
        assert seen.problem
        fake.token = ""
        assert (await service.call(echo.id, text="b")).outcome == execution_pb.OUTCOME_SUCCESS
        seen = (await service.mcp.GetMcpServer(service_pb.GetMcpServerRequest(id=server.id))).server
        assert (seen.status, seen.problem) == (mcp_pb.MCP_STATUS_CONNECTED, "")


@pytest.mark.parametrize("kind", ["sse", "streamable_http"])
async def test_tools_are_read_anew_when_the_server_says_that_they_changed(
    tool_url: str, tmp_path: Path, kind: str
) -> None:
    async with _running(tool_url, tmp_path) as (service, fake):
        takes = {"type": "object", "properties": {"without": {"type": "string"}}}
        fake.tools = [*TOOLS, types.Tool(name="change", description="Changes.", input_schema=takes)]
        way: Any = {kind: mcp_pb.HttpMcpTransport(server_url=fake.sse_url if kind == "sse" else fake.url)}
        request = service_pb.CreateMcpServerRequest(name="changing", transport=mcp_pb.McpTransport(**way))
        server = (await service.mcp.CreateMcpServer(request)).server
        change = {tool.name: tool for tool in await _tools(service, server)}["change"]
        for gone in ("echo", "add"):
            await service.call(change.id, without=gone)
            async with asyncio.timeout(30):
                while gone in {tool.name for tool in await _tools(service, server)}:
                    await asyncio.sleep(0.05)
        assert {"slow", "fail"} <= {tool.name for tool in await _tools(service, server)}


@pytest.mark.parametrize("kind", ["sse", "streamable_http"])
async def test_resources_and_prompts_are_read_when_they_are_asked_for(tool_url: str, tmp_path: Path, kind: str) -> None:
    async with _running(tool_url, tmp_path) as (service, fake):
        url = fake.sse_url if kind == "sse" else fake.url
        http = mcp_pb.HttpMcpTransport(server_url=url, custom_headers={"x-key": "s3cret-key"})
        transport = mcp_pb.McpTransport(sse=http) if kind == "sse" else mcp_pb.McpTransport(streamable_http=http)
        request = service_pb.CreateMcpServerRequest(name="full", transport=transport)
        server = (await service.mcp.CreateMcpServer(request)).server
        found = await service.mcp.ListMcpResources(service_pb.ListMcpResourcesRequest(id=server.id))
        assert [one["uri"] for one in json.loads(found.resources_json)] == ["test://note/1", "test://note/2"]
        assert found.templates_json == "[]"  # it has no such list
        read = await service.mcp.ReadMcpResource(service_pb.ReadMcpResourceRequest(id=server.id, uri="test://note/2"))
        assert json.loads(read.contents_json)[0]["text"] == f"what test://note/2 says, by {MASK}"
        prompts = await service.mcp.ListMcpPrompts(service_pb.ListMcpPromptsRequest(id=server.id))
        assert [one["arguments"][0]["name"] for one in json.loads(prompts.prompts_json)] == ["who"]
        wanted = service_pb.GetMcpPromptRequest(id=server.id, name="greet", arguments={"who": "Ada"})
        messages = json.loads((await service.mcp.GetMcpPrompt(wanted)).messages_json)
        assert (messages[0]["role"], messages[0]["content"]["text"]) == ("user", "Greet Ada.")
        with fails(Internal, "MCP_FAILED"):
            await service.mcp.GetMcpPrompt(service_pb.GetMcpPromptRequest(id=server.id, name="greet"))
        with fails(NotFound, "MCP_SERVER_NOT_FOUND"):
            missing = service_pb.ListMcpPromptsRequest(id=f"mcp_server-{uuid4()}")
            await service.mcp.ListMcpPrompts(missing)


async def test_an_agent_reads_resources_of_the_servers_whose_tools_it_has(tool_url: str, tmp_path: Path) -> None:
    async with _running(tool_url, tmp_path) as (service, fake):
        notes = await _create(service, "notes", fake.url, custom_headers={"x-key": "s3cret-key"})
        await _create(service, "elsewhere", fake.url)
        echo = next(tool.id for tool in await _tools(service, notes) if tool.name == "echo")
        wanted = tool_pb.BatchGetToolsRequest(names=["list_mcp_resources", "read_mcp_resource"])
        listing, reading = (tool.id for tool in (await service.tools.BatchGetTools(wanted)).tools)

        found = json.loads((await service.call(listing, of_agent=[listing, echo])).result_json)
        assert [(one["server"], one["uri"]) for one in found["resources"]] == [
            ("notes", "test://note/1"),
            ("notes", "test://note/2"),
        ]
        assert found.keys() == {"resources", "resource_templates"}
        read = await service.call(reading, of_agent=[echo], server="notes", uri="test://note/2")
        assert (read.tool_return, read.sandbox) == (f"what test://note/2 says, by {MASK}", "builtin")
        other = await service.call(reading, of_agent=[echo], server="elsewhere", uri="test://note/2")
        assert (other.outcome, "there are: notes" in other.tool_return) == (execution_pb.OUTCOME_RAISED, True)
        none = await service.call(listing, of_agent=[listing])
        assert "no tool of an MCP server is attached" in none.tool_return


async def test_a_server_that_does_not_answer_keeps_no_other_resources_back(tool_url: str, tmp_path: Path) -> None:
    async with _running(tool_url, tmp_path) as (service, fake):
        up = await _create(service, "up", fake.url)
        async with McpServer().serving() as gone:
            down = await _create(service, "down", gone.url)
            tools = [tool.id for server in (up, down) for tool in await _tools(service, server)]
        wanted = tool_pb.BatchGetToolsRequest(names=["list_mcp_resources"])
        (listing,) = (await service.tools.BatchGetTools(wanted)).tools
        found = json.loads((await service.call(listing.id, of_agent=tools)).result_json)
        assert {one["server"] for one in found["resources"]} == {"up"}
        assert [one["server"] for one in found["problems"]] == ["down"]
        status = (await service.mcp.GetMcpServer(service_pb.GetMcpServerRequest(id=down.id))).server.status
        assert status == mcp_pb.MCP_STATUS_FAILED


async def test_who_asks_the_user_instead_of_answering_is_understood(tool_url: str, tmp_path: Path) -> None:
    async with HttpServer(HostileMcp()) as hostile, tool_runner(tool_url, tmp_path, mcp=SETTINGS) as service:
        server = await _create(service, "asking", f"http://127.0.0.1:{hostile.port}/asking")
        (act,) = await _tools(service, server)
        refused = await service.call(act.id)
        assert refused.outcome == execution_pb.OUTCOME_RAISED
        assert "(Which colour?), and nobody is asked while a tool runs" in refused.tool_return
        with fails(Internal, "MCP_FAILED") as caught:
            await service.mcp.ReadMcpResource(service_pb.ReadMcpResourceRequest(id=server.id, uri="test://note/1"))
        assert "Which colour?" in str(caught[0])
