"""The ledger of tenants' spending and reservations."""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from services.llm_gateway.budgets import service as module
from services.llm_gateway.budgets.model import Budget, Period, Spending
from services.llm_gateway.budgets.service import Ledger
from services.llm_gateway.core.errors import BudgetNotFound, LlmBudgetExhausted
from services.llm_gateway.usage.log import UsageLog
from services.llm_gateway.usage.model import StoreUnavailable, UsageRow

ANN, BOB = UUID(int=1), UUID(int=2)
HOUR, MINUTE = Period.HOUR, Period.MINUTE


class Store:
    """Usage and budgets in memory, summed as Postgres would."""

    def __init__(self) -> None:
        self.rows: dict[UUID, UsageRow] = {}
        self.own: dict[tuple[UUID, Period], Budget] = {}
        self.looks: list[str] = []
        self.away = False

    async def write(self, rows: Sequence[UsageRow]) -> None:
        await asyncio.sleep(0)
        self.rows.update({row.id: row for row in rows})

    async def budgets(self, organization_ids: Collection[UUID]) -> Mapping[UUID, Sequence[Budget]]:
        self.looks.append("budgets")
        await asyncio.sleep(0)
        if self.away:
            raise StoreUnavailable("away")
        return {one: [own for (whose, _), own in self.own.items() if whose == one] for one in organization_ids}

    async def spent(
        self, organization_ids: Collection[UUID], starts: Mapping[Period, datetime]
    ) -> Mapping[UUID, Mapping[Period, Spending]]:
        self.looks.append("spent")
        found = {one: {period: Spending() for period in starts} for one in organization_ids}
        for row in list(self.rows.values()):
            for period, start in starts.items():
                if row.organization_id in found and row.created_at >= start:
                    tokens = row.prompt_tokens + row.completion_tokens
                    found[row.organization_id][period].add(Spending(1, tokens, row.cost_nanos_usd or 0))
        await asyncio.sleep(0)
        return found

    async def set_budget(self, organization_id: UUID, budget: Budget) -> None:
        self.own[organization_id, budget.period] = budget

    async def delete_budget(self, organization_id: UUID, period: Period) -> bool:
        return self.own.pop((organization_id, period), None) is not None


class World:
    """A ledger on that store, with a clock that goes when it is told to."""

    def __init__(self, *operators: Budget) -> None:
        self.store = Store()
        self.now = datetime(2026, 11, 21, 14, 59, 30, tzinfo=UTC)
        self.usage = UsageLog(self.store)
        self.ledger = Ledger(self.store, self.usage, operators, clock=lambda: self.now)

    async def reserve(self, tenant: UUID = ANN, tokens: int = 10) -> Any:
        return await self.ledger.reserve(tenant, None, "a/b", lambda: tokens)

    async def call(self, tenant: UUID = ANN) -> None:
        hold = await self.reserve(tenant)
        await asyncio.sleep(0)
        hold.release()
        self.ledger.add(self.row(tenant))

    def row(self, tenant: UUID = ANN) -> UsageRow:
        return UsageRow(
            tenant, uuid4(), "chat", "a/b", None, None, None, 7, 3, None, None, None, False, "b", 5, self.now
        )

    async def goes(self, times: int, tenant: UUID = ANN) -> int:
        """Returns how many of so many calls at the same time go through."""
        outcomes = await asyncio.gather(*(self.call(tenant) for _ in range(times)), return_exceptions=True)
        assert all(one is None or isinstance(one, LlmBudgetExhausted) for one in outcomes)
        return outcomes.count(None)


async def test_of_200_at_once_exactly_as_many_go_as_are_left() -> None:
    world = World(Budget(HOUR, requests=10, operators=True))
    world.store.rows = {row.id: row for row in (world.row(), world.row(), world.row(BOB))}
    assert await world.goes(200) == 8
    assert await world.goes(200, BOB) == 9


