# ruff: noqa: E501 - a case a line
"""Tools made acceptable to vendors, and what is left out; the fakes' rules say what is acceptable."""

from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.llm_gateway.core.chat import (
    Completed,
    FinishReason,
    Generation,
    Message,
    Role,
    ToolCall,
    ToolCallDelta,
    ToolSpec,
    Usage,
)
from services.llm_gateway.core.errors import LlmBadRequest, LlmSchemaRefused
from services.llm_gateway.core.tool_fitting import ToolFitting, like_name
from services.llm_gateway.core.tool_schemas import tool_schema
from tests.fakes import tool_rules
from tests.unit.llm_gateway.builders import assistant, model, request, results, user

CLAUDE, GPT, GEMINI = model("anthropic/claude-sonnet-4-5"), model("openai/gpt-4o"), model("google_ai/gemini-2.5-pro")


def spec(name: str, schema: Any, description: str = "Does it.") -> ToolSpec:
    return ToolSpec(name, description, orjson.dumps(schema).decode())


def of(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


A, B = {"type": "string"}, {"type": "integer"}
SCHEMAS: dict[str, tuple[Any, Any]] = {
    "required one way or the other": (
        {**of(a=A, b=B), "anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
        {**of(a=A, b=B), "description": "(Give at least one of these: a or b.)"},
    ),
    "alternatives": (
        {"oneOf": [{**of(k=A, a=A), "required": ["k", "a"]}, {**of(k=A, b=B), "required": ["k", "b"]}]},
        {"type": "object", "properties": {"k": A, "a": A, "b": B}, "required": ["k"]},
    ),
    "all of several": (
        {"allOf": [{**of(a=A), "required": ["a"]}, of(b=B)]},
        {**of(a=A, b=B), "required": ["a"]},
    ),
    "a reference": (
        {"$ref": "#/$defs/T", "$defs": {"T": of(a={"$ref": "#/$defs/S"}), "S": A}},
        {**of(a={"$ref": "#/$defs/S"}), "$defs": {"T": of(a={"$ref": "#/$defs/S"}), "S": A}},
    ),
    "PHP": ({"type": "object", "properties": []}, of()),
    "nothing": ({}, of()),
    "an array of anything": (of(a={"type": "array"}), of(a={"type": "array", "items": {}})),
    "a null beside": ({"type": ["object", "null"], "properties": {"a": A}}, of(a=A)),
    "not": ({**of(a=A), "not": {"required": ["a"]}}, {**of(a=A), "description": '(The arguments also fit this JSON Schema: {"not":{"required":["a"]}})'}),
    "as it should be": ({**of(a=A), "required": ["a"], "additionalProperties": False}, None),
}  # fmt: skip


@pytest.mark.parametrize("name", SCHEMAS)
@pytest.mark.parametrize("asked", [CLAUDE, GPT, GEMINI], ids=["claude", "gpt", "gemini"])
def test_schemas_that_vendors_take(name: str, asked: Any) -> None:
    given, wanted = SCHEMAS[name]
    fitted = ToolFitting().fit(request(tools=[spec("t", given)]), asked)
    (tool,) = fitted.request.tools
    made = orjson.loads(tool.parameters_json)
    assert not fitted.problems
    assert made["type"] == "object"
    assert tool_rules.openai_refusal([{"name": "t", "parameters": made}]) is None
    assert tool_rules.anthropic_refusal([{"name": "t", "input_schema": made}]) is None
    for key, value in (given if wanted is None else wanted).items():
        assert made[key] == value


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ({"type": "string"}, "arguments are an object"),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, "no alternative of its schema is an object"),
        ({"$ref": "https://example.com/x"}, "refers to https://example.com/x"),
        (of(a={"$ref": "#/components/schemas/X"}), "refers to #/components/schemas/X, which it does not define"),
        ({"$ref": "#/$defs/T", "$defs": {"T": {"$ref": "#/$defs/T"}}}, "refers to itself"),
        ({"type": "object", "properties": "x"}, "the properties of its schema are no object"),
        ("x", "no JSON object"),
    ],
)
def test_what_no_vendor_takes_is_left_out_alone(schema: Any, why: str) -> None:
    good = spec("good", of(a=A))
    fitted = ToolFitting().fit(request(tools=[spec("bad", schema), good]), CLAUDE)
    assert [tool.name for tool in fitted.request.tools] == ["good"]
    assert why in fitted.problems["bad"]
    with pytest.raises(LlmSchemaRefused, match=r"The tool bad cannot be offered.*Change its schema"):
        ToolFitting().fit(request(tools=[spec("bad", schema), good], tool_choice="bad"), CLAUDE)


