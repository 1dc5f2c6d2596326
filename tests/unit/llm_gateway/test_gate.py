"""The gate: calls at once, and the line."""

import asyncio
import random
from uuid import UUID

import pytest

from services.llm_gateway.calls.gate import Gate
from services.llm_gateway.core.errors import LlmQueueFull, LlmTimeout

ANN, BOB, CAT = (UUID(int=number) for number in (1, 2, 3))


async def settle() -> None:
    """Lets every task go as far as it can."""
    for _ in range(5):
        await asyncio.sleep(0)


def enter(gate: Gate, tenant: UUID, order: list[UUID]) -> asyncio.Task[None]:
    async def go() -> None:
        await gate.enter(tenant, "a/b", None)
        order.append(tenant)

    return asyncio.create_task(go())


async def test_tenants_take_turns() -> None:
    gate, order = Gate("p", 1, 100), list[UUID]()
    await gate.enter(ANN, "a/b", None)
    tasks = [enter(gate, tenant, order) for tenant in [ANN] * 4 + [BOB] * 2 + [CAT]]
    await settle()
    assert (gate.running, gate.waiting, order) == (1, 7, [])
    for _ in tasks:
        gate.leave()
        await settle()
    assert order == [ANN, BOB, CAT, ANN, BOB, ANN, ANN]
    assert gate.waiting == 0
    gate.leave()
    assert gate.running == 0


async def test_a_full_line_refuses() -> None:
    gate = Gate("p", 1, 1)
    await gate.enter(ANN, "a/b", None)
    waiting = enter(gate, ANN, [])
    await settle()
    with pytest.raises(LlmQueueFull, match=r"1 calls at once and 1 in line.*LOCI_LLM_CONCURRENCY") as caught:
        await gate.enter(BOB, "a/b", None)
    assert caught.value.metadata == {"provider": "p", "handle": "a/b"}
    waiting.cancel()
    await settle()
    assert gate.waiting == 0


async def test_who_leaves_the_line_frees_their_place() -> None:
    gate, order = Gate("p", 1, 100), list[UUID]()
    await gate.enter(ANN, "a/b", None)
    first, second = enter(gate, ANN, order), enter(gate, BOB, order)
    await settle()
    first.cancel()
    await settle()
    assert gate.waiting == 1
    gate.leave()
    await second
    assert (order, gate.running, gate.waiting) == ([BOB], 1, 0)


async def test_who_is_let_in_and_cancelled_at_once_passes_the_place_on() -> None:
    gate, order = Gate("p", 1, 100), list[UUID]()
    await gate.enter(ANN, "a/b", None)
    first, second = enter(gate, ANN, order), enter(gate, BOB, order)
    await settle()
    gate.leave()
    first.cancel()
    await second
    assert (order, gate.running) == ([BOB], 1)
    gate.leave()
    assert gate.running == 0


async def test_a_deadline_in_line_says_so() -> None:
    gate = Gate("p", 1, 100)
    await gate.enter(ANN, "a/b", None)
    with pytest.raises(LlmTimeout, match="waited in line for p until its deadline"):
        await gate.enter(BOB, "a/b", 0.01)
    assert gate.waiting == 0
    gate.leave()
    await gate.enter(BOB, "a/b", 0.01)
    assert gate.running == 1


async def test_a_wider_gate_lets_in_at_once_and_a_narrower_one_later() -> None:
    gate, order = Gate("p", 1, 100), list[UUID]()
    await gate.enter(ANN, "a/b", None)
    tasks = [enter(gate, BOB, order) for _ in range(3)]
    await settle()
    gate.widen(3)
    await settle()
    assert (gate.running, gate.waiting) == (3, 1)
    gate.widen(1)
    gate.leave()
    gate.leave()
    gate.leave()
    await asyncio.gather(*tasks)
    assert gate.waiting == 0


async def test_a_limit_that_is_lowered_holds_when_enough_have_left() -> None:
    gate, order = Gate("p", 3, 100), list[UUID]()
    for _ in range(3):
        await gate.enter(ANN, "a/b", None)
    waiting = [enter(gate, BOB, order) for _ in range(2)]
    await settle()
    gate.widen(1)
    gate.leave()
    gate.leave()
    await settle()
    assert (gate.running, order) == (1, [])
    gate.leave()
    await settle()
    assert (gate.running, order) == (1, [BOB])
    gate.leave()
    await settle()
    gate.leave()
    await asyncio.gather(*waiting)
    assert (gate.running, gate.waiting) == (0, 0)


@pytest.mark.parametrize("seed", range(5))
async def test_no_place_is_lost_whoever_goes_when(seed: int) -> None:
    chance, gate = random.Random(seed), Gate("p", 3, 1_000)
    most = 0

    async def call() -> None:
        nonlocal most
        await gate.enter(chance.choice([ANN, BOB, CAT]), "a/b", chance.choice([None, 0.055, 0.06, 5.0]))
        try:
            most = max(most, gate.running)
            for _ in range(chance.randrange(4)):
                await asyncio.sleep(0)
        finally:
            gate.leave()

    tasks = [asyncio.create_task(call()) for _ in range(400)]
    while not all(task.done() for task in tasks):
        for task in chance.sample(tasks, 20):
            if chance.random() < 0.3:
                task.cancel()
        await asyncio.sleep(0)
    failures = [error for task in tasks if not task.cancelled() and (error := task.exception())]
    assert all(isinstance(error, LlmTimeout) for error in failures)
    assert (gate.running, gate.waiting) == (0, 0)
    assert most <= 3
