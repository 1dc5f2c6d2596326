"""Plain text of any encoding."""

import re
from collections.abc import Iterator

import charset_normalizer

from services.memory.files.parsing.unreadable import Unreadable

_MARKS = (
    (b"\xef\xbb\xbf", "utf-8-sig"),
    (b"\xff\xfe\x00\x00", "utf-32"),
    (b"\x00\x00\xfe\xff", "utf-32"),
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
)
_SAMPLE = 256 * 1024
_WESTERN = "cp1252"
# With more letters that are not ASCII than these, they tell the encoding themselves.
_FEW_FOREIGN = 64
# A sign within a word but the apostrophe, hyphens and dots, three letters that are not ASCII in a row, or a rare sign:
# there other code pages have their own letters.
_SIGNS = "\xa1-\xb4\xb6\xb8-\xbf\xd7\xf7\u2020-\u2022\u2030\u20ac\u2122\u02c6\u02dc\u0192\u2039\u203a"
_LETTERS = "\xc0-\xd6\xd8-\xf6\xf8-\xff\u0152-\u017e"
_ODD_IN_WESTERN = re.compile(rf"[^\W\d_][{_SIGNS}][^\W\d_]|[{_LETTERS}]{{3}}|[\xa4\xa6\xac\xaf]")
# Those that have a mark, or every other byte NUL, were found before.
_WIDE = ["utf_16", "utf_16_be", "utf_16_le", "utf_32", "utf_32_be", "utf_32_le", "utf_7"]
_CONTROLS = frozenset(map(chr, range(32))) - set("\t\n\r\f\v\b\x1b")
# With more control characters, and this share of them, it is no text, whatever it can be decoded as.
_FEW_CONTROLS = 32
_MOST_CONTROLS = 0.02


def read(data: bytes) -> Iterator[str]:
    """Returns the text, decoded. Raises Unreadable."""
    text = decode(data)
    sample = text[:_SAMPLE]
    if sum(map(_CONTROLS.__contains__, sample)) > max(_FEW_CONTROLS, _MOST_CONTROLS * len(sample)):
        raise Unreadable("it is not text: it is full of control characters")
    yield text


def decode(data: bytes) -> str:
    """Decodes by its mark, as UTF-8, as UTF-16 without a mark, else as it looks. Raises Unreadable."""
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return data.decode(encoding, errors="replace")
    wide = _wide(data[:_SAMPLE]) if len(data) % 2 == 0 else None
    if wide:
        return data.decode(wide, errors="replace")
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.decode(_guess(data), errors="replace")


def assumed_charset(data: bytes) -> str:
    """Returns the encoding that a text is taken to be in where nothing in it says one; "" for UTF-8, or with a mark.
    Raises Unreadable."""
    if any(data.startswith(mark) for mark, _ in _MARKS):
        return ""
    if len(data) % 2 == 0 and (wide := _wide(data[:_SAMPLE])):
        return wide
    try:
        data.decode()
    except UnicodeDecodeError:
        guess = _guess(data)
        return "windows-1252" if guess == _WESTERN else guess.replace("_", "-")
    return ""


def _wide(sample: bytes) -> str | None:
    """Returns UTF-16 where nearly every other byte is NUL, as in Western texts."""
    half = len(sample) // 2
    if half < 2:
        return None
    if sample[1::2].count(0) > 0.8 * half and sample[0::2].count(0) < 0.1 * half:
        return "utf-16-le"
    if sample[0::2].count(0) > 0.8 * half and sample[1::2].count(0) < 0.1 * half:
        return "utf-16-be"
    return None


def _guess(data: bytes) -> str:
    # What is broken may come late: the bytes that are not ASCII are what tells.
    first = next(index for index, byte in enumerate(data) if byte > 127) if not data.isascii() else 0
    start = max(0, first - _SAMPLE // 2)
    sample = data[start : start + _SAMPLE]
    if _looks_western(sample):
        return _WESTERN
    guess = charset_normalizer.from_bytes(sample, cp_exclusion=_WIDE).best()
    if guess is None:
        raise Unreadable("its bytes are no text in any encoding that is known; save it as UTF-8")
    # Another name for the same characters.
    return _WESTERN if _WESTERN in guess.could_be_from_charset else guess.encoding


def _looks_western(sample: bytes) -> bool:
    """Returns whether it is a text of Windows-1252: few letters that are not ASCII, alone or in pairs, and signs where
    signs stand. A few letters tell no encoding from another, and this one is the most common by far (WHATWG Encoding
    reads Latin-1 as it, too). Long texts tell more than that.
    """
    try:
        text = sample.decode(_WESTERN)
    except UnicodeDecodeError:
        return False
    letters = [letter for letter in text if letter.isalpha()]
    foreign = sum(letter > "\x7f" for letter in letters)
    if foreign > min(_FEW_FOREIGN, max(2, len(letters) // 3)):
        return False
    return _ODD_IN_WESTERN.search(text) is None
