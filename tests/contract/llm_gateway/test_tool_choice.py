"""The choice of tools: what travels to a vendor, and what the demo does about it."""

from typing import Any

import orjson
import pytest

from services.llm_gateway.core.chat import FinishReason, Text, ToolCall, ToolMode, ToolSpec
from tests.contract.llm_gateway.conftest import World, of_dialect
from tests.fakes.script import Reply
from tests.unit.llm_gateway.builders import assistant, results, tool, user

DICE = tool("roll_dice", required=["num_sides"], num_sides="integer")
COIN = tool("toss_coin", times="integer")
TOOLS = (DICE, COIN)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("vendor_world", of_dialect("openai", "anthropic"), indirect=True)
@pytest.mark.parametrize(
    ("choice", "openai", "anthropic"),
    [
        (ToolMode.AUTO, "auto", {"type": "auto"}),
        (ToolMode.REQUIRED, "required", {"type": "any"}),
        (ToolMode.NONE, "none", {"type": "none"}),
        (
            "toss_coin",
            {"type": "function", "function": {"name": "toss_coin"}},
            {"type": "tool", "name": "toss_coin"},
        ),
    ],
)
async def test_what_vendors_are_told(
    vendor_world: World, choice: ToolMode | str, openai: Any, anthropic: Any, stream: bool
) -> None:
    vendor_world.script(Reply(text="Hi."))
    await vendor_world.events(vendor_world.ask("hello", tools=TOOLS, tool_choice=choice), stream=stream)
    sent = vendor_world.sent.body
    assert len(sent["tools"]) == 2
    assert sent.get("tool_choice") == {"openai": openai, "anthropic": anthropic}[vendor_world.spec.dialect]


@pytest.mark.parametrize("vendor_world", of_dialect("openai", "anthropic"), indirect=True)
@pytest.mark.parametrize("parallel", [None, True, False])
async def test_parallel_calls_are_switched_off_at_the_vendor(vendor_world: World, parallel: bool | None) -> None:
    vendor_world.script(Reply(text="Hi."))
    asked = vendor_world.ask("hello", tools=TOOLS, tool_choice=ToolMode.REQUIRED, parallel_tool_calls=parallel)
    await vendor_world.whole(asked)
    sent = vendor_world.sent.body
    if vendor_world.spec.dialect == "openai":
        assert sent.get("parallel_tool_calls") is (False if parallel is False else None)
    else:
        assert sent["tool_choice"].get("disable_parallel_tool_use") is (True if parallel is False else None)


@pytest.mark.parametrize("world", ["demo"], indirect=True)
@pytest.mark.parametrize(
    ("choice", "name"), [(ToolMode.REQUIRED, "roll_dice"), ("roll_dice", "roll_dice"), ("toss_coin", "toss_coin")]
)
async def test_the_demo_calls_what_it_must_at_every_step(world: World, choice: ToolMode | str, name: str) -> None:
    asked = world.ask("hello", tools=TOOLS, tool_choice=choice)
    first = await world.whole(asked)
    (call,) = first.message.parts
    assert isinstance(call, ToolCall)
    assert (call.name, first.finish_reason) == (name, FinishReason.TOOL_CALLS)
    asked = world.ask(user("hello"), assistant(call), results((call.id, "4")), tools=TOOLS, tool_choice=choice)
    (again,) = (await world.whole(asked)).message.parts
    assert isinstance(again, ToolCall)
    assert (again.name, again.id == call.id) == (name, False)


@pytest.mark.parametrize("world", ["demo"], indirect=True)
async def test_the_demo_invents_arguments_that_fit_the_schema(world: World) -> None:
    schema = {
        "type": "object",
        "properties": {
            "label": {"type": "string", "enum": ["human", "persona"]},
            "content": {"type": "string"},
            "count": {"type": "integer", "minimum": 3},
            "mode": {"type": "string", "default": "fast"},
            "unit": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/Unit"}]},
            "optional": {"type": "string"},
        },
        "required": ["label", "content", "count", "mode", "unit"],
        "$defs": {"Unit": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}},
    }
    made = ToolSpec("note", "Notes.", orjson.dumps(schema).decode())
    (call,) = (await world.whole(world.ask("buy milk", tools=[made], tool_choice="note"))).message.parts
    assert isinstance(call, ToolCall)
    assert orjson.loads(call.arguments_json) == {
        "label": "human",
        "content": "buy milk",
        "count": 3,
        "mode": "fast",
        "unit": {"name": "buy milk"},
    }


@pytest.mark.parametrize("world", ["demo"], indirect=True)
async def test_the_demo_speaks_through_the_tool_that_speaks(world: World) -> None:
    speak = tool("send_message", required=["message"], message="string")
    asked = world.ask("what is my name?", tools=[COIN, speak], tool_choice=ToolMode.REQUIRED)
    (call,) = (await world.whole(asked)).message.parts
    assert isinstance(call, ToolCall)
    assert call.name == "send_message"
    assert "do not know your name" in orjson.loads(call.arguments_json)["message"]


@pytest.mark.parametrize("world", ["demo"], indirect=True)
async def test_the_demo_calls_nothing_where_it_may_not(world: World) -> None:
    asked = world.ask("use roll_dice with num_sides=6", tools=TOOLS, tool_choice=ToolMode.NONE)
    (part,) = (await world.whole(asked)).message.parts
    assert isinstance(part, Text)


@pytest.mark.parametrize("world", ["demo"], indirect=True)
async def test_the_demo_calls_one_at_a_time_where_parallel_calls_are_off(world: World) -> None:
    words = "use roll_dice with num_sides=6 and toss_coin with times=2"
    for parallel, count in ((None, 2), (True, 2), (False, 1)):
        reply = await world.whole(world.ask(words, tools=TOOLS, parallel_tool_calls=parallel))
        assert len(reply.message.parts) == count
