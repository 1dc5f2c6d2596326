"""The path of a call: fallbacks, the account, one call of a tool, what becomes of streams that are left."""

import asyncio
from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID

import pytest

from services.llm_gateway.budgets.model import Budget, Period, Spending
from services.llm_gateway.budgets.service import Ledger
from services.llm_gateway.calls.endpoints import Endpoints
from services.llm_gateway.calls.metering import Account
from services.llm_gateway.calls.retry import RetryPolicy
from services.llm_gateway.calls.service import Calls, Policy
from services.llm_gateway.core.chat import (
    ChatRequest,
    Completed,
    Embeddings,
    Event,
    FinishReason,
    Generation,
    Message,
    Role,
    Text,
    TextDelta,
    ToolCallDelta,
    Usage,
)
from services.llm_gateway.core.errors import (
    LlmAuthentication,
    LlmBadRequest,
    LlmBudgetExhausted,
    LlmConnection,
    LlmContextOverflow,
    LlmError,
    LlmImagesUnsupported,
    LlmServerError,
    LlmStreamIncomplete,
    ModelNotFound,
)
from services.llm_gateway.core.models import ChatModel, EmbeddingModel, Price
from services.llm_gateway.models.service import Catalogue
from services.llm_gateway.providers.registry import ProviderRegistry
from services.llm_gateway.usage.log import UsageLog
from services.llm_gateway.usage.model import UsageRow
from tests.unit.llm_gateway.builders import call, config, model, request, tool, user

ANN = Account(UUID(int=1), run_id=UUID(int=3))
GOOD, BAD, SMALL = "openai/gpt-4o", "anthropic/claude-haiku-4-5", "openai/gpt-4"
PRICE = Price(2, 5)
USED = Usage(100, 10)


def replied(*parts: Any, usage: Usage = USED) -> Completed:
    return Completed(Generation(Message(Role.ASSISTANT, parts), FinishReason.STOP, usage, provider_model="exact"))


class Fake:
    """A provider whose script is a list: events to yield, an error to raise, a function to await."""

    def __init__(self, *script: Any) -> None:
        self.script: list[Any] = list(script)
        self.asked: list[ChatRequest] = []
        self.closed = 0

    async def generate(self, request: ChatRequest, model: ChatModel, *, stream: bool) -> AsyncGenerator[Event, None]:
        self.asked.append(request)
        try:
            for one in self.script:
                if isinstance(one, LlmError):
                    raise one
                if callable(one):
                    await one()
                elif stream or isinstance(one, Completed):
                    yield one
        finally:
            self.closed += 1

    async def count_tokens(self, request: ChatRequest, model: ChatModel) -> int | None:
        counted: int | None = self.script[0]
        return counted

    async def embed(self, model: EmbeddingModel, texts: Sequence[str]) -> Embeddings:
        if "bad" in texts:
            raise LlmBadRequest("no")
        return Embeddings([[1.0]] * len(texts), 3 * len(texts))


class Store:
    """Keeps usage rows, and has budgets for nobody."""

    async def write(self, rows: Sequence[UsageRow]) -> None:
        raise AssertionError("nothing is written here")

    async def budgets(self, organization_ids: Collection[UUID]) -> Mapping[UUID, Sequence[Budget]]:
        return {}

    async def spent(self, organization_ids: Collection[UUID], starts: Any) -> Mapping[UUID, Mapping[Period, Spending]]:
        return {}

    async def set_budget(self, organization_id: UUID, budget: Budget) -> None:
        raise AssertionError("nobody sets one")

    async def delete_budget(self, organization_id: UUID, period: Period) -> bool:
        return False


class World:
    """Calls to fakes by provider; models are the table's, with a price."""

    def __init__(self, budgets: Sequence[Budget] = (), fallbacks: Any = None, **fakes: Fake) -> None:
        self.fakes = fakes
        self.priced: dict[str, Price | None] = {}
        store = Store()
        self.usage = UsageLog(store)
        self.endpoints = Endpoints(concurrency=10, queue=10)
        self.calls = Calls(
            cast(Catalogue, self),
            cast(ProviderRegistry, SimpleNamespace(get=self.get)),
            self.endpoints,
            Ledger(store, self.usage, budgets),
            Policy(RetryPolicy(retries=1, first=0.001), 0.0, fallbacks or {}),
        )

    async def get(self, config: Any) -> Any:
        return self.fakes[config.name]

    async def callable_model(self, organization_id: UUID, handle: str) -> Any:
        provider = handle.partition("/")[0]
        if provider not in self.fakes:
            raise ModelNotFound(f"no {handle}", handle=handle)
        made = replace(model(handle), price=self.priced.get(handle, PRICE))
        return SimpleNamespace(config=config(provider), model=made)

    async def embedding_model(self, organization_id: UUID, handle: str) -> Any:
        made = EmbeddingModel("openai", "openai", "small", "", 1, 2, "small", price=PRICE)
        return SimpleNamespace(config=config("openai"), model=made)

    @property
    def rows(self) -> list[UsageRow]:
        return list(self.usage.waiting)

    async def stream(self, asked: ChatRequest) -> list[Event]:
        async with aclosing(self.calls.stream(asked, ANN, None)) as events:
            return [event async for event in events]


