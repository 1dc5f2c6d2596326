"""Tools: made from source without running it, listed, changed, and kept apart by tenant."""

from __future__ import annotations

import asyncio
import json
from typing import Any
from uuid import UUID, uuid4, uuid5

import asyncpg
import pytest
from google.protobuf.field_mask_pb2 import FieldMask

from loci.common.v1.page_pb2 import PageRequest
from loci.tool.v1 import tool_pb2
from loci.tool.v1 import tool_service_pb2 as tool_pb
from services.common.errors import AlreadyExists, FailedPrecondition, InvalidArgument, NotFound
from services.tool_runner.builtin import BUILTIN_TOOLS
from tests.integration.tool_runner.harness import ROLL, Service, fails
from tests.page_requests import paged

SAY = 'def say(text: str) -> str:\n    """Say it.\n\n    Args:\n        text: what to say\n    """\n    return text\n'


async def listed(runner: Service, **options: Any) -> list[str]:
    response = await runner.tools.ListTools(tool_pb.ListToolsRequest(**paged(**options)))
    return [tool.name for tool in response.tools]


async def test_every_tenant_has_the_built_in_tools_under_the_same_ids(runner: Service) -> None:
    names = {tool.name for tool in BUILTIN_TOOLS}
    assert set(await listed(runner)) == names
    response = await runner.tools.BatchGetTools(tool_pb.BatchGetToolsRequest(names=["memory_insert"]))
    (tool,) = response.tools
    assert tool.id == f"tool-{uuid5(runner.caller.organization_id, 'memory_insert')}"
    assert tool.tool_type == tool_pb2.TOOL_TYPE_LETTA_SLEEPTIME_CORE
    assert list(tool.tags) == ["letta_sleeptime_core"]
    assert json.loads(tool.json_schema_json)["parameters"]["required"] == ["label", "new_string"]
    with runner.of(uuid4()):
        assert set(await listed(runner)) == names
        with fails(NotFound, "TOOL_NOT_FOUND"):
            await runner.tools.GetTool(tool_pb.GetToolRequest(tool_id=tool.id))


async def test_a_tool_made_from_source_has_its_schema(runner: Service) -> None:
    tool = await runner.upsert(tags=["games"], metadata_json='{"b": 1, "a": 2}')
    assert tool.name == "roll_dice"
    assert tool.description == "Roll a die."
    assert tool.source_code == ROLL
    assert json.loads(tool.json_schema_json) == {
        "name": "roll_dice",
        "description": "Roll a die.",
        "parameters": {
            "type": "object",
            "properties": {"num_sides": {"type": "integer", "description": "how many sides it has"}},
            "required": [],
        },
    }
    assert (tool.tool_type, tool.source_type, tool.version) == (tool_pb2.TOOL_TYPE_CUSTOM, "json", 1)
    assert (tool.return_char_limit, tool.metadata_json) == (50_000, '{"b": 1, "a": 2}')
    assert tool.created_by_id == f"user-{UUID(int=2)}"


async def test_upsert_keeps_the_id_and_what_was_not_given(runner: Service) -> None:
    first = await runner.upsert(tags=["games"], return_char_limit=10)
    changed = ROLL.replace("Roll a die.", "Roll one die.")
    second = await runner.upsert(changed, default_requires_approval=True)
    assert (second.id, second.version) == (first.id, 2)
    assert (second.description, list(second.tags), second.return_char_limit) == ("Roll one die.", ["games"], 10)
    assert second.default_requires_approval
    assert await listed(runner, name="roll_dice") == ["roll_dice"]


async def test_concurrent_upserts_make_one_tool(runner: Service) -> None:
    tools = await asyncio.gather(*(runner.upsert() for _ in range(4)))
    assert len({tool.id for tool in tools}) == 1
    assert sorted(tool.version for tool in tools) == [1, 2, 3, 4]


