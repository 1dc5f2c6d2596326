"""When an endpoint is left alone."""

import pytest

from services.llm_gateway.core.breaker import Breaker, Outcome

GOOD, BAD, REFUSED, LEFT = Outcome.ANSWERED, Outcome.FAILED, Outcome.REFUSED, Outcome.LEFT


def told(breaker: Breaker, *outcomes: Outcome, at: float = 0.0, apart: float = 0.0) -> Breaker:
    for number, outcome in enumerate(outcomes):
        breaker.end(outcome, at + number * apart, probe=False)
    return breaker


@pytest.mark.parametrize(
    ("outcomes", "opens"),
    [
        ([BAD] * 4, False),
        ([BAD] * 5, True),
        ([BAD] * 4 + [GOOD] + [BAD] * 4, False),
        # One request that cannot be says nothing of the endpoint, nor does a caller who left.
        ([BAD] * 4 + [REFUSED, LEFT, BAD], True),
        ([REFUSED] * 50, False),
        ([LEFT] * 50, False),
        ([BAD, BAD, GOOD, BAD] * 5, True),
        ([BAD, GOOD] * 20, False),
        ([BAD, BAD, GOOD] * 6, False),  # 18 outcomes are too few
    ],
)
def test_it_opens(outcomes: list[Outcome], opens: bool) -> None:
    assert told(Breaker(), *outcomes).is_open is opens


def test_old_failures_do_not_count() -> None:
    assert not told(Breaker(), *[BAD, BAD, GOOD, BAD] * 5, apart=10).is_open
    assert told(Breaker(), *[BAD, BAD, GOOD, BAD] * 5, apart=1).is_open


def test_one_probe_at_a_time_decides() -> None:
    breaker = told(Breaker(), *[BAD] * 5)
    assert (breaker.blocked(0.0), breaker.blocked(4.0)) == (5.0, 1.0)
    assert breaker.blocked(5.0) is None
    assert breaker.begin()
    # Until it is known, nobody else goes.
    assert breaker.blocked(6.0) == 1.0
    breaker.end(GOOD, 7.0, probe=True)
    assert (breaker.is_open, breaker.blocked(7.0), breaker.in_a_row) == (False, None, 0)
    assert not breaker.begin()


@pytest.mark.parametrize("outcome", [GOOD, REFUSED])
def test_any_answer_to_the_probe_closes_it(outcome: Outcome) -> None:
    breaker = told(Breaker(), *[BAD] * 5)
    breaker.begin()
    breaker.end(outcome, 5.0, probe=True)
    assert not breaker.is_open


def test_a_probe_that_left_lets_the_next_go() -> None:
    breaker = told(Breaker(), *[BAD] * 5)
    breaker.begin()
    breaker.end(LEFT, 5.0, probe=True)
    assert breaker.is_open
    assert breaker.blocked(5.0) is None


def test_the_cool_down_grows_and_begins_anew() -> None:
    breaker, now, waits = told(Breaker(), *[BAD] * 5), 0.0, []
    for _ in range(6):
        wait = breaker.blocked(now) or 0.0
        waits.append(wait)
        now += wait
        breaker.begin()
        breaker.end(BAD, now, probe=True)
    assert waits == [5, 10, 20, 40, 60, 60]
    now += 60
    breaker.begin()
    breaker.end(GOOD, now, probe=True)
    assert told(breaker, *[BAD] * 5, at=now).blocked(now) == 5
    assert breaker.opened == 8


def test_calls_that_began_before_it_opened_change_nothing() -> None:
    breaker = told(Breaker(), *[BAD] * 5)
    told(breaker, GOOD, BAD, at=1.0)
    assert breaker.blocked(1.0) == 4.0
