"""Ids of tool calls made valid for whoever is asked next."""

import re
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.llm_gateway.core.chat import Message, Role, ToolCall, ToolResult
from services.llm_gateway.vendors.shared.call_ids import ANTHROPIC, ANY, MISTRAL, OPENAI, IdShape, with_valid_ids
from tests.unit.llm_gateway.builders import assistant, call, results, user

SHAPES = [OPENAI, ANTHROPIC, MISTRAL, ANY]


def ids_of(messages: Sequence[Message]) -> list[str]:
    """Of calls and results, in order."""
    ids = []
    for message in messages:
        for part in message.parts:
            if isinstance(part, ToolCall):
                ids.append(part.id)
            elif isinstance(part, ToolResult):
                ids.append(part.tool_call_id)
    return ids


def turn(*ids: str) -> list[Message]:
    return [user("x"), assistant("y", *(call(id, "f") for id in ids)), results(*((id, "r") for id in ids))]


@pytest.mark.parametrize(
    ("shape", "id", "kept"),
    [
        (OPENAI, "call_9", True),
        (OPENAI, "c" * 40, True),
        (OPENAI, "c" * 41, False),
        (OPENAI, "", False),
        (ANTHROPIC, "toolu_1-A", True),
        (ANTHROPIC, "functions.roll:0", False),
        (ANTHROPIC, "c" * 65, False),
        (MISTRAL, "aB3dE6gH9", True),
        (MISTRAL, "call_1234", False),
        (MISTRAL, "aB3dE6gH", False),
        (ANY, "functions.roll:0", True),
        (ANY, "has space", False),
    ],
)
def test_what_a_dialect_takes_is_kept_and_the_rest_made_new(shape: IdShape, id: str, kept: bool) -> None:
    messages = turn(id)
    made = with_valid_ids(messages, shape)
    assert (made is messages) is kept
    called, answered = ids_of(made)
    assert called == answered
    assert (called == id) is kept
    assert shape.pattern.fullmatch(called)


def test_ids_that_come_again_are_told_apart_by_their_turn() -> None:
    made = with_valid_ids([*turn("call_0", "call_1"), *turn("call_0"), *turn("call_0")], OPENAI)
    called = [part.id for message in made for part in message.parts if isinstance(part, ToolCall)]
    assert called[:2] == ["call_0", "call_1"]
    assert len(set(called)) == 4
    assert ids_of(made) == [called[0], called[1], called[0], called[1], called[2], called[2], called[3], called[3]]


def test_two_calls_of_one_message_under_one_id_are_answered_in_order() -> None:
    made = with_valid_ids(turn("same", "same"), OPENAI)
    first, second, *answered = ids_of(made)
    assert first != second
    assert answered == [first, second]


def test_a_result_without_a_call_is_valid_too() -> None:
    made = with_valid_ids([user("x"), results(("a b", "r"))], OPENAI)
    assert OPENAI.pattern.fullmatch(ids_of(made)[0])


def test_a_made_id_that_is_already_taken_is_made_again() -> None:
    taken = MISTRAL.made_of("0:call_x")
    called = ids_of(with_valid_ids([*turn(taken), *turn("call_x")], MISTRAL))
    assert len(set(called)) == 2
    assert all(MISTRAL.pattern.fullmatch(id) for id in called)


anything = st.lists(st.lists(st.text(max_size=50), min_size=1, max_size=3), max_size=5)


@given(anything, st.sampled_from(SHAPES))
def test_any_history_becomes_valid_unique_and_matched(turns: list[list[str]], shape: IdShape) -> None:
    messages = [message for ids in turns for message in turn(*ids)]
    made = list(with_valid_ids(messages, shape))
    assert ids_of(made) == ids_of(with_valid_ids(messages, shape))
    seen: set[str] = set()
    for message in made:
        called = [part.id for part in message.parts if isinstance(part, ToolCall)]
        if message.role is Role.ASSISTANT:
            assert all(shape.pattern.fullmatch(id) for id in called)
            assert not seen & set(called)
            assert len(set(called)) == len(called)
            seen |= set(called)
            last = called
        if message.role is Role.TOOL:
            assert [part.tool_call_id for part in message.parts if isinstance(part, ToolResult)] == last
    assert [len(message.parts) for message in made] == [len(message.parts) for message in messages]


@given(anything, st.sampled_from(SHAPES))
def test_a_growing_history_stays_as_it_was_at_its_beginning(turns: list[list[str]], shape: IdShape) -> None:
    messages = [message for ids in turns for message in turn(*ids)]
    whole = list(with_valid_ids(messages, shape))
    for length in range(0, len(messages) + 1, 3):
        assert list(with_valid_ids(messages[:length], shape)) == whole[:length]


def test_made_ids_are_letters_and_digits() -> None:
    assert re.fullmatch(r"toolu_[0-9A-Za-z]{24}", ANTHROPIC.made_of("x"))
    assert re.fullmatch(r"[0-9A-Za-z]{9}", MISTRAL.made_of("x"))
