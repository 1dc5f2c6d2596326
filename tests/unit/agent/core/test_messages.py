"""Stored messages: their pieces, their stored form, what is searched."""

from datetime import UTC, datetime
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.agent.core.messages import (
    Call,
    Image,
    Message,
    Part,
    Reasoning,
    RedactedReasoning,
    Return,
    Text,
    parts_from_json,
    parts_to_json,
    piece_otid,
    pieces,
    storable_part,
    text_of,
)

ID = UUID("01890000-0000-7000-8000-0000000000ff")
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def message(*parts: Part, otid: str | None = None) -> Message:
    return Message(ID, "assistant", parts, NOW, otid=otid)


def test_neighbours_of_one_kind_are_one_piece() -> None:
    calls = (Call("k/0", "a", "x", "{}"), Call("k/1", "b", "y", "{}"))
    split = pieces(message(Reasoning("hm"), Text("so"), *calls))
    assert [parts for _, parts in split] == [(Reasoning("hm"),), (Text("so"),), calls]
    assert [otid[-2:] for otid, _ in split] == ["80", "81", "82"]


def test_a_clients_otid_is_kept() -> None:
    assert pieces(message(Text("hi"), Image(url="https://example.org/a.png"), otid="mine"))[0][0] == "mine"


def test_there_are_128_otids() -> None:
    assert len({piece_otid(ID, number) for number in range(128)}) == 128
    assert piece_otid(ID, 500) == piece_otid(ID, 127)


text = st.text()
parts = st.one_of(
    st.builds(Text, text, text),
    st.builds(Image, text, text, text),
    st.builds(Reasoning, text, text),
    st.builds(RedactedReasoning, text),
    st.builds(Call, text, text, text, text),
    st.builds(Return, text, text, text, st.booleans(), st.lists(text).map(tuple), st.lists(text).map(tuple)),
)


@given(st.lists(parts))
def test_parts_survive_storage(given_parts: list[Part]) -> None:
    assert parts_from_json(parts_to_json(given_parts)) == tuple(given_parts)


@given(parts)
def test_nul_is_taken_out_and_nothing_else(part: Part) -> None:
    cleaned = storable_part(part)
    assert "\\u0000" not in repr(parts_to_json([cleaned]))
    assert "\0" not in str(parts_to_json([cleaned]))
    assert storable_part(cleaned) is cleaned


@pytest.mark.parametrize(
    ("part", "found"),
    [
        (Text("hello"), "hello"),
        (Return("a", "x", "42"), "42"),
        (Call("k", "a", "roll", '{"n": 6}'), 'roll {"n": 6}'),
        (Reasoning("secret"), ""),
        (Image(url="https://example.org"), ""),
    ],
)
def test_what_is_searched(part: Part, found: str) -> None:
    assert text_of(message(part)) == found
