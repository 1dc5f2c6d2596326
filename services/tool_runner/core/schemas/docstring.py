"""Google-style docstrings: what a function does and what each argument means.

Pure. A docstring has a description, then sections; only the arguments section is read further::

    Roll a die.

    Args:
        num_sides (int): how many sides,
            continued by a deeper indentation.

    Returns:
        int: the number rolled
"""

import inspect
import re
from dataclasses import dataclass

# Attributes: of a class; its fields are arguments to who makes one.
_ARGUMENT_SECTIONS = frozenset(
    {"args", "arguments", "parameters", "params", "keyword args", "keyword arguments", "attributes"}
)
_SECTIONS = _ARGUMENT_SECTIONS | {
    "example",
    "examples",
    "note",
    "notes",
    "raises",
    "references",
    "return",
    "returns",
    "see also",
    "todo",
    "usage",
    "warning",
    "warnings",
    "yield",
    "yields",
}
_ARGUMENT = re.compile(r"^\*{0,2}(?P<name>\w+)\s*(?:\((?P<type>[^)]*)\))?\s*:\s*(?P<text>.*)$", re.DOTALL)


@dataclass(frozen=True)
class Docstring:
    """`description` is all text above the first section; `arguments` maps a name to its description."""

    description: str
    arguments: dict[str, str]


def parse_docstring(text: str) -> Docstring:
    """Reads a Google-style docstring; text that follows no section at all is description."""
    lines = inspect.cleandoc(text).splitlines()
    starts = [i for i, line in enumerate(lines) if _section(line)]
    description = "\n".join(lines[: starts[0]] if starts else lines).strip()
    arguments: dict[str, str] = {}
    for position, start in enumerate(starts):
        end = starts[position + 1] if position + 1 < len(starts) else len(lines)
        if _section(lines[start]) in _ARGUMENT_SECTIONS:
            arguments |= _parse_arguments(lines[start + 1 : end])
    return Docstring(description, arguments)


def _section(line: str) -> str | None:
    """Returns the section that an unindented `Name:` opens, in lower case."""
    name = line.rstrip().removesuffix(":").lower()
    return name if line.rstrip().endswith(":") and name in _SECTIONS else None


def _parse_arguments(lines: list[str]) -> dict[str, str]:
    """Entries begin at the section's own indentation; deeper lines continue the entry above them."""
    filled = [line for line in lines if line.strip()]
    if not filled:
        return {}
    indent = min(len(line) - len(line.lstrip()) for line in filled)
    entries: list[list[str]] = []
    for line in filled:
        if len(line) - len(line.lstrip()) == indent or not entries:
            entries.append([line.strip()])
        else:
            entries[-1].append(line.strip())
    matches = [_ARGUMENT.match(" ".join(entry)) for entry in entries]
    return {m["name"]: m["text"].strip() for m in matches if m}