def test_names_of_properties_come_back() -> None:
    tools = [spec("list_apps", {**of(**{"filter[id]": A, "$top": B, "top": B}), "required": ["$top"]})]
    history = [user("x"), assistant(ToolCall("c", "list_apps", '{"$top":1,"top":2}')), results(("c", "r"))]
    fitted = ToolFitting().fit(request(*history, tools=tools), CLAUDE)
    made = orjson.loads(fitted.request.tools[0].parameters_json)
    assert made["required"] == ["top_2"]
    assert list(made["properties"]) == ["filter_id", "top_2", "top"]
    assert tool_rules.anthropic_refusal([{"name": "list_apps", "input_schema": made}]) is None
    assert fitted.request.messages[1].parts[0] == ToolCall("c", "list_apps", '{"top_2":1,"top":2}')
    reply = Message(Role.ASSISTANT, [ToolCall("d", "list_apps", '{"filter_id":"7","top":3}')])
    restored = fitted.restored(Completed(Generation(reply, FinishReason.TOOL_CALLS, Usage(1, 1))))
    assert isinstance(restored, Completed)
    assert restored.generation.message.parts[0] == ToolCall("d", "list_apps", '{"filter[id]":"7","top":3}')
    # Others take them as they are.
    assert ToolFitting().fit(request(*history, tools=tools), GPT).names == {}


def test_names_of_tools_come_back() -> None:
    fitted = ToolFitting().fit(request(tools=[spec("get weather", of()), spec("get_weather", of())]), GPT)
    assert [tool.name for tool in fitted.request.tools] == ["get_weather_2", "get_weather"]
    assert fitted.restored(ToolCallDelta(0, "c", "get_weather_2", "")) == ToolCallDelta(0, "c", "get weather", "")
    chosen = ToolFitting().fit(request(tools=[spec("get weather", of())], tool_choice="get weather"), GPT)
    assert chosen.request.tool_choice == "get_weather"


@pytest.mark.parametrize("name", ["", "no such.tool", "工作", "w" * 200, "rm -rf /"])
def test_a_name_that_a_model_made_up_closes_nothing(name: str) -> None:
    history = [user("x"), assistant(ToolCall("c", name, "{}")), results(("c", "There is no such tool."))]
    (part,) = ToolFitting().fit(request(*history), GPT).request.messages[1].parts
    assert isinstance(part, ToolCall)
    assert tool_rules.openai_refusal([{"name": part.name}]) is None


def test_long_descriptions_go_on_where_there_is_room() -> None:
    words = " ".join(f"word{number}" for number in range(400))
    (tool,) = ToolFitting().fit(request(tools=[spec("t", of(a=A), words)]), GPT).request.tools
    made = orjson.loads(tool.parameters_json)
    assert tool_rules.openai_refusal([{"name": "t", "description": tool.description, "parameters": made}]) is None
    assert tool.description.startswith("word0 word1 ")
    assert made["description"].endswith("word399)")
    assert ToolFitting().fit(request(tools=[spec("t", of(a=A), words)]), CLAUDE).request.tools[0].description == words


@pytest.mark.parametrize(
    ("message", "is_of_it"),
    [
        ("anthropic (400) refuses a schema: tools.1.custom.input_schema: too deep.", True),
        ("openai (400) refuses a schema: Invalid schema for function 'second': no.", True),
        ("google (400) refuses the request: FunctionDeclaration 'second' exceeds the maximum nesting depth.", True),
        ("google (400) refuses a schema: GenerateContentRequest.tools[0].function_declarations[1].parameters: no.", True),
        ("openai (400) refuses the request: Invalid 'tools[1].function.description': string too long.", True),
        ("anthropic (400) refuses the request: messages.1.content.0: tool_use ids must be unique.", False),
        ("openai (400) refuses the request: Invalid schema for function 'third': no.", False),
    ],
)  # fmt: skip
def test_a_tool_that_is_refused_is_left_out_from_then_on(message: str, is_of_it: bool) -> None:
    fitting = ToolFitting()
    asked = request(tools=[spec("first", of()), spec("second", of(a=A))])
    error = LlmSchemaRefused(message) if "schema" in message else LlmBadRequest(message)
    assert fitting.leave_out(error, fitting.fit(asked, GPT), GPT) is is_of_it
    again = fitting.fit(asked, GPT)
    assert ("second" in again.problems) is is_of_it
    assert "first" not in again.problems
    # However it was sent.
    long = request(tools=[spec("first", of()), spec("second", {"anyOf": [of(a={"type": "array"})]}, "word " * 400)])
    assert fitting.leave_out(error, fitting.fit(long, GPT), GPT) is is_of_it
    assert ("second" in fitting.fit(long, GPT).problems) is is_of_it
    # Another model takes it, and so may this one once it has changed.
    assert not fitting.fit(asked, CLAUDE).problems
    assert not fitting.fit(request(tools=[spec("second", of(b=B))]), GPT).problems


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["type", "properties", "anyOf", "oneOf", "allOf", "items", "required", "$ref", "enum", "a", "x[]"]
            )
            | st.text(max_size=3),
            inner,
            max_size=4,
        )
    ),
    max_leaves=15,
)


@settings(max_examples=300, derandomize=True, deadline=None)
@given(json_values)
def test_whatever_the_schema_there_is_an_answer(value: Any) -> None:
    made = tool_schema(orjson.dumps(value).decode(), narrow_names=True)
    assert bool(made.problem) != bool(made.text)
    if made.text:
        top = orjson.loads(made.text)
        assert not top.keys() & {"anyOf", "oneOf", "allOf", "not", "enum", "$ref"}
        assert top["type"] == "object"


@given(st.text(max_size=100))
@settings(derandomize=True, deadline=None)
def test_like_names_are_names(text: str) -> None:
    assert tool_rules.openai_refusal([{"name": like_name(text)}]) is None
    assert tool_rules.google_refusal([{"name": like_name(text)}]) is None
