"""SQL with named parameters for asyncpg, which itself numbers them. Pure.

COMMIT = Statement("UPDATE agent.runs SET facts = :facts WHERE organization_id = :organization_id AND id = :run_id")
await connection.fetchrow(*COMMIT.bind(organization_id=..., run_id=..., facts=2))
"""

import re
from typing import Any

# `::` is a cast, and what follows a word is a slice of an array.
_PARAMETER = re.compile(r"(?<![:\w]):([a-z_][a-z0-9_]*)")


class Statement:
    """A statement whose parameters have names, `:run_id`. text: the same with numbers; names: in their order."""

    def __init__(self, sql: str) -> None:
        self.names = tuple(dict.fromkeys(_PARAMETER.findall(sql)))
        numbers = {name: f"${number}" for number, name in enumerate(self.names, 1)}
        self.text = _PARAMETER.sub(lambda match: numbers[match[1]], sql)

    def bind(self, **values: Any) -> tuple[Any, ...]:
        """Returns the arguments of asyncpg's methods: the text and the values. Raises TypeError for wrong names."""
        if values.keys() != set(self.names):
            wrong = ", ".join(sorted(values.keys() ^ set(self.names)))
            raise TypeError(f"the statement has these parameters and was given others: {wrong}")
        return (self.text, *(values[name] for name in self.names))
