"""A tool that gets another name: what the agent service is asked, and when."""

from __future__ import annotations

import pytest

from loci.agent.v1 import agent_service_pb2
from loci.tool.v1 import tool_service_pb2
from services.common.errors import InvalidArgument
from tests.integration.gateway import samples
from tests.integration.gateway.conftest import Edge
from tests.integration.gateway.scripted import Backend

TOOL_ID = samples.tool().id
SCHEMA = {"name": "wipe", "parameters": {"type": "object"}}


@pytest.fixture
def order(backend: Backend) -> list[str]:
    """What was asked, in order: the tool is `tool_0`."""
    asked: list[str] = []

    def rename(request: agent_service_pb2.RenameToolRequest) -> agent_service_pb2.RenameToolResponse:
        only = " approvals" if request.only_approvals else ""
        asked.append(f"{request.old_name}>{request.new_name}{only}")
        return agent_service_pb2.RenameToolResponse(changed_agents=1)

    def update(_: tool_service_pb2.UpdateToolRequest) -> tool_service_pb2.UpdateToolResponse:
        asked.append("update")
        return tool_service_pb2.UpdateToolResponse(tool=samples.tool(), warnings=["it lacks yaml"])

    backend.on("RenameTool", rename)
    backend.on("UpdateTool", update)
    backend.on("BatchGetTools", lambda _: tool_service_pb2.BatchGetToolsResponse(tools=[samples.tool()]))
    return asked


async def test_approvals_hold_before_and_all_rules_follow_after(edge: Edge, order: list[str]) -> None:
    answer = await edge.http.patch(f"/v1/tools/{TOOL_ID}", json={"json_schema": SCHEMA})
    assert (answer.status_code, answer.json()["warnings"]) == (200, ["it lacks yaml"])
    assert order == ["tool_0>wipe approvals", "update", "tool_0>wipe"]


async def test_a_refusal_takes_it_back(edge: Edge, backend: Backend, order: list[str]) -> None:
    def refuse(_: object) -> tool_service_pb2.UpdateToolResponse:
        raise InvalidArgument("no", reason="TOOL_SCHEMA_INVALID")

    backend.on("UpdateTool", refuse)
    assert (await edge.http.patch(f"/v1/tools/{TOOL_ID}", json={"json_schema": SCHEMA})).status_code == 400
    assert order == ["tool_0>wipe approvals", "wipe>tool_0"]


@pytest.mark.parametrize("body", [{"tags": ["a"]}, {"json_schema": SCHEMA | {"name": "tool_0"}}, {"json_schema": {}}])
async def test_no_rename_asks_nothing(edge: Edge, order: list[str], body: dict[str, object]) -> None:
    await edge.http.patch(f"/v1/tools/{TOOL_ID}", json=body)
    assert order == ["update"]


async def test_a_name_that_another_tool_has_is_left_to_the_update(
    edge: Edge, backend: Backend, order: list[str]
) -> None:
    tools = [samples.tool(), samples.tool(1, name="wipe")]
    backend.on("BatchGetTools", lambda _: tool_service_pb2.BatchGetToolsResponse(tools=tools))
    await edge.http.patch(f"/v1/tools/{TOOL_ID}", json={"json_schema": SCHEMA})
    assert order == ["update"]
