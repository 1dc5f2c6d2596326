"""What a list of tools asks for, and its page tokens. Pure."""

import base64
import binascii
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import UUID

from services.tool_runner.model import Refused, Tool, ToolType

MOST = 1_000
DEFAULT_SIZE = 50
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Position:
    """A place in the order by time of creation and id."""

    created_at: datetime
    id: UUID


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Which part of a list: after (or before) a tool in the chosen order, or going on from a token.

    With `before` alone the page holds the nearest tools before it, and its token leads further back.
    """

    size: int = DEFAULT_SIZE
    token: str = ""
    after: UUID | None = None
    before: UUID | None = None
    ascending: bool = False

    @property
    def backwards(self) -> bool:
        """Whether the page is taken from its end."""
        return self.before is not None and self.after is None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolFilter:
    """Filters of a list; empty ones let everything through. `search` is a part of name or description."""

    name: str | None = None
    names: tuple[str, ...] = ()
    ids: tuple[UUID, ...] = ()
    types: tuple[ToolType, ...] = ()
    excluded_types: tuple[ToolType, ...] = ()
    search: str | None = None


@dataclass(frozen=True, slots=True)
class ToolPage:
    """One page, and the token of the next; "" on the last."""

    tools: list[Tool]
    next_token: str


def checked_size(size: int) -> int:
    """The page's size; 0 means the default. Raises Refused (PAGE_SIZE_INVALID)."""
    if not 0 <= size <= MOST:
        raise Refused("PAGE_SIZE_INVALID", f"a page has 1 to {MOST} tools, not {size}")
    return size or DEFAULT_SIZE


def token_of(position: Position) -> str:
    """A page token; it holds even when the tool it names is deleted."""
    microseconds = (position.created_at - _EPOCH) // _MICROSECOND
    return base64.urlsafe_b64encode(f"{microseconds}.{position.id.hex}".encode()).decode()


def position_of(token: str) -> Position:
    """The inverse of `token_of`. Raises Refused (PAGE_TOKEN_INVALID)."""
    try:
        microseconds, _, hexadecimal = base64.urlsafe_b64decode(token).decode().partition(".")
        return Position(_EPOCH + int(microseconds) * _MICROSECOND, UUID(hex=hexadecimal))
    except (binascii.Error, ValueError, OverflowError):
        raise Refused("PAGE_TOKEN_INVALID", "the page token is not one of ours; give it back as received") from None
