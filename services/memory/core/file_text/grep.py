"""Lines of files that match a pattern, found by RE2: in linear time, whatever the pattern."""

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from services.common.core.refusals import Refused
from services.memory.files.model import TextPage

LONGEST_PATTERN = 1_000
MOST_CONTEXT = 10
# Matches of one answer, characters of a line and of the whole.
MOST_MATCHES = 20
_LINE_CHARS = 300
_MOST_CHARS = 30_000
# Of a compiled pattern: it bounds what one page can cost.
_MEMORY = 1 << 18
_UNSUPPORTED = (
    " The engine knows neither lookahead, lookbehind nor backreferences; the rest of the usual syntax works, with (?i) "
    "for any case."
)


def compile_pattern(pattern: str, name: str) -> Any:
    """Compiles for RE2, never to match over the end of a line. Raises Refused, which names the argument."""
    if not 1 <= len(pattern) <= LONGEST_PATTERN:
        problem = f"has 1 to {LONGEST_PATTERN} characters, not {len(pattern)}"
        raise Refused("TOOL_REFUSED", f'The argument "{name}" {problem}.')
    # With the first search: where none is, its megabytes are saved.
    import re2  # noqa: PLC0415

    options = re2.Options()
    options.max_mem, options.never_nl, options.log_errors = _MEMORY, True, False
    try:
        re2.compile(pattern, options)
        # What follows in the line is taken along: every line matches once.
        return re2.compile(f"(?m)({pattern}).*", options)
    except re2.error as error:
        reason = error.args[0] if error.args else ""
        problem = reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
        hint = _UNSUPPORTED if "perl operator" in problem or "escape sequence" in problem else ""
        sentence = f'The argument "{name}" is not a valid regular expression: {problem}.{hint}'
        raise Refused("TOOL_REFUSED", sentence) from None


@dataclass
class Grep:
    """One search over the pages of files, in order. `skip`: matches of earlier answers; `context`: lines around it."""

    expression: Any
    context: int = 1
    skip: int = 0
    match_count: int = 0
    shown_count: int = 0
    # There is a match more than is shown.
    full: bool = False
    files: list[tuple[str, dict[int, tuple[str, str]]]] = field(default_factory=list)
    _path: str = ""
    _chars: int = 0
    # Lines before the page that may be the context of its first match, and how many of it are context still.
    _before: tuple[str, ...] = ()
    _after: int = 0

    def search(self, pages: Iterable[tuple[str, TextPage]], until: float) -> bool:
        """Looks through pages of files, given with their paths, until time.monotonic() is `until` or no more is shown.

        Whether it looked through all of them.
        """
        for path, page in pages:
            if path != self._path:
                self._path, self._before, self._after = path, (), 0
            # The lines after the last match that is shown may be on the next page.
            if (self.full and not self._after) or time.monotonic() > until:
                return False
            lines = page.text.split("\n")
            self._show_after(page.first_line, lines)
            if not self.full:
                self._search(page, lines)
        return not self.full or self._after > 0

    def _search(self, page: TextPage, lines: Sequence[str]) -> None:
        position = place = 0
        last = -1
        for match in self.expression.finditer(page.text):
            place += page.text.count("\n", position, match.start(1))
            position = match.start(1)
            if place == last:  # what matches nothing does so once more at the end of the line
                continue
            last = place
            self.match_count += 1
            if self.match_count <= self.skip:
                continue
            if self.shown_count == MOST_MATCHES or self._chars > _MOST_CHARS:
                self.full = True
                return
            self.shown_count += 1
            start = position - (page.text.rfind("\n", 0, position) + 1)
            self._show_around(page.first_line, lines, place, start)
        if self.context:
            self._before = (*self._before, *lines)[-self.context :]

    def _show_after(self, first_line: int, lines: Sequence[str]) -> None:
        for place in range(min(self._after, len(lines))):
            self._show(first_line + place, lines[place])
        self._after = max(self._after - len(lines), 0)

    def _show_around(self, first_line: int, lines: Sequence[str], place: int, start: int) -> None:
        for back in range(max(self.context - place, 0), 0, -1):
            if back <= len(self._before):
                self._show(first_line - back, self._before[-back])
        for near in range(max(place - self.context, 0), min(place + self.context + 1, len(lines))):
            if near != place:
                self._show(first_line + near, lines[near])
        self._show(first_line + place, lines[place], start)
        self._after = max(self._after, place + self.context + 1 - len(lines))

    def _show(self, number: int, line: str, start: int | None = None) -> None:
        """Puts a line into the answer; one that matches, at `start`, takes the place of itself as a context."""
        if not self.files or self.files[-1][0] != self._path:
            self.files.append((self._path, {}))
        lines = self.files[-1][1]
        if start is None and number in lines:
            return
        text = _clip(line, start or 0)
        lines[number] = (" " if start is None else ">", text)
        self._chars += len(text)


def _clip(line: str, start: int) -> str:
    """Returns at most so much of a line, around the place."""
    if len(line) <= _LINE_CHARS:
        return line
    first = max(min(start - _LINE_CHARS // 3, len(line) - _LINE_CHARS), 0)
    cut = line[first : first + _LINE_CHARS]
    return f"{'...' if first else ''}{cut}{'...' if first + _LINE_CHARS < len(line) else ''}"


def render_result(grep: Grep, *, looked: int, files: int, whole: bool) -> str:
    """Returns what the model reads. looked: files that were looked through, of so many; whole: all, to the end."""
    parts = [_of_file(path, lines) for path, lines in grep.files]
    first, last = grep.skip + 1, grep.skip + grep.shown_count
    if grep.shown_count and grep.full:
        parts.append(f"[Matches {first} to {last}; there are more. Go on with offset={last}.]")
    elif grep.shown_count:
        parts.append(f"[Matches {first} to {last}; these are all.]" if whole else f"[Matches {first} to {last}.]")
    else:
        none = "There are no more matches" if whole else f"Matches after the first {grep.skip} were not reached"
        parts.append(f"[{none}.]" if grep.skip else f"[No line matches in {looked} files.]")
    if not whole and not grep.full:
        parts.append(
            f"[The time was up after {looked} of {files} files. Narrow the search: name files by a pattern in include.]"
        )
    return "\n\n".join(parts)


def _of_file(path: str, lines: dict[int, tuple[str, str]]) -> str:
    answer, last = [f"{path}:"], 0
    for number, (mark, text) in sorted(lines.items()):
        if last and number > last + 1:
            answer.append("  --")
        answer.append(f"{mark} {number}: {text}")
        last = number
    return "\n".join(answer)
