"""What the loop does to the world for one run. The policy is in turn.py."""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import assert_never

from services.agent import dispatch
from services.agent.compacting import Compactor
from services.agent.events import Ended, Event, Passing, RunView, Shown, frames, show
from services.agent.facts import (
    Action,
    CallModel,
    Compact,
    Compacted,
    Fact,
    Failure,
    Finish,
    ModelReplied,
    Remind,
    RunEnded,
    RunTools,
    ToolsReturned,
)
from services.agent.messages import Call, Message, without_nul
from services.agent.model_calls import Measured, ModelCalls, Surroundings
from services.agent.ports import CallSite, Commit, Journal, Memory, Models, Owned, Recall, Stored, Tools
from services.agent.positions import Positions
from services.agent.tool_plans import plan
from services.agent.turn import Turn, reminder, status_of, step_id
from services.common.errors import LociError
from services.common.ids import uuid7
from services.common.telemetry import current_trace_id, span

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Ports:
    """All that the loop reaches, made once per process."""

    journal: Journal
    models: Models
    memory: Memory
    tools: Tools
    recall: Recall


class RunEffects:
    """Effects of one run under one fence. `stream` asks the model for deltas."""

    def __init__(self, owned: Owned, ports: Ports, around: Surroundings, *, stream: bool) -> None:
        self.interruption: asyncio.Future[Failure] = asyncio.get_running_loop().create_future()
        self._owned = owned
        self._ports = ports
        self._around = around
        self._positions = Positions(owned.fence)
        self._measured = Measured()
        self._site = CallSite(
            owned.organization_id,
            owned.agent_id,
            owned.conversation_id,
            owned.run_id,
            step_id(owned.run_id, 0),
            owned.turn.settings,
        )
        self._model = ModelCalls(owned, ports.models, around, self._positions, self._measured, stream=stream)
        self._compactor = Compactor(ports.models, ports.memory, self._model, around, self._positions, self._site)

    # What the loop asks for ------------------------------------------------------------------------------

    async def perform(self, turn: Turn, action: Action) -> AsyncGenerator[Passing | Fact]:
        """See loop.Effects.perform."""
        match action:
            case CallModel():
                async with aclosing(self._model.perform(turn, action)) as happenings:
                    async for happened in happenings:
                        yield happened
            case RunTools():
                with span("tool calls", step=action.step, calls=len(action.calls)):
                    yield await self._run_tools(turn, action)
            case Compact():
                with span("compaction", trigger=action.trigger.value):
                    async with aclosing(self._compactor.perform(turn, action)) as steps:
                        async for step in steps:
                            yield step
            case Remind():
                yield reminder(turn, action)
            case Finish():
                yield RunEnded(action.stop_reason, action.failure)
            case _:
                assert_never(action)

    async def interrupt(self, action: Action) -> None:
        """Kills what runs in sandboxes; a model call ends with its stream."""
        if isinstance(action, RunTools):
            await asyncio.gather(*map(self._cancel, action.calls))

    async def _cancel(self, call: Call) -> None:
        try:
            await self._ports.tools.cancel(call.key)
        except LociError as error:
            # The run ends all the same; the tool runner has a time limit of its own.
            _log.warning("call %s could not be cancelled: %s", call.key, error.message)

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
                self._around.prompt,
                measured.first_token_at,
                current_trace_id(),
                dict(measured.metrics),
                measured.provider_trace,
                self._around.counted,
            ),
        )
        measured.provider_trace = None
        measured.metrics.clear()
        events: list[Event] = []
        for fact, sequence in zip(facts, sequences, strict=True):
            events += _shown(fact, sequence)
            if isinstance(fact, RunEnded):
                events.append(self._ended(turn, fact, sequence, stored))
        return stored.cancel_requested, events

    def _ended(self, turn: Turn, fact: RunEnded, sequence: int, stored: Stored) -> Ended:
        owned = self._owned
        view = RunView(
            owned.run_id,
            owned.agent_id,
            owned.conversation_id,
            status_of(fact.stop_reason),
            owned.fence,
            owned.created_at,
            stop_reason=fact.stop_reason,
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
            turn.context_tokens,
            turn.outputs,
            stored.successor,
        )

    # Tools -----------------------------------------------------------------------------------------------

    async def _run_tools(self, turn: Turn, action: RunTools) -> ToolsReturned:
        began, attached = time.monotonic_ns(), await self._around.tools
        planned = plan(turn, action, attached)
        site = self._site_of(turn, action)
        returns = await dispatch.run_calls(planned.calls, site, attached, self._ports)
        parts = tuple(map(without_nul, returns))
        self._measured.metrics["tool_execution_ns"] = time.monotonic_ns() - began
        message = Message(uuid7(), "tool", parts, datetime.now(UTC), turn.run_id, site.step_id)
        return ToolsReturned(action.step, message, planned.invalid)

    def _site_of(self, turn: Turn, action: RunTools) -> CallSite:
        assert turn.reply is not None
        # Calls that waited for the client belong to the step that made them, of an earlier run.
        step = step_id(turn.run_id, action.step) if action.step else turn.reply.message.step_id
        owned = self._owned
        return CallSite(
            owned.organization_id,
            owned.agent_id,
            owned.conversation_id,
            owned.run_id,
            step or step_id(turn.run_id, 0),
            turn.settings,
        )


def _shown(fact: Fact, sequence: int) -> list[Shown]:
    match fact:
        case ModelReplied(message=message) | ToolsReturned(message=message) | Compacted(summary=Message() as message):
            return show(message, sequence)
        case _:
            return []
