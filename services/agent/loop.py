"""The loop: performs what `decide` says, stores what came of it, shows it. Blocking and streaming are the same."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace
from typing import Protocol, TypeVar

from services.agent.core.events import Event, Transient
from services.agent.core.facts import Action, Fact, Failure, RunTools
from services.agent.core.turn import CANCELLED, Turn, decide, evolve, next_fact
from services.common.interruption import Interrupted, run_unless

T = TypeVar("T")


class Effects(Protocol):
    """The loop's effects on the world, for one run under one fence."""

    # Resolved with the reason when the run shall stop.
    interruption: asyncio.Future[Failure]

    def perform(self, turn: Turn, action: Action) -> AsyncGenerator[Transient | Fact]:
        """Carries an action out: yields what readers can see already, then the one fact that came of it."""
        ...

    async def fence(self, turn: Turn) -> None:
        """Has earlier owners of the run refused where they may be acting still."""
        ...

    async def interrupt(self, turn: Turn, action: Action) -> Fact | None:
        """Stops what goes on elsewhere for an action that was interrupted; what came of it until then, if anything."""
        ...

    async def commit(self, turn: Turn, facts: tuple[Fact, ...]) -> tuple[bool, list[Event]]:
        """Stores facts in one transaction; says whether to cancel, and what to show. Raises Fenced."""
        ...


async def run(turn: Turn, effects: Effects) -> AsyncGenerator[Event]:
    """Drives a turn to its end. Nothing but deltas is yielded before it is durable. Raises Fenced."""
    await effects.fence(turn)
    if turn.interruption is not None and isinstance(left := decide(replace(turn, interruption=None)), RunTools):
        # An owner before this one may have begun them.
        await effects.interrupt(turn, left)
    while turn.ended is None:
        action, fact = decide(turn), None
        happenings = effects.perform(turn, action)
        if turn.interruption is None:
            happenings = take_until(effects.interruption, happenings)
        async with aclosing(happenings):
            async for happened in happenings:
                if isinstance(happened, Transient):
                    yield happened
                else:
                    fact = happened
        if fact is None:
            turn = replace(turn, interruption=effects.interruption.result())
            fact = await effects.interrupt(turn, action)
        if fact is None:
            continue
        turn, events = await settle(turn, fact, effects)
        for event in events:
            yield event


async def settle(turn: Turn, fact: Fact, effects: Effects) -> tuple[Turn, list[Event]]:
    """Stores a fact, together with those that follow from it alone: the end of the run, a reminder."""
    facts: tuple[Fact, ...] = ()
    following: Fact | None = fact
    while following is not None:
        turn, facts = evolve(turn, following), (*facts, following)
        following = next_fact(turn)
    cancel_requested, events = await effects.commit(turn, facts)
    return (replace(turn, interruption=CANCELLED) if cancel_requested else turn), events


async def take_until(stop: asyncio.Future[Failure], items: AsyncGenerator[T]) -> AsyncGenerator[T]:
    """Yields the items up to the moment when `stop` is done; the rest is closed, not awaited."""
    async with aclosing(items) as source:
        while not stop.done():
            try:
                item = await run_unless(stop, anext(source, None))
            except Interrupted:
                return
            if item is None:
                return
            yield item
            # Where items come without a wait, those who read what was shown have their turn, too.
            await asyncio.sleep(0)
