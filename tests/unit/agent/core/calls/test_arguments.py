"""Arguments before a call runs: parsed, and filled in by rules, whose own values are checked."""

from typing import Any

import pytest

from services.agent.core.calls.arguments import MOST_BYTES, Problem, check_prefilled, parse, prefill

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "count": {"type": "integer", "description": "How many."},
        "kind": {"type": "string", "enum": ["a", "b"]},
        "items": {"type": "array", "items": {"type": "object", "required": ["id"]}},
    },
    "required": ["count"],
}


def test_parsing() -> None:
    assert parse("") == {}
    assert parse('{"a": [1]}') == {"a": [1]}
    assert parse('{"a": 123456789012345678901234567890}') == {"a": 123456789012345678901234567890}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"a": 1', "the arguments are not valid JSON: Expecting ',' delimiter"),
        ('{"a": NaN}', "the arguments are not valid JSON: NaN is not JSON"),
        ('{"a": Infinity}', "the arguments are not valid JSON: Infinity is not JSON"),
        ("[1]", "the arguments must be a JSON object, not [1]"),
        ('"\ud800"', 'the arguments must be a JSON object, not "\ufffd"'),
        ("[" * 200_000, "the arguments are too deeply nested"),
        (" " * (MOST_BYTES + 1), f"the arguments have {MOST_BYTES + 1} characters; at most {MOST_BYTES} are accepted"),
    ],
)
def test_what_is_no_object_is_said(text: str, expected: str) -> None:
    problem = parse(text)
    assert isinstance(problem, Problem)
    assert problem.sentences[0].startswith(expected)


def test_a_rules_values_win_over_the_models() -> None:
    arguments = {"a": 1, "b": {"x": 1}}
    assert prefill(arguments, {"b": {"y": 2}, "c": 3}) == {"a": 1, "b": {"y": 2}, "c": 3}
    assert arguments == {"a": 1, "b": {"x": 1}}


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"kind": "a"}, []),
        ({"kind": "c"}, ["$.kind: 'c' is not one of ['a', 'b']"]),
        ({"count": None}, ["$.count: None is not of type 'integer'"]),
        ({"items": [{"id": 1}, {}]}, ["$.items[1]: 'id' is a required property"]),
        ({"more": 1}, ["$: Additional properties are not allowed ('more' was unexpected)"]),
        ({"kind": "\0"}, ["$.kind: '\\x00' is not one of ['a', 'b']"]),
    ],
)
def test_a_rules_values_need_not_be_all_that_is_required(values: dict[str, Any], expected: list[str]) -> None:
    problem = check_prefilled(values, SCHEMA)
    assert ([] if problem is None else list(problem.sentences)) == expected


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "no such type"},
        {"properties": {"kind": {"pattern": "(a+)+$"}}},
        {"properties": {"kind": {"$ref": "#/properties/kind"}}},
        {"properties": None, "required": None},
    ],
)
def test_a_schema_that_is_wrong_or_costly_checks_nothing(schema: dict[str, Any]) -> None:
    assert check_prefilled({"kind": 1}, schema) is None


def test_what_would_be_compared_for_long_is_not_checked() -> None:
    schema = {"properties": {"items": {"items": {"enum": [{"n": number} for number in range(4_000)]}}}}
    assert check_prefilled({"items": [{"n": -1}]}, schema) is not None
    assert check_prefilled({"items": [{"n": -number} for number in range(1, 4_000)]}, schema) is None


def test_a_schema_that_breaks_the_check_says_nothing() -> None:
    schema = {"properties": {"count": {"multipleOf": 1e-308}}}
    assert check_prefilled({"count": 10**400}, schema) is None


def test_at_most_five_sentences() -> None:
    problem = check_prefilled({f"x{number}": 1 for number in range(9)} | {"items": [{}] * 9}, SCHEMA)
    assert problem is not None
    assert len(problem.sentences) == 5
    assert problem.message("roll").startswith("Nothing was run: the arguments of roll do not fit its schema.\n$")
