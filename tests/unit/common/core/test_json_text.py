"""JSON and texts with halves of characters."""

import json
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.common.core.json_text import parse_json, parse_pieces, well_formed, well_formed_json


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ""),
        ("a\ud83d", "a\ufffd"),
        ("\ude00a", "\ufffda"),
        ("\ud83d\ude00", "\U0001f600"),
        ("\ud83d\ud83d\ude00\ude00", "\ufffd\U0001f600\ufffd"),
        ("ä\U0001f600", "ä\U0001f600"),
    ],
)
def test_halves(text: str, expected: str) -> None:
    assert well_formed(text) == expected
    assert parse_json(json.dumps(text)) == expected
    assert orjson.loads(well_formed_json(json.dumps(text))) == expected


def test_an_escaped_backslash_begins_no_escape() -> None:
    assert well_formed_json(r'"\\ud83d \\\ud83d"') == r'"\\ud83d \\\ufffd"'


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (b'{"a": "\xff"}', {"a": "\ufffd"}),
        (b'{"a": "\xed\xa0\xbd\xed\xb8\x80"}', {"a": "\U0001f600"}),
        (b'{"\\ud83d": ["\\ude00"]}', {"\ufffd": ["\ufffd"]}),
    ],
)
def test_bytes_that_are_no_utf_8(data: bytes, value: Any) -> None:
    assert parse_json(data) == value


def test_pieces_keep_their_halves() -> None:
    assert parse_pieces(rb'["Hi \ud83d", "\ude00"]') == ["Hi \ud83d", "\ude00"]


@pytest.mark.parametrize("data", ["", "{", "NaN", '{"a": Infinity}', "[" * 100_000, b"\xff", '"a\nb"'])
def test_what_is_no_json_is_none(data: str | bytes) -> None:
    for parse in (parse_json, parse_pieces):
        with pytest.raises(json.JSONDecodeError):
            parse(data)


@settings(derandomize=True, deadline=None)
@given(st.text(st.characters(), max_size=20))
def test_whatever_comes_can_be_written(text: str) -> None:
    made = well_formed(text)
    assert made.encode().decode() == made
    assert parse_json(json.dumps([text])) == [made]
    assert orjson.loads(well_formed_json(json.dumps([text]))) == [made]
