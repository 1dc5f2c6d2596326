"""The split of a page into pieces that become passages."""

from semantic_text_splitter import MarkdownSplitter, TextSplitter

from services.memory.core.file_text.kinds import SplitMode
from services.memory.core.file_text.pages import has_letters, line_cuts, trim

# A piece ends at the first good place after so many characters, and has at most so many.
_LEAST, _MOST = 1_000, 1_800


def cuts(text: str, split_mode: SplitMode) -> tuple[tuple[int, int], ...]:
    """Returns where the pieces of a page begin and end; what says nothing is in none."""
    pieces = line_cuts(text, _MOST) if split_mode is SplitMode.LINES else _by_structure(text, split_mode)
    slices = (trim(text, *piece) for piece in pieces)
    return tuple((start, end) for start, end in slices if has_letters(text[start:end]))


def _by_structure(text: str, split_mode: SplitMode) -> list[tuple[int, int]]:
    capacity = (_LEAST, _MOST)
    splitter = MarkdownSplitter(capacity) if split_mode is SplitMode.MARKDOWN else TextSplitter(capacity)
    return [(start, start + len(piece)) for start, piece in splitter.chunk_indices(text)]
