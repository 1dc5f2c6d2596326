"""Deltas have the otid that their piece of the stored message will have, and what is stored otherwise has none."""

from uuid import UUID

import pytest

from services.agent.core.calls.deltas import PieceDeltas
from services.agent.core.calls.replies import reply_parts
from services.agent.core.facts import ClientTool, Settings
from services.agent.core.messages import Call, Message, Part, Reasoning, Text, pieces
from services.agent.core.ports import PartDelta
from services.agent.core.rules.tool_rules import ContinueLoop, RequiresApproval, RunFirst
from tests.unit.agent.playing import NOW, play, settings

ID, STEP = UUID("01890000-0000-7000-8000-0000000000ff"), UUID(int=2)
AGENT = settings(RequiresApproval("b"), client_tools=(ClientTool("mine"),))
APPROVED = RequiresApproval("a")
OLDER = settings(agent_type="memgpt_agent")
GIVEN = RunFirst("a", {"x": 1})

THOUGHT, SAID, MORE = PartDelta(0, "reasoning", "hm"), PartDelta(0, "content", "so"), PartDelta(3, "content", "then")


def made(index: int, name: str) -> PartDelta:
    return PartDelta(index, "call", '{"thinking": "hm"}', f"id-{index}", name)


# What it is about, the agent, the parts of its first reply, the places of their pieces, or "-" for no delta.
REPLIES: list[tuple[str, Settings, list[PartDelta], str]] = [
    ("a text in two", AGENT, [SAID, SAID], "00"),
    ("thoughts", AGENT, [THOUGHT, MORE], "01"),
    ("neighbours of one kind", AGENT, [SAID, PartDelta(1, "content", "b"), made(2, "a"), made(3, "c")], "0011"),
    ("calls that wait beside others", AGENT, [made(0, "a"), made(1, "b"), made(2, "mine"), made(3, "c")], "0110"),
    ("a tool that is not there", AGENT, [made(0, "fly"), made(1, "b")], "01"),
    ("thoughts in an argument", OLDER, [SAID, made(1, "a"), MORE], "0--"),
    ("an older type that thinks aloud", settings(agent_type="voice_convo_agent"), [made(0, "a"), MORE], "01"),
    ("a call that is left out", settings(ContinueLoop("c")), [made(0, "a"), made(1, "b"), MORE], "0-1"),
    ("arguments of a rule, to be approved", settings(APPROVED, GIVEN), [SAID, made(1, "a"), MORE], "0-0"),
    ("arguments of a rule, beside the message", settings(GIVEN), [SAID, made(1, "a"), MORE], "0-2"),
    ("a call out of order waits for nobody", settings(APPROVED, RunFirst("b")), [SAID, made(1, "a"), MORE], "012"),
]


@pytest.mark.parametrize(("agent", "parts", "places"), [row[1:] for row in REPLIES], ids=[row[0] for row in REPLIES])
def test_a_delta_belongs_to_its_piece(agent: Settings, parts: list[PartDelta], places: str) -> None:
    offered = play(agent, "so").offers[0]
    whole = {part.index: _whole(part) for part in parts}.values()
    stored = reply_parts(whole, settings=agent, offered=offered, run_id=ID, step=1)
    otids = [otid for otid, _ in pieces(Message(ID, "assistant", stored, NOW))]
    deltas = PieceDeltas(ID, STEP, agent, offered)
    given = [deltas.delta(part) for part in parts]
    assert "".join("-" if delta is None else str(otids.index(delta.otid)) for delta in given) == places
    assert {(delta.message_id, delta.step_id) for delta in given if delta is not None} == {(ID, STEP)}


def test_a_call_is_named_and_gated_by_its_first_delta() -> None:
    deltas = PieceDeltas(ID, STEP, AGENT, play(AGENT, "so").offers[0])
    parts = [PartDelta(0, "call", text, "id", name) for text, name in (("{", "b"), ("}", ""))]
    assert [delta.part for part in parts for delta in deltas.deltas(part)] == [
        # The name comes alone, so that a reader may go on after it.
        Call("", "id", "b", "", "approval"),
        Call("", "id", "b", "{", "approval"),
        Call("", "id", "", "}", "approval"),
    ]


def _whole(part: PartDelta) -> Part:
    match part.kind:
        case "call":
            return Call("", part.call_id, part.call_name, part.text)
        case "reasoning":
            return Reasoning(part.text)
    return Text(part.text)
