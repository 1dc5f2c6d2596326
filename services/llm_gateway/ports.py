"""What this service needs from outside, beside the providers (provider.py)."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol
from uuid import UUID

from services.llm_gateway.calling.budgets import Budget, Period, Spent
from services.llm_gateway.calling.reports import Report, ReportQuery


@dataclass(frozen=True, slots=True)
class UsageRow:
    """What one call to a provider cost. `kind` is chat or embedding; `milliseconds` is how long it took."""

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
    """Where usage is kept."""

    async def write(self, rows: Sequence[UsageRow]) -> None:
        """Store rows; writing one twice is as writing it once. Raises StoreUnavailable, StoreRefused."""
        ...


class UsageReports(Protocol):
    """What is asked of the usage that is written. Everything raises StoreUnavailable."""

    async def of_run(self, organization_id: UUID, run_id: UUID) -> Report:
        """All calls of a run, by model, the costliest first."""
        ...

    async def report(self, organization_id: UUID, query: ReportQuery) -> Report:
        """Sums by `query.group_by`, at most MOST_ROWS of them."""
        ...

    async def forget_before(self, moment: datetime) -> int:
        """Delete rows of calls before `moment`, a part of them; how many. 0: there are none."""
        ...


class BudgetStore(Protocol):
    """Where tenants' budgets are kept. Everything raises StoreUnavailable, StoreRefused."""

    async def budgets(self, organization_ids: Collection[UUID]) -> Mapping[UUID, Sequence[Budget]]:
        """Those of each tenant that has some, by period."""
        ...

    async def spent(
        self, organization_ids: Collection[UUID], starts: Mapping[Period, datetime]
    ) -> Mapping[UUID, Mapping[Period, Spent]]:
        """What is written of each period since it began; a tenant or period without calls may be left out."""
        ...

    async def set_budget(self, organization_id: UUID, budget: Budget) -> None:
        """Set or replace the budget of a period."""
        ...

    async def delete_budget(self, organization_id: UUID, period: Period) -> bool:
        """Whether there was one."""
        ...


class StoreUnavailable(Exception):
    """The store cannot be written now; the same rows may be offered again."""


class StoreRefused(Exception):
    """The store will never take these rows."""
