"""Pages of messages, and page tokens for places in a conversation. Pure."""

from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from services.common.core.paging import PageBy, invalid_token, pair_of, pair_token


@dataclass(frozen=True, slots=True)
class MessagePage(PageBy[UUID]):
    """A part of a history: what was said later than `after` and earlier than `before`, whatever the order is, which
    chooses the end that the page is taken from.
    """

    @property
    def backwards(self) -> bool:
        """Returns whether the page is taken from its other end: never."""
        return False


class Place(NamedTuple):
    """A place in a conversation: the segment, then the message's place in the segment's log."""

    ordinal: int
    seq: int


def place_token(place: Place) -> str:
    """Returns a token for `place`."""
    return pair_token(*place)


def place_of(token: str) -> Place:
    """Returns the place of a `place_token`. Raises Refused (PAGE_TOKEN_INVALID)."""
    try:
        ordinal, seq = map(int, pair_of(token))
    except ValueError:
        raise invalid_token() from None
    if not (-1 <= ordinal < 2**31 and 0 <= seq < 2**62):
        raise invalid_token()
    return Place(ordinal, seq)
