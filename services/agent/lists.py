"""Which part of a list is asked for, and page tokens. Pure."""

import base64
import binascii
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Generic, NamedTuple, TypeVar
from uuid import UUID

from services.agent.refusals import Refused

T = TypeVar("T")

MOST = 1_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_LONGEST_TOKEN = 100


class Moment(NamedTuple):
    """A place in an order by time, then id."""

    time: datetime
    id: UUID


class Place(NamedTuple):
    """A place in a conversation: the segment, then the message's place in the segment's log."""

    ordinal: int
    seq: int


@dataclass(frozen=True, slots=True)
class Page:
    """Which part of a list: after (or before) an object in the chosen order, or going on from a token.

    With `before` alone the page holds the nearest objects before it, and its token leads further back.
    """

    size: int
    token: str = ""
    after: UUID | None = None
    before: UUID | None = None
    ascending: bool = False

    @property
    def backwards(self) -> bool:
        """Whether the page is taken from its end."""
        return self.before is not None and self.after is None

    @property
    def scan_ascending(self) -> bool:
        """Whether objects are looked at in ascending order, from where the page begins to be taken."""
        return self.ascending != self.backwards


@dataclass(frozen=True, slots=True)
class PageOf(Generic[T]):
    """One page, and the token of the next; empty on the last."""

    items: tuple[T, ...]
    next_token: str = ""


def cut(scanned: Sequence[T], page: Page, token_of: Callable[[T], str]) -> PageOf[T]:
    """The page made of what a scan found: at most one object more than fits, which tells that there are more."""
    items = tuple(scanned[: page.size])
    token = token_of(items[-1]) if len(scanned) > page.size else ""
    return PageOf(items[::-1] if page.backwards else items, token)


def checked_size(size: int, default: int) -> int:
    """The page's size; 0 means the default. Raises Refused (PAGE_SIZE_INVALID)."""
    if not 0 <= size <= MOST:
        raise Refused("PAGE_SIZE_INVALID", f"a page has 1 to {MOST} objects, not {size}")
    return size or default


def moment_token(moment: Moment) -> str:
    """A token for `moment`; it holds even when the object it names is deleted."""
    return _token((moment.time - _EPOCH) // _MICROSECOND, moment.id.hex)


def moment_of(token: str) -> Moment:
    """The inverse of `moment_token`. Raises Refused (PAGE_TOKEN_INVALID)."""
    try:
        microseconds, hexadecimal = _read(token)
        return Moment(_EPOCH + int(microseconds) * _MICROSECOND, UUID(hex=hexadecimal))
    except (ValueError, OverflowError):
        raise _invalid() from None


def place_token(place: Place) -> str:
    """A token for `place`."""
    return _token(*place)


def place_of(token: str) -> Place:
    """The inverse of `place_token`. Raises Refused (PAGE_TOKEN_INVALID)."""
    try:
        ordinal, seq = map(int, _read(token))
    except ValueError:
        raise _invalid() from None
    if not (-1 <= ordinal < 2**31 and 0 <= seq < 2**62):
        raise _invalid()
    return Place(ordinal, seq)


def _token(first: object, second: object) -> str:
    return base64.urlsafe_b64encode(f"{first}.{second}".encode()).decode()


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
