"""The difference between two values, as a unified diff."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import unified_diff

_CONTEXT = 3
# Lines that differ on either side, up to which a short diff is looked for; it takes quadratic time and more.
_MOST_COMPARED = 1_000
_HEADER = re.compile(r"^@@ -(\d+)(.*) \+(\d+)(.*) @@$")


@dataclass(frozen=True, slots=True)
class Difference:
    """A unified diff without file headers, empty for equal values, and its numbers of "+" and "-" lines."""

    diff: str
    added_lines: int
    removed_lines: int


def difference(earlier: str, later: str) -> Difference:
    """Returns how one value becomes another; where very much differs, the whole stretch of lines is exchanged."""
    old, new = _lines(earlier), _lines(later)
    first = _common(zip(old, new, strict=False))
    shortest = min(len(old), len(new)) - first
    last = min(shortest, _common(zip(reversed(old), reversed(new), strict=False)))
    # What is the same at both ends need not be searched, but for the lines shown around the change.
    kept_start = max(0, first - _CONTEXT)
    kept_end = max(0, last - _CONTEXT)
    old, new = old[kept_start : len(old) - kept_end], new[kept_start : len(new) - kept_end]
    if max(len(old), len(new)) - (first - kept_start) - (last - kept_end) <= _MOST_COMPARED:
        changed = list(unified_diff(old, new, lineterm="", n=_CONTEXT))[2:]
    else:
        changed = list(_exchange(old, new, first - kept_start, last - kept_end))
    lines = [_move_header(line, kept_start) for line in changed]
    signs = [line[0] for line in lines]
    return Difference("\n".join(lines), signs.count("+"), signs.count("-"))


def _lines(value: str) -> list[str]:
    return value.split("\n") if value else []


def _common(pairs: Iterator[tuple[str, str]]) -> int:
    """Returns how many pairs are the same, from the first on."""
    count = 0
    for one, other in pairs:
        if one != other:
            break
        count += 1
    return count


def _exchange(old: Sequence[str], new: Sequence[str], before: int, after: int) -> Iterator[str]:
    """Returns one hunk that replaces all but the first and last lines, which are the same."""
    yield f"@@ -1,{len(old)} +1,{len(new)} @@"
    yield from (f" {line}" for line in old[:before])
    yield from (f"-{line}" for line in old[before : len(old) - after])
    yield from (f"+{line}" for line in new[before : len(new) - after])
    yield from (f" {line}" for line in old[len(old) - after :])


def _move_header(line: str, by: int) -> str:
    """Returns a hunk's header with its line numbers moved; every other line as it is."""
    header = _HEADER.match(line)
    if header is None or not by:
        return line
    return f"@@ -{int(header[1]) + by}{header[2]} +{int(header[3]) + by}{header[4]} @@"
