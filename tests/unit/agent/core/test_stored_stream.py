"""Frames: what is kept of a stream, cut anywhere, stored and read again; and a reader's place in it."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID

import orjson
import pytest

from services.agent.core import stored_stream
from services.agent.core.events import Abandoned, Compacting, Delta, Event, MessagePiece
from services.agent.core.messages import Call, Message, Part, Reasoning, Return, Text
from services.agent.core.stored_stream import DeltaFrame, Tail, delta_frame, frames_from_json, frames_to_json
from services.agent.core.window.compaction import Trigger
from services.agent.streams.reading import ReaderPosition

RUN, STEP, MESSAGE, OTHER = UUID(int=1), UUID(int=2), UUID(int=3), UUID(int=4)


def delta(sequence: int, part: Part, *, message_id: UUID = MESSAGE, otid: str = "o-0") -> Delta:
    """A delta of the message."""
    return Delta(sequence, message_id, STEP, otid, part)


def texts(first: int, *words: str, message_id: UUID = MESSAGE) -> list[Delta]:
    """Deltas of one text."""
    return [delta(first + place, Text(word), message_id=message_id) for place, word in enumerate(words)]


def whole(sequence: int, text: str, *, message_id: UUID = MESSAGE) -> MessagePiece:
    """A durable message."""
    message = Message(message_id, "assistant", (Text(text),), datetime.now(UTC), RUN, STEP)
    return MessagePiece(sequence, message, "o-0", message.parts)


def tail_of(*deltas: Delta | Abandoned | Compacting) -> Tail:
    """A tail that was shown these."""
    tail = Tail()
    for each in deltas:
        tail.add(each)
    return tail


def test_deltas_of_a_piece_become_one_frame() -> None:
    [frame] = tail_of(*texts(3, "a", "b", "c")).copy()
    assert frame == DeltaFrame(3, MESSAGE, STEP, "o-0", Text(), ["a", "b", "c"])
    assert frame.last == 5


@pytest.mark.parametrize(
    "second",
    [
        delta(5, Text("b")),
        delta(4, Text("b"), message_id=OTHER),
        delta(4, Text("b"), otid="o-1"),
        delta(4, Reasoning("b")),
    ],
    ids=["a hole", "another message", "another piece", "another kind"],
)
def test_what_is_no_continuation_is_another_frame(second: Delta) -> None:
    assert len(tail_of(delta(3, Text("a")), second).copy()) == 2


@pytest.mark.parametrize(
    ("after", "until", "expected"),
    [
        (0, None, (5, "abc")),
        (3, None, (5, "bc")),
        (4, None, (5, "c")),
        (5, None, None),
        (0, 3, (3, "a")),
        (0, 2, None),
        (3, 4, (4, "b")),
        (0, 99, (5, "abc")),
    ],
)
def test_a_frame_may_be_cut_anywhere(after: int, until: int | None, expected: tuple[int, str] | None) -> None:
    [frame] = tail_of(*texts(3, "a", "b", "c")).copy()
    assert isinstance(frame, DeltaFrame)
    cut = frame.between(after, until)
    assert expected == (None if cut is None else (cut.sequence, getattr(cut.part, "text", "")))


def test_calls_keep_their_name_wherever_they_are_cut() -> None:
    pieces = [Call("", "c1", "roll", '{"n'), Call("", "c1", "", '":'), Call("", "c1", "", "4}")]
    [frame] = tail_of(*(delta(1 + place, part) for place, part in enumerate(pieces))).copy()
    assert isinstance(frame, DeltaFrame)
    rest = frame.between(1)
    assert rest is not None
    assert rest.part == Call("", "c1", "roll", '":4}')


def test_only_deltas_of_texts_and_calls_are_known() -> None:
    with pytest.raises(ValueError, match="no deltas of Return"):
        delta_frame(delta(1, Return("c1", "roll", "4")))


def test_every_frame_is_read_as_it_was_stored() -> None:
    frames = tail_of(
        *texts(1, "nul \0 and a lone half are", " kept"),
        delta(3, Reasoning("hm", prompted=True), otid="o-1"),
        delta(4, Call("", "c1", "roll", "{}", "approval"), otid="o-2"),
        Abandoned(5, STEP, MESSAGE, 1),
        Abandoned(6, STEP, None, 2),
        Compacting(7, RUN, STEP, Trigger.MANUAL, None, 32_000, 12),
    ).copy()
    stored = orjson.loads(orjson.dumps(frames_to_json(frames)))
    assert list(frames_from_json(stored, RUN)) == frames


def test_what_was_drained_can_be_put_back() -> None:
    tail = tail_of(*texts(1, "a", "b"))
    drained = tail.drain()
    assert not tail
    tail.add(delta(3, Text("c")))
    tail.put_back(drained)
    assert [frame.texts for frame in tail.copy() if isinstance(frame, DeltaFrame)] == [["a", "b"], ["c"]]


def test_a_copy_does_not_grow() -> None:
    tail = tail_of(*texts(1, "a"))
    copy, clone = tail.copy(), tail.clone()
    tail.add(delta(2, Text("b")))
    assert copy == clone.copy() != tail.copy()


def test_too_much_is_cut_at_its_end_and_the_next_message_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_stream, "LONGEST_TAIL", 3)
    tail = tail_of(*texts(1, "a", "b", "c", "d", "e"))
    assert tail.is_cut
    [frame] = tail.drain()
    assert isinstance(frame, DeltaFrame)
    assert frame.texts == ["a", "b", "c"]
    # Not the middle of the message, although there is room again.
    tail.add(delta(6, Text("f")))
    tail.add(delta(7, Text("g"), message_id=OTHER))
    assert [frame.first for frame in tail.copy() if isinstance(frame, DeltaFrame)] == [7]
    assert tail.clone().is_cut is False


# A reader's place ----------------------------------------------------------------------------------------


def read(
    place: ReaderPosition, frames: Sequence[stored_stream.Frame], events: Sequence[Event]
) -> list[tuple[int, str]]:
    """Returns what a reader gets: sequence, and text or kind."""
    return [(event.sequence, _shown(event)) for event in place.news(place.merged(frames, events))]


def _shown(event: Event) -> str:
    return event.part.text if isinstance(event, Delta) and isinstance(event.part, Text) else f"<{type(event).__name__}>"


def test_a_durable_message_replaces_its_deltas() -> None:
    frames = tail_of(*texts(1, "a", "b"), *texts(4, "c", message_id=OTHER)).copy()
    place = ReaderPosition(0, wants_context=False, known_from=0)
    assert read(place, frames, [whole(3, "ab")]) == [(3, "<MessagePiece>"), (4, "c")]
    assert read(place, frames, [whole(3, "ab")]) == []


def test_a_reader_without_context_gets_what_it_has_not_seen() -> None:
    frames = tail_of(*texts(1, "a", "b", "c")).copy()
    assert read(ReaderPosition(2, wants_context=False, known_from=0), frames, []) == [(3, "c")]


def test_a_reader_with_context_is_told_what_it_knows_first() -> None:
    frames = tail_of(*texts(1, "a", "b", "c")).copy()
    assert read(ReaderPosition(2, wants_context=True, known_from=0), frames, []) == [(2, "ab"), (3, "c")]
    assert read(ReaderPosition(2, wants_context=True, known_from=0), frames, [whole(4, "abc")]) == [
        (2, "ab"),
        (4, "<MessagePiece>"),
    ]


def test_context_comes_as_it_is_stored_and_only_once() -> None:
    place = ReaderPosition(3, wants_context=True, known_from=0)
    first, second = tail_of(*texts(1, "a", "b")).copy(), tail_of(*texts(3, "c", "d")).copy()
    assert read(place, first, []) == [(2, "ab")]
    assert read(place, [*first, *second], []) == [(3, "c"), (4, "d")]


@pytest.mark.parametrize(
    ("after", "told"),
    [
        # In the text, at its end, and in the call: what is known of it comes first.
        (1, [(1, "a"), (5, "<MessagePiece>"), (6, "<MessagePiece>")]),
        (2, [(2, "ab"), (5, "<MessagePiece>"), (6, "<MessagePiece>")]),
        (3, [(2, "ab"), (3, "<Delta>"), (5, "<MessagePiece>"), (6, "<MessagePiece>")]),
        # It got the text whole, and nothing of the call, whose deltas have lower positions.
        (5, [(6, "<MessagePiece>")]),
        (6, []),
    ],
)
def test_a_reader_that_left_between_two_pieces_gets_the_second_whole(after: int, told: list[tuple[int, str]]) -> None:
    call = [delta(3 + place, Call("", "c1", "roll", more), otid="o-1") for place, more in enumerate(("", "{}"))]
    frames = tail_of(*texts(1, "a", "b"), *call).copy()
    message = Message(MESSAGE, "assistant", (Text("ab"), Call("", "c1", "roll", "{}")), datetime.now(UTC), RUN, STEP)
    pieces = [MessagePiece(5 + place, message, f"o-{place}", (part,)) for place, part in enumerate(message.parts)]
    assert read(ReaderPosition(after, wants_context=True, known_from=0), frames, pieces) == told


def test_a_reader_is_told_of_an_abandoned_attempt_once() -> None:
    void = Abandoned(3, STEP, MESSAGE, 1)
    frames = tail_of(*texts(1, "a", "b"), void, *texts(4, "c", message_id=OTHER)).copy()
    # What facts tell of it, at the place of the last delta.
    again = replace(void, sequence=5, message_id=None)
    events: list[Event] = [again, whole(6, "cd", message_id=OTHER)]
    told = read(ReaderPosition(1, wants_context=False, known_from=0), frames, events)
    assert told == [(2, "b"), (3, "<Abandoned>"), (6, "<MessagePiece>")]
    assert read(ReaderPosition(1, wants_context=False, known_from=0), [], events) == [
        (5, "<Abandoned>"),
        (6, "<MessagePiece>"),
    ]
    # Live word of it counts as well.
    place = ReaderPosition(0, wants_context=False, known_from=0)
    assert list(place.news([void])) == [void]
    assert read(place, [], events) == [(6, "<MessagePiece>")]


@pytest.mark.parametrize(("after", "found"), [(0, True), (2, True), (3, True), (4, True), (5, False)])
def test_whether_a_place_is_stored_yet(after: int, found: bool) -> None:
    place = ReaderPosition(after, wants_context=True, known_from=0)
    assert place.finds(tail_of(*texts(1, "a", "b", "c")).copy(), [whole(4, "abc")]) is found
    assert ReaderPosition(after, wants_context=False, known_from=0).finds([], [])
