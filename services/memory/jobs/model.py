"""Jobs, as plain values."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from uuid import UUID

LEASE_SECONDS = 30.0
_LONGEST_PAUSE_SECONDS = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A claimed job. `failures`: tries that failed since it last got further."""

    id: UUID
    organization_id: UUID
    kind: str
    subject: str
    failures: int = 0


@dataclass(frozen=True, slots=True)
class Reschedule:
    """The job is not done: run it again in so many seconds. `failed`: because something went wrong."""

    seconds: float
    failed: bool = False


Handler = Callable[[Job], Awaitable[Reschedule | None]]


def pause_after(failures: int) -> float:
    """Returns seconds to wait after so many failures in a row: 1, 2, 4 ... 300."""
    return min(_LONGEST_PAUSE_SECONDS, 2.0 ** min(failures - 1, 10))
