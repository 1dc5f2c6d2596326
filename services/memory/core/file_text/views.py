"""Files as an agent sees them: the lines in view, and which files go out of view for others. Pure."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from uuid import UUID, uuid5

from services.memory.files.model import TextPage

# The longest note under the lines of a view, with its newline.
_NOTE = 160


@dataclass(frozen=True, slots=True)
class Window:
    """The lines of a file that are in view, from 1: from `first_line` to `last_line` (None: to the end), as far as
    `char_limit` characters go. `line_count`: how many there are.
    """

    first_line: int
    last_line: int | None
    char_limit: int
    line_count: int


@dataclass(frozen=True, slots=True)
class View:
    """Lines in view; 0 to 0 of an empty file. `text`: they are numbered, under a line that says which they are."""

    first_line: int
    last_line: int
    text: str


@dataclass(frozen=True, slots=True)
class OpenFile:
    """A file that is open. `turn` rises with the time when it was opened."""

    file_id: UUID
    path: str
    turn: float


def view_of(window: Window, pages: Iterable[TextPage]) -> View:
    """Returns the view of pages that hold its lines, in order; not longer than its limit, of 200 at least."""
    if not window.line_count:
        return View(0, 0, "[The file is empty.]")
    first = min(window.first_line, window.line_count)
    end = min(window.last_line or window.line_count, window.line_count)
    room = window.char_limit - len(_header(window.line_count, window.line_count, window.line_count)) - _NOTE
    lines: list[str] = []
    number = first - 1
    for number, line in _numbered_lines(pages, first, end):
        room -= len(line) + 1
        if room < 0:
            if lines:
                number -= 1
            else:
                lines.append(line[: room + len(line)])
            break
        lines.append(line)
    note = _note(number, end, window)
    return View(first, number, "\n".join([_header(first, number, window.line_count), *lines, *note]))


def _header(first: int, last: int, count: int) -> str:
    return f"[Lines {first} to {last} of {count} are in view.]"


def _note(last: int, end: int, window: Window) -> list[str]:
    if last >= end:
        return []
    return [
        f"[No more fits: {window.char_limit} characters of a file are in view at most. "
        f"open_files with offset={last} shows it from line {last + 1} on.]"
    ]


def _numbered_lines(pages: Iterable[TextPage], first: int, end: int) -> Iterable[tuple[int, str]]:
    for page in pages:
        for number, line in enumerate(page.text.split("\n"), start=page.first_line):
            if number > end:
                return
            if number >= first:
                yield number, f"{number}: {line}"


def files_to_close(opened: Sequence[OpenFile], opening: Collection[UUID], most: int) -> list[OpenFile]:
    """Returns the files to close so that with the `opening` ones at most `most` are open: first those opened longest
    ago."""
    others = sorted((one for one in opened if one.file_id not in opening), key=lambda one: (one.turn, one.file_id.int))
    return others[: max(len(others) + len(opening) - most, 0)]


def id_of_agent_file(agent_id: UUID, file_id: UUID) -> UUID:
    """Returns the id of a file as one agent sees it (UUID version 5)."""
    return uuid5(agent_id, f"file {file_id}")
