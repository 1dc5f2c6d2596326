"""A block as a Markdown file: front matter with what is said about it, then its value and the end of a line. Pure."""

import json
import re
from dataclasses import dataclass

DEFAULT_LIMIT = 100_000
_HEAD = re.compile(r"---\r?\n(.*?)(?<=\n)---(?:\r?\n|\Z)", re.DOTALL)
# A text that stands as it is: one line, without blanks at its ends, and not to be taken for a quoted one.
_PLAIN = re.compile(r'[^\s"\x00-\x1f](?:[^\x00-\x1f\x7f\x85\u2028\u2029]*[^\s])?')


class BadFile(Exception):
    """A file that is no block; its text says why."""


@dataclass(frozen=True, slots=True)
class Memory:
    """A block as a file describes it. None: not at all; in a change it then stays as it is."""

    value: str
    description: str | None = None
    limit: int | None = None
    read_only: bool | None = None


def write(memory: Memory) -> bytes:
    """Returns the file, in UTF-8."""
    lines = ["---"]
    if memory.description:
        plain = _PLAIN.fullmatch(memory.description)
        lines.append(f"description: {memory.description if plain else json.dumps(memory.description)}")
    if memory.limit not in (None, DEFAULT_LIMIT):
        lines.append(f"limit: {memory.limit}")
    if memory.read_only:
        lines.append("read_only: true")
    lines.append("---\n")
    return ("\n".join(lines) + (f"{memory.value}\n" if memory.value else "")).encode()


def read(content: bytes) -> Memory:
    """Returns the memory in a file; without front matter all of it is the value. Raises BadFile."""
    try:
        text = content.decode()
    except UnicodeDecodeError:
        raise BadFile("it is not UTF-8") from None
    if "\0" in text:
        raise BadFile("it contains a NUL character")
    match = _HEAD.match(text)
    if match is None:
        return Memory(text.removesuffix("\n"))
    fields = dict(_field(line) for line in match[1].split("\n") if line.strip())
    value = text[match.end() :].removesuffix("\n")
    return Memory(value, fields.get("description") or None, _limit(fields.get("limit")), _flag(fields.get("read_only")))


def _field(line: str) -> tuple[str, str]:
    name, colon, text = (part.strip() for part in line.partition(":"))
    if not colon or name not in ("description", "limit", "read_only"):
        raise BadFile(f"its front matter has the line {line[:80]!r}; there are description, limit and read_only")
    if text.startswith('"'):
        try:
            text = json.loads(text)
        except ValueError:
            return name, text
        if "\0" in text or any("\ud800" <= sign <= "\udfff" for sign in text):
            raise BadFile(f"its {name} has a character that cannot be stored")
    return name, text


def _limit(text: str | None) -> int | None:
    if not text:
        return None
    if not text.isascii() or not text.isdigit() or not 1 <= len(text) <= 9:
        raise BadFile(f"its limit is {text[:40]!r}, not a number of characters")
    return int(text)


def _flag(text: str | None) -> bool | None:
    if text not in (None, "", "true", "false"):
        raise BadFile(f"its read_only is {text[:40]!r}, not true or false")
    return text == "true" if text else None
