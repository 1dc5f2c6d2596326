"""Calls by which older agents speak, shown as what they say."""

from __future__ import annotations

import json
from uuid import UUID

import pytest

from gateway.resources.messages.responses import message
from gateway.rest.convert import Rest
from gateway.turns.deltas import Deltas
from gateway.turns.speech import SpeechRenderer
from loci.agent.v1 import message_pb2
from tests.unit.gateway.pieces import calls, returns, text

OTID = "00000000-0000-4000-8000-000000000002"
SAY = '{"message": "Hello"}'


def _otid(index: int) -> str:
    return f"00000000-0000-4000-8000-0000000000{0x7F - index:02x}"


def kinds(shown: list[message_pb2.Message]) -> list[tuple[str, object]]:
    """(message_type, content or the ids of calls or returns) of each."""
    found: list[tuple[str, object]] = []
    for one in shown:
        rest = message(one)
        said = rest.get("content") or [part["tool_call_id"] for part in rest.get("tool_calls") or rest["tool_returns"]]
        found.append((rest["message_type"], said))
    return found


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        (calls(("c1", "send_message", SAY), otid=OTID), [("assistant_message", "Hello")]),
        (calls(("c1", "roll", "{}")), [("tool_call_message", ["c1"])]),
        (calls(("c1", "send_message", "{oops"), otid=OTID), [("tool_call_message", ["c1"])]),
        (calls(("c1", "send_message", '{"text": "a"}'), otid=OTID), [("tool_call_message", ["c1"])]),
        (calls(("c1", "send_message", '{"message": 3}'), otid=OTID), [("tool_call_message", ["c1"])]),
        (calls(("c1", "send_message", "[]"), otid=OTID), [("tool_call_message", ["c1"])]),
        (
            calls(("c1", "roll", "{}"), ("c2", "send_message", SAY), ("c3", "flip", "{}"), otid=OTID),
            [("tool_call_message", ["c1", "c3"]), ("assistant_message", "Hello")],
        ),
        (
            calls(("c1", "send_message", SAY), ("c2", "roll", "{}"), otid=OTID),
            [("assistant_message", "Hello"), ("tool_call_message", ["c2"])],
        ),
        (returns(("c1", "send_message", "success")), []),
        (returns(("c1", "send_message", "error")), [("tool_return_message", ["c1"])]),
        (returns(("c1", "send_message", "success"), ("c2", "roll", "error")), [("tool_return_message", ["c2"])]),
        (returns(("c1", "roll", "success")), [("tool_return_message", ["c1"])]),
        (text("hi"), [("assistant_message", "hi")]),
    ],
)
def test_whole_messages(source: message_pb2.Message, shown: list[tuple[str, object]]) -> None:
    assert kinds(SpeechRenderer().whole(source)) == shown


def test_what_is_said_keeps_the_messages_fields_but_for_its_otid() -> None:
    source = calls(("c1", "send_message", SAY), ("c2", "send_message", SAY), otid=OTID)
    source.run_id, source.date.seconds = "run-1", 1_764_590_400
    shown = [message(one) for one in SpeechRenderer().whole(source)]
    assert [one["otid"] for one in shown] == [_otid(0), _otid(1)]
    assert {(one["id"], one["run_id"], one["step_id"], one["date"]) for one in shown} == {
        ("message-1", "run-1", "step-1", "2025-12-01T12:00:00+00:00")
    }
    assert all(UUID(one["otid"]).version == 4 for one in shown)


def test_an_empty_text_is_still_a_message() -> None:
    [shown] = SpeechRenderer().whole(calls(("c1", "send_message", '{"message": ""}'), otid=OTID))
    assert (message(shown)["message_type"], message(shown)["content"]) == ("assistant_message", "")


def test_another_tool_and_argument() -> None:
    spoken = SpeechRenderer("say", "text")
    assert kinds(spoken.whole(calls(("c1", "say", '{"text": "a"}'), otid=OTID))) == [("assistant_message", "a")]
    assert kinds(spoken.whole(calls(("c1", "send_message", SAY)))) == [("tool_call_message", ["c1"])]


def streamed(pieces: list[message_pb2.Message], whole: message_pb2.Message) -> list[Rest]:
    """What a reader of deltas is told."""
    spoken, deltas = SpeechRenderer(), Deltas()
    told = [chunk for piece in pieces for one in spoken.piece(piece) for chunk in deltas.piece(one)]
    return told + [chunk for one in spoken.whole(whole) for chunk in deltas.whole(one)]


def cut(call_id: str, name: str, arguments: str, size: int) -> list[message_pb2.Message]:
    """A call in pieces of its arguments, its name in the first."""
    parts = [arguments[start : start + size] for start in range(0, len(arguments), size)]
    return [calls((call_id, name if not index else "", part), otid=OTID) for index, part in enumerate(parts)]


