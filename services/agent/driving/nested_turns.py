"""Turns that a run begins and waits for.

A nested run has an id that follows from what begins it, so whoever takes the waiting run over finds it and goes on
waiting: nothing is asked twice. What waits holds a task, and none of the places that its replica has for runs.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from uuid import UUID

from services.agent.core.calls.agent_words import Answer, spoken
from services.agent.core.calls.reach import reaches
from services.agent.core.events import Ended, Event, MessagePiece
from services.agent.core.facts import Failure, StopReason
from services.agent.core.messages import Call
from services.agent.core.ports_journal import TurnRequest
from services.agent.driving.faults import is_transient
from services.agent.driving.worker import Worker
from services.agent.streams.broadcast import Subscription
from services.agent.streams.reading import Reader
from services.common.errors import PermissionDenied, Unavailable
from services.common.ids import to_public

# A run ends at its deadline by itself; this is for one that stands in a line that does not move.
SPARE_SECONDS = 5.0
PAUSE_SECONDS = 0.5

_log = logging.getLogger(__name__)


class NestedTurns:
    """Begins turns of agents for runs of other agents.

    `worker` is set once it is there: it drives what asks for these turns, too.
    """

    worker: Worker

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    async def begin(self, request: TurnRequest) -> None:
        """Begins a turn in the background. Raises as `listen`."""
        _check_reach(request)
        await self.worker.accept(replace(request, background=True), stream=True)

    async def ask(self, request: TurnRequest, waiting: UUID | None) -> Answer:
        """Begins a turn, or finds it where it was begun before, and waits for its end; see `listen`."""
        async with aclosing(self.listen(request, waiting, stream=False)) as events:
            async for event in events:
                if isinstance(event, Answer):
                    return event
        raise AssertionError("a turn has an end")

    async def listen(
        self, request: TurnRequest, waiting: UUID | None, *, stream: bool
    ) -> AsyncGenerator[Event | Answer]:
        """Does the same and yields the run's events, with its deltas if they are to `stream`, and last its answer.

        `waiting`: the run that waits. Raises PermissionDenied (AGENT_NOT_REACHABLE), and as Journal.accept.
        """
        _check_reach(request)
        accepted, subscription = await self.worker.accept(request, stream=stream)
        until = asyncio.get_running_loop().time() + request.seconds + SPARE_SECONDS
        heard = _Heard(accepted.run_id)
        try:
            with self.worker.rests(waiting):
                async with aclosing(self._events(request.organization_id, heard, subscription)) as events:
                    while heard.answer is None:
                        async with asyncio.timeout_at(until):
                            event = await anext(events)
                        heard.hear(event)
                        yield event
            yield heard.answer
        except TimeoutError:
            await self.cancel(request.organization_id, [(accepted.run_id, request.conversation_id)])
            late = Failure(StopReason.ERROR, "internal_error", "its time was over before it had its turn.")
            yield Answer(accepted.run_id, (), StopReason.ERROR, late)

    async def cancel(self, organization_id: UUID, runs: Sequence[tuple[UUID, UUID]]) -> None:
        """Cancels runs, given with their conversations; those that are not there are passed over."""
        await self.worker.cancel(organization_id, list(runs))

    async def decline(self, organization_id: UUID, agent_id: UUID) -> None:
        """Gives up what waits for a person in an agent's default conversation."""
        await self.worker.cancel(organization_id, await self.worker.waiting_runs(organization_id, agent_id, agent_id))

    async def _events(
        self, organization_id: UUID, heard: "_Heard", subscription: Subscription | None
    ) -> AsyncGenerator[Event]:
        while True:
            follow = self._reader.follow(organization_id, heard.run_id, after=heard.position, subscription=subscription)
            try:
                async with aclosing(follow) as events:
                    async for event in events:
                        yield event
                raise Unavailable("the stream of the run ended before the run", reason="READER_LAGS")
            except Exception as error:
                # The database or the stream is away; the run goes on, and so does whoever waits for it.
                if not is_transient(error):
                    raise
                _log.warning("run %s is followed again: %r", heard.run_id, error)
            subscription = None
            await asyncio.sleep(PAUSE_SECONDS)


@dataclass(slots=True)
class _Heard:
    """What was heard of a run until now; `position`: that of the last event."""

    run_id: UUID
    position: int = 0
    said: list[str] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    answer: Answer | None = None

    def hear(self, event: Event) -> None:
        self.position = max(self.position, event.sequence)
        match event:
            case MessagePiece(message=message, parts=parts) if message.role == "assistant":
                self.said += spoken(parts)
                self.calls += [part for part in parts if isinstance(part, Call)]
            case Ended(run=run):
                end = (run.stop_reason or StopReason.ERROR, event.failure, event.usage, event.steps)
                self.answer = Answer(self.run_id, tuple(self.said), *end, tuple(self.calls))


def _check_reach(request: TurnRequest) -> None:
    if not reaches(request.ceiling, request.agent_id):
        agent_id = to_public("agent", request.agent_id)
        sentence = f"who began this chain of runs may not write to {agent_id}"
        raise PermissionDenied(sentence, reason="AGENT_NOT_REACHABLE")
