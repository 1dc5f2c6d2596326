"""Replies that are JSON: demanded from a vendor by whatever means its wire has, and made by the demo."""

from typing import Any

import orjson
import pytest

from services.llm_gateway.core.chat import Completed, FinishReason, ResponseFormat, Text, TextDelta, ToolMode
from services.llm_gateway.vendors.anthropic.translate import REPLY_TOOL
from tests.contract.llm_gateway.conftest import World
from tests.fakes.script import Reply, ToolCall
from tests.unit.llm_gateway.builders import model, tool

PERSON: dict[str, Any] = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer", "minimum": 18}},
    "required": ["name", "age"],
    "additionalProperties": False,
}
ADA = '{"name":"Ada","age":36}'


def text_of(reply: Completed) -> str:
    (part,) = reply.generation.message.parts
    assert isinstance(part, Text)
    assert reply.generation.finish_reason is FinishReason.STOP
    return part.text


@pytest.mark.parametrize("stream", [False, True])
async def test_a_schema_goes_to_the_vendor_by_its_own_means(vendor_world: World, stream: bool) -> None:
    by_call = Reply(calls=[ToolCall(REPLY_TOOL, {"name": "Ada", "age": 36})])
    vendor_world.script(Reply(text=ADA) if vendor_world.carries("json_schema") else by_call)
    asked = vendor_world.ask("Who?", response_format=ResponseFormat(PERSON, "person", True))
    *_, completed = await vendor_world.events(asked, stream=stream)
    assert isinstance(completed, Completed)
    assert text_of(completed) == ADA
    sent = vendor_world.sent.body
    assert vendor_world.spec.schema_in(sent) == vendor_world.spec.as_sent(PERSON)
    if vendor_world.spec.dialect == "openai":
        schema = {"name": "person", "schema": PERSON, "strict": True}
        assert sent["response_format"] == {"type": "json_schema", "json_schema": schema}
    assert bool(sent.keys() & {"tools", "toolConfig"}) is not vendor_world.carries("json_schema")


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("vendor_world", ["anthropic"], indirect=True)
@pytest.mark.parametrize("wanted", [ResponseFormat(), ResponseFormat(PERSON)])
async def test_where_the_wire_has_none_the_input_of_a_call_is_the_text(
    vendor_world: World, wanted: ResponseFormat, stream: bool
) -> None:
    if wanted.schema is not None:  # of a model without replies by a schema
        vendor_world.model = model("anthropic/claude-opus-4-1")
        vendor_world.vendor.chat_models = ("claude-opus-4-1",)
    vendor_world.script(Reply(calls=[ToolCall(REPLY_TOOL, {"name": "Ada", "age": 36})]))
    events = await vendor_world.events(vendor_world.ask("Who?", response_format=wanted), stream=stream)
    *deltas, completed = events
    assert isinstance(completed, Completed)
    assert text_of(completed) == ADA
    assert all(isinstance(delta, TextDelta) for delta in deltas)
    assert "".join(delta.text for delta in deltas if isinstance(delta, TextDelta)) == (ADA if stream else "")
    sent = vendor_world.vendor.requests[-1].body
    assert sent["tool_choice"] == {"type": "tool", "name": REPLY_TOOL}
    assert [offered["name"] for offered in sent["tools"]] == [REPLY_TOOL]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("vendor_world", ["anthropic"], indirect=True)
async def test_with_the_callers_tools_the_model_chooses_between_them_and_the_reply(
    vendor_world: World, stream: bool
) -> None:
    vendor_world.script(Reply(calls=[ToolCall("roll_dice", {"n": 6})]), Reply(calls=[ToolCall(REPLY_TOOL, {})]))
    asked = vendor_world.ask("Roll.", tools=[tool("roll_dice", n="integer")], response_format=ResponseFormat())
    *_, called = await vendor_world.events(asked, stream=stream)
    assert isinstance(called, Completed)
    assert called.generation.finish_reason is FinishReason.TOOL_CALLS
    assert vendor_world.vendor.requests[-1].body["tool_choice"] == {"type": "any"}
    *_, replied = await vendor_world.events(asked, stream=stream)
    assert isinstance(replied, Completed)
    assert text_of(replied) == "{}"


@pytest.mark.parametrize("vendor_world", ["openai"], indirect=True)
async def test_any_object(vendor_world: World) -> None:
    vendor_world.script(Reply(text="{}"))
    await vendor_world.whole(vendor_world.ask("JSON, please.", response_format=ResponseFormat()))
    assert vendor_world.vendor.requests[-1].body["response_format"] == {"type": "json_object"}


@pytest.mark.parametrize("world", ["demo"], indirect=True)
async def test_the_demo_fits_the_schema(world: World) -> None:
    reply = await world.whole(world.ask("hello", response_format=ResponseFormat(PERSON)))
    made = orjson.loads(text_of(Completed(reply)))
    assert made.keys() == {"name", "age"}
    assert "I am loci/demo" in made["name"]
    assert made["age"] == 18
    anything = await world.whole(world.ask("hello", response_format=ResponseFormat()))
    assert "I am loci/demo" in orjson.loads(text_of(Completed(anything)))["answer"]
    # A call comes before the answer.
    asked = world.ask("hello", tools=[tool("f")], tool_choice=ToolMode.REQUIRED, response_format=ResponseFormat())
    assert (await world.whole(asked)).finish_reason is FinishReason.TOOL_CALLS
