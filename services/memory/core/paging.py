"""Sizes and tokens of pages."""

import base64
import binascii

from services.common.paging import MOST, Moment, moment_from
from services.memory.core.errors import Refused


def validate_size(size: int, default: int) -> int:
    """The page's size; 0 means the default. Raises Refused (PAGE_SIZE_INVALID)."""
    if not 0 <= size <= MOST:
        raise Refused("PAGE_SIZE_INVALID", f"a page has 1 to {MOST} objects, not {size}")
    return size or default


def moment_of(token: str) -> Moment:
    """The inverse of `moment_token`. Raises Refused (PAGE_TOKEN_INVALID)."""
    try:
        microseconds, _, hexadecimal = base64.urlsafe_b64decode(token).decode().partition(".")
        return moment_from(microseconds, hexadecimal)
    except (binascii.Error, ValueError, OverflowError):
        raise Refused("PAGE_TOKEN_INVALID", "the page token is not one of ours; give it back as received") from None


def version_of(token: str) -> int:
    """The version that a token of a list of versions names. Raises Refused (PAGE_TOKEN_INVALID)."""
    if not (token.isascii() and token.isdigit() and len(token) < 19):
        raise Refused("PAGE_TOKEN_INVALID", "the page token is not one of ours; give it back as received")
    return int(token)
