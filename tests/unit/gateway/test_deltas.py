"""Pieces and whole messages: each character is passed on once, whatever was missed."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.rest.convert import Rest
from gateway.turns.deltas import Deltas
from loci.agent.v1 import message_pb2
from tests.unit.gateway.pieces import calls, text, thought, waiting

Script = list[tuple[str, message_pb2.Message | None]]


def play(script: Script, **options: Any) -> list[Rest]:
    """What a reader is told; a script is (piece | whole | rejoined | abandon, message)."""
    deltas = Deltas(**options)
    told: list[Rest] = []
    for action, message in script:
        match action, message:
            case "rejoined", _:
                deltas.interrupted()
            case "abandon", message_pb2.Message():
                deltas.abandon(message.id, message.step_id)
            case "piece", message_pb2.Message():
                told += deltas.piece(message)
            case "whole", message_pb2.Message():
                told += deltas.whole(message)
    return told


def contents(chunks: list[Rest]) -> list[str]:
    """Their texts, thoughts or calls."""
    return [chunk.get("content") or chunk.get("reasoning") or chunk["tool_calls"] for chunk in chunks]


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ([("whole", text("Hello"))], ["Hello"]),
        ([("piece", text("Hel")), ("piece", text("lo")), ("whole", text("Hello"))], ["Hel", "lo"]),
        ([("piece", text("Hel")), ("whole", text("Hello"))], ["Hel", "lo"]),
        ([("piece", text("Hello ")), ("whole", text("Hello"))], ["Hello "]),
        ([("piece", text("Bye")), ("whole", text("Hello"))], ["Bye", "Hello"]),
        ([("piece", text("a")), ("whole", text("b", number=2))], ["a", "b"]),
        # Parts of one message are told apart by otid.
        ([("piece", text("a")), ("piece", text("b", otid="o-3")), ("whole", text("a")),
          ("whole", text("bc", otid="o-3"))], ["a", "b", "c"]),
        ([("piece", thought("h")), ("piece", text("a")), ("whole", thought("hm")), ("whole", text("a"))],
         ["h", "a", "m"]),
        # Interrupted: what follows is held back, the whole supplies it.
        ([("piece", text("Hel")), ("rejoined", None), ("piece", text("!")), ("whole", text("Hello!"))], ["Hel", "lo!"]),
        ([("piece", text("a")), ("whole", text("a")), ("rejoined", None), ("piece", text("c", number=2)),
          ("whole", text("bc", number=2))], ["a", "bc"]),
        # The second message after an interruption began after it.
        ([("piece", text("a")), ("rejoined", None), ("piece", text("b", number=2)), ("whole", text("ab", number=2)),
          ("piece", text("c", number=3)), ("whole", text("cd", number=3))], ["a", "ab", "c", "d"]),
        # Abandoned: the next attempt has another id.
        ([("piece", text("Hel")), ("abandon", text("")), ("piece", text("Good", number=2)),
          ("whole", text("Good day", number=2))], ["Hel", "Good", " day"]),
    ],
)  # fmt: skip
def test_texts(script: Script, told: list[str]) -> None:
    assert contents(play(script)) == told


def test_abandoning_a_step_voids_its_reply() -> None:
    deltas = Deltas()
    deltas.piece(text("a", number=1))
    deltas.piece(text("b", number=2))
    deltas.abandon("", "step-1")
    assert contents(deltas.whole(text("a", number=1))) == ["a"]
    assert deltas.whole(text("b", number=2)) == []


def test_what_comes_under_one_id_and_is_stored_under_another_is_told_once() -> None:
    script: Script = [
        ("piece", text("May ", number=4)),
        ("piece", waiting(("c1", "roll", "{}"), number=3)),
        ("whole", text("May I?", number=3)),
        ("whole", waiting(("c1", "roll", "{}"), number=3)),
    ]
    for _, source in script:
        assert source is not None
        source.step_id = "step-1"
    told = play(script)
    assert [chunk.get("content") for chunk in told] == ["May ", None, None, "I?"]
    assert told[-1]["id"] == "message-4"


@pytest.mark.parametrize(("by_client", "count"), [([True], 0), ([True, False], 1), ([False], 1)])
def test_what_the_client_answered_alone_is_not_told_to_it(by_client: list[bool], count: int) -> None:
    returns = [message_pb2.ToolReturn(tool_call_id="c", by_client=one) for one in by_client]
    whole = message_pb2.Message(tool_return_message=message_pb2.ToolReturnMessage(tool_returns=returns))
    assert len(play([("whole", whole)])) == count


def test_a_reader_that_joins_midway_gets_the_first_message_whole_and_the_next_by_pieces() -> None:
    script: Script = [
        ("piece", text("lo")),
        ("whole", text("Hello")),
        ("piece", text("Ad", number=2)),
        ("whole", text("Ada", number=2)),
    ]
    assert contents(play(script, joins_midway=True)) == ["Hello", "Ad", "a"]


def test_a_reader_that_resumes_after_a_cursor_has_read_the_head() -> None:
    script: Script = [("piece", text("lo")), ("whole", text("Hello"))]
    assert contents(play(script, tail_only=True)) == ["lo"]


def test_a_signature_that_no_piece_carried_comes_alone() -> None:
    told = play([("piece", thought("hm")), ("whole", thought("hm", signature="s"))])
    assert [(chunk["reasoning"], chunk["signature"]) for chunk in told] == [("hm", None), ("", "s")]


def test_a_signature_that_a_piece_carried_does_not() -> None:
    assert len(play([("piece", thought("hm", signature="s")), ("whole", thought("hm", signature="s"))])) == 1


def test_pieces_of_calls() -> None:
    told = play(
        [
            ("piece", calls(("c1", "roll", ""))),
            ("piece", calls(("c1", "roll", '{"n'))),
            ("piece", calls(("c2", "flip", "{}"))),
            ("whole", calls(("c1", "roll", '{"n":1}'), ("c2", "flip", "{}"), ("c3", "stop", "{}"))),
        ]
    )
    assert all(chunk["tool_call"] == chunk["tool_calls"] for chunk in told)
    assert [chunk["tool_call"] for chunk in told] == [
        {"tool_call_id": "c1", "name": "roll"},
        {"tool_call_id": "c1", "arguments": '{"n'},
        {"tool_call_id": "c2", "name": "flip"},
        {"tool_call_id": "c2", "arguments": "{}"},
        {"tool_call_id": "c1", "arguments": '":1}'},
        {"tool_call_id": "c3", "name": "stop"},
        {"tool_call_id": "c3", "arguments": "{}"},
    ]


def test_pieces_of_calls_that_wait() -> None:
    told = play(
        [
            ("piece", waiting(("c1", "roll", '{"n'), number=3)),
            ("piece", calls(("c2", "flip", "{}"), number=4)),
            ("piece", waiting(("c1", "", '":1}'), number=3)),
            ("whole", calls(("c2", "flip", "{}"), number=4)),
            ("whole", waiting(("c1", "roll", '{"n":1}'), ("c3", "stop", "{}"), number=3)),
        ]
    )
    asked, called = "approval_request_message", "tool_call_message"

    def of(call_id: str, name: str | None = None, arguments: str | None = None) -> Rest:
        return {"tool_call_id": call_id, "name": name, "arguments": arguments}

    assert [(chunk["message_type"], chunk["id"], chunk["tool_call"]) for chunk in told] == [
        (asked, "message-3", of("c1", "roll")),
        (asked, "message-3", of("c1", arguments='{"n')),
        (called, "message-4", {"tool_call_id": "c2", "name": "flip"}),
        (called, "message-4", {"tool_call_id": "c2", "arguments": "{}"}),
        (asked, "message-3", of("c1", arguments='":1}')),
        (asked, "message-3", of("c3", "stop")),
        (asked, "message-3", of("c3", arguments="{}")),
    ]
    [whole] = play([("whole", waiting(("c1", "roll", "{}")))])
    assert whole["tool_calls"] == [{"tool_call_id": "c1", "name": "roll", "arguments": "{}"}]


def test_a_name_that_comes_late_is_said_once() -> None:
    told = play(
        [("piece", calls(("c1", "", "{"))), ("piece", calls(("c1", "f", "}"))), ("whole", calls(("c1", "f", "{}")))]
    )
    assert [chunk["tool_call"].get("name") for chunk in told] == [None, "f", None]


def test_calls_without_pieces_come_whole() -> None:
    [told] = play([("piece", text("hm")), ("whole", calls(("c1", "f", "{}")))])[1:]
    assert told["tool_calls"] == [{"tool_call_id": "c1", "name": "f", "arguments": "{}"}]


def test_calls_of_an_interrupted_message_come_whole() -> None:
    told = play([("piece", calls(("c1", "f", "{"))), ("rejoined", None), ("piece", calls(("c1", "f", "9}"))),
                 ("whole", calls(("c1", "f", '{"n":9}')))])  # fmt: skip
    assert "".join(chunk["tool_call"].get("arguments", "") for chunk in told) == '{"n":9}'


@given(st.text(max_size=40), st.lists(st.integers(0, 40)), st.integers(0, 10), st.booleans())
def test_joined_pieces_are_the_text(whole: str, cuts: list[int], sent: int, interrupted: bool) -> None:
    edges = sorted({0, len(whole), *(min(cut, len(whole)) for cut in cuts)})
    pieces = [whole[start:stop] for start, stop in pairwise(edges)]
    script: Script = [("piece", text(piece)) for piece in pieces[:sent]]
    if interrupted and script:
        # Some pieces are missed, and the last may be sent again.
        script += [("rejoined", None), *(("piece", text(piece)) for piece in pieces[-1:])]
    script.append(("whole", text(whole)))
    assert "".join(chunk["content"] for chunk in play(script)) == whole
