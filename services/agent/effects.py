"""What the loop does to the world for one run: model calls, tool calls, commits. The policy is in turn.py."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import assert_never
from uuid import UUID

import orjson

from services.agent import dispatch
from services.agent.context import estimate_text, sendable, shortenings
from services.agent.deltas import PieceDeltas
from services.agent.events import Abandoned, Delta, Ended, Event, RunView, first_sequence, frames, show
from services.agent.failures import failure_of, refuses_history
from services.agent.messages import Call, Message, Part, without_nul
from services.agent.ports import (
    CallSite,
    Commit,
    Journal,
    Memory,
    MemoryView,
    ModelRequest,
    Models,
    Owned,
    PeerLost,
    Prompt,
    Recall,
    Reply,
    Stored,
    ToolInfo,
    Tools,
)
from services.agent.prompt import compile_prompt
from services.agent.turn import (
    Action,
    CallModel,
    Fact,
    Failure,
    Finish,
    ModelFailed,
    ModelReplied,
    RunEnded,
    RunTools,
    ToolsReturned,
    Turn,
    call_key,
    status_of,
    step_id,
)
from services.common.errors import LociError, Unavailable
from services.common.ids import uuid7
from services.common.telemetry import current_trace_id, span

# A model gateway that is being restarted is asked again this often, with a growing pause.
ATTEMPTS = 8
# Of an owner's events at most so many are deltas; what is durable has the positions after them to itself.
MOST_DELTAS = 900_000
_FIRST_PAUSE = 0.2
_LOST = Unavailable("The model gateway cannot be reached; send the message again.", reason="LLM_GATEWAY_LOST")

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

    def __init__(
        self,
        owned: Owned,
        ports: Ports,
        view: "asyncio.Future[MemoryView]",
        tools: "asyncio.Future[tuple[ToolInfo, ...]]",
        *,
        stream: bool,
    ) -> None:
        self.interruption: asyncio.Future[Failure] = asyncio.get_running_loop().create_future()
        self._owned = owned
        self._ports = ports
        self._view = view
        self._tools = tools
        self._stream = stream
        self._sequence = first_sequence(owned.fence)
        self._deltas_end = self._sequence + MOST_DELTAS
        self._prompt = owned.prompt
        self._first_token_at: datetime | None = None

    # What the loop asks for ------------------------------------------------------------------------------

    async def perform(self, turn: Turn, action: Action) -> AsyncGenerator[Delta | Abandoned | Fact]:
        """See loop.Effects.perform."""
        match action:
            case CallModel():
                async with aclosing(self._call_model(turn, action)) as happenings:
                    async for happened in happenings:
                        yield happened
            case RunTools():
                with span("tool calls", step=action.step, calls=len(action.calls)):
                    yield await self._run_tools(turn, action)
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
        sequences = []
        for fact in facts:
            sequences.append(self._sequence)
            self._sequence += frames(fact)
        prompt = self._prompt
        stored = await self._ports.journal.commit(
            self._owned,
            Commit(facts, tuple(sequences), turn, prompt, self._first_token_at, current_trace_id()),
        )
        events: list[Event] = []
        for fact, sequence in zip(facts, sequences, strict=True):
            if isinstance(fact, ModelReplied | ToolsReturned):
                events += show(fact.message, sequence)
            elif isinstance(fact, RunEnded):
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
            started_at=stored.started_at,
            first_token_at=self._first_token_at,
            completed_at=stored.completed_at,
        )
        return Ended(sequence, view, fact.failure, turn.usage, turn.step, turn.context_tokens, stored.successor)

    # The model -------------------------------------------------------------------------------------------

    async def _call_model(self, turn: Turn, action: CallModel) -> AsyncGenerator[Delta | Abandoned | Fact]:
        first, step, failure = action.attempt, step_id(turn.run_id, action.step), failure_of(_LOST)
        if first > 1:
            yield Abandoned(self._next(), step, None, first - 1)
        try:
            requests = await self._requests(turn, step)
        except LociError as error:
            yield ModelFailed(action.step, first, failure_of(error))
            return
        request = next(requests)
        for attempt in range(first, first + ATTEMPTS):
            message_id, pause = uuid7(), 0.0
            try:
                async with aclosing(self._ask(turn, action.step, attempt, message_id, request)) as happenings:
                    async for happened in happenings:
                        yield happened
                return
            except PeerLost:
                failure, pause = failure_of(_LOST), _FIRST_PAUSE * 2 ** (attempt - first)
            except LociError as error:
                failure, shorter = failure_of(error), next(requests, None) if refuses_history(error) else None
                if shorter is None:
                    break
                request = shorter
            yield Abandoned(self._next(), step, message_id, attempt)
            if attempt + 1 < first + ATTEMPTS:
                await asyncio.sleep(pause)
        yield ModelFailed(action.step, attempt, failure)

    async def _ask(
        self, turn: Turn, step: int, attempt: int, message_id: UUID, request: ModelRequest
    ) -> AsyncGenerator[Delta | Fact]:
        pieces = PieceDeltas(message_id, request.step_id)
        async with aclosing(self._ports.models.generate(request)) as generation:
            async for part in generation:
                self._note_first_token()
                if isinstance(part, Reply):
                    message = self._message(turn, step, message_id, part)
                    yield ModelReplied(step, attempt, message, part.usage, part.finish)
                elif self._sequence < self._deltas_end:
                    yield pieces.delta(self._next(), part)

    async def _requests(self, turn: Turn, step: UUID) -> Iterator[ModelRequest]:
        """The request, and what to ask instead when the model refuses the history in it."""
        view, tools = await asyncio.gather(self._view, self._tools)
        prompt = self._prompt = self._prompt or self._compile(turn, view)
        described = orjson.dumps([(tool.name, tool.description, tool.parameters) for tool in tools])
        histories = shortenings(
            sendable(turn.history),
            window=turn.settings.context_window_limit,
            fixed=estimate_text(prompt.text) + estimate_text(described.decode()),
            run_id=turn.run_id,
        )
        return (
            ModelRequest(turn.settings, prompt.text, history, tools, self._owned.agent_id, step, stream=self._stream)
            for history in histories
        )

    def _compile(self, turn: Turn, view: MemoryView) -> Prompt:
        return compile_prompt(
            turn.settings,
            view,
            agent_id=self._owned.agent_id,
            conversation_id=self._owned.conversation_id,
            recalled=self._owned.recalled,
            now=self._owned.created_at,
            last=self._owned.prompt_versions,
        )

    def _message(self, turn: Turn, step: int, message_id: UUID, reply: Reply) -> Message:
        calls = 0
        parts: list[Part] = []
        for part in map(without_nul, reply.parts):
            if isinstance(part, Call):
                part = replace(part, key=call_key(turn.run_id, step, calls))
                calls += 1
            parts.append(part)
        return Message(
            message_id, "assistant", tuple(parts), datetime.now(UTC), turn.run_id, step_id(turn.run_id, step)
        )

    def _note_first_token(self) -> None:
        if self._first_token_at is None:
            self._first_token_at = datetime.now(UTC)

    # Tools -----------------------------------------------------------------------------------------------

    async def _run_tools(self, turn: Turn, action: RunTools) -> ToolsReturned:
        owned, step = self._owned, step_id(turn.run_id, action.step)
        site = CallSite(owned.organization_id, owned.agent_id, owned.conversation_id, owned.run_id, step, turn.settings)
        returns = await dispatch.run_calls(action.calls, site, await self._tools, self._ports)
        parts = tuple(map(without_nul, returns))
        message = Message(uuid7(), "tool", parts, datetime.now(UTC), turn.run_id, step)
        return ToolsReturned(action.step, message)

    def _next(self) -> int:
        self._sequence += 1
        return self._sequence - 1
