"""Values that the demo model makes up."""

from typing import Any

import pytest

from services.llm_gateway.vendors.demo.samples import sample


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({}, "hi"),
        ({"type": "string"}, "hi"),
        ({"type": "string", "minLength": 4}, "hi.."),
        ({"type": "string", "maxLength": 1}, "h"),
        ({"type": "string", "format": "date"}, "2026-01-01"),
        ({"type": "string", "enum": ["a", "b"]}, "a"),
        ({"type": "string", "examples": ["e"]}, "e"),
        ({"const": 7}, 7),
        ({"type": "integer", "default": 5}, 5),
        ({"type": "integer"}, 1),
        ({"type": "integer", "minimum": 10}, 10),
        ({"type": "integer", "exclusiveMinimum": 10}, 11),
        ({"type": "number", "minimum": -2, "maximum": 0.5}, 0.5),
        ({"type": "boolean"}, False),
        ({"type": "null"}, None),
        ({"type": ["null", "integer"]}, 1),
        ({"anyOf": [{"type": "null"}, {"type": "integer"}]}, 1),
        ({"anyOf": [{"type": "null"}]}, None),
        ({"type": "array", "items": {"type": "integer"}}, [1]),
        ({"type": "array", "items": {"type": "integer"}, "minItems": 2}, [1, 1]),
        ({"type": "object"}, {}),
        ({"properties": {"a": {"type": "integer"}}}, {"a": 1}),
        ({"type": "object", "properties": {"a": {}, "b": {}}, "required": ["b"]}, {"b": "hi"}),
        ({"allOf": [{"properties": {"a": {}}, "required": ["a"]}, {"properties": {"b": {}}}]}, {"a": "hi"}),
        ({"$ref": "#/$defs/N", "$defs": {"N": {"type": "integer"}}}, 1),
        ({"$ref": "#/$defs/none"}, "hi"),
    ],
)
def test_a_value_of_a_schema(schema: dict[str, Any], value: object) -> None:
    assert sample(schema, "hi") == value


def test_a_schema_that_holds_itself_ends() -> None:
    node = {"type": "object", "properties": {"name": {"type": "string"}, "next": {"$ref": "#/$defs/Node"}}}
    value = sample({"$ref": "#/$defs/Node", "$defs": {"Node": node}}, "hi")
    depth = 0
    while value:
        assert value["name"] == "hi"
        value, depth = value["next"], depth + 1
    assert depth == 4
