"""The entries of a docstring's section of arguments, in three styles. Pure."""

import re
from collections.abc import Iterable, Sequence

_NAME = re.compile(r"^(?:[-*+•]\s+)?[`*]*(?P<name>\w+)[`*]*\s*")
_COLON = re.compile(r"\s*(?::|\s(?:--?|–|—)\s)\s*(?P<text>.*)$", re.DOTALL)
_NUMPY = re.compile(r"^(?P<names>\*{0,2}\w+(?:\s*,\s*\*{0,2}\w+)*)\s*(?::.*)?$")
ARGUMENT_TAGS = frozenset({"param", "parameter", "arg", "argument", "key", "keyword", "kwarg", "var", "ivar", "cvar"})
_BRACKETS = {"(": ")", "[": "]", "{": "}"}


def indent_of(line: str) -> int:
    """Returns how many blanks a line begins with."""
    return len(line) - len(line.lstrip())


def google_entries(lines: Iterable[str]) -> dict[str, str]:
    """Returns texts by name; entries begin at the section's own indentation, deeper lines continue the one above."""
    filled = [line for line in lines if line.strip()]
    indent = min(map(indent_of, filled), default=0)
    entries: list[list[str]] = []
    for line in filled:
        if indent_of(line) == indent or not entries:
            entries.append([line.strip()])
        else:
            entries[-1].append(line.strip())
    return dict(pair for entry in entries if (pair := _entry(" ".join(entry))))


def is_entry(line: str) -> bool:
    """Returns whether a line begins an entry of Google's style."""
    return _entry(line.strip()) is not None


def _entry(text: str) -> tuple[str, str] | None:
    """Returns (name, text) of `name (type, with (brackets)): text`."""
    match = _NAME.match(text)
    if not match:
        return None
    rest = _behind_brackets(text[match.end() :])
    said = _COLON.match(rest if rest[:1] == ":" else f" {rest}")
    return (match["name"], said["text"].strip()) if said else None


def _behind_brackets(text: str) -> str:
    """Returns what follows a type in brackets, which may hold others; the text itself where it has none."""
    if not text or text[0] not in _BRACKETS:
        return text
    open_ones: list[str] = []
    for place, letter in enumerate(text):
        if letter in _BRACKETS:
            open_ones.append(_BRACKETS[letter])
        elif open_ones and letter == open_ones[-1]:
            open_ones.pop()
            if not open_ones:
                return text[place + 1 :]
    return text


def numpy_names(line: str) -> list[str]:
    """Returns the names of an entry `a, b : type`; none where the line is no entry."""
    match = _NUMPY.match(line.strip())
    return [name.strip().lstrip("*") for name in match["names"].split(",")] if match else []


def numpy_entries(lines: Sequence[str]) -> dict[str, str]:
    """Returns texts by name: an entry is a line with names, its text what is indented below."""
    found: dict[str, list[str]] = {}
    names: list[str] = []
    for line in lines:
        if line.strip() and not indent_of(line):
            names = numpy_names(line)
            found |= {name: [] for name in names}
        elif line.strip():
            for name in names:
                found[name].append(line.strip())
    return {name: " ".join(text) for name, text in found.items()}


def field_entries(fields: Iterable[tuple[str, str, str]]) -> dict[str, str]:
    """Returns texts by name of `:param type name: text`; the last word before the colon is the name."""
    return {what.split()[-1].lstrip("*"): text for tag, what, text in fields if tag in ARGUMENT_TAGS and what.strip()}
