"""Reads the corpus: `=== name`, the source, then lines `--- member value`, values as JSON.

call      the arguments as the model sends them; text: the same as a text that is not an object's JSON
returns   what the API gives
schema    some properties of the schema, each with all its members but a description that is not said here
says      a text of the description
needs     a module without which it cannot run; args_schema: what the client sends as args_json_schema
"""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_FILE = Path(__file__).with_name("python_tools.txt")


@dataclass(frozen=True)
class Case:
    """One tool."""

    name: str
    source: str
    members: dict[str, str] = field(default_factory=dict)

    def json(self, member: str) -> Any:
        """Returns a member's value; None without one."""
        return json.loads(self.members[member]) if member in self.members else None

    @property
    def arguments(self) -> str:
        """Returns the text that the model sends."""
        return self.members.get("text") or self.members["call"]


def python_cases() -> list[Case]:
    """Returns all of them."""
    return [_case(part) for part in _FILE.read_text().split("=== ")[1:]]


def _case(text: str) -> Case:
    name, _, rest = text.partition("\n")
    lines = rest.splitlines(keepends=True)
    said = [line for line in lines if line.startswith("--- ")]
    members = dict(line[4:].rstrip("\n").split(" ", 1) for line in said)
    return Case(name, "".join(line for line in lines if not line.startswith("--- ")), members)
