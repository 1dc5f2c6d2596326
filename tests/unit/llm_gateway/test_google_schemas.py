"""JSON Schemas in Google's subset."""

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.llm_gateway.vendors.google.schemas import clean_schema, clean_schema_json
from tests.fakes.google_server import SCHEMA, keywords

TEXT = {"type": "string"}


@pytest.mark.parametrize(
    ("schema", "made"),
    [
        (True, {}),
        ({"type": "string", "minLength": 3, "pattern": "a+", "default": "aaa"}, TEXT),
        ({"type": "string", "format": "date-time"}, {"type": "string", "format": "date-time"}),
        ({"type": "string", "format": "uuid"}, TEXT),
        ({"const": "a"}, {"enum": ["a"], "type": "string"}),
        ({"const": 3, "type": "integer"}, {"enum": [3], "type": "integer"}),
        ({"const": True, "type": "boolean"}, {"type": "boolean"}),
        ({"enum": ["a", None]}, {}),
        (
            {"type": "integer", "exclusiveMinimum": 0, "exclusiveMaximum": 9},
            {"type": "integer", "minimum": 1, "maximum": 8},
        ),
        ({"type": "number", "exclusiveMinimum": 0.5}, {"type": "number", "minimum": 0.5}),
        ({"type": "number", "minimum": 1, "exclusiveMinimum": True}, {"type": "number", "minimum": 1}),
        ({"type": ["string", "null"]}, {"type": ["string", "null"]}),
        ({"anyOf": [{"type": "string", "maxLength": 2}, {"type": "null"}]}, {"anyOf": [TEXT, {"type": "null"}]}),
        ({"$ref": "#/definitions/A", "description": "told"}, {"$ref": "#/$defs/A"}),
        (
            {"definitions": {"A": {"minLength": 1}}, "$ref": "#/definitions/A"},
            {"$defs": {"A": {}}, "$ref": "#/$defs/A"},
        ),
        (
            {"type": "array", "items": {"type": "string", "minLength": 1}, "uniqueItems": True},
            {"type": "array", "items": TEXT},
        ),
        ({"type": "object", "additionalProperties": {"minLength": 1}}, {"type": "object", "additionalProperties": {}}),
    ],
)
def test_what_is_kept_and_what_becomes_of_the_rest(schema: Any, made: dict[str, Any]) -> None:
    assert clean_schema(schema) == made


def test_all_of_several_is_one_schema() -> None:
    named = {"type": "object", "properties": {"name": TEXT}, "required": ["name"]}
    aged = {"properties": {"age": {"type": "integer"}}, "required": ["age"]}
    made = clean_schema({"allOf": [named, aged], "description": "A person."})
    assert made["properties"] == {"name": TEXT, "age": {"type": "integer"}}
    assert made["required"] == ["name", "age"]
    assert made["description"] == "A person."


def test_properties_may_have_the_names_of_keywords() -> None:
    schema = {"type": "object", "properties": {"pattern": TEXT, "default": {"type": "integer", "multipleOf": 2}}}
    assert clean_schema(schema)["properties"] == {"pattern": TEXT, "default": {"type": "integer"}}


def test_a_function_without_arguments_has_no_schema() -> None:
    assert clean_schema_json('{"type": "object", "properties": {}}') == ""
    assert clean_schema_json("no JSON") == ""
    assert orjson.loads(clean_schema_json('{"type": "object", "properties": {"a": {}}}'))["properties"] == {"a": {}}


NAMES = st.sampled_from(["name", "age", "type", "enum", "$ref"])
LEAVES: st.SearchStrategy[Any] = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(["string", "integer", "number", "boolean", "null", ["string", "null"]]),
        "const": st.one_of(st.text(max_size=3), st.integers(), st.booleans(), st.none()),
        "enum": st.lists(st.one_of(st.text(max_size=3), st.integers(), st.none()), max_size=3),
        "exclusiveMinimum": st.one_of(st.booleans(), st.integers()),
        "format": st.sampled_from(["date", "email"]),
        "pattern": st.just(".*"),
        "default": st.none(),
        "not": st.just({}),
    },
)


def _branches(children: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.fixed_dictionaries(
        {},
        optional={
            "type": st.just("object"),
            "properties": st.dictionaries(NAMES, children, max_size=3),
            "patternProperties": st.dictionaries(NAMES, children, max_size=1),
            "items": children,
            "anyOf": st.lists(children, max_size=2),
            "oneOf": st.lists(children, max_size=2),
            "allOf": st.lists(children, max_size=2),
            "$defs": st.dictionaries(NAMES, children, max_size=2),
            "definitions": st.dictionaries(NAMES, children, max_size=2),
            "additionalProperties": st.one_of(st.booleans(), children),
            "if": children,
        },
    )


@given(st.recursive(LEAVES, _branches, max_leaves=12))
def test_what_is_made_is_in_the_subset_and_stays_as_it_is(schema: dict[str, Any]) -> None:
    made = clean_schema(schema)
    assert set(keywords(made)) <= SCHEMA
    assert clean_schema(made) == made
