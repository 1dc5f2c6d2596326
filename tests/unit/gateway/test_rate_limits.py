"""How often a key may ask."""

import pytest

from gateway.access.rate_limits import RateLimits
from services.common.errors import ResourceExhausted


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_bucket_empties_and_fills() -> None:
    clock = Clock()
    limits = RateLimits(60, clock)
    told = [limits.take("key-1", None) for _ in range(60)]
    assert told[0] == {"x-ratelimit-limit": "60", "x-ratelimit-remaining": "59", "x-ratelimit-reset": "1"}
    assert told[-1] == {"x-ratelimit-limit": "60", "x-ratelimit-remaining": "0", "x-ratelimit-reset": "60"}
    with pytest.raises(ResourceExhausted, match="more than 60 requests") as caught:
        limits.take("key-1", None)
    assert caught.value.metadata["retry-after"] == "1"
    clock.now += 2.5
    assert limits.take("key-1", None)["x-ratelimit-remaining"] == "1"
    # Another key has its own.
    assert limits.take("key-2", None)["x-ratelimit-remaining"] == "59"
    clock.now += 3_600
    assert limits.take("key-1", None)["x-ratelimit-remaining"] == "59"


def test_a_key_may_have_a_limit_of_its_own() -> None:
    limits = RateLimits(None, Clock())
    assert limits.take("key-1", None) == {}
    assert limits.take("key-1", 1)["x-ratelimit-remaining"] == "0"
    with pytest.raises(ResourceExhausted) as caught:
        limits.take("key-1", 1)
    assert caught.value.metadata["retry-after"] == "60"


def test_a_lower_limit_holds_at_once() -> None:
    limits = RateLimits(None, Clock())
    limits.take("key-1", 100)
    assert limits.take("key-1", 2)["x-ratelimit-remaining"] == "1"


def test_buckets_are_not_kept_for_ever() -> None:
    limits = RateLimits(5, Clock())
    for number in range(10_050):
        limits.take(f"key-{number}", None)
    assert len(limits._buckets) == 10_000
