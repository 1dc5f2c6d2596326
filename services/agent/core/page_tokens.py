"""Page tokens for places in a conversation. Pure."""

from typing import NamedTuple

from services.common.core.paging import invalid_token, pair_of, pair_token


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
