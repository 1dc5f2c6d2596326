"""Where a page is cut into pieces that become passages."""

from semantic_text_splitter import MarkdownSplitter, TextSplitter

from services.memory.core.file_text.kinds import Cutting
from services.memory.core.file_text.pages import is_telling, line_cuts, trimmed

# A piece ends at the first good place after so many characters, and has at most so many.
_LEAST, _MOST = 1_000, 1_800


def cuts(text: str, cutting: Cutting) -> tuple[tuple[int, int], ...]:
    """Where the pieces of a page begin and end; what says nothing is in none."""
    found = line_cuts(text, _MOST) if cutting is Cutting.LINES else _by_meaning(text, cutting)
    slices = (trimmed(text, *piece) for piece in found)
    return tuple((start, end) for start, end in slices if is_telling(text[start:end]))


def _by_meaning(text: str, cutting: Cutting) -> list[tuple[int, int]]:
    capacity = (_LEAST, _MOST)
    splitter = MarkdownSplitter(capacity) if cutting is Cutting.MARKDOWN else TextSplitter(capacity)
    return [(start, start + len(piece)) for start, piece in splitter.chunk_indices(text)]
