"""The ledger: what tenants have spent, as this process knows it, and what its calls are about to spend.

For each tenant it is what was stored when last read, what this process accounted since and has not written, and what
its calls in flight have reserved. So budgets are exact within one process; what other replicas spent is known about
FRESH_SECONDS later. A tenant is read when its first call comes; later readings happen beside the calls, for many
tenants at once. While the database is away the last reading stands, and a tenant that was never read has the operator's
budgets alone.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from uuid import UUID

from services.llm_gateway.budgets.model import (
    Budget,
    BudgetState,
    BudgetStore,
    Period,
    Spending,
    refuse_beyond,
    validate,
)
from services.llm_gateway.core.chat import Usage
from services.llm_gateway.core.costs import cost_of
from services.llm_gateway.core.errors import BudgetNotFound
from services.llm_gateway.core.models import Price
from services.llm_gateway.usage.log import UsageLog
from services.llm_gateway.usage.model import StoreRefused, StoreUnavailable, UsageRow

logger = logging.getLogger(__name__)

FRESH_SECONDS = 5.0
# The longest wait of a tenant's first call for its budgets.
FIRST_SECONDS = 2.0
_MOST_KEPT = 20_000
_FORGET_SECONDS = 600.0


@dataclass(slots=True)
class _Entry:
    """One tenant. `stored` holds for the periods that began at `starts`; `unread` is by minute."""

    budgets: Sequence[Budget] = ()
    stored: Mapping[Period, Spending] = field(default_factory=dict)
    starts: Mapping[Period, datetime] = field(default_factory=dict)
    unread: dict[datetime, Spending] = field(default_factory=dict)
    held: Spending = field(default_factory=Spending)
    read_at: float = 0.0
    asked_at: float = 0.0

    def add(self, row: UsageRow) -> None:
        if self.budgets:
            minute = Period.MINUTE.start(row.created_at)
            self.unread.setdefault(minute, Spending()).add(_spent_by(row))

    def spent(self, now: datetime, *, held: bool) -> dict[Period, Spending]:
        """Returns the spending in the periods that budgets are for; with `held`, what is reserved, too."""
        return {budget.period: self._spent_in(budget.period, now, held) for budget in self.budgets}

    def _spent_in(self, period: Period, now: datetime, held: bool) -> Spending:
        start, total = period.start(now), Spending()
        if self.starts.get(period) == start and period in self.stored:
            total.add(self.stored[period])
        for minute, spent in self.unread.items():
            if minute >= start:
                total.add(spent)
        if held:
            total.add(self.held)
        return total


class Hold:
    """The reservation of one call. Release it when the call is accounted, or was none."""

    def __init__(self, entry: _Entry | None = None, claim: Spending | None = None) -> None:
        self._entry, self._wanted = entry, claim
        if entry is not None and claim is not None:
            entry.held.add(claim)

    def release(self) -> None:
        """Gives the reservation back; a second time does nothing."""
        if self._entry is not None and self._wanted is not None:
            self._entry.held.take(self._wanted)
        self._entry = None


class Ledger:
    """`operators`: the budgets that hold for every tenant."""

    def __init__(
        self,
        store: BudgetStore,
        usage: UsageLog,
        operators: Iterable[Budget] = (),
        *,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._store = store
        self._usage = usage
        self._operators = tuple(operators)
        self._clock = clock
        self._entries: dict[UUID, _Entry] = {}
        self._due: dict[UUID, asyncio.Future[None]] = {}
        self._reading: asyncio.Task[None] | None = None

    async def reserve(
        self, organization_id: UUID, price: Price | None, handle: str, estimate: Callable[[], int]
    ) -> Hold:
        """Reserves room for one call; `estimate()` gives its input tokens where there is a budget. Raises
        LlmBudgetExhausted.
        """
        entry, now = self._entries.get(organization_id), time.monotonic()
        if entry is None:
            # A database that hangs is away.
            await asyncio.wait({self._read_soon(organization_id)}, timeout=FIRST_SECONDS)
            entry = self._entries.setdefault(organization_id, _Entry(self._operators))
        elif now - entry.read_at > FRESH_SECONDS:
            self._read_soon(organization_id)
        entry.asked_at = now
        if not entry.budgets:
            return Hold()
        # No await from here to the hold: what is free is free for this call alone.
        tokens, moment = estimate(), self._clock()
        claim = Spending(1, tokens, cost_of(price, Usage(tokens, 0)) or 0)
        priced = price is not None
        refuse_beyond(entry.budgets, entry.spent(moment, held=True), claim, priced=priced, handle=handle, now=moment)
        return Hold(entry, claim)

    def add(self, row: UsageRow) -> None:
        """Adds the row of a call."""
        self._usage.add(row)
        if (entry := self._entries.get(row.organization_id)) is not None:
            entry.add(row)

    async def states(self, organization_id: UUID) -> list[BudgetState]:
        """Returns all budgets of a tenant with what is spent now, the operator's first. Raises StoreUnavailable."""
        await self._read([organization_id])
        now, entry = self._clock(), self._entries[organization_id]
        spent = entry.spent(now, held=False)
        return [BudgetState(budget, spent[budget.period], budget.period.end(now)) for budget in entry.budgets]

    async def set(self, organization_id: UUID, budget: Budget) -> BudgetState:
        """Sets or replaces the tenant's budget of a period. Raises BudgetInvalid, StoreUnavailable."""
        await self._store.set_budget(organization_id, validate(budget))
        states = await self.states(organization_id)
        return next(one for one in states if one.budget.period is budget.period and not one.budget.operators)

    async def delete(self, organization_id: UUID, period: Period) -> None:
        """Deletes the tenant's budget of a period. Raises BudgetNotFound, StoreUnavailable."""
        if not await self._store.delete_budget(organization_id, period):
            raise BudgetNotFound(f"There is no budget of one {period.value} of yours.")
        await self._read([organization_id])

    async def close(self) -> None:
        """Stops reading."""
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.wait((self._reading,))

    def _read_soon(self, organization_id: UUID) -> asyncio.Future[None]:
        """Returns a future that is done when the tenant has been read, or could not be."""
        due = self._due.get(organization_id)
        if due is None:
            due = self._due[organization_id] = asyncio.get_running_loop().create_future()
        if self._reading is None or self._reading.done():
            self._reading = asyncio.create_task(self._read_what_is_due())
        return due

    async def _read_what_is_due(self) -> None:
        while self._due:
            due, self._due = self._due, {}
            try:
                await self._read(due)
            except (StoreUnavailable, StoreRefused) as error:
                logger.warning("budgets cannot be read now: %s; the last figures stand", error)
                for organization_id in due:
                    entry = self._entries.setdefault(organization_id, _Entry(self._operators))
                    entry.read_at = time.monotonic()
            except BaseException:
                for future in due.values():
                    future.cancel()
                raise
            for future in due.values():
                future.set_result(None)
        self._forget()

    async def _read(self, organization_ids: Collection[UUID]) -> None:
        """Reads the tenants anew. Raises StoreUnavailable."""
        # While no rows are being written, those that wait are exactly the ones that the reading lacks.
        async with self._usage.still():
            own = await self._store.budgets(organization_ids)
            budgets = {one: (*self._operators, *own.get(one, ())) for one in organization_ids}
            limited = [one for one, theirs in budgets.items() if theirs]
            now = self._clock()
            starts = {period: period.start(now) for period in Period}
            stored = await self._store.spent(limited, starts) if limited else {}
            for organization_id, theirs in budgets.items():
                entry = self._entries.setdefault(organization_id, _Entry())
                entry.budgets, entry.starts, entry.unread = theirs, starts, {}
                entry.stored, entry.read_at = stored.get(organization_id, {}), time.monotonic()
            for row in self._usage.waiting if limited else ():
                if row.organization_id in budgets:
                    self._entries[row.organization_id].add(row)

    def _forget(self) -> None:
        if len(self._entries) > _MOST_KEPT:
            old, free = time.monotonic() - _FORGET_SECONDS, Spending()
            entries = {
                one: entry
                for one, entry in self._entries.items()
                if max(entry.asked_at, entry.read_at) > old or entry.held != free
            }
            self._entries = entries


def _spent_by(row: UsageRow) -> Spending:
    return Spending(1, row.prompt_tokens + row.completion_tokens, row.cost_nanos_usd or 0)
