"""Dataclass <-> row, by names."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from services.common.core.records import columns, names_in, record, record_from_json


@dataclass(frozen=True, kw_only=True)
class Thing:
    """A row's values."""

    id: UUID
    at: datetime | None = None
    tags: tuple[str, ...] = ()
    members: tuple[UUID, ...] = ()
    data: Mapping[str, Any] = field(default_factory=dict)


def test_a_row_is_a_record() -> None:
    row = {"id": UUID(int=1), "tags": ["a"], "members": None, "other": 5}
    assert record(Thing, row) == Thing(id=UUID(int=1), tags=("a",))


def test_json_of_a_row_is_a_record() -> None:
    value = {
        "id": str(UUID(int=1)),
        "at": "2026-01-31T09:30:00+00:00",
        "members": [str(UUID(int=2))],
        "data": {"id": "x"},
    }
    expected = Thing(
        id=UUID(int=1), at=datetime(2026, 1, 31, 9, 30, tzinfo=UTC), members=(UUID(int=2),), data={"id": "x"}
    )
    assert record_from_json(Thing, value) == expected
    assert record_from_json(Thing, value | {"at": None, "members": None}).members == ()


def test_a_record_is_values_of_columns() -> None:
    thing = Thing(id=UUID(int=1), tags=("a",))
    assert columns(thing, ["tags", "data"]) == {"tags": ["a"], "data": {}}
    assert names_in(Thing, ["tags", "id", "organization_id"]) == ("id", "tags")
