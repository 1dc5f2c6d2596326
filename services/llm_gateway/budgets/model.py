"""Budgets: periods, limits, and the refusal of calls beyond them. Pure."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Protocol
from uuid import UUID

from services.llm_gateway.core.errors import BudgetInvalid, LlmBudgetExhausted

# A budget is kept as bigint; one that large is none.
_MOST = 2**62


class Period(Enum):
    """Spans of time in UTC, each within the next."""

    MINUTE = "minute"
    HOUR = "hour"
    DAY = "day"
    MONTH = "month"

    def start(self, now: datetime) -> datetime:
        """Returns when the period that holds `now` began."""
        minute = now.astimezone(UTC).replace(second=0, microsecond=0)
        match self:
            case Period.MINUTE:
                return minute
            case Period.HOUR:
                return minute.replace(minute=0)
            case Period.DAY:
                return minute.replace(minute=0, hour=0)
            case Period.MONTH:
                return minute.replace(minute=0, hour=0, day=1)

    def end(self, now: datetime) -> datetime:
        """Returns when the next period begins."""
        start = self.start(now)
        match self:
            case Period.MINUTE:
                return start + timedelta(minutes=1)
            case Period.HOUR:
                return start + timedelta(hours=1)
            case Period.DAY:
                return start + timedelta(days=1)
            case Period.MONTH:
                return (start + timedelta(days=31)).replace(day=1)


@dataclass(slots=True)
class Spending:
    """Calls, tokens of input and output together, and billionths of a US dollar."""

    requests: int = 0
    tokens: int = 0
    cost: int = 0

    def add(self, other: "Spending") -> None:
        """Adds the other."""
        self.requests += other.requests
        self.tokens += other.tokens
        self.cost += other.cost

    def take(self, other: "Spending") -> None:
        """Subtracts the other."""
        self.requests -= other.requests
        self.tokens -= other.tokens
        self.cost -= other.cost


@dataclass(frozen=True, slots=True)
class Budget:
    """Most of each in one period, None for no limit. `operators`: it is the operator's."""

    period: Period
    requests: int | None = None
    tokens: int | None = None
    cost: int | None = None
    operators: bool = False


@dataclass(frozen=True, slots=True)
class BudgetState:
    """A budget, what is spent of it, and when that begins anew."""

    budget: Budget
    spent: Spending
    resets_at: datetime


class BudgetStore(Protocol):
    """The store of tenants' budgets. Everything raises StoreUnavailable, StoreRefused."""

    async def budgets(self, organization_ids: Collection[UUID]) -> Mapping[UUID, Sequence[Budget]]:
        """Returns the budgets of each tenant that has some, by period."""
        ...

    async def spent(
        self, organization_ids: Collection[UUID], starts: Mapping[Period, datetime]
    ) -> Mapping[UUID, Mapping[Period, Spending]]:
        """Returns what is stored as spent in each period since it began; a tenant or period without calls may be left
        out.
        """
        ...

    async def set_budget(self, organization_id: UUID, budget: Budget) -> None:
        """Sets or replaces the budget of a period."""
        ...

    async def delete_budget(self, organization_id: UUID, period: Period) -> bool:
        """Deletes the budget of a period; returns whether there was one."""
        ...


def validate(budget: Budget) -> Budget:
    """Returns the budget. Raises BudgetInvalid."""
    limits = (budget.requests, budget.tokens, budget.cost)
    if all(limit is None for limit in limits):
        raise BudgetInvalid(f"A budget of one {budget.period.value} needs a limit: of requests, tokens or money.")
    if any(limit is not None and not 0 < limit < _MOST for limit in limits):
        raise BudgetInvalid(f"The limits of a budget are above zero; that of one {budget.period.value} has another.")
    return budget


def refuse_beyond(
    budgets: Sequence[Budget],
    spent: Mapping[Period, Spending],
    claim: Spending,
    *,
    priced: bool,
    handle: str,
    now: datetime,
) -> None:
    """Raises LlmBudgetExhausted where `claim`, beside what is `spent` and under way, is more than a budget allows.

    A model without a price takes nothing of the money, so that it may be called when that is gone.
    """
    for budget in budgets:
        used = spent[budget.period]
        if _beyond(budget.requests, used.requests, claim.requests):
            raise _exhaustion(budget, "requests", f"{budget.requests} requests", handle, now)
        if _beyond(budget.tokens, used.tokens, claim.tokens):
            raise _exhaustion(budget, "tokens", f"{budget.tokens} tokens", handle, now)
        if priced and _beyond(budget.cost, used.cost, claim.cost):
            raise _exhaustion(budget, "usd", f"${(budget.cost or 0) / 1e9:g}", handle, now)


def _beyond(limit: int | None, used: int, claim: int) -> bool:
    return limit is not None and (used >= limit or used + claim > limit)


def _exhaustion(budget: Budget, name: str, limit: str, handle: str, now: datetime) -> LlmBudgetExhausted:
    resets_at = budget.period.end(now).strftime("%Y-%m-%dT%H:%M:%SZ")
    whose = "the operator's" if budget.operators else "your"
    error = LlmBudgetExhausted(
        f"This call is more than is left of {whose} budget of {limit} in one {budget.period.value} (UTC). "
        f"It begins anew at {resets_at}; GET /v1/budgets tells what is spent.",
        handle=handle,
    )
    error.metadata.update(period=budget.period.value, limit_of=name, resets_at=resets_at)
    return error