@pytest.mark.parametrize("size", [1, 3, 7, 100])
def test_a_text_grows_and_is_told_once(size: int) -> None:
    arguments = json.dumps({"thinking": "greet", "message": 'Hello "Ada" \U0001f600'})
    told = streamed(cut("c1", "send_message", arguments, size), calls(("c1", "send_message", arguments), otid=OTID))
    assert {(chunk["message_type"], chunk["otid"]) for chunk in told} == {("assistant_message", _otid(0))}
    assert "".join(chunk["content"] for chunk in told) == 'Hello "Ada" \U0001f600'
    assert size == 100 or len(told) > 1


def test_pieces_before_the_name_are_held_back() -> None:
    pieces = [calls(("c1", "", '{"message": "H'), otid=OTID), calls(("c1", "send_message", 'i"}'), otid=OTID)]
    told = streamed(pieces, calls(("c1", "send_message", '{"message": "Hi"}'), otid=OTID))
    assert [chunk["content"] for chunk in told] == ["Hi"]
    others = [calls(("c1", "", '{"n":'), otid=OTID), calls(("c1", "roll", "1}"), otid=OTID)]
    told = streamed(others, calls(("c1", "roll", '{"n":1}'), otid=OTID))
    assert [chunk["tool_call"] for chunk in told] == [
        {"tool_call_id": "c1", "name": "roll"},
        {"tool_call_id": "c1", "arguments": '{"n":1}'},
    ]


def test_other_calls_pass_as_they_are() -> None:
    piece = calls(("c1", "roll", "{"), otid=OTID)
    spoken = SpeechRenderer()
    assert spoken.piece(piece) == [piece]
    assert spoken.piece(text("hi")) == [text("hi")]


def test_two_texts_of_one_message_are_told_apart() -> None:
    pieces = cut("c1", "send_message", '{"message": "one"}', 4) + cut("c2", "send_message", '{"message": "two"}', 4)
    whole = calls(("c1", "send_message", '{"message": "one"}'), ("c2", "send_message", '{"message": "two"}'), otid=OTID)
    said: dict[str, str] = {}
    for chunk in streamed(pieces, whole):
        said[chunk["otid"]] = said.get(chunk["otid"], "") + chunk["content"]
    assert said == {_otid(0): "one", _otid(1): "two"}


def test_a_text_that_turns_out_not_to_be_json_comes_as_the_call_it_is() -> None:
    arguments = '{"message": "Hel\nlo"}'
    told = streamed(cut("c1", "send_message", arguments, 5), calls(("c1", "send_message", arguments), otid=OTID))
    assert told[-1]["tool_calls"] == [{"tool_call_id": "c1", "name": "send_message", "arguments": arguments}]


def test_a_reader_that_lost_pieces_gets_the_rest_with_the_whole() -> None:
    arguments = '{"message": "Hello Ada"}'
    first, third = cut("c1", "send_message", arguments, 16)[0], calls(("c1", "", 'da"}'), otid=OTID)
    spoken, deltas = SpeechRenderer(), Deltas()
    told = [chunk for one in spoken.piece(first) for chunk in deltas.piece(one)]
    deltas.interrupted()
    told += [chunk for one in spoken.piece(third) for chunk in deltas.piece(one)]
    assert [chunk["content"] for chunk in told] == ["Hel"]
    whole = calls(("c1", "send_message", arguments), otid=OTID)
    told += [chunk for one in spoken.whole(whole) for chunk in deltas.whole(one)]
    assert "".join(chunk["content"] for chunk in told) == "Hello Ada"


@pytest.mark.parametrize(
    ("arguments", "tail", "told"),
    [
        ('{"message": "Hello Ada"}', ' Ada"}', [" Ada"]),
        ('{"message": "Hello Ada"}', '"}', []),
        ('{"message": "Hello", "a": 1}', "1}", []),
        ('{"thinking": "greet", "message": "Hello"}', 'eet", "message": "Hello"}', ["Hello"]),
        # Nothing of it was heard: perhaps nothing of it was read before either.
        ('{"message": "Hello"}', "", ["Hello"]),
        # All of it was.
        ('{"message": "Hello"}', '{"message": "Hello"}', ["Hello"]),
        # What was heard belongs to another text: better twice than not at all.
        ('{"message": "Hello"}', 'lu"}', ["Hello"]),
    ],
)
def test_a_reader_that_resumes_in_the_middle_of_a_text_gets_its_tail(
    arguments: str, tail: str, told: list[str]
) -> None:
    spoken, deltas = SpeechRenderer(resumed=True), Deltas(tail_only=True)
    pieces = [calls(("c1", "send_message", tail[start : start + 3]), otid=OTID) for start in range(0, len(tail), 3)]
    chunks = [chunk for piece in pieces for one in spoken.piece(piece) for chunk in deltas.piece(one)]
    whole = calls(("c1", "send_message", arguments), otid=OTID)
    chunks += [chunk for one in spoken.whole(whole) for chunk in deltas.whole(one)]
    assert "".join(chunk["content"] for chunk in chunks) == "".join(told)
    assert bool(chunks) == bool(told)
