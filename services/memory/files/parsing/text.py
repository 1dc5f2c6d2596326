"""Plain text of any encoding."""

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
    guess = charset_normalizer.from_bytes(data[start : start + _SAMPLE]).best()
    if guess is None:
        raise Unreadable("its bytes are no text in any encoding that is known; save it as UTF-8")
    return guess.encoding
