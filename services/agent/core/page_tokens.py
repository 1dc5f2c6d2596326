"""Sizes of pages, and what page tokens say. Pure."""

import base64
import binascii
from typing import NamedTuple

from services.agent.core.refusals import Refused
from services.common.paging import MOST, Moment, moment_from, pair_token

_LONGEST_TOKEN = 100


class Place(NamedTuple):
    """A place in a conversation: the segment, then the message's place in the segment's log."""

    ordinal: int
    seq: int


def checked_size(size: int, default: int) -> int:
    """The page's size; 0 means the default. Raises Refused (PAGE_SIZE_INVALID)."""
    if not 0 <= size <= MOST:
        raise Refused("PAGE_SIZE_INVALID", f"a page has 1 to {MOST} objects, not {size}")
    return size or default


def moment_of(token: str) -> Moment:
    """The inverse of `moment_token`. Raises Refused (PAGE_TOKEN_INVALID)."""
    try:
        return moment_from(*_read(token))
    except (ValueError, OverflowError):
        raise _invalid() from None


def place_token(place: Place) -> str:
    """A token for `place`."""
    return pair_token(*place)


def place_of(token: str) -> Place:
    """The inverse of `place_token`. Raises Refused (PAGE_TOKEN_INVALID)."""
    try:
        ordinal, seq = map(int, _read(token))
    except ValueError:
        raise _invalid() from None
    if not (-1 <= ordinal < 2**31 and 0 <= seq < 2**62):
        raise _invalid()
    return Place(ordinal, seq)


def _read(token: str) -> tuple[str, str]:
    if len(token) > _LONGEST_TOKEN:
        raise ValueError
    try:
        first, _, second = base64.b64decode(token, altchars=b"-_", validate=True).decode().partition(".")
    except (binascii.Error, UnicodeDecodeError) as error:
        raise ValueError from error
    return first, second


def _invalid() -> Refused:
    return Refused("PAGE_TOKEN_INVALID", "the page token is not one of ours; give it back as received")
