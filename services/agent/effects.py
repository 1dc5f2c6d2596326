"""What the loop does to the world for one run: model calls, tool calls, commits. The policy is in turn.py."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import assert_never
from uuid import UUID

import orjson

from services.agent import dispatch
from services.agent.context import estimate_text, fit, sendable
from services.agent.events import Abandoned, Delta, Ended, Event, RunView, first_sequence, frames, show
from services.agent.failures import failure_of
from services.agent.messages import Call, Message, Part, Reasoning, Text, kind_of, piece_otid, without_nul
from services.agent.ports import (
    CallSite,
    Commit,
    Journal,
    Memory,
    MemoryView,
    ModelRequest,
    Models,
    Owned,
    PartDelta,
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
_FIRST_PAUSE = 0.2
_LOST = Unavailable("The model gateway cannot be reached; send the message again.", reason="LLM_GATEWAY_LOST")


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
            await asyncio.gather(*(self._ports.tools.cancel(call.key) for call in action.calls))

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
        step = step_id(turn.run_id, action.step)
        if action.attempt > 1:
            yield Abandoned(self._next(), step, None, action.attempt - 1)
        for attempt in range(action.attempt, action.attempt + ATTEMPTS):
            message_id = uuid7()
            try:
                request = await self._request(turn, step)
                async with aclosing(self._ports.models.generate(request)) as generation:
                    shower = _Shower(message_id, step)
                    async for part in generation:
                        self._note_first_token()
                        if isinstance(part, PartDelta):
                            yield shower.delta(self._next(), part)
                        else:
                            message = self._message(turn, action.step, message_id, part)
                            yield ModelReplied(action.step, attempt, message, part.usage, part.finish)
                return
            except PeerLost:
                yield Abandoned(self._next(), step, message_id, attempt)
                await asyncio.sleep(_FIRST_PAUSE * 2 ** (attempt - action.attempt))
            except LociError as error:
                yield ModelFailed(action.step, attempt, failure_of(error))
                return
        yield ModelFailed(action.step, attempt, failure_of(_LOST))

    async def _request(self, turn: Turn, step: UUID) -> ModelRequest:
        view, tools = await asyncio.gather(self._view, self._tools)
        if self._prompt is None:
            self._prompt = self._compile(turn, view)
        fixed = estimate_text(self._prompt.text) + estimate_text(
            orjson.dumps([tool.parameters for tool in tools]).decode()
        )
        history = fit(sendable(turn.history), window=turn.settings.context_window_limit, fixed=fixed)
        return ModelRequest(
            turn.settings, self._prompt.text, history, tools, self._owned.agent_id, step, stream=self._stream
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


class _Shower:
    """Gives deltas the otid that their piece of the final message will have."""

    def __init__(self, message_id: UUID, step: UUID) -> None:
        self._message_id = message_id
        self._step = step
        self._kinds: list[str] = []
        self._pieces: dict[int, int] = {}

    def delta(self, sequence: int, part: PartDelta) -> Delta:
        shown = _shown(part)
        if part.index not in self._pieces:
            kind = kind_of(shown)
            if not self._kinds or self._kinds[-1] != kind:
                self._kinds.append(kind)
            self._pieces[part.index] = len(self._kinds) - 1
        otid = piece_otid(self._message_id, self._pieces[part.index])
        return Delta(sequence, self._message_id, self._step, otid, shown)


def _shown(part: PartDelta) -> Part:
    match part.kind:
        case "reasoning":
            return Reasoning(part.text)
        case "call":
            return Call("", part.call_id, part.call_name, part.text)
        case _:
            return Text(part.text)
