"""When a call is tried again."""

from collections.abc import AsyncGenerator
from typing import Any

import pytest

from services.llm_gateway.calls.retry import Clock, RetryPolicy, retry, retry_events
from services.llm_gateway.core.chat import Event, TextDelta
from services.llm_gateway.core.errors import LlmAuthentication, LlmError, LlmRateLimit, LlmServerError

QUICK = RetryPolicy(retries=2, first=0.001, longest=0.002)


class Flaky:
    """Fails with each given error in turn, then answers; `spoken` deltas come before each failure."""

    def __init__(self, *errors: LlmError, spoken: int = 0) -> None:
        self.errors, self.spoken, self.tries = list(errors), spoken, 0

    async def events(self) -> AsyncGenerator[Event, None]:
        self.tries += 1
        if self.errors:
            for _ in range(self.spoken):
                yield TextDelta(0, "a")
            raise self.errors.pop(0)
        yield TextDelta(0, "done")

    async def call(self) -> str:
        self.tries += 1
        if self.errors:
            raise self.errors.pop(0)
        return "done"


async def drain(flaky: Flaky, policy: RetryPolicy = QUICK, remaining: float | None = None) -> list[Any]:
    return [event async for event in retry_events(flaky.events, policy, Clock(remaining))]


async def test_passing_failures_are_tried_again() -> None:
    flaky = Flaky(LlmServerError("a"), LlmRateLimit("b"))
    assert await drain(flaky) == [TextDelta(0, "done")]
    assert await retry(Flaky(LlmServerError("a")).call, QUICK, Clock(None)) == "done"


@pytest.mark.parametrize(
    ("errors", "spoken", "policy", "remaining", "tries"),
    [
        ([LlmServerError("a")] * 5, 0, QUICK, None, 3),
        ([LlmAuthentication("key")], 0, QUICK, None, 1),
        ([LlmRateLimit("quota", retryable=False)], 0, QUICK, None, 1),
        ([LlmServerError("a")], 1, QUICK, None, 1),
        ([LlmRateLimit("wait", retry_after=99)], 0, QUICK, None, 1),
        ([LlmServerError("a")], 0, RetryPolicy(first=5), 1.0, 1),
        ([LlmServerError("a")], 0, RetryPolicy(retries=0), None, 1),
    ],
    ids=["too many", "not retryable", "quota", "after a token", "long retry-after", "deadline", "switched off"],
)
async def test_others_are_not(
    errors: list[LlmError], spoken: int, policy: RetryPolicy, remaining: float | None, tries: int
) -> None:
    flaky = Flaky(*errors, spoken=spoken)
    with pytest.raises(LlmError):
        await drain(flaky, policy, remaining)
    assert flaky.tries == tries


def test_pauses_grow_with_jitter_and_honour_retry_after() -> None:
    policy = RetryPolicy(retries=9, first=1, longest=4)
    pauses = [policy.pause(LlmServerError("a"), tries, None) or 0 for tries in range(1, 6)]
    for pause, most in zip(pauses, (1, 2, 4, 4, 4), strict=True):
        assert most / 2 <= pause <= most
    assert 7 <= (policy.pause(LlmRateLimit("a", retry_after=7), 1, None) or 0) <= 7.7
