"""What a list asks for, and its page tokens. Pure."""

import base64
import binascii
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Generic, TypeVar
from uuid import UUID

from services.memory.model import Refused

T = TypeVar("T")

MOST = 1_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Position:
    """A place in an order by time of creation and id."""

    created_at: datetime
    id: UUID


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Which part of a list: after (or before) an object in the chosen order, or going on from a token.

    With `before` alone the page holds the nearest objects before it, and its token leads further back.
    """

    size: int
    token: str = ""
    after: UUID | None = None
    before: UUID | None = None
    descending: bool = False

    @property
    def backwards(self) -> bool:
        """Whether the page is taken from its end."""
        return self.before is not None and self.after is None


@dataclass(frozen=True, slots=True)
class PageOf(Generic[T]):
    """One page, and the token of the next; empty on the last."""

    items: list[T]
    next_token: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockList:
    """Filters of a list of blocks; see loci.memory.v1.ListBlocksRequest."""

    label: str | None = None
    agent_id: UUID | None = None
    label_search: str | None = None
    value_search: str | None = None
    description_search: str | None = None
    tags: tuple[str, ...] = ()
    show_hidden: bool = False
    is_template: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PassageList:
    """Filters of a list of passages."""

    agent_id: UUID
    search: str | None = None


def checked_size(size: int, default: int) -> int:
    """The page's size; 0 means the default. Raises Refused (PAGE_SIZE_INVALID)."""
    if not 0 <= size <= MOST:
        raise Refused("PAGE_SIZE_INVALID", f"a page has 1 to {MOST} objects, not {size}")
    return size or default


def token_of(position: Position) -> str:
    """A page token; it holds even when the object it names is deleted."""
    microseconds = (position.created_at - _EPOCH) // _MICROSECOND
    return base64.urlsafe_b64encode(f"{microseconds}.{position.id.hex}".encode()).decode()


def position_of(token: str) -> Position:
    """The inverse of `token_of`. Raises Refused (PAGE_TOKEN_INVALID)."""
    try:
        microseconds, _, hexadecimal = base64.urlsafe_b64decode(token).decode().partition(".")
        return Position(_EPOCH + int(microseconds) * _MICROSECOND, UUID(hex=hexadecimal))
    except (binascii.Error, ValueError, OverflowError):
        raise Refused("PAGE_TOKEN_INVALID", "the page token is not one of ours; give it back as received") from None


def version_of(token: str) -> int:
    """The version that a token of a list of versions names. Raises Refused (PAGE_TOKEN_INVALID)."""
    if not (token.isascii() and token.isdigit() and len(token) < 19):
        raise Refused("PAGE_TOKEN_INVALID", "the page token is not one of ours; give it back as received")
    return int(token)
