"""Undo and redo over the rows of history behave like the undo stack of an editor."""

from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.memory.blocks.model import BlockVersion, Operation, Restoration
from services.memory.core.editing import undo
from tests.unit.memory.test_blocks import BLOCK

FIRST = BlockVersion(
    block_id=BLOCK.id,
    version=1,
    label="human",
    value="v1",
    limit=10,
    description=None,
    metadata={},
    operation=Operation.CREATE,
    actor_id=UUID(int=2),
    agent_id=None,
    run_id=None,
    step_id=None,
    call_key=None,
    created_at=datetime(2026, 1, 1, tzinfo=UTC),
)


class History:
    """Versions as the store keeps them, newest last, and how many were read."""

    def __init__(self) -> None:
        self.rows = [FIRST]
        self.read = 0

    @property
    def value(self) -> str:
        return self.rows[-1].value

    def add(self, operation: Operation, value: str, restored: Restoration | None = None) -> None:
        number = len(self.rows) + 1
        row = replace(FIRST, version=number, operation=operation, value=value)
        if restored is not None:
            row = replace(row, restored_version=restored.version, redo_version=restored.redo_version)
        self.rows.append(row)

    def changed(self, version: int) -> BlockVersion:
        self.read += 1
        while version > 1 and self.rows[version - 1].value == self.rows[version - 2].value:
            version -= 1
        return self.rows[version - 1]

    def undo(self) -> bool:
        now = self.changed(len(self.rows))
        before = undo.before(now)
        if before is None:
            return False
        then = self.changed(before)
        self.add(Operation.UNDO, then.value, undo.undo_restoration(now, then))
        return True

    def redo(self) -> bool:
        now = self.changed(len(self.rows))
        if now.redo_version is None:
            return False
        then = self.changed(now.redo_version)
        self.add(Operation.REDO, then.value, undo.redo_restoration(then))
        return True


# e: an edit, r: an edit that restores the first value, d: a new description, u: undo, y: redo; then the value, with
# the version that wrote it, and what a further undo and redo would bring.
@pytest.mark.parametrize(
    ("steps", "value", "undo_to", "redo_to"),
    [
        ("", "v1", None, None),
        ("u", "v1", None, None),
        ("y", "v1", None, None),
        ("e", "v2", "v1", None),
        ("eu", "v1", None, "v2"),
        ("euu", "v1", None, "v2"),
        ("euy", "v2", "v1", None),
        ("eeeuu", "v2", "v1", "v3"),
        ("eeeuuy", "v3", "v2", "v4"),
        ("eeeuuyy", "v4", "v3", None),
        ("eeeuuyu", "v2", "v1", "v3"),
        ("eeue", "v5", "v2", None),
        ("eeueuu", "v1", None, "v2"),
        ("eeueuuyy", "v5", "v2", None),
        ("eer", "v1", "v3", None),
        ("eeru", "v3", "v2", "v1"),
        ("eerue", "v6", "v3", None),
        ("ed", "v2", "v1", None),
        ("eud", "v1", None, "v2"),
        ("eudy", "v2", "v1", None),
        ("edddud", "v1", None, "v2"),
    ],
)
def test_where_journeys_end(steps: str, value: str, undo_to: str | None, redo_to: str | None) -> None:
    def go_step(go: bool, history: History) -> str | None:
        return history.value if go else None

    assert played(steps).value == value
    assert go_step((back := played(steps)).undo(), back) == undo_to
    assert go_step((forth := played(steps)).redo(), forth) == redo_to


def played(steps: str) -> History:
    history = History()
    for step in steps:
        match step:
            case "e":
                history.add(Operation.APPEND, f"v{len(history.rows) + 1}")
            case "r":
                history.add(Operation.RESTORE, "v1", Restoration(version=1))
            case "d":
                history.add(Operation.SET, history.value)
            case "u":
                history.undo()
            case "y":
                history.redo()
    return history


@given(st.text(alphabet="eeduuyyr", max_size=60))
def test_any_series_is_that_of_an_editor(steps: str) -> None:
    """Against two stacks; a restoration of the value that stands makes no version."""
    history = History()
    done, taken_back = ["v1"], list[str]()
    for step in steps:
        history.read = 0
        match step:
            case "e" | "r":
                value = "v1" if step == "r" else f"v{len(history.rows) + 1}"
                if value == history.value:
                    continue
                restored = Restoration(version=1) if step == "r" else None
                history.add(Operation.RESTORE if step == "r" else Operation.SET, value, restored)
                done.append(value)
                taken_back.clear()
            case "d":
                history.add(Operation.SET, history.value)
            case "u":
                assert history.undo() == (len(done) > 1)
                if len(done) > 1:
                    taken_back.append(done.pop())
            case "y":
                assert history.redo() == bool(taken_back)
                if taken_back:
                    done.append(taken_back.pop())
        assert history.value == done[-1]
        assert history.read <= 2
        newest = history.rows[-1]
        if newest.restored_version is not None:
            assert history.rows[newest.restored_version - 1].value == newest.value


@pytest.mark.parametrize(("limit", "expected"), [(5, 5), (3, 3), (2, 9)])
def test_a_value_brings_its_limit_where_it_must(limit: int, expected: int) -> None:
    after = undo.bring_back(replace(BLOCK, value="", limit=limit), "abc", 9)
    assert (after.value, after.limit) == ("abc", expected)
