"""Budgets: periods, limits, refusals; and what the operator writes of them."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from services.common.settings import Env, SettingsError
from services.llm_gateway.budgets.model import Budget, Period, Spending, refuse_beyond, validate
from services.llm_gateway.calls.settings import Limits
from services.llm_gateway.core.errors import BudgetInvalid, LlmBudgetExhausted

NOW = datetime(2026, 12, 31, 23, 59, 42, 7, tzinfo=UTC)


@pytest.mark.parametrize(
    ("period", "start", "end"),
    [
        (Period.MINUTE, "2026-12-31T23:59:00", "2027-01-01T00:00:00"),
        (Period.HOUR, "2026-12-31T23:00:00", "2027-01-01T00:00:00"),
        (Period.DAY, "2026-12-31T00:00:00", "2027-01-01T00:00:00"),
        (Period.MONTH, "2026-12-01T00:00:00", "2027-01-01T00:00:00"),
    ],
)
def test_periods(period: Period, start: str, end: str) -> None:
    assert period.start(NOW) == datetime.fromisoformat(start).replace(tzinfo=UTC)
    assert period.end(NOW) == datetime.fromisoformat(end).replace(tzinfo=UTC)
    assert period.start(NOW.astimezone(timezone(timedelta(hours=5, minutes=30)))) == period.start(NOW)


def test_february_ends() -> None:
    assert Period.MONTH.end(datetime(2028, 2, 29, 5, tzinfo=UTC)) == datetime(2028, 3, 1, tzinfo=UTC)


DAY = Period.DAY
SMALL, HUGE = Spending(1, 100, 1_000), Spending(1, 100_000, 10**12)


@pytest.mark.parametrize(
    ("budget", "spent", "wanted", "priced", "limit"),
    [
        (Budget(DAY, requests=10), Spending(9), SMALL, True, None),
        (Budget(DAY, requests=10), Spending(10), SMALL, True, "requests"),
        (Budget(DAY, tokens=1_000), Spending(5, 900), SMALL, True, None),
        (Budget(DAY, tokens=1_000), Spending(5, 901), SMALL, True, "tokens"),
        (Budget(DAY, tokens=1_000), Spending(5, 1_000), Spending(1), True, "tokens"),
        (Budget(DAY, cost=5_000), Spending(5, 0, 4_000), SMALL, True, None),
        (Budget(DAY, cost=5_000), Spending(5, 0, 4_001), SMALL, True, "usd"),
        (Budget(DAY, cost=5_000), Spending(5, 0, 9_999), SMALL, False, None),
        (Budget(DAY, requests=10, tokens=1_000, cost=5_000), Spending(), HUGE, True, "tokens"),
    ],
)
def test_what_a_budget_refuses(
    budget: Budget, spent: Spending, wanted: Spending, priced: bool, limit: str | None
) -> None:
    def ask() -> None:
        refuse_beyond([budget], {DAY: spent}, wanted, priced=priced, handle="a/b", now=NOW)

    if limit is None:
        ask()
        return
    with pytest.raises(LlmBudgetExhausted, match="begins anew at 2027-01-01T00:00:00Z") as caught:
        ask()
    said = caught.value.metadata
    assert (said["limit_of"], said["period"], said["resets_at"]) == (limit, "day", "2027-01-01T00:00:00Z")
    assert said["handle"] == "a/b"


@pytest.mark.parametrize("budget", [Budget(DAY), Budget(DAY, requests=0), Budget(DAY, 1, -1), Budget(DAY, cost=2**63)])
def test_no_budgets(budget: Budget) -> None:
    with pytest.raises(BudgetInvalid):
        validate(budget)


def test_the_operators() -> None:
    read = Limits.read(Env({"LOCI_BUDGETS": '{"day": {"usd": 0.5, "tokens": 100}, "minute": {"requests": 3}}'}))
    assert read.budgets == [
        Budget(DAY, None, 100, 500_000_000, operators=True),
        Budget(Period.MINUTE, 3, operators=True),
    ]
    assert Limits.read(Env({})) == Limits(budgets=[], fallbacks={})


@pytest.mark.parametrize(
    "text",
    [
        "[",
        "[]",
        '{"week": {"usd": 1}}',
        '{"day": {}}',
        '{"day": 5}',
        '{"day": {"usd": "5"}}',
        '{"day": {"usd": true}}',
        '{"day": {"requests": 1.5}}',
        '{"day": {"requests": 0}}',
        '{"day": {"euro": 1}}',
    ],
)
def test_wrong_budgets_are_one_clear_line(text: str) -> None:
    with pytest.raises(SettingsError, match=r"LOCI_BUDGETS is .* for example"):
        Limits.read(Env({"LOCI_BUDGETS": text}))


@pytest.mark.parametrize("text", ["{", "[]", '{"a": ["b/c"]}', '{"a/b": "c/d"}', '{"a/b": []}', '{"a/b": [1]}'])
def test_wrong_fallbacks_are_one_clear_line(text: str) -> None:
    with pytest.raises(SettingsError, match=r"LOCI_FALLBACKS is .* for example"):
        Limits.read(Env({"LOCI_FALLBACKS": text}))
