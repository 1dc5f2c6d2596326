"""Conditions of a list with their parameters. Pure."""

from datetime import datetime
from typing import Any
from uuid import UUID


class Where:
    """Conditions that hold together, of one tenant; `parameters` are in the order of their numbers."""

    def __init__(self, organization_id: UUID) -> None:
        self.parameters: list[Any] = [organization_id]
        self._conditions = ["organization_id = $1"]

    def add(self, condition: str, *values: object) -> None:
        """`condition` has a {} for each value."""
        first = len(self.parameters) + 1
        self._conditions.append(condition.format(*(f"${first + place}" for place in range(len(values)))))
        self.parameters += values

    def before(self, time_column: str, name_column: str, place: tuple[datetime, object]) -> None:
        """Only what comes later in an order by both columns, newest first."""
        self.add(f"({time_column}, {name_column}) < ({{}}, {{}})", *place)

    def text(self) -> str:
        """The conditions, for after WHERE."""
        return " AND ".join(self._conditions)