async def test_nothing_is_counted_twice_or_lost_while_rows_are_written_and_figures_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "FRESH_SECONDS", 0.0)  # a reading beside nearly every call
    world = World(Budget(HOUR, requests=100, operators=True))
    gone = 0
    for _ in range(12):
        flushing = asyncio.create_task(world.usage.flush())
        gone += await world.goes(10)
        await flushing
    assert gone == 100
    await world.usage.flush()
    assert len(world.store.rows) == 100
    assert len(world.store.looks) > 10
    await world.ledger.close()


async def test_a_tenant_without_budgets_costs_one_look() -> None:
    world = World()
    assert await world.goes(50) == 50
    assert world.store.looks == ["budgets"]


async def test_a_new_period_begins_with_nothing_and_longer_ones_go_on() -> None:
    world = World(Budget(MINUTE, requests=3, operators=True), Budget(Period.DAY, requests=5, operators=True))
    assert await world.goes(9) == 3
    world.now += timedelta(seconds=31)
    assert await world.goes(9) == 2
    states = await world.ledger.states(ANN)
    assert [(state.budget.period, state.spent.requests) for state in states] == [(MINUTE, 2), (Period.DAY, 5)]
    assert states[0].resets_at == datetime(2026, 11, 21, 15, 1, tzinfo=UTC)


async def test_what_is_reserved_counts_until_it_is_released() -> None:
    world = World(Budget(HOUR, tokens=100, operators=True))
    first = await world.reserve(tokens=60)
    with pytest.raises(LlmBudgetExhausted):
        await world.reserve(tokens=60)
    await world.reserve(BOB, tokens=60)
    first.release()
    first.release()
    await world.reserve(tokens=100)


async def test_a_tenants_own_budget_holds_at_once_and_ends_at_once() -> None:
    world = World()
    assert await world.goes(5) == 5
    state = await world.ledger.set(ANN, Budget(HOUR, requests=7))
    assert (state.budget, state.spent) == (Budget(HOUR, requests=7), Spending(5, 50, 0))
    assert await world.goes(9) == 2
    assert await world.goes(9, BOB) == 9
    await world.ledger.delete(ANN, HOUR)
    assert await world.goes(9) == 9
    with pytest.raises(BudgetNotFound):
        await world.ledger.delete(ANN, HOUR)


async def test_another_replicas_calls_are_seen_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(Budget(HOUR, requests=5, operators=True))
    assert await world.goes(1) == 1
    world.store.rows = {row.id: row for row in (world.row() for _ in range(3))}
    monkeypatch.setattr(module, "FRESH_SECONDS", 0.0)
    await world.call()  # begins a reading, and does not wait for it
    async with asyncio.timeout(20):
        while (await world.ledger.states(ANN))[0].spent.requests != 5:
            await asyncio.sleep(0)
    assert await world.goes(3) == 0


async def test_a_database_that_is_away_stops_nobody(caplog: pytest.LogCaptureFixture) -> None:
    world = World(Budget(HOUR, requests=3, operators=True))
    world.store.away = True
    assert await world.goes(9) == 3
    assert "budgets cannot be read now: away; the last figures stand" in caplog.text


async def test_a_database_that_hangs_stops_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FIRST_SECONDS", 0.05)
    world, answered = World(Budget(HOUR, requests=2, operators=True)), asyncio.Event()
    asked = world.store.budgets

    async def hang(organization_ids: Collection[UUID]) -> Mapping[UUID, Sequence[Budget]]:
        await answered.wait()
        return await asked(organization_ids)

    monkeypatch.setattr(world.store, "budgets", hang)
    async with asyncio.timeout(20):
        assert await world.goes(5) == 2
        answered.set()
        assert (await world.ledger.states(ANN))[0].spent.requests == 2
    await world.ledger.close()


async def test_a_new_tenant_is_not_forgotten_before_its_first_call_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_KEPT", 0)
    world = World(Budget(HOUR, requests=5, operators=True))
    assert await world.goes(2, ANN) == 2
    assert await world.goes(2, BOB) == 2
