"""Arguments against a schema: what is said to the model, and what is too dangerous to check here."""

from typing import Any

import pytest

from services.tool_runner.core.schemas import raw_arguments
from services.tool_runner.core.schemas.errors import SchemaError
from services.tool_runner.core.schemas.validation import check_parameters, problems

PARAMETERS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "count": {"type": "integer"},
        "kind": {"type": "string", "enum": ["a", "b"]},
        "items": {
            "type": "array",
            "items": {"type": "object", "required": ["id"], "properties": {"id": {"type": "string"}}},
        },
        "either": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
        "any": {},
    },
    "required": ["count"],
}  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"count": 1}, []),
        ({"count": 1.0, "kind": "a", "items": [{"id": "x"}], "either": "x", "any": None}, []),
        ({}, ["arguments: count must be given and is missing"]),
        ({"count": "one"}, ['count: must be an integer, not "one"']),
        ({"count": True}, ["count: must be an integer, not true"]),
        ({"count": 1, "kind": "c"}, ['kind: must be one of "a", "b", not "c"']),
        ({"count": 1, "items": [{"id": "x"}, {}]}, ["items[1]: id must be given and is missing"]),
        ({"count": 1, "items": [{"id": 3}]}, ["items[0].id: must be a string, not 3"]),
        ({"count": 1, "either": []}, ["either: must be an integer or a string, not []"]),
        ({"count": 1, "more": 2}, ["more: is not an argument of act; it takes count, kind, items, either, any"]),
    ],
)
def test_what_is_wrong_is_said_with_its_place(arguments: dict[str, Any], expected: list[str]) -> None:
    assert problems("act", PARAMETERS, arguments) == expected


def test_at_most_five_problems_and_short_values() -> None:
    found = problems("act", PARAMETERS, {f"x{n}": n for n in range(9)})
    assert len(found) == 5
    (found_long,) = problems("act", PARAMETERS, {"count": "x" * 1000})
    assert len(found_long) < 150


def test_a_schema_that_speaks_of_more_arguments_decides_about_them() -> None:
    assert problems("act", {"type": "object", "additionalProperties": True}, {"x": 1}) == []
    (found,) = problems("act", {"type": "object", "additionalProperties": False}, {"x": 1})
    assert "'x' was unexpected" in found


def test_nothing_is_fetched_and_nothing_recurses_for_ever() -> None:
    for reference in ("http://127.0.0.1:9/schema", "#/$defs/loop"):
        parameters = {"properties": {"x": {"$ref": reference}}, "$defs": {"loop": {"$ref": "#/$defs/loop"}}}
        assert not raw_arguments.is_plain(parameters, "{}")
        (found,) = problems("act", parameters, {"x": 1})
        assert found.startswith("the schema of act cannot be used")


@pytest.mark.parametrize("keyword", ["$ref", "pattern", "patternProperties", "uniqueItems", "allOf", "not", "if"])
def test_only_quick_schemas_are_checked_here(keyword: str) -> None:
    assert raw_arguments.is_plain(PARAMETERS, "{}")
    assert not raw_arguments.is_plain(PARAMETERS, "x" * 100_000)
    nested = {"type": "object", "properties": {"x": {"type": "array", "items": {keyword: True}}}}
    assert not raw_arguments.is_plain(nested, "{}")


def test_what_is_no_schema_is_refused() -> None:
    check_parameters("act", PARAMETERS)
    with pytest.raises(SchemaError, match="properties/x/type"):
        check_parameters("act", {"properties": {"x": {"type": "text"}}})


def test_parsing() -> None:
    assert raw_arguments.parse("") == {}
    assert raw_arguments.parse('{"a": [1]}') == {"a": [1]}
    for text in (
        "[]",
        "1",
        "{",
        '{"a": NaN}',
        '{"a": Infinity}',
        "[" * 200_000,
        '"' + "x" * raw_arguments.MOST_BYTES + '"',
    ):
        with pytest.raises(raw_arguments.NotAnObject):
            raw_arguments.parse(text)


def test_hashes_see_data_and_not_writing() -> None:
    assert raw_arguments.hash_arguments('{"a":1,"b":[1,2]}') == raw_arguments.hash_arguments('{ "b": [1, 2], "a": 1 }')
    assert raw_arguments.hash_arguments('{"b":[1,2]}') != raw_arguments.hash_arguments('{"b":[2,1]}')
    assert raw_arguments.hash_arguments("{") != raw_arguments.hash_arguments("[")
    assert raw_arguments.hash_arguments("") == raw_arguments.hash_arguments("{}")


def test_null_counts_as_left_out_where_it_is_no_value() -> None:
    parameters = {
        "properties": {
            "a": {"type": "string"},
            "b": {"type": ["string", "null"]},
            "c": {"anyOf": [{"type": "null"}, {"type": "string"}]},
            "d": {},
            "e": {"enum": ["x"]},
            "f": {"type": "string"},
        },
        "required": ["f"],
    }
    everything = dict.fromkeys("abcdef")
    assert raw_arguments.complete(parameters, everything) == dict.fromkeys("bcdf")
    assert raw_arguments.complete(parameters, {"request_heartbeat": True, "other": None}) == {"other": None}
