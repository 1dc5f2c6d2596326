"""Routes of the catalogue: search, count, base tools, schemas, imports, and Loci's own settings of tools."""

from __future__ import annotations

import json

import pytest

from loci.llm.v1 import chat_pb2, chat_service_pb2
from loci.tool.v1 import sandbox_config_service_pb2, tool_pb2, tool_service_pb2
from services.common.errors import InvalidArgument
from tests.integration.gateway import samples
from tests.integration.gateway.conftest import Edge
from tests.integration.gateway.samples import TOOL_ID
from tests.integration.gateway.scripted import Backend

SOURCE = "def roll_dice(num_sides: int = 6): ..."


async def test_a_search_through_the_sdk(edge: Edge, backend: Backend) -> None:
    hits = [
        tool_pb2.ToolHit(tool=samples.tool(), score=0.03, text_rank=1, vector_rank=2, embedded_text="tool 0"),
        tool_pb2.ToolHit(tool=samples.tool(1), score=0.01, vector_rank=1),
    ]
    answer = tool_service_pb2.SearchToolsResponse(hits=hits, mode=tool_service_pb2.SEARCH_MODE_HYBRID)
    backend.on("SearchTools", lambda _: answer)
    first, second = await edge.sdk.tools.search(
        query="dice", search_mode="fts", tags=["a"], tool_types=["custom"], limit=5
    )
    assert (first.combined_score, first.fts_rank, first.vector_rank, first.embedded_text) == (0.03, 1, 2, "tool 0")
    assert (second.tool.name, second.fts_rank, second.embedded_text) == ("tool_1", None, None)
    [asked] = backend.requests("SearchTools")
    assert (asked.query, asked.mode, list(asked.tags), asked.limit) == (
        "dice",
        tool_service_pb2.SEARCH_MODE_TEXT,
        ["a"],
        5,
    )
    assert list(asked.tool_types) == [tool_pb2.TOOL_TYPE_CUSTOM]
    told = await edge.http.post("/v1/tools/search", json={})
    assert (told.status_code, told.headers["x-search-mode"]) == (200, "hybrid")
    assert (backend.requests("SearchTools")[1].query, backend.requests("SearchTools")[1].limit) == ("", 50)


@pytest.mark.parametrize("body", [{"limit": 0}, {"limit": 101}, {"search_mode": "magic"}, {"tool_types": ["x"]}])
async def test_a_search_that_makes_no_sense(edge: Edge, backend: Backend, body: dict[str, object]) -> None:
    assert (await edge.http.post("/v1/tools/search", json=body)).status_code == 422
    assert backend.requests("SearchTools") == []


async def test_counts_take_the_filters_of_lists(edge: Edge, backend: Backend) -> None:
    backend.on("CountTools", lambda _: tool_service_pb2.CountToolsResponse(count=7))
    answer = await edge.http.get("/v1/tools/count", params={"search": "dice", "exclude_letta_tools": True})
    assert answer.json() == 7
    [asked] = backend.requests("CountTools")
    assert asked.filter.search == "dice"
    assert tool_pb2.TOOL_TYPE_LETTA_CORE in asked.filter.exclude_tool_types
    assert tool_pb2.TOOL_TYPE_CUSTOM not in asked.filter.exclude_tool_types
    nothing = "/v1/tools/count?return_only_letta_tools=true&tool_types=custom"
    assert (await edge.http.get(nothing)).json() == 0


async def test_base_tools_and_schemas(edge: Edge, backend: Backend) -> None:
    backend.on("EnsureBaseTools", lambda _: tool_service_pb2.EnsureBaseToolsResponse(tools=[samples.tool()]))
    response = tool_service_pb2.GenerateToolSchemaResponse(json_schema_json='{"name": "roll_dice"}')
    backend.on("GenerateToolSchema", lambda _: response)
    assert [tool["name"] for tool in (await edge.http.post("/v1/tools/add-base-tools")).json()] == ["tool_0"]
    answer = await edge.http.post("/v1/tools/generate-schema", json={"code": SOURCE, "source_type": "python"})
    assert answer.json() == {"name": "roll_dice"}
    assert backend.requests("GenerateToolSchema")[0].source_code == SOURCE


