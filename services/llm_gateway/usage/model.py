"""Usage: rows of calls, reports of their sums, and the ports of their store. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum
from typing import Protocol
from uuid import UUID

from services.llm_gateway.core.errors import UsageQueryInvalid

MOST_ROWS = 10_000
KINDS = ("chat", "embedding")
_MOST_GROUPS = 3
_USUAL_DAYS = 30
_MOST_DAYS = 366
_MOST_DAYS_BY_HOUR = 31


class Group(Enum):
    """The groups of sums. Hours and days are UTC's."""

    HOUR = "hour"
    DAY = "day"
    MODEL = "model"
    PROVIDER = "provider"
    AGENT = "agent"
    KIND = "kind"


@dataclass(frozen=True, slots=True)
class Totals:
    """Sums over calls; see UsageTotals in usage_service.proto."""

    requests: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_input_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
    estimated_requests: int = 0
    cost_nanos_usd: int = 0
    unpriced_requests: int = 0


@dataclass(frozen=True, slots=True)
class Row:
    """Sums of one group: a value for each of `group_by`, None for calls on behalf of no agent."""

    group: Sequence[str | datetime | UUID | None]
    totals: Totals


@dataclass(frozen=True, slots=True)
class Report:
    """`truncated`: there were more rows."""

    totals: Totals
    rows: Sequence[Row] = ()
    truncated: bool = False


@dataclass(frozen=True, slots=True)
class ReportQuery:
    """Calls in [since, until); None and "" for whichever agent, handle and kind."""

    since: datetime
    until: datetime
    group_by: Sequence[Group] = ()
    agent_id: UUID | None = None
    handle: str = ""
    kind: str = ""


def build_query(
    since: datetime | None,
    until: datetime | None,
    group_by: Sequence[Group],
    *,
    agent_id: UUID | None,
    handle: str,
    kind: str,
    now: datetime,
) -> ReportQuery:
    """Returns the query; without times it is of the last 30 days. Raises UsageQueryInvalid."""
    end = until or now
    start = since or end - timedelta(days=_USUAL_DAYS)
    if start >= end:
        raise UsageQueryInvalid("A usage report ends after it begins.")
    most = _MOST_DAYS_BY_HOUR if Group.HOUR in group_by else _MOST_DAYS
    if end - start > timedelta(days=most):
        by_hour = " by hour" if Group.HOUR in group_by else ""
        raise UsageQueryInvalid(f"A usage report{by_hour} is over at most {most} days.")
    if len(set(group_by)) != len(group_by) or len(group_by) > _MOST_GROUPS:
        raise UsageQueryInvalid(f"A usage report is grouped by at most {_MOST_GROUPS} different things.")
    if kind and kind not in KINDS:
        raise UsageQueryInvalid(f"The kind of a call is one of {', '.join(KINDS)}.")
    return ReportQuery(start, end, tuple(group_by), agent_id, handle, kind)


@dataclass(frozen=True, slots=True)
class UsageRow:
    """The usage of one call to a provider. `kind` is chat or embedding; `milliseconds` is how long it took."""

    organization_id: UUID
    id: UUID
    kind: str
    handle: str
    run_id: UUID | None
    step_id: UUID | None
    agent_id: UUID | None
    prompt_tokens: int
    completion_tokens: int
    cached_input_tokens: int | None
    cache_write_tokens: int | None
    reasoning_tokens: int | None
    estimated: bool
    provider_model: str
    milliseconds: int
    created_at: datetime
    # Billionths of a US dollar; None where the model has no price.
    cost_nanos_usd: int | None = None


class UsageStore(Protocol):
    """The store of usage."""

    async def write(self, rows: Sequence[UsageRow]) -> None:
        """Stores rows; writing one twice is as writing it once. Raises StoreUnavailable, StoreRefused."""
        ...


class UsageReports(Protocol):
    """The reports of stored usage. Everything raises StoreUnavailable."""

    async def of_run(self, organization_id: UUID, run_id: UUID) -> Report:
        """Returns the sums of all calls of a run, by model, the costliest first."""
        ...

    async def report(self, organization_id: UUID, query: ReportQuery) -> Report:
        """Returns sums by `query.group_by`, at most MOST_ROWS of them."""
        ...

    async def forget_before(self, moment: datetime) -> int:
        """Deletes rows of calls before `moment`, a part of them; returns how many. 0: there are none."""
        ...


class StoreUnavailable(Exception):
    """The store cannot be written now; the same rows may be offered again."""


class StoreRefused(Exception):
    """The store will never take these rows."""
