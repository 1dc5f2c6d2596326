"""The fakes refuse tools and pictures as their vendors do."""

from typing import Any

import pytest

from tests.fakes import anthropic_rules, bedrock_rules, google_server, openai_server, picture_rules, tool_rules

OBJECT: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "string"}}}
TOP = {**OBJECT, "anyOf": [{"required": ["a"]}]}
JPEG, PNG = "/9j/4AAQ", "iVBORw0KGgo="


def chat(**fields: Any) -> dict[str, Any]:
    return {"model": "gpt-4o", "messages": [{"role": "user", "content": "x"}], **fields}


def functions(*schemas: Any, name: str = "t", description: str = "") -> list[dict[str, Any]]:
    return [{"function": {"name": name, "description": description, "parameters": schema}} for schema in schemas]


@pytest.mark.parametrize(
    ("tools", "says"),
    [
        (functions(TOP), "schema must have type 'object' and not have 'oneOf'/'anyOf'"),
        (functions({"type": "object"}), "object schema missing properties"),
        (functions({**OBJECT, "properties": {"a": {"type": "array"}}}), "array schema missing items"),
        (functions({**OBJECT, "properties": []}), "is not of type 'object'"),
        (functions(OBJECT, name="two words"), "string does not match pattern"),
        (functions(OBJECT, description="x" * 1_025), "maximum length 1024, but got a string with length 1025"),
        (functions(*[OBJECT] * 129), "array too long"),
        (functions({**OBJECT, "properties": {"a": {"$ref": "#/$defs/b"}}}), "reference can only point to definitions"),
    ],
)
def test_openai_and_tools(tools: Any, says: str) -> None:
    refused = openai_server.refusal(chat(tools=tools))
    assert refused is not None
    assert says in refused[0]
    assert openai_server.refusal(chat(tools=functions(OBJECT))) is None


@pytest.mark.parametrize(
    ("schema", "says"),
    [
        (TOP, "tools.0.custom.input_schema: input_schema does not support oneOf, allOf, or anyOf at the top level"),
        ({"properties": {}}, "input_schema.type: Field required"),
        ({**OBJECT, "properties": {"a[]": {}}}, "Property keys should match pattern '^[a-zA-Z0-9_.-]{1,64}$'"),
        ({**OBJECT, "properties": {"a": {"type": "any"}}}, "It must match JSON Schema draft 2020-12"),
    ],
)
def test_claude_and_tools(schema: Any, says: str) -> None:
    body = {"model": "claude-haiku-4-5", "max_tokens": 9, "messages": [{"role": "user", "content": "x"}]}
    refused = anthropic_rules.refusal({**body, "tools": [{"name": "t", "input_schema": schema}]}, "2026-10-21")
    assert refused is not None
    assert says in refused
    asked = {"messages": [{"role": "user", "content": [{"text": "x"}]}]}
    tools = [{"toolSpec": {"name": "t", "inputSchema": {"json": {**schema, "type": "object"}}}}]
    on_bedrock = bedrock_rules.refusal("anthropic.claude-sonnet-5", {**asked, "toolConfig": {"tools": tools}})
    assert (on_bedrock is None) == ("type: Field" in says)


def test_google_and_tools() -> None:
    assert "Invalid function name" in str(tool_rules.google_refusal([{"name": "7 up"}]))
    assert "Duplicate function declaration" in str(tool_rules.google_refusal([{"name": "a"}, {"name": "a"}]))
    assert tool_rules.google_refusal([{"name": "a", "parametersJsonSchema": OBJECT}]) is None
    part = {"inlineData": {"mimeType": "image/jpg", "data": JPEG}}
    refused = google_server.refusal({"contents": [{"role": "user", "parts": [part]}]}, "gemini-2.5-pro")
    assert refused == "Unsupported MIME type: image/jpg"


@pytest.mark.parametrize(
    ("media_type", "data", "says"),
    [
        ("image/jpg", JPEG, "Input should be 'image/jpeg'"),
        ("image/png", JPEG, "but the image appears to be a image/jpeg image"),
        ("image/png", "AAAA", "Could not process image"),
        ("image/jpeg", JPEG, None),
        ("image/png", PNG, None),
    ],
)
def test_pictures(media_type: str, data: str, says: str | None) -> None:
    refused = picture_rules.refusal(media_type, data)
    assert (refused is None) if says is None else says in str(refused)
    assert (picture_rules.address_refusal(f"data:{media_type};base64,{data}") is None) == (says is None)


def test_names_and_content_in_a_history() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "", "arguments": "{}"}}
    history = [
        {"role": "user", "content": "x"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "r"},
    ]
    assert "tool_calls[0].function.name" in str(openai_server.refusal(chat(messages=history)))
    assert "empty array" in str(openai_server.refusal(chat(messages=[{"role": "user", "content": []}])))
