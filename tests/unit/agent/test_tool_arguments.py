"""Arguments before a call runs: parsed, checked with place and expectation, and filled in by rules."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.agent.arguments import MOST_BYTES, Problem, check, check_prefilled, parse, prefill
from services.agent.json_schema import is_checkable
from services.tool_runner import given as runner_given
from services.tool_runner.arguments import problems as runner_problems

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "count": {"type": "integer", "description": "How many."},
        "kind": {"type": "string", "enum": ["a", "b"]},
        "items": {
            "type": "array",
            "items": {"type": "object", "required": ["id", "n"], "properties": {"id": {"type": "string"}}},
        },
        "either": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
        "maybe": {"type": ["string", "null"]},
        "any": {},
    },
    "required": ["count"],
}


def said(problem: Problem | None) -> list[str]:
    return [] if problem is None else list(problem.sentences)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"count": 1}, []),
        ({"count": 1.0, "kind": "a", "items": [{"id": "x", "n": 0}], "either": "x", "maybe": None, "any": None}, []),
        ({}, ["arguments: count must be given and is missing"]),
        ({"count": "six"}, ['count: must be an integer, not "six"']),
        ({"count": True}, ["count: must be an integer, not true"]),
        ({"count": None}, ["count: must be an integer, not null"]),
        ({"count": 1.5}, ["count: must be an integer, not 1.5"]),
        ({"count": 1, "kind": "c"}, ['kind: must be one of "a", "b", not "c"']),
        ({"count": 1, "items": [{"id": "x", "n": 1}, {}]}, ["items[1]: id, n must be given and is missing"]),
        ({"count": 1, "items": [{"id": 3, "n": 1}]}, ["items[0].id: must be a string, not 3"]),
        ({"count": 1, "either": []}, ["either: must be an integer or a string, not []"]),
        ({"count": 1, "maybe": 2}, ["maybe: must be a string or null, not 2"]),
        ({"count": "x", "kind": 1}, ['count: must be an integer, not "x"', "kind: must be a string, not 1"]),
        ({"count": 1, "kind": None, "either": None, "request_heartbeat": True}, []),
        (
            {"count": 1, "more": 2},
            ["more: is not an argument of this tool; it takes count, kind, items, either, maybe, any"],
        ),
    ],
)
def test_what_is_wrong_is_said_with_its_place(arguments: dict[str, Any], expected: list[str]) -> None:
    found = said(check(arguments, SCHEMA))
    assert found[: len(expected)] == expected
    assert bool(found) == bool(expected)


@pytest.mark.parametrize(
    ("schema", "value", "expected"),
    [
        ({"minimum": 3}, 2, "must be at least 3, not 2"),
        ({"maximum": 3}, 4, "must be at most 3, not 4"),
        ({"exclusiveMinimum": 3}, 3, "must be more than 3, not 3"),
        ({"exclusiveMaximum": 3}, 3, "must be less than 3, not 3"),
        ({"minLength": 2}, "é", "must have at least 2 characters, not 1"),
        ({"maxLength": 1}, "éé", "must have at most 1 characters, not 2"),
        ({"minItems": 1}, [], "must have at least 1 items, not 0"),
        ({"maxItems": 1}, [1, 2], "must have at most 1 items, not 2"),
        ({"minProperties": 1}, {}, "must have at least 1 fields, not 0"),
        ({"maxProperties": 0}, {"a": 1}, "must have at most 0 fields, not 1"),
        ({"const": 1}, True, "must be one of 1, not true"),
        ({"enum": [[1, {"a": 2}]]}, [1, {"a": 2.5}], 'must be one of [1, {"a": 2}], not [1, {"a": 2.5}]'),
        ({"oneOf": [{"type": "integer"}, {"minimum": 3}]}, 4, "must be an integer or another form of it, not 4"),
        ({"additionalProperties": False, "properties": {"b": {}}}, {"a": 1}, "a must not be given; it takes b"),
        (False, 1, "must not be given"),
        ({"minimum": 3}, "2", None),
        ({"minLength": 3}, True, None),
        ({"maximum": 0}, True, None),
        ({"const": 1}, 1.0, None),
        ({"enum": [[1, {"a": 2}]]}, [1, {"a": 2.0}], None),
        ({"oneOf": [{"type": "integer"}, {"type": "string"}]}, 4, None),
        (True, 1, None),
        ({"format": "date", "title": "Day", "default": 3}, "no day", None),
    ],
)
def test_every_keyword(schema: Any, value: Any, expected: str | None) -> None:
    found = said(check({"x": value}, {"properties": {"x": schema}}))
    assert found == ([] if expected is None else [f"x: {expected}"])


def test_arguments_beside_the_named_ones() -> None:
    schema = {"type": "object", "properties": {"a": {}}}
    assert said(check({"b": 1}, schema)) == ["b: is not an argument of this tool; it takes a"]
    assert said(check({"b": 1}, {"type": "object"})) == ["b: is not an argument of this tool; it takes none"]
    assert check({"b": 1}, {**schema, "additionalProperties": True}) is None
    assert said(check({"b": 1}, {**schema, "additionalProperties": {"type": "string"}})) == [
        "b: must be a string, not 1"
    ]


def test_at_most_five_sentences_and_short_values() -> None:
    assert len(said(check({f"x{n}": n for n in range(9)}, SCHEMA))) == 5
    (long,) = said(check({"count": "x" * 1000}, SCHEMA))
    assert len(long) < 150


def test_what_is_said_can_be_stored() -> None:
    found = check({"a\x00b": 1, "\ud800": 2, "count": "\ud800"}, SCHEMA)
    assert found is not None
    text = found.told("act")
    assert text.startswith("Nothing was run: the arguments of act do not fit its schema.\na\ufffdb: is not an argument")
    assert "\x00" not in text
    assert text.encode()


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "text"},
        {"type": []},
        {"type": 3},
        {"properties": []},
        {"properties": {"x": "string"}},
        {"required": "x"},
        {"required": [1]},
        {"properties": {"x": {"enum": "abc"}}},
        {"properties": {"x": {"anyOf": []}}},
        {"properties": {"x": {"minimum": "1"}}},
        {"properties": {"x": {"minLength": -1}}},
        {"properties": {"x": {"minLength": float("inf")}}},
        {"properties": {"x": {"$ref": "#/$defs/x"}}, "$defs": {"x": {}}},
        {"properties": {"x": {"type": "string", "pattern": "(a+)+$"}}},
        {"properties": {"x": {"allOf": [{"type": "string"}]}}},
        {"unheard-of": 1},
    ],
)
def test_a_schema_that_is_wrong_or_not_plain_checks_nothing(schema: dict[str, Any]) -> None:
    assert check({"x": 1, "y": 2}, schema) is None
    assert check_prefilled({"x": 1}, schema) is None


def test_what_would_hold_the_event_loop_is_left_to_the_runner() -> None:
    endless: dict[str, Any] = {}
    endless["items"] = endless
    assert check({"x": 1}, {"properties": {"x": endless}}) is None
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    assert check({"x": deep}, {"properties": {"x": {"type": "string"}}}) is None
    assert check({"count": "x" * 70_000}, SCHEMA) is None


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
        ('"\ud800"', 'the arguments must be a JSON object, not "?"'),
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


def test_a_rules_values_need_not_be_all_that_is_required() -> None:
    assert check_prefilled({"kind": "a"}, SCHEMA) is None
    assert said(check_prefilled({"kind": "c"}, SCHEMA)) == ['kind: must be one of "a", "b", not "c"']
    assert said(check_prefilled({"count": None}, SCHEMA)) == ["count: must be an integer, not null"]
    assert said(check_prefilled({"more": 1}, SCHEMA))[0].startswith("more: is not an argument of this tool")


# The tool runner, with a library, is the judge of the plain part: same verdict, and the same words where both have
# words of their own.
_NAMES = st.sampled_from(["a", "b", "c"])
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from([0.0, 1.0, 1.5]) | st.sampled_from(["", "a", "é"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_NAMES, inner, max_size=3),
    max_leaves=6,
)
_KINDS = st.sampled_from(["string", "integer", "number", "boolean", "array", "object", "null"])
_SIZES = st.integers(0, 3)


def _with_schemas(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    optional = {
        "type": _KINDS | st.lists(_KINDS, min_size=1, max_size=2, unique=True),
        "enum": st.lists(_VALUES, min_size=1, max_size=3),
        "const": _VALUES,
        "properties": st.dictionaries(_NAMES, inner, max_size=3),
        "required": st.lists(_NAMES, unique=True, max_size=2),
        "additionalProperties": inner | st.booleans(),
        "items": inner,
        "anyOf": st.lists(inner, min_size=1, max_size=2),
        "oneOf": st.lists(inner, min_size=1, max_size=2),
        "minimum": _SIZES,
        "exclusiveMaximum": _SIZES,
        "minLength": _SIZES,
        "maxItems": _SIZES,
        "minProperties": _SIZES,
    }
    return st.lists(st.sampled_from(sorted(optional)), max_size=3, unique=True).flatmap(
        lambda keywords: st.fixed_dictionaries({keyword: optional[keyword] for keyword in keywords})
    )


_SCHEMAS = st.recursive(st.just({}) | st.builds(lambda kind: {"type": kind}, _KINDS), _with_schemas, max_leaves=4)
_PARAMETERS = st.fixed_dictionaries(
    {"properties": st.dictionaries(_NAMES, _SCHEMAS, min_size=1, max_size=2)},
    optional={"required": st.lists(_NAMES, unique=True, max_size=2)},
)


@settings(max_examples=80, deadline=None)
@given(_PARAMETERS, st.dictionaries(_NAMES, _VALUES, max_size=3))
def test_the_tool_runner_says_the_same(parameters: dict[str, Any], arguments: dict[str, Any]) -> None:
    assert is_checkable(parameters)
    judged = runner_problems("act", parameters, runner_given.completed(parameters, arguments))
    found = said(check(arguments, parameters))
    assert bool(found) == bool(judged), (found, judged)
    own_words = [line for line in judged if ": must be " in line or "must be given and is missing" in line]
    if len(judged) < 5:
        assert set(own_words) <= set(found), json.dumps([found, judged])