async def test_create_is_idempotent_by_id_and_refuses_a_taken_name(runner: Service) -> None:
    request = tool_pb.CreateToolRequest(tool_id=f"tool-{uuid4()}", tool=tool_pb2.Tool(source_code=ROLL))
    first = (await runner.tools.CreateTool(request)).tool
    assert (await runner.tools.CreateTool(request)).tool == first
    assert first.id == request.tool_id
    request.tool_id = ""
    with fails(AlreadyExists, "TOOL_NAME_TAKEN"):
        await runner.tools.CreateTool(request)


@pytest.mark.parametrize(
    ("source", "reason", "text"),
    [
        ("def f(:\n", "TOOL_SOURCE_INVALID", "line 1"),
        ("def f(): return 1", "TOOL_SOURCE_INVALID", "no docstring"),
        ("x = 1", "TOOL_SOURCE_INVALID", "no function"),
        ("", "TOOL_SOURCE_INVALID", "empty"),
        ('def f(x):\n    """D."""', "TOOL_SOURCE_INVALID", "'x' of function 'f' has no type"),
        ('def f(x: int):\n    """D."""', "TOOL_SOURCE_INVALID", "'x' of function 'f' has no description"),
        ("x = " + "(" * 5000, "TOOL_SOURCE_INVALID", "parse"),
        ("# " + "x" * 300_000, "TOOL_SOURCE_INVALID", "262144"),
        (f'def {"f" * 65}():\n    """D."""', "TOOL_SCHEMA_INVALID", "64"),
    ],
)
async def test_source_that_makes_no_tool_is_refused_with_the_reason(
    runner: Service, source: str, reason: str, text: str
) -> None:
    with fails(InvalidArgument, reason) as caught:
        await runner.upsert(source)
    assert text in caught[0].message


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"json_schema_json": "{"}, "TOOL_SCHEMA_INVALID"),
        ({"json_schema_json": '{"name": "no name"}'}, "TOOL_SCHEMA_INVALID"),
        ({"json_schema_json": '{"name": "roll_dice", "parameters": {"type": "array"}}'}, "TOOL_SCHEMA_INVALID"),
        ({"args_json_schema_json": '{"type": "object", "properties": {"x": {"type": "no"}}}'}, "TOOL_SCHEMA_INVALID"),
        ({"return_char_limit": 0}, "TOOL_INVALID"),
        ({"metadata_json": "[]"}, "TOOL_INVALID"),
        ({"pip_requirements_json": "{}"}, "TOOL_INVALID"),
        ({"pip_requirements_json": '[{"name": "--index-url=http://x"}]'}, "REQUIREMENTS_INVALID"),
        ({"npm_requirements_json": '[{"name": "left pad"}]'}, "REQUIREMENTS_INVALID"),
        ({"network_json": '{"allow": ["https://example.com/path"]}'}, "NETWORK_INVALID"),
        ({"network_json": '{"hosts": []}'}, "NETWORK_INVALID"),
        ({"source_type": "ruby"}, "TOOL_SOURCE_INVALID"),
    ],
)
async def test_settings_that_make_no_sense_are_refused(runner: Service, fields: dict[str, Any], reason: str) -> None:
    with fails(InvalidArgument, reason):
        await runner.upsert(**fields)


async def test_a_given_schema_is_kept_byte_for_byte(runner: Service) -> None:
    text = '{"parameters":{"properties":{"z":{"type":"integer"},"a":{}},"type":"object"},"name":"roll_dice"}'
    tool = await runner.upsert("def roll_dice(**given):\n    return given", json_schema_json=text)
    assert tool.json_schema_json == text


async def test_update_changes_what_the_mask_names(runner: Service) -> None:
    tool = await runner.upsert(tags=["games"])
    draft = tool_pb2.Tool(description="Throw it.", tags=["ignored"], enable_parallel_execution=True)
    mask = FieldMask(paths=["description", "enable_parallel_execution"])
    request = tool_pb.UpdateToolRequest(tool_id=tool.id, tool=draft, update_mask=mask)
    changed = (await runner.tools.UpdateTool(request)).tool
    assert (changed.description, list(changed.tags), changed.version) == ("Throw it.", ["games"], 2)
    # What the model reads is the schema.
    assert json.loads(changed.json_schema_json)["description"] == "Roll a die."
    assert changed.enable_parallel_execution
    request = tool_pb.UpdateToolRequest(tool_id=tool.id, update_mask=FieldMask(paths=["nonsense"]))
    with fails(InvalidArgument, "UPDATE_MASK_INVALID"):
        await runner.tools.UpdateTool(request)


