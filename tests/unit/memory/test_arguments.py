"""Arguments of tool calls: what is read, and what a model is told that got them wrong."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from services.common.core.refusals import Refused
from services.memory.core.tools.arguments import Arguments

BERLIN = timezone(timedelta(hours=1))


def arguments_of(**values: Any) -> Arguments:
    return Arguments(values)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("", "not valid JSON"),
        ("{", "not valid JSON"),
        ("[" * 100_000, "not valid JSON"),
        ('{"a":' * 600 + "1" + "}" * 600, "not valid JSON"),
        ("[1]", "must be a JSON object, not a list"),
        ("null", "must be a JSON object, not null"),
        ('"x"', "must be a JSON object, not a string"),
    ],
)
def test_arguments_are_an_object(text: str, part: str) -> None:
    with pytest.raises(Refused, match=part):
        Arguments.parse(text)


def test_what_postgres_cannot_store_is_dropped_or_replaced() -> None:
    parsed = Arguments.parse('{"a": "x\\u0000y", "b": ["\\ud83d", "\\ud83d\\ude00"]}')
    assert parsed.text("a") == "xy"
    assert parsed.texts("b") == ("\ufffd", "\N{GRINNING FACE}")


def test_objects_and_flags() -> None:
    parsed = Arguments.parse(
        '{"files": [{"name": "a\\u0000b"}, "c"], "one": {"name": "d"}, "yes": "True", "no": false}'
    )
    assert [each.text("name") for each in parsed.objects("files", "name")] == ["ab", "c"]
    assert [each.text("name") for each in parsed.objects("one", "name")] == ["d"]
    assert (parsed.flag("yes"), parsed.flag("no"), parsed.flag("other")) == (True, False, False)
    assert (parsed.optional_text("other"), arguments_of(a="b").optional_text("a")) == (None, "b")
    for name in ("no", "other"):
        with pytest.raises(Refused, match='must be a list of objects, each with "name"'):
            parsed.objects(name, "name")
    with pytest.raises(Refused, match="must be a boolean"):
        arguments_of(a=1).flag("a")


def test_texts() -> None:
    assert arguments_of(a="x").text("a") == "x"
    assert arguments_of(a="x").texts("a") == ("x",)
    assert arguments_of(a=["x", "y"]).texts("a") == ("x", "y")
    assert arguments_of().texts("a") == arguments_of(a=None).texts("a") == ()
    with pytest.raises(Refused, match='The argument "a" is missing; it must be a string'):
        arguments_of(b="x").text("a")
    with pytest.raises(Refused, match=r'The argument "a" must be a string, not a list: \[1\]'):
        arguments_of(a=[1]).text("a")
    with pytest.raises(Refused, match='The argument "a" must be a list of strings'):
        arguments_of(a=[1]).texts("a")


@pytest.mark.parametrize(("value", "number"), [(None, 7), (3, 3), (-1, -1), (3.0, 3), ("3", 3), (" -1 ", -1), (0, 0)])
def test_integers(value: Any, number: int) -> None:
    assert arguments_of(a=value).integer("a", 7) == number


@pytest.mark.parametrize("value", [True, 1.5, "x", "", "1.0", [], "9" * 20])
def test_what_is_no_integer(value: Any) -> None:
    with pytest.raises(Refused, match='The argument "a" must be an integer'):
        arguments_of(a=value).integer("a", 7)


def test_choices() -> None:
    assert arguments_of().choice("a", ("x", "y"), "x") == "x"
    assert arguments_of(a="y").choice("a", ("x", "y"), "x") == "y"
    with pytest.raises(Refused, match='must be "x" or "y", not a string: "z"'):
        arguments_of(a="z").choice("a", ("x", "y"), "x")


@pytest.mark.parametrize(
    ("value", "end", "moment"),
    [
        (None, False, None),
        ("", False, None),
        ("2026-01-31", False, datetime(2026, 1, 31, tzinfo=BERLIN)),
        ("2026-01-31", True, datetime(2026, 1, 31, 23, 59, 59, 999_999, tzinfo=BERLIN)),
        ("2026-01-31T15:30", True, datetime(2026, 1, 31, 15, 30, tzinfo=BERLIN)),
        ("2026-01-31T15:30:00Z", False, datetime(2026, 1, 31, 15, 30, tzinfo=UTC)),
    ],
)
def test_times_are_in_the_agents_zone(value: Any, end: bool, moment: datetime | None) -> None:
    assert arguments_of(a=value).time("a", BERLIN, end=end) == moment


@pytest.mark.parametrize("value", ["yesterday", 7, "2026-13-01", "0001-01-01"])
def test_what_is_no_time(value: Any) -> None:
    with pytest.raises(Refused, match="ISO 8601"):
        arguments_of(a=value).time("a", BERLIN)
