"""A part of a list that a request names, the page that answers it, and page tokens. Pure."""

import base64
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Generic, NamedTuple, TypeVar
from uuid import UUID

from services.common.core.refusals import Refused

K = TypeVar("K")
T = TypeVar("T")
U = TypeVar("U")

MOST = 1_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class Moment(NamedTuple):
    """A place in an order by time, then id."""

    time: datetime
    id: UUID


@dataclass(frozen=True, slots=True)
class PageBy(Generic[K]):
    """A part of a list: after (or before) an object in the chosen order, or going on from a token.

    With `before` alone the page holds the nearest objects before it, and its token leads further back. K: the type of
    the objects' names.
    """

    size: int
    token: str = ""
    after: K | None = None
    before: K | None = None
    ascending: bool = False

    @property
    def backwards(self) -> bool:
        """Returns whether the page is taken from its end."""
        return self.before is not None and self.after is None

    @property
    def scan_ascending(self) -> bool:
        """Returns whether objects are looked at in ascending order, from where the page begins to be taken."""
        return self.ascending != self.backwards


@dataclass(frozen=True, slots=True)
class Page(PageBy[UUID]):
    """By ids."""


@dataclass(frozen=True, slots=True)
class PageOf(Generic[T]):
    """One page, and the token of the next; empty on the last."""

    items: tuple[T, ...]
    next_token: str = ""

    def map(self, convert: Callable[[T], U]) -> "PageOf[U]":
        """Returns the same page of converted items."""
        return PageOf(tuple(map(convert, self.items)), self.next_token)


def cut(scanned: Sequence[T], page: PageBy[K], token_of: Callable[[T], str]) -> PageOf[T]:
    """Returns the page in what a scan found: at most one object more than fits, which shows that there are more."""
    items = tuple(scanned[: page.size])
    token = token_of(items[-1]) if len(scanned) > page.size else ""
    return PageOf(items[::-1] if page.backwards else items, token)


def checked_size(size: int, default: int) -> int:
    """Returns the page's size; 0 means the default. Raises Refused (PAGE_SIZE_INVALID)."""
    if not 0 <= size <= MOST:
        raise Refused("PAGE_SIZE_INVALID", f"a page has 1 to {MOST} objects, not {size}")
    return size or default


def pair_token(first: object, second: object) -> str:
    """Returns a page token of two values whose texts have no dot: base64url of "first.second"."""
    return base64.urlsafe_b64encode(f"{first}.{second}".encode()).decode()


def pair_of(token: str) -> tuple[str, str]:
    """Returns the two texts of a `pair_token`. Raises Refused (PAGE_TOKEN_INVALID)."""
    try:
        first, dot, second = base64.b64decode(token, altchars=b"-_", validate=True).decode().partition(".")
    except ValueError:  # not base64, not ASCII, not UTF-8
        raise invalid_token() from None
    if not dot:
        raise invalid_token()
    return first, second


def moment_token(moment: Moment) -> str:
    """Returns a token for `moment`; it holds even when the object it names is deleted."""
    return pair_token((moment.time - _EPOCH) // _MICROSECOND, moment.id.hex)


def moment_of(token: str) -> Moment:
    """Returns the moment of a `moment_token`. Raises Refused (PAGE_TOKEN_INVALID)."""
    microseconds, hexadecimal = pair_of(token)
    try:
        return Moment(_EPOCH + int(microseconds) * _MICROSECOND, UUID(hex=hexadecimal))
    except (ValueError, OverflowError):
        raise invalid_token() from None


def invalid_token() -> Refused:
    """Returns the refusal of a token that no list gave."""
    return Refused("PAGE_TOKEN_INVALID", "the page token is not one of ours; give it back as received")
