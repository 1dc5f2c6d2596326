"""A call at its endpoint: places, breakers, rests."""

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any
from uuid import UUID

import pytest

from services.llm_gateway.calls.endpoints import Endpoint, EndpointCall, Endpoints
from services.llm_gateway.calls.retry import Clock
from services.llm_gateway.core.chat import Event, TextDelta
from services.llm_gateway.core.errors import (
    LlmAuthentication,
    LlmCircuitOpen,
    LlmConnection,
    LlmError,
    LlmRateLimit,
    LlmServerError,
    LlmTimeout,
)
from tests.unit.llm_gateway.builders import config, model

MODEL = model("openai/gpt-4o")


class Time:
    """A clock that goes when it is told to."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def endpoint(time: Time) -> Endpoint:
    return Endpoint("openai", "http://host", concurrency=2, queue=2, now=time)


def errand(**options: Any) -> EndpointCall:
    return EndpointCall(UUID(int=1), options.pop("model", MODEL), Clock(options.pop("remaining", None)), **options)


async def call(endpoint: Endpoint, error: LlmError | None = None, **options: Any) -> list[Event]:
    async def events() -> AsyncGenerator[Event, None]:
        if error is not None:
            raise error
        yield TextDelta(0, "a")

    return [event async for event in endpoint.calling(errand(**options), events)()]


async def fail(endpoint: Endpoint, error: LlmError, times: int, **options: Any) -> None:
    for _ in range(times):
        with pytest.raises(type(error)):
            await call(endpoint, error, **options)


async def test_failures_open_it_for_all_and_a_probe_closes_it(
    endpoint: Endpoint, time: Time, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    await fail(endpoint, LlmServerError("secret words of a tenant", status=503), 4)
    assert await call(endpoint) == [TextDelta(0, "a")]
    await fail(endpoint, LlmServerError("secret words of a tenant", status=503), 5)
    with pytest.raises(LlmCircuitOpen, match=r"last LLM_SERVER_ERROR 503\) and is left alone for 5.0 s") as caught:
        await call(endpoint)
    assert caught.value.metadata["retry_after"] == "5.0"
    assert caught.value.retry_after == 5.0
    assert "secret" not in caught.value.message
    time.now += 5
    assert await call(endpoint) == [TextDelta(0, "a")]
    assert [one.message for one in caplog.records] == [
        "circuit of openai opened for 5 s (last LLM_SERVER_ERROR 503)",
        "circuit of openai closed",
    ]
    assert endpoint.gate.running == 0


@pytest.mark.parametrize(
    ("error", "options", "opens"),
    [
        (LlmConnection("no"), {}, True),
        (LlmTimeout("silent"), {}, True),
        # Whose patience was short is no fault of the endpoint.
        (LlmTimeout("silent"), {"own_patience": True}, False),
        (LlmAuthentication("key"), {}, False),
        (LlmRateLimit("wait"), {}, False),
    ],
)
async def test_which_failures_count(endpoint: Endpoint, error: LlmError, options: Any, opens: bool) -> None:
    await fail(endpoint, error, 6 if not opens else 5, **options)
    assert endpoint.breaker.is_open is opens


async def test_a_rest_that_was_asked_for_is_everybodys_for_that_model(endpoint: Endpoint, time: Time) -> None:
    await fail(endpoint, LlmRateLimit("wait", retry_after=8), 1)
    time.now += 3
    with pytest.raises(LlmRateLimit, match=r"5.0 s are left") as caught:
        await call(endpoint)
    assert caught.value.retry_after == 5.0
    assert await call(endpoint, model=model("openai/gpt-4")) == [TextDelta(0, "a")]
    time.now += 5
    assert await call(endpoint) == [TextDelta(0, "a")]


async def test_a_rest_is_a_minute_at_most(endpoint: Endpoint, time: Time) -> None:
    await fail(endpoint, LlmRateLimit("wait", retry_after=86_400), 1)
    time.now += 60
    assert await call(endpoint) == [TextDelta(0, "a")]


async def test_a_stream_that_is_left_gives_its_place_back(endpoint: Endpoint) -> None:
    async def events() -> AsyncGenerator[Event, None]:
        yield TextDelta(0, "a")
        await asyncio.Event().wait()

    async with aclosing(endpoint.calling(errand(), events)()) as stream:
        await anext(stream)
        assert endpoint.gate.running == 1
    assert endpoint.gate.running == 0


async def test_one_that_hangs_does_not_delay_another() -> None:
    endpoints = Endpoints(concurrency=1, queue=10)
    slow, fast = endpoints.of(config("openai", "http://slow")), endpoints.of(config("anthropic", "http://fast"))

    async def hang() -> AsyncGenerator[Event, None]:
        await asyncio.Event().wait()
        yield TextDelta(0, "never")

    tasks = [asyncio.create_task(anext(slow.calling(errand(), hang)())) for _ in range(5)]
    await asyncio.sleep(0)
    for _ in range(5):
        assert await call(fast) == [TextDelta(0, "a")]
    assert (slow.gate.running, slow.gate.waiting) == (1, 4)
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    assert (slow.gate.running, slow.gate.waiting) == (0, 0)


async def test_nothing_that_is_asked_of_nobody_is_an_answer(endpoint: Endpoint) -> None:
    await fail(endpoint, LlmServerError("down"), 4)

    async def nobody() -> int | None:
        return None

    assert await endpoint.asking(errand(), nobody)() is None
    await fail(endpoint, LlmServerError("down"), 1)
    assert endpoint.breaker.is_open


def test_an_endpoint_is_known_by_its_provider_and_base_url() -> None:
    endpoints = Endpoints(concurrency=3, queue=1)
    first = endpoints.of(config("openai", "http://one"))
    assert endpoints.of(config("openai", "http://one", api_key="another")) is first
    assert endpoints.of(config("openai", "http://two")) is not first
    assert endpoints.of(config("openai", "http://one", organization_id=UUID(int=1))) is not first
    assert endpoints.of(config("openai", "http://one", options={"max_concurrency": 7})) is first
