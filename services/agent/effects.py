"""The loop's effects on the world for one run. The policy is in turn.py."""

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import assert_never

from services.agent.calls.compacting import Compactor
from services.agent.calls.model_calls import ModelCalls, StepMeasures, TurnContext
from services.agent.calls.tool_calls import ToolCalls
from services.agent.core.calls.positions import Positions
from services.agent.core.calls.refused_pictures import RefusedPictures
from services.agent.core.events import Ended, Event, MessagePiece, RunView, Transient, frames, show
from services.agent.core.facts import (
    Action,
    CallModel,
    Compact,
    Compacted,
    Fact,
    Failure,
    Finish,
    MemberSpoke,
    ModelReplied,
    Remind,
    RunEnded,
    RunTools,
    Speak,
    StopReason,
    ToolsReturned,
)
from services.agent.core.messages import Message
from services.agent.core.policy import POLICIES
from services.agent.core.ports import AgentStates, CallSite, Memory, Models, Recall, Tools
from services.agent.core.ports_agents import AgentCalls
from services.agent.core.ports_groups import Speakers
from services.agent.core.ports_journal import Commit, CommitResult, Journal, OwnedRun
from services.agent.core.turn import Turn, reminder, status_of, step_id
from services.common.telemetry import current_trace_id, span


@dataclass(frozen=True, slots=True)
class Ports:
    """All that the loop reaches, made once per process."""

    journal: Journal
    models: Models
    memory: Memory
    tools: Tools
    recall: Recall
    states: AgentStates
    agents: AgentCalls
    speakers: Speakers
    pictures: RefusedPictures = field(default_factory=RefusedPictures)


class RunEffects:
    """Effects of one run under one fence. `stream` asks the model for deltas."""

    def __init__(self, owned: OwnedRun, ports: Ports, context: TurnContext, *, stream: bool) -> None:
        self.interruption: asyncio.Future[Failure] = asyncio.get_running_loop().create_future()
        self._owned = owned
        self._stream = stream
        self._ports = ports
        self._context = context
        self._positions = Positions(owned.fence)
        self._measured = StepMeasures()
        self._stored_facts = owned.facts
        self._site = CallSite(
            owned.organization_id,
            owned.agent_id,
            owned.conversation_id,
            owned.run_id,
            step_id(owned.run_id, 0),
            owned.turn.settings,
            deadline=time.time() + owned.seconds_left,
        )
        self._model = ModelCalls(owned, ports.models, context, self._positions, self._measured, stream=stream)
        self._tools = ToolCalls(owned, ports, context, self._measured)
        self._compactor = Compactor(ports.models, ports.memory, self._model, context, self._positions, self._site)

    # What the loop asks for ------------------------------------------------------------------------------

    async def perform(self, turn: Turn, action: Action) -> AsyncGenerator[Transient | Fact]:
        """See loop.Effects.perform."""
        match action:
            case CallModel():
                async with aclosing(self._model.perform(turn, action)) as happenings:
                    async for happened in happenings:
                        yield happened
            case RunTools():
                with span("tool calls", step=action.step, calls=len(action.calls)):
                    yield await self._tools.perform(turn, action)
            case Compact():
                with span("compaction", trigger=action.trigger.value):
                    async with aclosing(self._compactor.perform(turn, action)) as steps:
                        async for step in steps:
                            yield step
            case Remind():
                yield reminder(turn, action)
            case Speak():
                with span("member", step=action.step, agent_id=str(action.agent_id)):
                    speech = self._ports.speakers.speak(turn, action, self._site, stream=self._stream)
                    async with aclosing(speech) as happenings:
                        async for happening in happenings:
                            if isinstance(happening, MemberSpoke):
                                yield happening
                            elif self._positions.may_show:
                                yield replace(happening, sequence=self._positions.next())
            case Finish():
                yield RunEnded(action.stop_reason, action.failure)
            case _:
                assert_never(action)

    async def fence(self, turn: Turn) -> None:
        """See loop.Effects.fence."""
        if self._owned.fence > 1 and turn.pending:
            await self._tools.fence()

    async def interrupt(self, turn: Turn, action: Action) -> Fact | None:
        """Kills what runs in sandboxes; a model call ends with its stream."""
        if isinstance(action, CallModel | RunTools):
            self._measured.cut_short = action.step
        if isinstance(action, Speak):
            await self._ports.speakers.cancel(turn, action, self._site)
        if isinstance(action, RunTools):
            return await self._tools.interrupt(turn, action)
        return None

    async def commit(self, turn: Turn, facts: tuple[Fact, ...]) -> tuple[bool, list[Event]]:
        """See loop.Effects.commit."""
        sequences = tuple(self._positions.next(frames(fact)) for fact in facts)
        measured = self._measured
        stored = await self._ports.journal.commit(
            self._owned,
            Commit(
                facts,
                sequences,
                turn,
                self._context.prompt,
                measured.first_token_at,
                current_trace_id(),
                dict(measured.metrics),
                measured.provider_trace,
                self._context.counted,
                measured.cut_short,
                self._stored_facts,
            ),
        )
        self._stored_facts += len(facts)
        measured.provider_trace = None
        measured.metrics.clear()
        events: list[Event] = []
        for fact, sequence in zip(facts, sequences, strict=True):
            events += _events_of(fact, sequence)
            if isinstance(fact, RunEnded):
                events.append(self._ended(turn, fact, sequence, stored))
        return stored.cancel_requested, events

    def _ended(self, turn: Turn, fact: RunEnded, sequence: int, stored: CommitResult) -> Ended:
        owned, stop_reason = self._owned, fact.stop_reason
        if stored.declined and stop_reason is StopReason.REQUIRES_APPROVAL:
            stop_reason = StopReason.CANCELLED
        view = RunView(
            owned.run_id,
            owned.agent_id,
            owned.conversation_id,
            status_of(stop_reason),
            owned.fence,
            owned.created_at,
            stop_reason=stop_reason,
            background=owned.background,
            started_at=stored.started_at,
            first_token_at=self._measured.first_token_at,
            completed_at=stored.completed_at,
        )
        return Ended(
            sequence,
            view,
            fact.failure,
            turn.usage,
            turn.step,
            # The reference's older loops do not tell it.
            None if POLICIES[turn.settings.agent_type].heartbeats else turn.context_tokens,
            turn.outputs,
            stored.successor,
            stored.run_ids,
            stored.begun,
        )


def _events_of(fact: Fact, sequence: int) -> list[MessagePiece]:
    match fact:
        case (
            ModelReplied(message=message)
            | ToolsReturned(message=message)
            | MemberSpoke(message=message)
            | Compacted(summary=Message() as message)
        ):
            return show(message, sequence)
        case _:
            return []
