"""Attacks by guessing: passwords and keys that are tried one after another from one address."""

import pytest

from services.common.errors import ResourceExhausted
from services.common.guesses import MOST_A_MINUTE, Guesses, network_of


class Clock:
    """Seconds, as the test says."""

    now = 1_000.0

    def __call__(self) -> float:
        return self.now


HERE, THERE = "203.0.113.7", "203.0.113.8"
RIGHT = b"geheim"


def guess(number: int) -> bytes:
    return b"guess-%d" % number


def guessed_too_often(clock: Clock) -> Guesses:
    guesses = Guesses(clock)
    guesses.right(HERE, RIGHT)
    for number in range(MOST_A_MINUTE):
        guesses.check(HERE, guess(number))
        guesses.wrong(HERE, guess(number))
    return guesses


def test_who_guesses_waits_and_learns_nothing_meanwhile() -> None:
    clock = Clock()
    guesses = guessed_too_often(clock)
    with pytest.raises(ResourceExhausted, match="wrong passwords") as refused:
        guesses.check(HERE, guess(1_000))
    assert (refused.value.reason, refused.value.metadata) == ("GUESSES_RATE_LIMITED", {"retry-after": "1"})
    # What would have been right is not looked at either.
    with pytest.raises(ResourceExhausted):
        guesses.check(HERE, b"geheim, otherwise shown")


def test_an_hour_of_guesses_is_few() -> None:
    clock = Clock()
    guesses, tried = Guesses(clock), 0
    for tenth in range(36_000):
        clock.now = 1_000 + tenth / 10
        try:
            guesses.check(HERE, guess(tenth))
        except ResourceExhausted:
            continue
        guesses.wrong(HERE, guess(tenth))
        tried += 1
    assert 59 * MOST_A_MINUTE < tried <= 61 * MOST_A_MINUTE


def test_others_are_not_kept_out() -> None:
    clock = Clock()
    guesses = guessed_too_often(clock)
    guesses.check(THERE, guess(1))
    guesses.check(HERE, RIGHT)  # was right before, from there
    guesses.check(HERE, None)  # shows nothing
    clock.now += 1.1
    guesses.check(HERE, guess(1))


def test_nothing_is_no_guess() -> None:
    guesses = Guesses(Clock())
    for _ in range(3 * MOST_A_MINUTE):
        guesses.wrong(HERE, None)
    guesses.check(HERE, guess(1))


@pytest.mark.parametrize(
    ("host", "network"),
    [
        ("", ""),
        ("203.0.113.7", "203.0.113.7"),
        ("2001:db8:1:2::3", "2001:db8:1:2::/64"),
        ("2001:db8:1:2:ffff::4%eth0", "2001:db8:1:2::/64"),
        ("::ffff:203.0.113.7", "::ffff:203.0.113.7"),
        ("testclient", "testclient"),
    ],
)
def test_whose_guesses_they_are(host: str, network: str) -> None:
    assert network_of(host) == network
