"""Filters and page tokens of lists of receipts and files. Pure."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import UUID

from services.common.core.paging import invalid_token, pair_of, pair_token
from services.tool_runner.core.model import Outcome, State
from services.tool_runner.tools.model import DEFAULT_SIZE

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceiptFilter:
    """Filters that are set hold together; `since` is included, `until` is not."""

    size: int = DEFAULT_SIZE
    token: str = ""
    agent_id: UUID | None = None
    run_id: UUID | None = None
    tool_id: UUID | None = None
    states: tuple[State, ...] = ()
    outcomes: tuple[Outcome, ...] = ()
    since: datetime | None = None
    until: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FileFilter:
    """Filters that are set hold together."""

    size: int = DEFAULT_SIZE
    token: str = ""
    call_key: str | None = None
    agent_id: UUID | None = None


def token_of(moment: datetime, name: str) -> str:
    """Returns a page token for an order by time, then name."""
    return pair_token((moment - _EPOCH) // _MICROSECOND, name)


def place_of(token: str) -> tuple[datetime, str]:
    """Returns the inverse of `token_of`. Raises Refused (PAGE_TOKEN_INVALID)."""
    microseconds, name = pair_of(token)
    try:
        moment = _EPOCH + int(microseconds) * _MICROSECOND
    except (ValueError, OverflowError):
        raise invalid_token() from None
    if "\x00" in name:
        raise invalid_token()
    return moment, name


def file_place(token: str) -> tuple[datetime, UUID]:
    """Returns `place_of` for a list of files. Raises Refused (PAGE_TOKEN_INVALID)."""
    moment, name = place_of(token)
    try:
        return moment, UUID(hex=name)
    except ValueError:
        raise invalid_token() from None