async def test_a_schema_renames_a_tool_and_source_must_keep_its_name(runner: Service) -> None:
    tool = await runner.upsert()

    async def update(**fields: Any) -> tool_pb2.Tool:
        request = tool_pb.UpdateToolRequest(
            tool_id=tool.id, tool=tool_pb2.Tool(**fields), update_mask=FieldMask(paths=list(fields))
        )
        return (await runner.tools.UpdateTool(request)).tool

    with fails(InvalidArgument, "TOOL_SOURCE_INVALID") as caught:
        await update(source_code=SAY)
    assert "'roll_dice' does not match" in caught[0].message
    renamed = await update(json_schema_json='{"name": "throw", "description": "Throw it."}')
    assert (renamed.name, renamed.description, renamed.source_code) == ("throw", "Roll a die.", ROLL)
    # It keeps its name where only its arguments change.
    shaped = await update(args_json_schema_json='{"type": "object", "properties": {"n": {"type": "integer"}}}')
    assert (shaped.name, json.loads(shaped.json_schema_json)["name"]) == ("throw", "throw")
    with fails(InvalidArgument, "TOOL_SCHEMA_INVALID"):
        await update(source_code=SAY, json_schema_json='{"name": "throw"}')
    said = await update(source_code=SAY, json_schema_json='{"name": "say"}')
    assert (said.id, said.name) == (tool.id, "say")
    await runner.upsert()
    with fails(AlreadyExists, "TOOL_NAME_TAKEN"):
        await update(json_schema_json='{"name": "roll_dice"}')


async def test_a_tool_takes_the_place_of_a_built_in_one_until_it_is_deleted(runner: Service) -> None:
    tool_id = f"tool-{uuid5(runner.caller.organization_id, 'memory_insert')}"
    own = await runner.upsert(SAY.replace("def say", "def memory_insert"))
    assert (own.id, own.tool_type) == (tool_id, tool_pb2.TOOL_TYPE_CUSTOM)
    first_page = tool_pb.ListToolsRequest(name="memory_insert")
    (kept,) = (await runner.tools.ListTools(first_page)).tools
    assert kept == own
    await runner.tools.DeleteTool(tool_pb.DeleteToolRequest(tool_id=tool_id))
    (restored,) = (await runner.tools.ListTools(first_page)).tools
    assert (restored.id, restored.tool_type) == (tool_id, tool_pb2.TOOL_TYPE_LETTA_SLEEPTIME_CORE)


async def test_a_deleted_built_in_tool_is_back_with_the_first_page(runner: Service) -> None:
    tool_id = f"tool-{uuid5(runner.caller.organization_id, 'memory_insert')}"
    # Which of them is the first one depends on the tenant's id.
    tools = (await runner.tools.ListTools(tool_pb.ListToolsRequest())).tools
    other = next(tool for tool in tools if tool.id != tool_id)
    await runner.tools.DeleteTool(tool_pb.DeleteToolRequest(tool_id=tool_id))
    named = tool_pb.ListToolsRequest(name="memory_insert", page=PageRequest(after=other.id))
    assert not (await runner.tools.ListTools(named)).tools
    with fails(NotFound, "TOOL_NOT_FOUND"):
        await runner.tools.GetTool(tool_pb.GetToolRequest(tool_id=tool_id))
    named.page.Clear()
    assert [tool.id for tool in (await runner.tools.ListTools(named)).tools] == [tool_id]


