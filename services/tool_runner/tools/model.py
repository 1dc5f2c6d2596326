"""Filters of lists of tools, and their page tokens. Pure."""

import base64
import binascii
from dataclasses import dataclass
from uuid import UUID

from services.common.paging import MOST, Moment, moment_from
from services.tool_runner.core.model import Refused, ToolType

DEFAULT_SIZE = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolFilter:
    """Filters of a list; empty ones let everything through. `search` is a part of name or description."""

    name: str | None = None
    names: tuple[str, ...] = ()
    ids: tuple[UUID, ...] = ()
    types: tuple[ToolType, ...] = ()
    excluded_types: tuple[ToolType, ...] = ()
    search: str | None = None


def page_size_of(size: int, what: str) -> int:
    """Returns the page's size; 0 means the default. Raises Refused (PAGE_SIZE_INVALID)."""
    if not 0 <= size <= MOST:
        raise Refused("PAGE_SIZE_INVALID", f"a page has 1 to {MOST} {what}, not {size}")
    return size or DEFAULT_SIZE


def moment_of(token: str) -> Moment:
    """Returns the inverse of `moment_token`. Raises Refused (PAGE_TOKEN_INVALID)."""
    try:
        microseconds, _, hexadecimal = base64.urlsafe_b64decode(token).decode().partition(".")
        return moment_from(microseconds, hexadecimal)
    except (binascii.Error, ValueError, OverflowError):
        raise Refused("PAGE_TOKEN_INVALID", "the page token is not one of ours; give it back as received") from None
