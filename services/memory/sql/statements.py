"""Values of statements whose parts are made at run time."""

from collections.abc import Iterable, Mapping
from typing import Any


class Values:
    """The values of a statement; each is given its place."""

    def __init__(self, *values: object) -> None:
        self.all = list(values)

    def add(self, value: object) -> str:
        """Returns what stands for it in SQL."""
        self.all.append(value)
        return f"${len(self.all)}"

    def assign(self, changes: Mapping[str, object]) -> str:
        """Returns `name = place, ` for each of the columns."""
        return "".join(f"{name} = {self.add(value)}, " for name, value in changes.items())


def arrays(rows: Iterable[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Returns an array for each column of the rows, of which there is one at least."""
    listed = list(rows)
    return {name: [row[name] for row in listed] for name in listed[0]}
