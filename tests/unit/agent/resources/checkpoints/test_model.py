"""Checkpoints: which versions hold after one, what of a conversation is before one."""

from datetime import UTC, datetime
from uuid import UUID

import pytest

from services.agent.core.messages import Message, Part, Return, Role, Text
from services.agent.core.page_tokens import Place
from services.agent.resources.checkpoints.model import (
    LABEL_CHARACTERS,
    Checkpoint,
    CheckpointKind,
    CheckpointRef,
    Edit,
    Segment,
    closed,
    cut_at,
    label_of,
    with_edits,
)

HUMAN, NOTES = UUID(int=1), UUID(int=2)
RUN, EARLIER, OTHER = UUID(int=11), UUID(int=12), UUID(int=13)
FIRST, SECOND = UUID(int=21), UUID(int=22)
ONE, TWO, THREE = UUID(int=31), UUID(int=32), UUID(int=33)


def message(*parts: Part, role: Role = "assistant") -> Message:
    """A stored message."""
    return Message(UUID(int=99), role, parts, datetime(2026, 1, 1, tzinfo=UTC), RUN)


def checkpoint(kind: CheckpointKind, runs: tuple[UUID, ...], until: frozenset[UUID] | None = None) -> Checkpoint:
    """One whose step saw version 3 of `human`."""
    return Checkpoint(
        ref=CheckpointRef(kind, RUN),
        run_id=RUN,
        message=message(Text("Hello")),
        place=Place(0, 1),
        label="",
        seen={HUMAN: 3},
        run_ids=runs,
        until=until,
        agent_id=UUID(int=41),
        conversation_id=UUID(int=42),
    )


@pytest.mark.parametrize(
    ("kind", "runs", "until", "edits", "versions"),
    [
        pytest.param(CheckpointKind.RUN, (RUN,), None, [], {HUMAN: 3}, id="nothing was edited"),
        pytest.param(
            CheckpointKind.RUN,
            (RUN,),
            None,
            [Edit(HUMAN, 4, RUN, FIRST), Edit(HUMAN, 6, RUN, SECOND), Edit(NOTES, 1, RUN, None)],
            {HUMAN: 6, NOTES: 1},
            id="a run has all its edits, those of a block that it made and those in no step, too",
        ),
        pytest.param(
            CheckpointKind.RUN, (RUN,), None, [Edit(HUMAN, 9, OTHER, FIRST)], {HUMAN: 3}, id="not those of other runs"
        ),
        pytest.param(
            CheckpointKind.STEP,
            (RUN, RUN),
            frozenset({FIRST}),
            [Edit(HUMAN, 4, RUN, FIRST), Edit(HUMAN, 5, RUN, SECOND)],
            {HUMAN: 4},
            id="a step has those up to it",
        ),
        pytest.param(
            CheckpointKind.STEP,
            (RUN, EARLIER),
            frozenset({FIRST}),
            [Edit(HUMAN, 4, RUN, FIRST)],
            {HUMAN: 4},
            id="calls of an earlier run that were answered in this one",
        ),
        pytest.param(
            CheckpointKind.RUN,
            (RUN,),
            None,
            [Edit(HUMAN, 2, RUN, FIRST)],
            {HUMAN: 3},
            id="its last step saw a newer version than it had made",
        ),
        pytest.param(
            CheckpointKind.INPUT, (), None, [Edit(HUMAN, 4, RUN, FIRST)], {HUMAN: 3}, id="an input has what it saw"
        ),
    ],
)
def test_versions_after(
    kind: CheckpointKind,
    runs: tuple[UUID, ...],
    until: frozenset[UUID] | None,
    edits: list[Edit],
    versions: dict[UUID, int],
) -> None:
    assert with_edits(checkpoint(kind, runs, until), edits).versions == versions


SEGMENTS = (Segment(ONE, 1, 10), Segment(TWO, 4, 6), Segment(ONE, 20, 30), Segment(THREE, 1))


@pytest.mark.parametrize(
    ("log_id", "seq", "expected"),
    [
        (ONE, 1, (Segment(ONE, 1, 1),)),
        (ONE, 10, SEGMENTS[:1]),
        (TWO, 5, (SEGMENTS[0], Segment(TWO, 4, 5))),
        (ONE, 20, (*SEGMENTS[:2], Segment(ONE, 20, 20))),
        (THREE, 7, (*SEGMENTS[:3], Segment(THREE, 1, 7))),
        # Before, between and after what is shown of a log, and a log that is not shown.
        (TWO, 3, None),
        (ONE, 15, None),
        (TWO, 7, None),
        (UUID(int=34), 1, None),
    ],
)
def test_what_is_before_a_message(log_id: UUID, seq: int, expected: tuple[Segment, ...] | None) -> None:
    assert cut_at(SEGMENTS, log_id, seq) == expected


def test_what_is_kept_of_a_conversation() -> None:
    assert closed(SEGMENTS, 8) == (*SEGMENTS[:3], Segment(THREE, 1, 7))
    assert closed(SEGMENTS, 1) == SEGMENTS[:3]
    assert closed((Segment(ONE, 5),), 5) == ()


@pytest.mark.parametrize(
    ("kind", "parts", "said", "label"),
    [
        (CheckpointKind.RUN, [Text("Hello, Ada.")], "My name\n is  Ada", "My name is Ada"),
        (CheckpointKind.RUN, [Text("What they said")], "", "What they said"),
        (CheckpointKind.INPUT, [Text("Hi")], "Hi", "Hi"),
        (CheckpointKind.STEP, [Return("a", "look"), Return("b", "write"), Return("c", "look")], "Hi", "look, write"),
        (CheckpointKind.RUN, [], "x" * 1_000, "x" * (LABEL_CHARACTERS - 1) + "…"),
    ],
)
def test_labels(kind: CheckpointKind, parts: list[Part], said: str, label: str) -> None:
    assert label_of(kind, message(*parts), said) == label
