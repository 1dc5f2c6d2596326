"""Tools: made from source without running it, listed, changed, and kept apart by tenant."""

from __future__ import annotations

import asyncio
import json
from typing import Any
from uuid import UUID, uuid4, uuid5

import pytest
from google.protobuf.field_mask_pb2 import FieldMask

from loci.tool.v1 import tool_pb2
from loci.tool.v1 import tool_service_pb2 as tool_pb
from services.common.errors import AlreadyExists, FailedPrecondition, InvalidArgument, NotFound
from services.tool_runner.builtin import BUILTIN_TOOLS
from tests.integration.tool_runner.harness import ROLL, Service, fails

SAY = 'def say(text: str) -> str:\n    """Say it.\n\n    Args:\n        text: what to say\n    """\n    return text\n'


async def listed(runner: Service, **options: Any) -> list[str]:
    response = await runner.tools.ListTools(tool_pb.ListToolsRequest(**options))
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
    assert (tool.tool_type, tool.source_type, tool.version) == (tool_pb2.TOOL_TYPE_CUSTOM, "python", 1)
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
    request = tool_pb.CreateToolRequest(tool_id=f"tool-{uuid4()}", tool=tool_pb.ToolDraft(source_code=ROLL))
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
        (f'def {"f" * 49}():\n    """D."""', "TOOL_SCHEMA_INVALID", "48"),
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
        ({"json_schema_json": '{"name": "other"}'}, "TOOL_SCHEMA_INVALID"),
        ({"json_schema_json": '{"name": "roll_dice", "parameters": {"type": "array"}}'}, "TOOL_SCHEMA_INVALID"),
        ({"args_json_schema_json": '{"type": "object", "properties": {"x": {"type": "no"}}}'}, "TOOL_SCHEMA_INVALID"),
        ({"return_char_limit": 0}, "TOOL_INVALID"),
        ({"metadata_json": "[]"}, "TOOL_INVALID"),
        ({"pip_requirements_json": "{}"}, "TOOL_INVALID"),
        ({"source_type": "typescript"}, "TOOL_SOURCE_INVALID"),
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
    draft = tool_pb.ToolDraft(description="Throw it.", tags=["ignored"], enable_parallel_execution=True)
    mask = FieldMask(paths=["description", "enable_parallel_execution"])
    request = tool_pb.UpdateToolRequest(tool_id=tool.id, tool=draft, update_mask=mask)
    changed = (await runner.tools.UpdateTool(request)).tool
    assert (changed.description, list(changed.tags), changed.version) == ("Throw it.", ["games"], 2)
    assert json.loads(changed.json_schema_json)["description"] == "Throw it."
    assert changed.enable_parallel_execution
    request = tool_pb.UpdateToolRequest(
        tool_id=tool.id, tool=tool_pb.ToolDraft(source_code=SAY), update_mask=FieldMask(paths=["source_code"])
    )
    renamed = (await runner.tools.UpdateTool(request)).tool
    assert (renamed.id, renamed.name, renamed.description) == (tool.id, "say", "Say it.")
    await runner.upsert()
    request.tool.source_code = ROLL
    with fails(AlreadyExists, "TOOL_NAME_TAKEN"):
        await runner.tools.UpdateTool(request)
    request.update_mask.paths[:] = ["nonsense"]
    with fails(InvalidArgument, "UPDATE_MASK_INVALID"):
        await runner.tools.UpdateTool(request)


async def test_built_in_tools_cannot_be_changed(runner: Service) -> None:
    tool_id = f"tool-{uuid5(runner.caller.organization_id, 'memory_insert')}"
    source = SAY.replace("def say", "def memory_insert")
    with fails(FailedPrecondition, "TOOL_READ_ONLY"):
        await runner.upsert(source)
    with fails(FailedPrecondition, "TOOL_READ_ONLY"):
        await runner.tools.DeleteTool(tool_pb.DeleteToolRequest(tool_id=tool_id))


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
    request = tool_pb.ListToolsRequest(tool_types=custom, page_size=2)
    while True:
        response = await runner.tools.ListTools(request)
        seen += [tool.name for tool in response.tools]
        if not response.next_page_token:
            break
        request.page_token = response.next_page_token
    assert seen == names[::-1]
    assert await listed(runner, search="TOOL_3") == ["tool_3"]
    assert await listed(runner, search="%") == []
    assert await listed(runner, names=["tool_1", "say"]) == ["tool_1"]
    assert await listed(runner, tool_ids=[made[2].id]) == ["tool_2"]
    with fails(NotFound, "TOOL_NOT_FOUND"):
        await listed(runner, after=f"tool-{uuid4()}")
    with fails(InvalidArgument, "PAGE_TOKEN_INVALID"):
        await listed(runner, page_token="nonsense")
    with fails(InvalidArgument, "INVALID_ID"):
        await listed(runner, after="nonsense")