async def test_locis_own_settings_go_through_and_secrets_do_not_come_back(edge: Edge, backend: Backend) -> None:
    stored = samples.tool(idempotent=True, network_json='{"allow":["a.example"]}')
    variable = sandbox_config_service_pb2.Variable(key="TOKEN", value="********")
    backend.on("UpsertTool", lambda _: tool_service_pb2.UpsertToolResponse(tool=stored))
    backend.on("UpdateTool", lambda _: tool_service_pb2.UpdateToolResponse(tool=stored))
    backend.on("GetTool", lambda _: tool_service_pb2.GetToolResponse(tool=stored))
    backend.on("SetEnvironment", lambda _: sandbox_config_service_pb2.SetEnvironmentResponse(variables=[variable]))
    backend.on(
        "BatchGetEnvironments", lambda _: sandbox_config_service_pb2.BatchGetEnvironmentsResponse(variables=[variable])
    )
    own = {"idempotent": True, "network": {"allow": ["a.example"]}, "environment": {"TOKEN": "s3cret"}}
    answer = (await edge.http.put("/v1/tools", json={"source_code": SOURCE, **own})).json()
    assert (answer["idempotent"], answer["network"], answer["environment"]) == (
        True,
        {"allow": ["a.example"]},
        {"TOKEN": "********"},
    )
    [asked] = backend.requests("UpsertTool")
    assert (asked.tool.idempotent, json.loads(asked.tool.network_json)) == (True, own["network"])
    [given] = backend.requests("SetEnvironment")
    assert (given.owner.tool_id, given.variables[0].key, given.variables[0].value) == (stored.id, "TOKEN", "s3cret")
    answer = (await edge.http.patch(f"/v1/tools/{TOOL_ID}", json={"environment": {}})).json()
    assert backend.requests("UpdateTool") == []
    assert list(backend.requests("SetEnvironment")[1].variables) == []
    await edge.http.patch(f"/v1/tools/{TOOL_ID}", json={"network": {}, "idempotent": False})
    assert sorted(backend.requests("UpdateTool")[0].update_mask.paths) == ["idempotent", "network_json"]
    variables = await edge.http.get(f"/v1/tools/{TOOL_ID}/environment-variables")
    assert variables.json() == [{"key": "TOKEN", "value": "********"}]


async def test_an_import(edge: Edge, backend: Backend) -> None:
    backend.on("ImportTool", lambda _: tool_service_pb2.ImportToolResponse(tool=samples.tool()))
    definition = {"slug": "GITHUB_CREATE_AN_ISSUE"}
    body = {"library": "composio", "definition": definition, "tags": ["x"]}
    assert (await edge.http.post("/v1/tools/import", json=body)).json()["name"] == "tool_0"
    [asked] = backend.requests("ImportTool")
    assert (asked.library, json.loads(asked.definition_json), list(asked.tool.tags)) == ("composio", definition, ["x"])
    assert (await edge.http.post("/v1/tools/import", json={**body, "library": "x"})).status_code == 422


def reply(source: str) -> chat_service_pb2.GenerateResponse:
    """What a model answers that wrote this."""
    values = {"source_code": source, "sample_args_json": '{"num_sides": 20}', "response": "Rolls a die."}
    part = chat_pb2.ChatPart(text=chat_pb2.TextPart(text=json.dumps(values)))
    message = chat_pb2.ChatMessage(role=chat_pb2.CHAT_ROLE_ASSISTANT, parts=[part])
    return chat_service_pb2.GenerateResponse(generation=chat_pb2.Generation(message=message))


async def test_a_model_writes_a_tool_and_mends_it_once(edge: Edge, backend: Backend) -> None:
    replies = iter([reply("def broken(:"), reply(SOURCE), reply("def broken(:"), reply("def broken(:")])

    def schema(request: tool_service_pb2.GenerateToolSchemaRequest) -> tool_service_pb2.GenerateToolSchemaResponse:
        if "broken" in request.source_code:
            raise InvalidArgument("line 1: it does not parse", reason="TOOL_SOURCE_INVALID")
        return tool_service_pb2.GenerateToolSchemaResponse(json_schema_json='{"name": "roll_dice"}')

    backend.on("Generate", lambda _: next(replies))
    backend.on("GenerateToolSchema", schema)
    body = {"tool_name": "roll_dice", "prompt": "Roll a die.", "starter_code": "import random"}
    answer = (await edge.http.post("/v1/tools/generate-tool", json=body)).json()
    assert (answer["tool"]["name"], answer["tool"]["source_code"]) == ("roll_dice", SOURCE)
    assert (answer["sample_args"], answer["response"]) == ({"num_sides": 20}, "Rolls a die.")
    assert len(answer["tool"]) == 18
    first, second = backend.requests("Generate")
    assert first.request.handle == "loci/demo"
    assert "import random" in first.request.messages[1].parts[0].text.text
    assert "line 1: it does not parse" in second.request.messages[-1].parts[0].text.text
    failed = await edge.http.post("/v1/tools/generate-tool", json={**body, "handle": "openai/gpt-5"})
    assert (failed.status_code, "line 1" in failed.json()["detail"]) == (400, True)


async def test_a_model_that_answers_with_no_tool(edge: Edge, backend: Backend) -> None:
    backend.on("Generate", lambda _: reply(""))
    failed = await edge.http.post("/v1/tools/generate-tool", json={"tool_name": "f", "prompt": "p", "handle": "a/b"})
    assert failed.status_code == 502
    assert "a/b did not answer with a tool" in failed.text