async def test_of_a_built_in_tool_settings_are_the_tenants_and_the_rest_is_not(runner: Service) -> None:
    tool_id = f"tool-{uuid5(runner.caller.organization_id, 'memory_insert')}"

    async def update(draft: tool_pb2.Tool, *paths: str) -> tool_pb2.Tool:
        request = tool_pb.UpdateToolRequest(tool_id=tool_id, tool=draft, update_mask=FieldMask(paths=paths))
        return (await runner.tools.UpdateTool(request)).tool

    present = (await runner.tools.GetTool(tool_pb.GetToolRequest(tool_id=tool_id))).tool
    draft = tool_pb2.Tool(
        tags=["mine"],
        return_char_limit=100,
        default_requires_approval=True,
        metadata_json='{"a": 1}',
        description=present.description,
        json_schema_json=json.dumps(json.loads(present.json_schema_json), indent=2),
    )
    # A client that sends everything back changes what may be changed.
    paths = [field.name for field, _ in draft.ListFields()]
    changed = await update(draft, *paths)
    assert (list(changed.tags), changed.return_char_limit, changed.default_requires_approval) == (["mine"], 100, True)
    assert (changed.json_schema_json, changed.description) == (present.json_schema_json, present.description)
    for paths in (["description"], ["source_code"], ["enable_parallel_execution"]):
        with fails(FailedPrecondition, "TOOL_READ_ONLY") as caught:
            await update(tool_pb2.Tool(description="x", source_code=SAY, enable_parallel_execution=True), *paths)
        assert paths[0] in caught[0].message
    with fails(InvalidArgument, "TOOL_INVALID"):
        await update(tool_pb2.Tool(return_char_limit=0), "return_char_limit")
    await runner.tools.EnsureBaseTools(tool_pb.EnsureBaseToolsRequest())
    assert list((await runner.tools.GetTool(tool_pb.GetToolRequest(tool_id=tool_id))).tool.tags) == ["mine"]


async def test_a_tenants_own_tool_keeps_the_name_of_a_built_in_one(tool_url: str, runner: Service) -> None:
    base = (await runner.tools.EnsureBaseTools(tool_pb.EnsureBaseToolsRequest())).tools
    assert [tool.name for tool in base] == sorted(tool.name for tool in BUILTIN_TOOLS)
    connection = await asyncpg.connect(tool_url)
    await connection.execute(
        "UPDATE tool_runner.tools SET tool_type = 'custom', id = gen_random_uuid() WHERE name = 'send_message'"
        " AND organization_id = $1",
        runner.caller.organization_id,
    )
    await connection.close()
    base = (await runner.tools.EnsureBaseTools(tool_pb.EnsureBaseToolsRequest())).tools
    assert "send_message" not in [tool.name for tool in base]
    assert len(base) == len(BUILTIN_TOOLS) - 1


async def test_a_schema_is_derived_without_storing_anything(runner: Service) -> None:
    request = tool_pb.GenerateToolSchemaRequest(source_code=SAY)
    schema = json.loads((await runner.tools.GenerateToolSchema(request)).json_schema_json)
    assert (schema["name"], list(schema["parameters"]["properties"])) == ("say", ["text"])
    request.args_json_schema_json = '{"type": "object", "properties": {"other": {"type": "integer"}}}'
    schema = json.loads((await runner.tools.GenerateToolSchema(request)).json_schema_json)
    assert list(schema["parameters"]["properties"]) == ["other"]
    assert await listed(runner, name="say") == []
    with fails(InvalidArgument, "TOOL_SOURCE_INVALID"):
        await runner.tools.GenerateToolSchema(tool_pb.GenerateToolSchemaRequest(source_code="def f(:"))