async def test_a_call_is_accounted_with_its_cost() -> None:
    world = World(openai=Fake(replied(Text("hi"), usage=Usage(100, 10))))
    made = await world.calls.generate(request(user("hi"), handle=GOOD), ANN, None)
    assert (made.handle, made.cost, made.failed_tries) == (GOOD, 250, ())
    [row] = world.rows
    assert (row.handle, row.cost_nanos_usd, row.prompt_tokens, row.estimated) == (GOOD, 250, 100, False)
    assert (row.provider_model, row.run_id, row.kind) == ("exact", ANN.run_id, "chat")
    world.priced[GOOD] = None
    made = await world.calls.generate(request(user("hi"), handle=GOOD), ANN, None)
    assert (made.cost, world.rows[1].cost_nanos_usd) == (None, None)


@pytest.mark.parametrize("stream", [True, False])
async def test_a_fallback_answers_and_says_so(stream: bool) -> None:
    bad, good = Fake(LlmServerError("down")), Fake(TextDelta(0, "hi"), replied(Text("hi")))
    world = World(openai=good, anthropic=bad)
    asked = request(user("hi"), handle=BAD, fallbacks=["gone/x", GOOD], settings={"thinking": {}})
    if stream:
        *deltas, last = await world.stream(asked)
        assert deltas == [TextDelta(0, "hi")]
        assert isinstance(last, Completed)
        made = last.generation
    else:
        made = await world.calls.generate(asked, ANN, None)
    assert made.handle == GOOD
    assert [(one.handle, one.reason) for one in made.failed_tries] == [
        (BAD, "LLM_SERVER_ERROR"),
        ("gone/x", "MODEL_NOT_FOUND"),
    ]
    # After its retries, and the settings are handed on as they are: another provider's are passed over there.
    assert (len(bad.asked), len(good.asked)) == (2, 1)
    assert (good.asked[0].handle, good.asked[0].settings) == (GOOD, {"thinking": {}})
    assert [row.handle for row in world.rows] == [GOOD]


async def test_the_operators_fallbacks_are_for_requests_without_any() -> None:
    good, bad = Fake(replied(Text("hi"))), Fake(LlmAuthentication("key"))
    world = World(fallbacks={BAD: [GOOD]}, openai=good, anthropic=bad)
    assert (await world.calls.generate(request(user("hi"), handle=BAD), ANN, None)).handle == GOOD


async def test_after_the_first_event_an_error_is_the_callers() -> None:
    world = World(
        openai=Fake(replied(Text("hi"))), anthropic=Fake(TextDelta(0, "x" * 40), LlmStreamIncomplete("broke"))
    )
    with pytest.raises(LlmStreamIncomplete, match=r"^broke$"):
        await world.stream(request(user("hi"), handle=BAD, fallbacks=[GOOD]))
    assert not world.fakes["openai"].asked
    [row] = world.rows
    assert (row.handle, row.completion_tokens, row.estimated) == (BAD, 10, True)
    assert row.cost_nanos_usd == row.prompt_tokens * 2 + 50


@pytest.mark.parametrize(
    ("error", "handles"),
    [
        (LlmContextOverflow("long"), [SMALL, BAD]),
        (LlmBadRequest("schema"), [SMALL]),
        (LlmImagesUnsupported("blind"), [SMALL, BAD]),
    ],
)
async def test_what_is_tried_on(error: LlmError, handles: list[str]) -> None:
    # gpt-4 and gpt-4-0613 have 8,192 tokens each, claude-haiku-4-5 has more.
    world = World(openai=Fake(error), anthropic=Fake(error))
    with pytest.raises(type(error)):
        await world.stream(request(user("hi"), handle=SMALL, fallbacks=["openai/gpt-4-0613", BAD]))
    asked = [one.handle for fake in world.fakes.values() for one in fake.asked if one.handle != "openai/gpt-4-0613"]
    assert asked == handles
    assert len(world.fakes["openai"].asked) == (2 if isinstance(error, LlmImagesUnsupported) else 1)
    assert world.rows == []


async def test_an_open_circuit_falls_over_at_once() -> None:
    bad = Fake(LlmConnection("no"))
    world = World(openai=Fake(replied(Text("hi"))), anthropic=bad)
    for _ in range(4):
        assert (await world.calls.generate(request(user("a"), handle=BAD, fallbacks=[GOOD]), ANN, None)).handle == GOOD
    assert len(bad.asked) == 5
    made = await world.calls.generate(request(user("a"), handle=BAD, fallbacks=[GOOD]), ANN, None)
    assert made.failed_tries[0].reason == "LLM_CIRCUIT_OPEN"
    assert len(bad.asked) == 5


