"""Foreign texts, as Postgres can store them."""

import json
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.common.core.storable import parse_storable, storable, storable_json

ANY_TEXT = st.text(st.characters(exclude_categories=()))
ANY_JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | ANY_TEXT,
    lambda inner: st.lists(inner) | st.dictionaries(ANY_TEXT, inner),
    max_leaves=10,
)


@pytest.mark.parametrize(
    ("text", "stored"),
    [("", ""), ("a\0b", "ab"), ("\ud800a", "\ufffda"), ("ä\udfff", "ä\ufffd"), ("😀", "😀"), ("\ufffd", "\ufffd")],
)
def test_texts(text: str, stored: str) -> None:
    assert storable(text) == stored


@given(ANY_JSON)
def test_all_of_a_json_value_can_be_stored(value: Any) -> None:
    cleaned = storable_json(value)
    assert "\\u0000" not in json.dumps(cleaned).replace("\\\\", "")
    json.dumps(cleaned, ensure_ascii=False).encode()
    assert storable_json(cleaned) == cleaned


def test_names_are_texts_too() -> None:
    assert storable_json({"a\0": [{"b": ("\ud800", 1, None)}]}) == {"a": [{"b": ["\ufffd", 1, None]}]}


@given(ANY_JSON)
def test_a_clients_json_is_what_it_wrote(value: Any) -> None:
    clean = storable_json(value)
    assert parse_storable(json.dumps(clean)) == orjson.loads(json.dumps(clean))


@pytest.mark.parametrize("text", ["", "{", "NaN", "[" * 600 + "]" * 600, "[" * 5_000])
def test_what_is_none_or_too_deep_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"\S"):
        parse_storable(text)


def test_what_is_escaped_in_a_clients_json_is_taken_out() -> None:
    assert parse_storable('{"a\\u0000": "\\u0000b\\\\u0000"}') == {"a": "b\\u0000"}