async def test_an_imported_tool_is_a_tool_and_replaces_the_one_of_its_name(runner: Service) -> None:
    async def imports(library: str, definition: dict[str, Any], **draft: Any) -> tool_pb2.Tool:
        request = tool_pb.ImportToolRequest(
            library=library, definition_json=json.dumps(definition), tool=tool_pb2.Tool(**draft)
        )
        return (await runner.tools.ImportTool(request)).tool

    definition = {"module": "langchain_community.tools", "class": "Say", "description": "Say it.", "packages": ["x"]}
    made = await imports("langchain", definition, tags=["mine"], network_json='{"allow": ["example.com"]}')
    assert (made.tool_type, made.name, made.description) == (tool_pb2.TOOL_TYPE_EXTERNAL_LANGCHAIN, "say", "Say it.")
    assert json.loads(made.pip_requirements_json) == [{"name": "langchain-community"}, {"name": "x"}]
    assert (list(made.tags), json.loads(made.network_json)) == (["mine", "langchain"], {"allow": ["example.com"]})
    again = await imports("composio", {"slug": "SAY"})
    assert (again.id, again.version, again.tool_type) == (made.id, 2, tool_pb2.TOOL_TYPE_EXTERNAL_COMPOSIO)
    custom = await runner.upsert(SAY)
    assert (custom.id, custom.tool_type) == (made.id, tool_pb2.TOOL_TYPE_CUSTOM)
    with fails(InvalidArgument, "TOOL_SCHEMA_INVALID"):
        await imports("composio", {"slug": "A", "parameters": {"properties": {"x": {"type": "no"}}}})
    with fails(InvalidArgument, "REQUIREMENTS_INVALID"):
        await imports("langchain", {"module": "a", "class": "B", "packages": [{"name": "x @ http://y"}]})


async def test_deleted_is_gone(runner: Service) -> None:
    tool = await runner.upsert()
    await runner.tools.DeleteTool(tool_pb.DeleteToolRequest(tool_id=tool.id))
    for call in (
        runner.tools.GetTool(tool_pb.GetToolRequest(tool_id=tool.id)),
        runner.tools.DeleteTool(tool_pb.DeleteToolRequest(tool_id=tool.id)),
    ):
        with fails(NotFound, "TOOL_NOT_FOUND"):
            await call


async def test_batches_keep_the_order_and_name_what_is_missing(runner: Service) -> None:
    say, roll = await runner.upsert(SAY), await runner.upsert()
    unknown = f"tool-{uuid4()}"
    request = tool_pb.BatchGetToolsRequest(
        tool_ids=[roll.id, unknown, say.id, roll.id], names=["conversation_search", "say", "nothing"]
    )
    found = await runner.tools.BatchGetTools(request)
    assert [tool.name for tool in found.tools] == ["roll_dice", "say", "conversation_search"]
    assert (list(found.missing_tool_ids), list(found.missing_names)) == ([unknown], ["nothing"])


async def test_pages_go_both_ways(runner: Service) -> None:
    names = [f"tool_{number}" for number in range(5)]
    made = [await runner.upsert(SAY.replace("def say", f"def {name}")) for name in names]
    custom = [tool_pb2.TOOL_TYPE_CUSTOM]
    assert await listed(runner, tool_types=custom) == names[::-1]
    assert await listed(runner, exclude_tool_types=[tool_pb2.TOOL_TYPE_CUSTOM]) != []
    assert await listed(runner, tool_types=custom, ascending=True, after=made[1].id) == names[2:]
    assert await listed(runner, tool_types=custom, ascending=True, before=made[2].id) == names[:2]
    nearest = {"ascending": True, "before": made[4].id, "page_size": 2}
    assert await listed(runner, tool_types=custom, **nearest) == ["tool_2", "tool_3"]
    seen: list[str] = []
    request = tool_pb.ListToolsRequest(tool_types=custom, page=PageRequest(page_size=2))
    while True:
        response = await runner.tools.ListTools(request)
        seen += [tool.name for tool in response.tools]
        if not response.next_page_token:
            break
        request.page.page_token = response.next_page_token
    assert seen == names[::-1]
    assert await listed(runner, search="TOOL_3") == ["tool_3"]
    assert await listed(runner, search="%") == []
    assert await listed(runner, names=["tool_1", "say"]) == ["tool_1"]
    assert await listed(runner, tool_ids=[made[2].id]) == ["tool_2"]
    with fails(NotFound, "CURSOR_NOT_FOUND"):
        await listed(runner, after=f"tool-{uuid4()}")
    with fails(InvalidArgument, "PAGE_TOKEN_INVALID"):
        await listed(runner, page_token="nonsense")
    with fails(InvalidArgument, "INVALID_ID"):
        await listed(runner, after="nonsense")
