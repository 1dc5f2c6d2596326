"""A text read out of JSON that is still being written."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.turns.arguments import TextArgument

TEXTS = st.text(max_size=30)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS | st.just("message"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS | st.just("message"), inner, max_size=3),
    max_leaves=8,
)


def read(document: str, size: int) -> list[str]:
    """What each piece of `size` characters adds."""
    reader = TextArgument("message")
    return [reader.feed(document[start : start + size]) for start in range(0, len(document), size)]


def test_it_grows_with_the_pieces() -> None:
    pieces = ['{"mes', 'sage": "He', "llo", " A\\u0", '064a"', ', "a": "b"}']
    reader = TextArgument("message")
    assert [reader.feed(piece) for piece in pieces] == ["", "He", "llo", " A", "da", ""]


@given(text=TEXTS, before=st.dictionaries(TEXTS, VALUES, max_size=3), escaped=st.booleans(), size=st.integers(1, 9))
def test_the_pieces_joined_are_the_text(text: str, before: dict[str, Any], escaped: bool, size: int) -> None:
    arguments = {key: value for key, value in before.items() if key != "message"} | {"message": text, "z": "message"}
    assert "".join(read(json.dumps(arguments, ensure_ascii=escaped), size)) == text


@pytest.mark.parametrize(
    ("document", "text"),
    [
        ('{"message": 3, "a": "message"}', ""),
        ('{"message": null}', ""),
        ('{"message": ["a"], "b": {"message": "c"}}', ""),
        ('["message", "a"]', ""),
        ('"message"', ""),
        ("", ""),
        ('{"me\\u0073sage": "a"}', "a"),
        # What is not JSON ends the text.
        ('{"message": "a\nb"}', "a"),
        ('{"message": "a\\x"}', "a"),
        ('{"message": "a\\ud800b"}', "a\ufffdb"),
        ('{"message": "a\\udc00b"}', "a\ufffdb"),
        ('{"message": "a\\ud83d\\u0041"}', "a\ufffdA"),
        ('{"message": "\\ud83d\\ude00"}', "\U0001f600"),
        ('{"message": "a"} and more', "a"),
    ],
)
@pytest.mark.parametrize("size", [1, 4, 1_000])
def test_other_documents(document: str, text: str, size: int) -> None:
    assert "".join(read(document, size)) == text


def test_a_long_text_costs_no_more_by_small_pieces() -> None:
    document = json.dumps({"thinking": "x" * 300_000, "message": "y" * 300_000})
    assert sum(map(len, read(document, 3))) == 300_000
