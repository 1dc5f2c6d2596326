"""Parameters of statements: with names, or with places that are given one after the other."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

_PARAMETER = re.compile(r"(?<!:):([a-z_]+)")


class Statement:
    """SQL with parameters `:name`: `fetch(*statement(name=value))`."""

    def __init__(self, sql: str) -> None:
        names = list(dict.fromkeys(_PARAMETER.findall(sql)))
        self._names = names
        self._sql = _PARAMETER.sub(lambda match: f"${names.index(match[1]) + 1}", sql)

    def __call__(self, **values: Any) -> tuple[Any, ...]:
        """Returns the text for the driver, and the values in their places."""
        return self._sql, *(values[name] for name in self._names)


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
