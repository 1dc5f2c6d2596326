"""A file's text in pages of whole lines, and the pieces of a page that become passages. Pure.

Pages end where pieces end, so that no piece runs over two of them, and each can be read by its place alone.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from services.memory.files.model import Chunk, TextPage

# Characters. A page is as long at most as LONGEST_PAGE, a line within it as LONGEST_LINE.
LONGEST_PAGE = 16_000
LONGEST_LINE = 4_000
LONGEST_TEXT = 20_000_000
_BACK = LONGEST_PAGE // 4

# Of the blank end of a text; who ends a file with more of it does not miss it.
_LONGEST_ENDING = 1_000
_NOT_STORED = re.compile("[\x00\ud800-\udfff]")


def storable(text: str) -> tuple[str, str]:
    """Returns the text with plain newlines, without NUL and halves of surrogate pairs; and, apart, its blank end."""
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    text = _NOT_STORED.sub(lambda match: "" if match[0] == "\0" else "\ufffd", text)
    body = text.rstrip()
    return body, text[len(body) :][:_LONGEST_ENDING]


def text_lines(text: str) -> list[str]:
    """Returns the lines that have a number: those that are not blank. Indents stay."""
    return [line for line in text.split("\n") if line.strip()]


@dataclass(frozen=True, slots=True)
class Line:
    """A line, or a part of one that is too long; `continued`: the next part goes on in the same line."""

    text: str
    continued: bool = False


def lines_of(text: str) -> Iterator[Line]:
    """Returns the lines of a text; those of more than LONGEST_LINE characters in parts, each counted as a line."""
    start = 0
    while start < len(text):
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        while end - start > LONGEST_LINE:
            yield Line(text[start : start + LONGEST_LINE], continued=True)
            start += LONGEST_LINE
        yield Line(text[start:end])
        start = end + 1


def pages_of(text: str) -> Iterator[TextPage]:
    """Returns the pages of a text that is `storable`. None for an empty one."""
    number, first, size, lines = 0, 1, 0, list[str]()

    def page(count: int, *, continued: bool = False) -> TextPage:
        """Returns the first lines that are held, as a page."""
        nonlocal number, first, size
        text = "\n".join(lines[:count])
        last = first + len(text_lines(text)) - 1
        result = TextPage(page=number, first_line=first, last_line=last, text=text, continued=continued)
        del lines[:count]
        number, first, size = number + 1, last + 1, sum(len(line) + 1 for line in lines)
        return result

    after_part = False
    for line in lines_of(text):
        if lines and (line.continued or after_part or size + len(line.text) > LONGEST_PAGE):
            yield page(len(lines) if line.continued or after_part else _page_end(lines))
        lines.append(line.text)
        size += len(line.text) + 1
        if line.continued:
            yield page(1, continued=True)
        elif after_part:
            yield page(1)
        after_part = line.continued
    if lines:
        yield page(len(lines))


def _page_end(lines: list[str]) -> int:
    """Returns how many of the lines a page takes: up to a blank line or before a heading near its end, else all."""
    left = _BACK
    for count in range(len(lines) - 1, 0, -1):
        left -= len(lines[count]) + 1
        if left < 0:
            break
        if not lines[count - 1].strip() or lines[count].startswith("#"):
            return count
    return len(lines)


def join_pages(pages: Iterable[TextPage]) -> str:
    """Returns the whole text again."""
    parts: list[str] = []
    for page in pages:
        parts += (page.text, "" if page.continued else "\n")
    return "".join(parts[:-1])


def chunks_of(page: TextPage) -> list[Chunk]:
    """Returns the pieces of a page, by its cuts."""
    # Where each line with a number ends; a piece begins in the first that ends behind its start.
    ends = [match.end() for match in re.finditer("[^\n]*\\S[^\n]*", page.text)]
    chunks = []
    for index, (start, end) in enumerate(page.cuts):
        text = page.text[start:end]
        first = page.first_line + bisect_right(ends, start)
        last = first + max(len(text_lines(text)), 1) - 1
        chunks.append(Chunk(place=page.first_place + index, first_line=first, last_line=last, text=text))
    return chunks


def line_cuts(text: str, longest: int) -> list[tuple[int, int]]:
    """Splits into whole lines of at most `longest` characters, at blank lines where some are in their last half."""
    cuts: list[tuple[int, int]] = []
    start, blank, end = 0, 0, 0
    for match in re.finditer(".*\n|.+", text):
        if match.end() - start > longest and end > start:
            cut = blank if blank - start > longest // 2 else end
            cuts.append((start, cut))
            start = cut
        while match.end() - start > longest:
            cuts.append((start, start + longest))
            start += longest
        end = match.end()
        if not match[0].strip():
            blank = end
    return [*cuts, (start, len(text))] if start < len(text) else cuts


def has_letters(text: str) -> bool:
    """Returns whether a piece has a letter or digit: nothing else is looked for."""
    return any(map(str.isalnum, text))


def trim(text: str, start: int, end: int) -> tuple[int, int]:
    """Returns the slice without blank lines around it; indents stay."""
    while start < end and text[end - 1].isspace():
        end -= 1
    line = start
    for position in range(start, end):
        if text[position] == "\n":
            line = position + 1
        elif not text[position].isspace():
            break
    return line, end
