"""Names of the tools that agents are for MCP clients, and what clients of MCP servers may send."""

from typing import Any

import pytest

from gateway.errors.invalid import InvalidRequest
from gateway.mcp_api.agents import tool_names
from gateway.resources.mcp_servers.requests import (
    CreateMcpServer,
    McpConfig,
    NamedMcpServer,
    create_request,
    update_request,
)
from loci.tool.v1 import mcp_pb2


def test_names_of_agents_become_names_of_tools() -> None:
    long = "a" * 60
    names = tool_names(["My Agent", "my agent", "My/Agent", "send_message", "日本", long, long])
    assert names == ["My_Agent", "my_agent", "My_Agent_2", "send_message_2", "agent", "a" * 48, "a" * 44 + "_2"]


@pytest.mark.parametrize(
    ("config", "kind"),
    [
        ({"server_url": "https://a"}, "streamable_http"),
        ({"mcp_server_type": "sse", "server_url": "https://a"}, "sse"),
        ({"command": "npx", "args": ["x"]}, "stdio"),
    ],
)
def test_a_config_says_what_it_is(config: dict[str, Any], kind: str) -> None:
    body = CreateMcpServer.model_validate({"server_name": "one", "config": config})
    request = create_request(body.server_name, body.config)
    assert request.transport.WhichOneof("transport") == kind
    assert request.id.startswith("mcp_server-")


def test_a_config_without_an_address_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="server_url"):
        create_request("one", McpConfig(mcp_server_type="sse"))


@pytest.mark.parametrize("inside", [True, False])
def test_the_older_bodies_are_flat_or_nest_the_program(inside: bool) -> None:
    program = {"command": "cat", "args": ["-"], "env": {"A": "b"}}
    body = {"server_name": "one", "type": "stdio", **({"stdio_config": program} if inside else program)}
    read = NamedMcpServer.model_validate(body)
    stdio = create_request(read.server_name, read).transport.stdio
    assert (stdio.command, list(stdio.args), dict(stdio.env)) == ("cat", ["-"], {"A": "b"})


def test_a_change_names_what_was_sent_and_keeps_the_type() -> None:
    server = mcp_pb2.McpServer(id="mcp_server-1", transport=mcp_pb2.McpTransport(sse=mcp_pb2.HttpMcpTransport()))
    config = McpConfig(auth_token="", custom_headers={}, server_url=None)
    request = update_request(server, config, "two")
    assert request is not None
    assert list(request.update_mask.paths) == ["transport.auth_token", "transport.custom_headers", "name"]
    assert request.transport.WhichOneof("transport") == "sse"
    assert update_request(server, McpConfig(), None) is None
