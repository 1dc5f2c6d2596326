"""Which part of a list is asked for, the page that answers, and its tokens. Pure."""

import base64
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Generic, NamedTuple, TypeVar
from uuid import UUID

K = TypeVar("K")
T = TypeVar("T")

MOST = 1_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class Moment(NamedTuple):
    """A place in an order by time, then id."""

    time: datetime
    id: UUID


@dataclass(frozen=True, slots=True)
class PageBy(Generic[K]):
    """Which part of a list: after (or before) an object in the chosen order, or going on from a token.

    With `before` alone the page holds the nearest objects before it, and its token leads further back. K: what names
    an object.
    """

    size: int
    token: str = ""
    after: K | None = None
    before: K | None = None
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
class Page(PageBy[UUID]):
    """By ids."""


@dataclass(frozen=True, slots=True)
class PageOf(Generic[T]):
    """One page, and the token of the next; empty on the last."""

    items: tuple[T, ...]
    next_token: str = ""


@dataclass(frozen=True, slots=True)
class TagPage(PageBy[str]):
    """By names, in the order of their code points; all names that hold `query_text`, without regard to case."""

    query_text: str = ""

    @property
    def low(self) -> str | None:
        """What the names come after in the order of code points."""
        return self.after if self.ascending else self.before

    @property
    def high(self) -> str | None:
        """What the names come before in the order of code points."""
        return self.before if self.ascending else self.after

    def in_order(self, scanned: Sequence[str]) -> Sequence[str]:
        """What a scan found, in the chosen order."""
        return tuple(reversed(scanned)) if self.backwards else tuple(scanned)


def cut(scanned: Sequence[T], page: Page, token_of: Callable[[T], str]) -> PageOf[T]:
    """The page made of what a scan found: at most one object more than fits, which tells that there are more."""
    items = tuple(scanned[: page.size])
    token = token_of(items[-1]) if len(scanned) > page.size else ""
    return PageOf(items[::-1] if page.backwards else items, token)


def pair_token(first: object, second: object) -> str:
    """A page token of two values whose texts have no dot: base64url of "first.second"."""
    return base64.urlsafe_b64encode(f"{first}.{second}".encode()).decode()


def moment_token(moment: Moment) -> str:
    """A token for `moment`; it holds even when the object it names is deleted."""
    return pair_token((moment.time - _EPOCH) // _MICROSECOND, moment.id.hex)


def moment_from(microseconds: str, hexadecimal: str) -> Moment:
    """The moment whose token has these values. Raises ValueError, OverflowError."""
    return Moment(_EPOCH + int(microseconds) * _MICROSECOND, UUID(hex=hexadecimal))
