"""Lines of files that match a pattern, found by RE2: in linear time, whatever the pattern."""

import re
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from services.common.core.refusals import Refused
from services.memory.core.file_text.names import normal_form
from services.memory.core.file_text.pages import text_lines
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
    " The engine knows neither lookahead, lookbehind nor backreferences; the rest of the usual syntax works, with "
    "(?-i) to tell cases apart."
)


def compile_pattern(pattern: str, name: str) -> Any:
    """Compiles for RE2: any case, never over the end of a line. Raises Refused, which names the argument."""
    if not 1 <= len(pattern) <= LONGEST_PATTERN:
        problem = f"has 1 to {LONGEST_PATTERN} characters, not {len(pattern)}"
        raise Refused("TOOL_REFUSED", f'The argument "{name}" {problem}.')
    # With the first search: where none is, its megabytes are saved.
    import re2  # noqa: PLC0415

    options = re2.Options()
    options.max_mem, options.never_nl, options.log_errors = _MEMORY, True, False
    options.case_sensitive = False
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


def compile_include(include: str) -> Any:
    """Compiles a pattern for paths: a glob, or else a regular expression. Raises Refused."""
    include = normal_form(include)  # as names of files are stored
    if not _is_glob(include):
        return compile_pattern(include, "include")
    # A star matches slashes, too: a file's own name may have some.
    parts = {"*": ".*", "?": "."}
    return compile_pattern(f"(^|/){''.join(parts.get(char) or re.escape(char) for char in include)}$", "include")


def _is_glob(include: str) -> bool:
    """Returns whether it has a wildcard of globs, and nothing that only a regular expression has."""
    return bool(re.search(r"(^|[^.])[*?]", include)) and not re.search(r"[\\^$|()\[\]{}+]|\.[*?]", include)


@dataclass
class Grep:
    """One search over the pages of files, in order. `skip`: matches of earlier answers; `context`: lines around it."""

    expression: Any
    context: int = 1
    skip: int = 0
    match_count: int = 0
    shown_count: int = 0
    file_count: int = 0
    # There is a match more than is shown; from then on they are counted.
    full: bool = False
    files: list[tuple[str, dict[int, tuple[str, str]]]] = field(default_factory=list)
    _path: str = ""
    _chars: int = 0
    _matched: str = ""
    # Lines before the page that may be the context of its first match, and how many of it are context still.
    _before: tuple[str, ...] = ()
    _after: int = 0

    def search(self, pages: Iterable[tuple[str, TextPage]], until: float) -> bool:
        """Looks through pages of files, given with their paths, until time.monotonic() is `until`.

        Returns whether it looked through all of them.
        """
        for path, page in pages:
            if path != self._path:
                self._path, self._before, self._after = path, (), 0
            if time.monotonic() > until:
                return False
            lines = text_lines(page.text)
            # The lines after the last match that is shown may be on the next page.
            self._show_after(page.first_line, lines)
            self._search(page.first_line, "\n".join(lines), lines)
        return True

    def _search(self, first_line: int, text: str, lines: Sequence[str]) -> None:
        position = place = 0
        last = -1
        for match in self.expression.finditer(text):
            place += text.count("\n", position, match.start(1))
            position = match.start(1)
            if place == last:  # what matches nothing does so once more at the end of the line
                continue
            last = place
            self._count()
            if self.full or self.match_count <= self.skip:
                continue
            if self.shown_count == MOST_MATCHES or self._chars > _MOST_CHARS:
                self.full = True
                continue
            self.shown_count += 1
            start = position - (text.rfind("\n", 0, position) + 1)
            self._show_around(first_line, lines, place, start)
        if self.context:
            self._before = (*self._before, *lines)[-self.context :]

    def _count(self) -> None:
        self.match_count += 1
        if self._matched != self._path:
            self._matched = self._path
            self.file_count += 1

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


def render_result(grep: Grep, pattern: str, *, looked: int, files: int, whole: bool) -> str:
    """Returns what the model reads, totals first. looked: files that were looked through, of so many; whole: all."""
    parts = [_totals(grep, pattern, whole=whole), *(_of_file(path, lines) for path, lines in grep.files)]
    if grep.full:
        parts.append(f"[Go on with offset={grep.skip + grep.shown_count}.]")
    if not whole:
        parts.append(
            f"[The time was up after {looked} of {files} files. Narrow the search: name files by a pattern in include.]"
        )
    return "\n\n".join(parts)


def _totals(grep: Grep, pattern: str, *, whole: bool) -> str:
    if not grep.match_count:
        return f"No matches found for pattern: '{pattern}'"
    least = "" if whole else "at least "
    total = f"Found {least}{grep.match_count} matches in {grep.file_count} files for pattern: '{pattern}'"
    if not grep.shown_count:
        return f"{total}; none after the first {grep.skip}."
    return f"{total}; matches {grep.skip + 1} to {grep.skip + grep.shown_count} are shown."


def _of_file(path: str, lines: dict[int, tuple[str, str]]) -> str:
    answer, last = [f"{path}:"], 0
    for number, (mark, text) in sorted(lines.items()):
        if last and number > last + 1:
            answer.append("  --")
        answer.append(f"{mark} {number}: {text}")
        last = number
    return "\n".join(answer)
