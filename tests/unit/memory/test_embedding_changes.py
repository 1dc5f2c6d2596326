"""What may follow what in a change of embedding models, what is embedded next, and who stands in."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from services.memory.archives.model import EmbeddingModel
from services.memory.core.ranking.search import Part
from services.memory.embedding_changes.model import (
    ArchiveState,
    ChangeFinished,
    ChangeRunning,
    ChangeState,
    EmbeddingChange,
    ModelCoverage,
    PassageCheck,
    Position,
    Target,
    begin_change,
    finish_change,
    next_batch,
    roll_back_change,
    switch_change,
    usable_alternatives,
)

A, B, C, NONE = (
    Target(embedding="x/a", model_id=1),
    Target(embedding="x/b", model_id=2),
    Target(embedding="x/c", model_id=None),
    Target(embedding=None, model_id=None),
)
ARCHIVE = UUID(int=1)
RUNNING, COMPLETED, ROLLED_BACK, FINISHED = ChangeState


def change(
    before: Target, after: Target, state: ChangeState = RUNNING, *, rolling_back: bool = False
) -> EmbeddingChange:
    return EmbeddingChange(
        id=UUID(int=2), archive_id=ARCHIVE, before=before, after=after, state=state, rolling_back=rolling_back
    )


def draft(after: Target) -> EmbeddingChange:
    return replace(change(NONE, after), id=UUID(int=3))


@pytest.mark.parametrize(
    ("now", "newest", "expected", "result"),
    [
        (A, None, B, change(A, B)),
        (A, None, NONE, change(A, NONE)),
        (NONE, None, C, change(NONE, C)),
        (A, None, A, change(A, A)),
        (A, change(A, B), B, None),
        (B, change(A, B, COMPLETED), B, None),
        (B, change(A, B, COMPLETED), A, change(B, A)),
        (B, change(A, B, COMPLETED), C, change(B, C)),
        (B, change(A, B, FINISHED), B, change(B, B)),
        (A, change(A, B, ROLLED_BACK), B, change(A, B)),
        (B, change(B, A, rolling_back=True), A, None),
        (B, change(B, A, rolling_back=True), B, change(A, B, COMPLETED)),
    ],
)
def test_what_begins(
    now: Target, newest: EmbeddingChange | None, expected: Target, result: EmbeddingChange | None
) -> None:
    """None: the newest, as it is."""
    found = begin_change(ArchiveState(now=now, newest=newest), draft(expected))
    assert replace(found, id=UUID(int=2)) == (newest if result is None else result)
    is_new = newest is None or (result is not None and result.state is RUNNING)
    assert (found.id == UUID(int=3)) is is_new


@pytest.mark.parametrize(
    ("now", "newest", "expected"),
    [
        (A, change(A, B), C),
        (A, change(A, B), A),
        (A, change(A, NONE), B),
        (B, change(B, A, rolling_back=True), C),
    ],
)
def test_one_change_at_a_time(now: Target, newest: EmbeddingChange, expected: Target) -> None:
    with pytest.raises(ChangeRunning, match="roll it back first"):
        begin_change(ArchiveState(now=now, newest=newest), draft(expected))


@pytest.mark.parametrize(
    ("newest", "back", "done"),
    [
        (change(A, B), change(A, B, ROLLED_BACK), ChangeRunning),
        (change(A, B, COMPLETED), change(B, A, rolling_back=True), change(A, B, FINISHED)),
        (change(B, A, rolling_back=True), change(B, A, rolling_back=True), ChangeRunning),
        (change(A, B, ROLLED_BACK), change(A, B, ROLLED_BACK), change(A, B, ROLLED_BACK)),
        (change(A, B, FINISHED), ChangeFinished, change(A, B, FINISHED)),
    ],
)
def test_how_it_goes_back_and_is_finished(newest: EmbeddingChange, back: object, done: object) -> None:
    for follow, result in ((roll_back_change, back), (finish_change, done)):
        if isinstance(result, EmbeddingChange):
            assert follow(newest) == result
        else:
            with pytest.raises(result):  # type: ignore[call-overload] # a class of exceptions
                follow(newest)


def test_a_switch_keeps_where_it_came_from() -> None:
    late = Target(embedding="x/a", model_id=7)
    assert switch_change(replace(change(A, B), error="x"), late) == change(late, B, COMPLETED)
    assert switch_change(change(B, A, rolling_back=True), B) == change(A, B, ROLLED_BACK)


def place(number: int) -> Position:
    return Position(datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=number), UUID(int=number))


@pytest.mark.parametrize(
    ("lacks", "most", "numbers", "reached"),
    [
        ([True, False, True, True], 2, [0, 2], 2),
        ([True, False, True, True], 3, [0, 2, 3], 3),
        ([True, False, True, False], 3, [0, 2], 3),
        ([False, False], 3, [], 1),
    ],
)
def test_the_next_batch_ends_where_the_next_look_begins(
    lacks: list[bool], most: int, numbers: list[int], reached: int
) -> None:
    walked = [PassageCheck(place(number), lack) for number, lack in enumerate(lacks)]
    assert next_batch(walked, most) == ([UUID(int=number) for number in numbers], place(reached))


ONE, TWO = (EmbeddingModel(id=number, handle=f"x/{number}", dimensions=3) for number in (1, 2))


@pytest.mark.parametrize(
    ("sides", "chosen"),
    [
        ([], {}),
        ([(1, 100, ONE, 94)], {}),
        ([(1, 100, ONE, 95)], {ONE: (100, 1)}),
        ([(1, 100, ONE, 96), (1, 100, TWO, 97)], {TWO: (100, 1)}),
        ([(1, 100, ONE, 100), (2, 10, ONE, 10), (3, 5, TWO, 5), (4, 9, TWO, 1)], {ONE: (110, 1, 2), TWO: (5, 3)}),
        ([(1, 0, ONE, 0)], {}),
    ],
)
def test_who_stands_in(
    sides: list[tuple[int, int, EmbeddingModel, int]], chosen: dict[EmbeddingModel, tuple[int, ...]]
) -> None:
    found = usable_alternatives(ModelCoverage(UUID(int=archive), *others) for archive, *others in sides)  # type: ignore[arg-type]
    assert found == {
        model: Part(tuple(map(UUID, map("{:032x}".format, ids))), n) for model, (n, *ids) in chosen.items()
    }
