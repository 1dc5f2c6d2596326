"""Deltas have the otid that their piece of the stored message will have."""

from uuid import UUID

import pytest

from services.agent.deltas import PieceDeltas
from services.agent.messages import Call, Gate, Message, Part, Reasoning, Text, pieces
from services.agent.ports import PartDelta
from tests.unit.agent.playing import NOW

ID, STEP = UUID("01890000-0000-7000-8000-0000000000ff"), UUID(int=2)


def gate(name: str) -> Gate:
    return "approval" if name == "risky" else "client" if name == "mine" else ""


def made(index: int, name: str) -> PartDelta:
    return PartDelta(index, "call", "{}", f"id-{index}", name)


REPLIES: list[tuple[list[PartDelta], tuple[Part, ...]]] = [
    ([PartDelta(0, "content", "he"), PartDelta(0, "content", "llo")], (Text("hello"),)),
    ([PartDelta(0, "reasoning", "hm"), PartDelta(1, "content", "so")], (Reasoning("hm"), Text("so"))),
    ([PartDelta(0, "content", "a"), PartDelta(1, "content", "b")], (Text("a"), Text("b"))),
    ([PartDelta(0, "content", "so"), made(1, "a"), made(2, "b")], (Text("so"), Call(id="id-1"), Call(id="id-2"))),
    ([made(0, "a"), made(1, "risky"), made(2, "mine"), made(3, "b")],
     (Call(id="id-0"), Call(id="id-1", gate="approval"), Call(id="id-2", gate="client"), Call(id="id-3"))),
]  # fmt: skip


@pytest.mark.parametrize(("parts", "stored"), REPLIES)
def test_a_delta_belongs_to_its_piece(parts: list[PartDelta], stored: tuple[Part, ...]) -> None:
    deltas = PieceDeltas(ID, STEP, gate)
    otids = {part: otid for otid, group in pieces(Message(ID, "assistant", stored, NOW)) for part in group}
    for part in parts:
        delta = deltas.delta(part)
        assert delta is not None
        assert (delta.message_id, delta.step_id, delta.otid) == (ID, STEP, otids[stored[part.index]])


def test_a_call_is_named_and_gated_by_its_first_delta() -> None:
    deltas = PieceDeltas(ID, STEP, gate)
    first, more = (deltas.delta(PartDelta(0, "call", text, "id", name)) for text, name in (("{", "risky"), ("}", "")))
    assert first is not None
    assert more is not None
    assert first.part == Call("", "id", "risky", "{", "approval")
    assert more.part == Call("", "id", "", "}", "approval")


def test_calls_that_are_stored_otherwise_are_shown_as_a_whole_and_so_is_what_follows() -> None:
    deltas = PieceDeltas(ID, STEP, gate, calls=False)
    parts = (PartDelta(0, "content", "so"), made(1, "a"), PartDelta(2, "content", "then"))
    assert [delta is not None for delta in map(deltas.delta, parts)] == [True, False, False]
