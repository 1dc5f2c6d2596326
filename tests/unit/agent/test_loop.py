"""The loop: what is shown when, what is stored together, and how it stops."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import replace
from uuid import UUID

import pytest

from services.agent.core.events import Delta, Event, Transient
from services.agent.core.facts import (
    Action,
    CallModel,
    Fact,
    Failure,
    Finish,
    ModelFailed,
    ModelReplied,
    Reminded,
    RunEnded,
    RunTools,
    StopReason,
    ToolsReturned,
    Usage,
)
from services.agent.core.messages import Return, Text
from services.agent.core.ports_journal import Fenced
from services.agent.core.rules.tool_rules import RequiredBeforeExit
from services.agent.core.turn import CANCELLED, OVERDUE, Turn, begin_turn, evolve
from services.agent.loop import run, take_until
from tests.unit.agent.playing import call, message, run_id, settings

HELLO = Delta(1, UUID(int=1), UUID(int=2), "o", Text("hel"))
REPLIED = ModelReplied(1, 1, message(2, "assistant", Text("hello")), Usage(), "stop")
CALLED = ModelReplied(1, 1, message(2, "assistant", call("a")), Usage(), "tool_calls")
RETURNED = ToolsReturned(1, message(3, "tool", Return("a", "a", "4")))
FAILED = ModelFailed(1, 1, Failure(StopReason.LLM_API_ERROR, "llm_error", "no"))
START = begin_turn(run_id(1), settings(), (), (message(1, "user", Text("hi")),))


class Scripted:
    """Effects that give what is written down; `cancel_at` is the commit that says so, `left` what an interruption
    leaves."""

    def __init__(
        self,
        *happenings: Sequence[Transient | Fact],
        cancel_at: int = 0,
        hangs: bool = False,
        left: Fact | None = None,
    ) -> None:
        self.interruption: asyncio.Future[Failure] = asyncio.get_running_loop().create_future()
        self.performed: list[Action] = []
        self.interrupted: list[Action] = []
        self.stored: list[tuple[Fact, ...]] = []
        self.closed = 0
        self.fenced = 0
        self.hanging = asyncio.Event()
        self._happenings = list(happenings)
        self._cancel_at = cancel_at
        self._hangs = hangs
        self._left = left

    async def perform(self, turn: Turn, action: Action) -> AsyncGenerator[Transient | Fact]:
        self.performed.append(action)
        try:
            if isinstance(action, Finish):
                yield RunEnded(action.stop_reason, action.failure)
                return
            for happened in self._happenings.pop(0) if self._happenings else ():
                yield happened
            if self._hangs and not self._happenings:
                self.hanging.set()
                await asyncio.sleep(60)
        finally:
            self.closed += 1

    async def fence(self, turn: Turn) -> None:
        self.fenced += 1

    async def interrupt(self, turn: Turn, action: Action) -> Fact | None:
        self.interrupted.append(action)
        return self._left

    async def commit(self, turn: Turn, facts: tuple[Fact, ...]) -> tuple[bool, list[Event]]:
        self.stored.append(facts)
        return len(self.stored) == self._cancel_at, []


async def drained(effects: Scripted, turn: Turn = START) -> list[Event]:
    return [event async for event in run(turn, effects)]


async def test_deltas_are_shown_before_the_end_is_stored_with_the_reply() -> None:
    effects = Scripted([HELLO, REPLIED])
    assert await drained(effects) == [HELLO]
    assert effects.stored == [(REPLIED, RunEnded(StopReason.END_TURN))]


async def test_a_step_is_stored_in_two_parts() -> None:
    effects = Scripted([CALLED], [RETURNED], [replace(REPLIED, step=2)])
    await drained(effects)
    assert effects.performed == [CallModel(1, 1), RunTools(1, (call("a"),)), CallModel(2, 1)]
    end = RunEnded(StopReason.END_TURN)
    assert effects.stored == [(CALLED,), (RETURNED,), (replace(REPLIED, step=2), end)]


async def test_a_reminder_is_stored_with_what_it_follows() -> None:
    turn = begin_turn(run_id(1), settings(RequiredBeforeExit("a"), max_steps=2), (), START.history)
    effects = Scripted([replace(REPLIED, offered=("a",))], [replace(REPLIED, step=2, offered=("a",))])
    await drained(effects, turn)
    assert [[type(fact) for fact in facts] for facts in effects.stored] == [
        [ModelReplied, Reminded],
        [ModelReplied, RunEnded],
    ]
    assert effects.stored[1][1] == RunEnded(StopReason.MAX_STEPS)


async def test_a_failed_call_is_stored_with_the_end() -> None:
    effects = Scripted([FAILED])
    await drained(effects)
    assert effects.stored == [(FAILED, RunEnded(StopReason.LLM_API_ERROR, FAILED.failure))]


@pytest.mark.parametrize("why", [CANCELLED, OVERDUE])
@pytest.mark.parametrize("steps", [[], [[CALLED]]])
async def test_an_interruption_ends_what_goes_on(why: Failure, steps: list[list[Fact]]) -> None:
    effects = Scripted(*steps, [], hangs=True)
    running = asyncio.create_task(drained(effects))
    await effects.hanging.wait()
    effects.interruption.set_result(why)
    async with asyncio.timeout(20):
        await running
    assert effects.interrupted == effects.performed[-2:-1]
    assert isinstance(effects.interrupted[0], RunTools if steps else CallModel)
    assert effects.stored[-1] == (RunEnded(why.stop_reason, None if why is CANCELLED else why),)
    assert effects.closed == len(effects.performed)


@pytest.mark.parametrize("why", [CANCELLED, OVERDUE])
async def test_what_an_interruption_leaves_is_stored_with_the_end(why: Failure) -> None:
    effects = Scripted([CALLED], [], hangs=True, left=RETURNED)
    running = asyncio.create_task(drained(effects))
    await effects.hanging.wait()
    effects.interruption.set_result(why)
    async with asyncio.timeout(20):
        await running
    end = RunEnded(why.stop_reason, None if why is CANCELLED else why)
    assert effects.stored == [(CALLED,), (RETURNED, end)]


async def test_a_fact_that_is_there_already_is_stored_when_the_interruption_comes() -> None:
    effects = Scripted([CALLED], [RETURNED])

    async def commit(turn: Turn, facts: tuple[Fact, ...]) -> tuple[bool, list[Event]]:
        effects.stored.append(facts)
        if not effects.interruption.done():
            effects.interruption.set_result(CANCELLED)
        return False, []

    effects.commit = commit  # type: ignore[method-assign]
    await drained(effects)
    assert effects.stored == [(CALLED,), (RunEnded(StopReason.CANCELLED),)]


async def test_a_cancel_that_a_commit_reports_ends_the_turn() -> None:
    effects = Scripted([CALLED], [RETURNED], cancel_at=1)
    await drained(effects)
    assert effects.performed == [CallModel(1, 1), Finish(StopReason.CANCELLED)]
    assert effects.stored == [(CALLED,), (RunEnded(StopReason.CANCELLED),)]


async def test_a_cancel_that_comes_with_the_end_changes_nothing() -> None:
    effects = Scripted([REPLIED], cancel_at=1)
    await drained(effects)
    assert effects.stored == [(REPLIED, RunEnded(StopReason.END_TURN))]


async def test_a_turn_that_was_stopped_before_it_began() -> None:
    effects = Scripted()
    await drained(effects, replace(START, interruption=OVERDUE))
    assert effects.performed == [Finish(StopReason.ERROR, OVERDUE)]


async def test_an_ended_turn_does_nothing() -> None:
    effects = Scripted()
    await drained(effects, replace(START, ended=RunEnded(StopReason.END_TURN)))
    assert effects.performed == []


async def test_who_is_fenced_drops_all_and_says_nothing() -> None:
    effects = Scripted([CALLED])

    async def commit(turn: Turn, facts: tuple[Fact, ...]) -> tuple[bool, list[Event]]:
        raise Fenced

    effects.commit = commit  # type: ignore[method-assign]
    with pytest.raises(Fenced):
        await drained(effects)
    assert effects.closed == 1


async def test_a_reader_that_goes_away_closes_what_goes_on() -> None:
    effects = Scripted([HELLO], hangs=True)
    async with aclosing(run(START, effects)) as events:
        assert await anext(events) == HELLO
    assert effects.closed == 1


async def test_a_task_that_is_ended_closes_what_goes_on() -> None:
    effects = Scripted([], hangs=True)
    running = asyncio.create_task(drained(effects))
    await effects.hanging.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert (effects.closed, effects.stored) == (1, [])


async def test_errors_come_through() -> None:
    async def failing() -> AsyncGenerator[int]:
        yield 1
        raise RuntimeError("no")

    items = take_until(asyncio.get_running_loop().create_future(), failing())
    assert await anext(items) == 1
    with pytest.raises(RuntimeError, match="no"):
        await anext(items)


async def test_calls_that_an_owner_before_may_have_begun_are_stopped_when_the_run_is_cancelled() -> None:
    effects = Scripted()
    called = evolve(START, CALLED)
    await drained(effects, replace(called, interruption=CANCELLED))
    assert effects.interrupted == [RunTools(1, (call("a"),))]
    assert effects.performed == [Finish(StopReason.CANCELLED)]
    assert effects.fenced == 1
