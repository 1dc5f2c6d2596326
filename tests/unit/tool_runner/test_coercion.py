"""Arguments of weak models: made what the schema says, where only one thing can be meant."""

import time
from typing import Any

import pytest

from services.tool_runner.core.schemas.coercion import coerce
from services.tool_runner.core.schemas.raw_arguments import NotAnObject, parse

WHOLE, NUMBER, FLAG, TEXT, NULL = ({"type": kind} for kind in ("integer", "number", "boolean", "string", "null"))
LIST: dict[str, Any] = {"type": "array", "items": WHOLE}
OBJECT: dict[str, Any] = {"type": "object", "properties": {"k": WHOLE}}


def coerced(schema: Any, value: Any) -> Any:
    return coerce({"type": "object", "properties": {"x": schema}}, {"x": value})["x"]


@pytest.mark.parametrize(
    ("schema", "value", "expected"),
    [
        (WHOLE, " -3 ", -3),
        (WHOLE, 3.0, 3),
        (WHOLE, "3.0", 3),
        (NUMBER, "2.5", 2.5),
        (NUMBER, "3", 3),
        (NUMBER, "1e3", 1000.0),
        (FLAG, "True", True),
        (TEXT, 3, "3"),
        (LIST, '["1", 2]', [1, 2]),
        (LIST, ["1", 2.0], [1, 2]),
        (OBJECT, '{"k": "4"}', {"k": 4}),
        ({"type": "object", "additionalProperties": WHOLE}, {"q": "1"}, {"q": 1}),
        ({"anyOf": [WHOLE, NULL]}, "3", 3),
        ({"anyOf": [WHOLE, NULL]}, "null", None),
        ({"type": ["integer", "null"]}, "3", 3),
        ({"anyOf": [LIST, OBJECT]}, "[1]", [1]),
        ({"enum": [1, 2]}, "2", 2),
        ({"$ref": "#/properties/x/$defs/n", "$defs": {"n": WHOLE}}, "2", 2),
    ],
)
def test_it_is_made_what_it_must_mean(schema: Any, value: Any, expected: Any) -> None:
    found = coerced(schema, value)
    assert (found, type(found)) == (expected, type(expected))


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (WHOLE, "three"),
        (WHOLE, "3.5"),
        (WHOLE, True),
        (WHOLE, "1" * 40),
        (NUMBER, "nan"),
        (FLAG, "yes"),
        (FLAG, 1),
        (TEXT, 1.5),
        (TEXT, True),
        (TEXT, {"a": 1}),
        (LIST, "1,2"),
        (LIST, 1),
        (LIST, "[1"),
        (OBJECT, "[1]"),
        ({"anyOf": [WHOLE, TEXT]}, "3"),
        ({"anyOf": [TEXT, LIST]}, "[1]"),
        ({"anyOf": [WHOLE, FLAG]}, "maybe"),
        ({"$ref": "#/properties/x"}, "2"),
        (True, "2"),
    ],
)
def test_nothing_is_guessed(schema: Any, value: Any) -> None:
    found = coerced(schema, value)
    assert found is value or (found == value and type(found) is type(value))


def test_a_schema_without_an_end_ends() -> None:
    schema: dict[str, Any] = WHOLE
    for _ in range(38):
        schema = {"anyOf": [schema, {"anyOf": [schema, FLAG]}]}
    began = time.process_time()
    assert coerced(schema, "zz") == "zz"
    assert time.process_time() - began < 20


@pytest.mark.parametrize(("text", "expected"), [('"{\\"a\\": 1}"', {"a": 1}), ('{"a": 1}', {"a": 1}), ("", {})])
def test_the_whole_object_as_a_text(text: str, expected: dict[str, Any]) -> None:
    assert parse(text) == expected


@pytest.mark.parametrize("text", ['"a"', '"[1]"', '"{"', "[1]", '"\\"{}\\""'])
def test_another_text_is_no_object(text: str) -> None:
    with pytest.raises(NotAnObject):
        parse(text)
