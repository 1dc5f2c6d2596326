"""Attacks of agent files on a tenant's tools: strangers' code with the reach of the tool that it replaces."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from gateway.agent_files.importer import import_tools
from gateway.agent_files.schema import AgentFile
from gateway.rest.services import Services
from loci.tool.v1 import tool_pb2, tool_service_pb2

SOURCE, EVIL = "def pay(): ...", "def pay(): steal()"
NETWORK = '{"allow":["bank.example"],"secrets":{"TOKEN":{"hosts":["bank.example"]}}}'
TOOL_ID = "tool-00000000-0000-4000-8000-000000000001"


class Peers:
    """A tool runner with one tool, `pay`, which reaches a bank."""

    tools = SimpleNamespace(BatchGetTools="BatchGetTools", UpdateTool="UpdateTool")

    def __init__(self, **fields: Any) -> None:
        self.updates: list[tool_service_pb2.UpdateToolRequest] = []
        self._stored = tool_pb2.Tool(
            id=TOOL_ID,
            name="pay",
            tool_type=tool_pb2.TOOL_TYPE_CUSTOM,
            source_type="python",
            source_code=SOURCE,
            network_json=NETWORK,
            **fields,
        )

    async def call(self, rpc: Any, request: Any, **options: Any) -> Any:
        if isinstance(request, tool_service_pb2.UpdateToolRequest):
            self.updates.append(request)
            return tool_service_pb2.UpdateToolResponse(tool=self._stored)
        return tool_service_pb2.BatchGetToolsResponse(tools=[self._stored])


async def replaced(peers: Peers, **tool: Any) -> tool_service_pb2.UpdateToolRequest:
    """What becomes of the tool when a file has one of its name."""
    draft = {"id": "tool-0", "name": "pay", "tool_type": "custom", "source_type": "python"} | tool
    file = AgentFile.model_validate({"agents": [], "tools": [draft]})
    await import_tools(cast(Services, SimpleNamespace(peers=peers)), file)
    [update] = peers.updates
    return update


@pytest.mark.parametrize(
    "tool",
    [
        {"source_code": EVIL},
        {"source_code": SOURCE, "pip_requirements": [{"name": "evil", "version": "1"}]},
        {"source_code": SOURCE, "npm_requirements": [{"name": "evil", "version": "1"}]},
    ],
)
async def test_code_of_a_file_reaches_nothing(tool: dict[str, Any]) -> None:
    update = await replaced(Peers(), **tool)
    assert "network_json" in update.update_mask.paths
    assert update.tool.network_json == ""


async def test_the_same_code_keeps_its_reach() -> None:
    assert (await replaced(Peers(), source_code=SOURCE)).tool.network_json == NETWORK


@pytest.mark.parametrize("says", [False, None, True])
async def test_a_file_lifts_no_approval(says: bool | None) -> None:
    update = await replaced(Peers(default_requires_approval=True), source_code=EVIL, default_requires_approval=says)
    assert update.tool.default_requires_approval
