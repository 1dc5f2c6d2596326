"""Files as an agent sees them: the lines in view, and which files go out of view for others. Pure."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from uuid import UUID, uuid5

from services.memory.core.file_text.pages import text_lines
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

    @property
    def is_whole(self) -> bool:
        """Returns whether nobody asked for a part of it."""
        return self.first_line == 1 and self.last_line is None


@dataclass(frozen=True, slots=True)
class View:
    """Lines in view; 0 to 0 of an empty file. `text`: they are numbered, under a line that says which they are.

    is_whole: all of the file was opened, whether or not it fits.
    """

    first_line: int
    last_line: int
    text: str
    is_whole: bool = True


@dataclass(frozen=True, slots=True)
class OpenFile:
    """A file that is open. `turn` rises with the time when it was opened."""

    file_id: UUID
    path: str
    turn: float


def view_of(window: Window, pages: Iterable[TextPage]) -> View:
    """Returns the view of pages that hold its lines, in order; not longer than its limit, of 200 at least."""
    if not window.line_count:
        return View(0, 0, _header(window, 0, 0))
    first = min(window.first_line, window.line_count)
    end = min(window.last_line or window.line_count, window.line_count)
    room = window.char_limit - len(_header(window, window.line_count, window.line_count)) - _NOTE
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
    text = "\n".join([_header(window, first, number), *lines, *note])
    return View(first, number, text, window.is_whole)


def _header(window: Window, first: int, last: int) -> str:
    of_all = f"(out of {window.line_count} lines)"
    if window.is_whole:
        return f"[Viewing file start {of_all}]"
    to_end = window.last_line is None and last == window.line_count
    return f"[Viewing lines {first} to {'end' if to_end else last} {of_all}]"


def _note(last: int, end: int, window: Window) -> list[str]:
    if last >= end:
        return []
    return [
        f"[No more fits: {window.char_limit} characters of a file are in view at most. "
        f"open_files with offset={last} shows it from line {last + 1} on.]"
    ]


def _numbered_lines(pages: Iterable[TextPage], first: int, end: int) -> Iterable[tuple[int, str]]:
    for page in pages:
        for number, line in enumerate(text_lines(page.text), start=page.first_line):
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
