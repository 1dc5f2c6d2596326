# ruff: noqa: E501 - a case a line
"""JSON Schemas of other drafts and programs, read as they are meant."""

from typing import Any

import pytest
from jsonschema import Draft202012Validator

from services.common.core.schema_forms import as_meant, target_of, unresolved_reference


def of(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        # PHP's empty object.
        ([], {}),
        ({"type": "object", "properties": []}, of()),
        (of(a=[], b={"type": "array", "items": []}), of(a={}, b={"type": "array", "items": {}})),
        ({**of(), "additionalProperties": [], "$defs": []}, {**of(), "additionalProperties": {}, "$defs": {}}),
        # Drafts 3 and 4, and OpenAPI 3.0.
        (of(a={"minimum": 0, "exclusiveMinimum": True}), of(a={"exclusiveMinimum": 0})),
        (of(a={"maximum": 0, "exclusiveMaximum": False}), of(a={"maximum": 0})),
        (of(a={"exclusiveMinimum": True}), of(a={})),
        (of(a={"type": "string", "required": True}), {**of(a={"type": "string"}), "required": ["a"]}),
        (of(a={"items": [{"type": "string"}], "additionalItems": False}), of(a={"prefixItems": [{"type": "string"}], "items": False})),
        (of(a={"type": "string", "nullable": True, "enum": ["x"]}), of(a={"type": ["string", "null"], "enum": ["x", None]})),
        (of(a={"$ref": "#/x", "nullable": True}), of(a={"anyOf": [{"$ref": "#/x"}, {"type": "null"}]})),
        (of(a={"divisibleBy": 2}), of(a={"multipleOf": 2})),
        # Words of other languages.
        (of(a={"type": "int"}, b={"type": ["str", "None"]}), of(a={"type": "integer"}, b={"type": ["string", "null"]})),
        ({"type": "OBJECT", "properties": {"a": {"type": "STRING"}}}, of(a={"type": "string"})),
        (of(a={"type": "any"}, b={"type": ""}, c={"type": None}), of(a={}, b={}, c={})),
        # What says nothing.
        ({**of(a={"enum": []}, b={"anyOf": []}), "required": None}, of(a={}, b={})),
        ({**of(a={"description": None, "minLength": "3"}), "required": "a"}, {**of(a={"minLength": 3}), "required": ["a"]}),
        # Properties that are called like keywords are properties.
        (of(required={"type": "boolean"}, type={}, items={}), of(required={"type": "boolean"}, type={}, items={})),
    ],
)  # fmt: skip
def test_forms(given: Any, meant: Any) -> None:
    made = as_meant(given)
    assert made == meant
    assert as_meant(made) == made
    if "#/x" not in str(made):
        Draft202012Validator.check_schema(made)


def test_what_is_right_stays() -> None:
    schema = {
        **of(a={"anyOf": [{"type": "string"}, {"type": "null"}], "default": []}, b=True),
        "required": ["a"],
        "additionalProperties": False,
    }
    assert as_meant(schema) == schema


def test_references() -> None:
    schema = {"$defs": {"a/b": {"type": "string"}}, **of(a={"$ref": "#/$defs/a~1b"}, b={"$ref": "#"})}
    assert unresolved_reference(schema) == ""
    assert target_of(schema, "#/$defs/a~1b") == {"type": "string"}
    for reference in ("#/$defs/c", "http://x/y", "other.json", "#/properties/a/$ref/x"):
        assert unresolved_reference({**schema, "not": {"$ref": reference}}) == reference
