"""Schemas as servers write them are taken, with their meaning."""

from typing import Any

import pytest

from services.tool_runner.core.schemas.validation import check_parameters, problems
from services.tool_runner.mcp.protocol import server_tools
from services.tool_runner.mcp.protocol.input_schemas import modern


def _offered(schema: Any, **item: Any) -> server_tools.ServerTools:
    return server_tools.read([{"name": "tool", "inputSchema": schema, **item}])


def _one(schema: Any) -> Any:
    return {"type": "object", "properties": {"a": schema}}


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        ({"type": "array", "items": [{"type": "string"}, {"type": "number"}]}, ["x", 1], [1, "x"]),
        ({"type": "array", "items": [{"type": "string"}], "additionalItems": False}, ["x"], ["x", 1]),
        ({"type": "array", "items": [], "minItems": 1}, ["x"], []),
        ({"type": "number", "minimum": 1, "exclusiveMinimum": True}, 2, 1),
        ({"type": "number", "minimum": 1, "exclusiveMinimum": False}, 1, 0),
        ({"type": "string", "pattern": "^(?<year>[0-9]{4})$"}, "2024", "no"),
        ({"type": "object", "required": None, "properties": None}, {"b": 1}, 1),
        ({"type": "object", "properties": {"required": {"type": "string"}}}, {"required": "x"}, {"required": 1}),
        ({"enum": [None, {"items": [1]}]}, {"items": [1]}, 2),
    ],
)
def test_older_drafts_and_other_words_keep_their_meaning(schema: Any, good: Any, bad: Any) -> None:
    parameters = modern({"$schema": "http://json-schema.org/draft-07/schema#", **_one(schema)})
    check_parameters("tool", parameters)
    assert problems("tool", parameters, {"a": good}) == []
    assert problems("tool", parameters, {"a": bad}) != []


def test_a_pattern_that_python_cannot_read_is_left_out() -> None:
    text = {"type": "string", "pattern": "^\\p{L}+$", "minLength": 1}
    parameters = modern({**_one(text), "patternProperties": {"^\\p{L}": {}, "^x": {}}})
    assert parameters["properties"]["a"] == {"type": "string", "minLength": 1}
    assert parameters["patternProperties"] == {"^x": {}}
    check_parameters("tool", parameters)


@pytest.mark.parametrize("schema", [None, {}, {"type": ["object"]}, {"type": "object", "properties": None}])
def test_what_is_absent_in_other_words_is_no_problem(schema: Any) -> None:
    listing = _offered(schema)
    assert listing.problems == ()
    assert listing.offers[0].parameters == {"type": "object", "properties": {}}


@pytest.mark.parametrize("schema", [["a"], "object", {"type": "array"}, {"type": ["object", "null"]}])
def test_what_is_no_object_is_a_problem(schema: Any) -> None:
    assert "type object" in _offered(schema).problems[0][1]


def test_a_tool_that_runs_as_a_task_only_is_left_out() -> None:
    assert "as a task only" in _offered({}, execution={"taskSupport": "required"}).problems[0][1]
    assert _offered({}, execution={"taskSupport": "optional"}).problems == ()