async def test_a_stream_that_is_left_is_accounted_by_estimate_and_closed() -> None:
    fake = Fake(TextDelta(0, "a" * 8), asyncio.Event().wait)
    world = World(openai=fake)
    async with aclosing(world.calls.stream(request(user("x" * 400), handle=GOOD), ANN, None)) as events:
        assert await anext(events) == TextDelta(0, "a" * 8)
    [row] = world.rows
    assert (row.prompt_tokens, row.completion_tokens, row.estimated) == (104, 2, True)
    assert (row.cost_nanos_usd, fake.closed) == (104 * 2 + 2 * 5, 1)
    assert world.endpoints.of(config("openai")).gate.running == 0


async def test_one_that_is_left_before_anything_came_costs_nothing() -> None:
    fake = Fake(asyncio.Event().wait)
    world = World([Budget(Period.DAY, requests=1, operators=True)], openai=fake)
    task = asyncio.create_task(world.stream(request(user("x"), handle=GOOD)))
    while not fake.asked:
        await asyncio.sleep(0)
    with pytest.raises(LlmBudgetExhausted):
        await world.stream(request(user("x"), handle=GOOD))
    task.cancel()
    await asyncio.wait((task,))
    assert (world.rows, fake.closed) == ([], 1)
    fake.script = [replied(Text("hi"))]
    assert (await world.calls.generate(request(user("x"), handle=GOOD), ANN, None)).handle == GOOD


async def test_nobody_is_called_again_for_a_caller_who_is_gone() -> None:
    fake = Fake(LlmServerError("down", retry_after=5))
    world = World(openai=fake)
    task = asyncio.create_task(world.stream(request(user("x"), handle=GOOD)))
    while not fake.asked:
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait((task,), timeout=20)
    assert (task.done(), len(fake.asked)) == (True, 1)


@pytest.mark.parametrize("stream", [True, False])
async def test_of_several_calls_that_were_not_wanted_the_first_is_passed_on(stream: bool) -> None:
    first, second = call("1", "dice", n=1), call("2", "dice", n=2)
    script = [ToolCallDelta(0, "1", "dice", '{"n":1}'), ToolCallDelta(1, "2", "dice", '{"n":2}')]
    world = World(openai=Fake(*script, replied(first, second, usage=Usage(100, 40))))

    async def asked(parallel: bool | None) -> list[Event]:
        wanted = request(user("x"), handle=GOOD, tools=[tool("dice", n="integer")], parallel_tool_calls=parallel)
        if stream:
            return await world.stream(wanted)
        return [Completed(await world.calls.generate(wanted, ANN, None))]

    for parallel, calls in ((False, 1), (True, 2), (None, 2)):
        *deltas, last = await asked(parallel)
        assert isinstance(last, Completed)
        assert list(last.generation.message.parts) == [first, second][:calls]
        assert last.generation.usage == Usage(100, 40)
        assert deltas == (script[:calls] if stream else [])


async def test_a_budget_is_no_ground_to_ask_another() -> None:
    world = World([Budget(Period.DAY, tokens=50, operators=True)], openai=Fake(), anthropic=Fake(replied(Text("x"))))
    with pytest.raises(LlmBudgetExhausted, match="operator's budget of 50 tokens"):
        await world.stream(request(user("x" * 400), handle=GOOD, fallbacks=[BAD]))
    assert not world.fakes["openai"].asked
    assert not world.fakes["anthropic"].asked


async def test_counting_says_by_how_much_it_may_be_off() -> None:
    world = World(openai=Fake(42), anthropic=Fake(None))
    own = await world.calls.count_tokens(request(user("x" * 400), handle=GOOD), ANN, None)
    ours = await world.calls.count_tokens(request(user("x" * 400), handle=BAD), ANN, None)
    assert (own.tokens, own.estimated, own.relative_error) == (42, False, 0.0)
    assert (ours.tokens, ours.estimated, ours.relative_error) == (104, True, 0.2)
    assert world.rows == []


async def test_vectors_cost_also_where_a_later_batch_fails() -> None:
    world = World(openai=Fake())
    _, made, cost = await world.calls.embed("openai/small", ["a", "b", "c"], ANN, None)
    assert (len(made.vectors), made.prompt_tokens, cost) == (3, 9, 18)
    with pytest.raises(LlmBadRequest):
        await world.calls.embed("openai/small", ["a", "b", "bad"], ANN, None)
    assert [(row.kind, row.prompt_tokens, row.cost_nanos_usd) for row in world.rows] == [
        ("embedding", 9, 18),
        ("embedding", 6, 12),
    ]
