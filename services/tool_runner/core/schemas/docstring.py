"""Descriptions of a function and of its arguments in its docstring, in whichever style: Google, NumPy, reST. Pure.

The sections of arguments go to the arguments, those of returns are left out (as the reference does), and all other
text is description, in its order. The styles may stand side by side::

    Roll a die.                     Parameters            :param int num_sides: how many sides,
                                    ----------                continued
    Args:                           num_sides : int       :returns: the number rolled
        num_sides (int): how many       how many sides,
            sides, continued            continued
"""

import inspect
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from services.tool_runner.core.schemas.docstring_entries import (
    ARGUMENT_TAGS,
    field_entries,
    google_entries,
    indent_of,
    is_entry,
    numpy_entries,
    numpy_names,
)

# Attributes: of a class; its fields are arguments to who makes one.
_ARGUMENT_SECTIONS = frozenset(
    {"args", "arguments", "parameters", "params", "other parameters", "keyword args", "keyword arguments", "attributes"}
)
_RETURN_SECTIONS = frozenset({"return", "returns", "yield", "yields"})
_SECTIONS = (
    _ARGUMENT_SECTIONS
    | _RETURN_SECTIONS
    | {"example", "examples", "note", "notes", "raises", "references", "see also", "todo", "usage", "warning"}
    | {"warnings", "warns"}
)
# Of Sphinx and epydoc: `:param int size: text`, `@param size: text`.
_FIELD = re.compile(r"^[:@](?P<tag>\w+)(?:\s+(?P<what>[^:]*?))?\s*:(?:\s+(?P<text>.*))?$")
_RAISE_TAGS = frozenset({"raises", "raise", "except", "exception"})
_FIELD_TAGS = (
    ARGUMENT_TAGS | _RAISE_TAGS | {"type", "vartype", "return", "returns", "rtype", "yield", "yields", "ytype"}
)
_UNDERLINE = re.compile(r"^(?:-{3,}|={3,}|~{3,})\s*$")


@dataclass(frozen=True)
class Docstring:
    """`description` is all text that is about neither arguments nor returns; `arguments` maps a name to its text."""

    description: str
    arguments: dict[str, str]


@dataclass
class _Section:
    """`name` is "" for plain text, and "field" for fields; in lower case."""

    name: str
    heading: str = ""
    style: str = ""
    lines: list[str] = field(default_factory=list)


def parse_docstring(text: str) -> Docstring:
    """Reads a docstring of any style; what follows no section is description."""
    arguments: dict[str, str] = {}
    kept: list[str] = []
    for section in _sections(inspect.cleandoc(text).splitlines()):
        if section.style == "field":
            fields = list(_fields(section.lines))
            arguments |= field_entries(fields)
            kept += [f"Raises {what}: {text}" for tag, what, text in fields if tag in _RAISE_TAGS]
        elif section.name in _ARGUMENT_SECTIONS:
            arguments |= (numpy_entries if section.style == "numpy" else google_entries)(section.lines)
        elif section.name not in _RETURN_SECTIONS:
            kept.append("\n".join(filter(None, (section.heading, "\n".join(section.lines).rstrip()))))
    description = "\n\n".join(part.strip("\n") for part in kept if part.strip())
    return Docstring(description.strip(), arguments)


def _sections(lines: Sequence[str]) -> Iterator[_Section]:
    current = _Section("")
    place = 0
    while place < len(lines):
        opened = _opened(lines, place)
        if opened:
            yield current
            current, taken = opened
            place += taken
            continue
        if current.name and _ends(current, lines[place]):
            yield current
            current = _Section("")
        current.lines.append(lines[place])
        place += 1
    yield current


def _opened(lines: Sequence[str], place: int) -> tuple[_Section, int] | None:
    """Returns the section that begins here and how many lines its heading takes."""
    line = lines[place].rstrip()
    if (match := _FIELD.match(line)) and match["tag"].lower() in _FIELD_TAGS:
        return _Section("field", style="field", lines=[line]), 1
    name = line.removesuffix(":").lower()
    if indent_of(line) or name not in _SECTIONS:
        return None
    if place + 1 < len(lines) and _UNDERLINE.match(lines[place + 1].strip()):
        return _Section(name, line.removesuffix(":") + ":", "numpy"), 2
    return (_Section(name, line, "google"), 1) if line.endswith(":") else None


def _ends(section: _Section, line: str) -> bool:
    """Returns whether a line no longer belongs to the section: text that is as far to the left as its heading."""
    if not line.strip() or indent_of(line):
        return False
    if section.style == "numpy":
        blank_before = bool(section.lines) and not section.lines[-1].strip()
        return section.name in _ARGUMENT_SECTIONS and blank_before and not numpy_names(line)
    # Some indent nothing: then a section goes on until its first line that is no entry.
    first = next((each for each in section.lines if each.strip()), line)
    unindented = section.style == "google" and not indent_of(first)
    return not (unindented and (section.name not in _ARGUMENT_SECTIONS or is_entry(line)))


def _fields(lines: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    """Returns (tag, what it is of, text) of a field and its continuation."""
    match = _FIELD.match(lines[0])
    if match:
        text = " ".join(part.strip() for part in (match["text"] or "", *lines[1:]) if part.strip())
        yield match["tag"].lower(), match["what"] or "", text
