"""One step's model call: what is sent, what comes, and what to do when it is refused or lost."""

import asyncio
import time
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any
from uuid import UUID

import orjson

from services.agent.core.calls.deltas import PieceDeltas
from services.agent.core.calls.failures import failure_of, is_blind, overflows, refuses_history, refuses_pictures
from services.agent.core.calls.offers import Offer, offer, offered_tools, without_form
from services.agent.core.calls.positions import Positions
from services.agent.core.calls.refused_pictures import RefusedPictures
from services.agent.core.calls.replies import reply_parts, restore_thoughts, sanitize_reply, tokens_of, with_zeros
from services.agent.core.events import Abandoned, Delta
from services.agent.core.facts import CallModel, ContextOverflowed, Fact, Failure, ModelFailed, ModelReplied, StopReason
from services.agent.core.messages import Message
from services.agent.core.policy import POLICIES
from services.agent.core.ports import CallSite, Memory, MemoryView, ModelRequest, Models, PeerLost, Reply, ToolInfo
from services.agent.core.ports_journal import OwnedRun, Prompt, TokenCounts
from services.agent.core.prompt.cuts import fit_prompt
from services.agent.core.prompt.system_prompt import (
    compile_prompt,
    overriding_prompt,
    with_instructions,
    with_passages,
    with_skills,
)
from services.agent.core.turn import Turn, step_id
from services.agent.core.window.budget import LEAST_ROOM, calibrate, overflow_in_system
from services.agent.core.window.context import brings_pictures, fits, pinned_tokens, sendable, shortenings
from services.agent.core.window.shrinking import with_clamped_returns, with_short_returns
from services.agent.core.window.sizes import estimate, estimate_text
from services.common.core.storable import storable
from services.common.errors import LociError, Unavailable
from services.common.ids import uuid7

# A model gateway that is being restarted is asked again this often, with a growing pause.
ATTEMPTS = 8
# Compactions for one reply, after which a model that still refuses is shown less without one.
MOST_COMPACTIONS = 3
_FIRST_PAUSE = 0.2
# What a refusal that names no limit says of the window: it is smaller than what was sent, by so much. That is a guess
# and holds for the run alone.
_GUESS = 0.7
_SIZES = ("limit", "requested", "output")
# Part of an estimate that is there at least: English has five bytes to the token, we count three.
_LEAST_OF_ESTIMATE = 0.6
_LOST = Unavailable("The model gateway cannot be reached; send the message again.", reason="LLM_GATEWAY_LOST")


@dataclass
class TurnContext:
    """The memory, tools and recalled passages of a run, each asked for once, the prompt of them, and token counts."""

    view: "asyncio.Future[MemoryView]"
    tools: "asyncio.Future[tuple[ToolInfo, ...]]"
    recalled: "asyncio.Future[tuple[str, ...]] | None" = None
    prompt: Prompt | None = None
    counted: TokenCounts = field(default_factory=TokenCounts)
    # The messages that the model saw when it replied last; none where another owner asked it.
    seen: Sequence[Message] = ()
    pictures: RefusedPictures = field(default_factory=RefusedPictures)

    def window(self, tokens: int) -> int:
        """Returns a window of so many tokens, in our estimates."""
        return calibrate(tokens, estimated=self.counted.estimated, reported=self.counted.reported)

    def begin_anew(self, memory: Memory, site: CallSite) -> None:
        """Has the prompt compiled once more after a compaction, from memory as it is now."""
        self.view = asyncio.ensure_future(memory.view(site.agent_id, site.conversation_id))
        self.prompt = None

    def discard(self) -> None:
        """Drops what was asked for: the run is over."""
        for future in (self.view, self.tools, self.recalled):
            if future is not None:
                discard(future)


@dataclass
class StepMeasures:
    """The measures of a step that its commit stores."""

    first_token_at: datetime | None = None
    metrics: dict[str, Any] = field(default_factory=dict)
    provider_trace: str | None = None
    # The step that an interruption cut short, 0 for none.
    cut_short: int = 0


@dataclass(frozen=True, slots=True)
class PreparedRequest:
    """All of a request but the history."""

    request: ModelRequest
    offered: Offer
    fixed: int
    window: int


class ModelCalls:
    """Makes the model calls of one run. `stream` asks for deltas."""

    def __init__(
        self,
        owned: OwnedRun,
        models: Models,
        context: TurnContext,
        positions: Positions,
        measured: StepMeasures,
        *,
        stream: bool,
    ) -> None:
        self._owned = owned
        self._models = models
        self._context = context
        self._positions = positions
        self._measured = measured
        self._stream = stream

    async def perform(self, turn: Turn, action: CallModel) -> AsyncGenerator[Delta | Abandoned | Fact]:
        """Yields deltas, then the fact that came of the call."""
        first, step = action.attempt, step_id(turn.run_id, action.step)
        if first > 1:
            yield Abandoned(self._positions.next(), step, None, first - 1)
        try:
            ready = await self.ready(turn, step)
        except LociError as error:
            yield ModelFailed(action.step, first, failure_of(error))
            return
        # Where nobody has counted yet, the estimate may be far above the truth.
        surely = 1.0 if self._context.counted.reported else _LEAST_OF_ESTIMATE
        if (hopeless := _prompt_overflow(ready, surely)) is not None:
            yield ModelFailed(action.step, first, hopeless)
            return
        history = sendable_history(turn)
        # Old returns are cut without a summary; what would be left out is worth one.
        if not turn.compactions and not fits(with_short_returns(history), window=ready.window, fixed=ready.fixed):
            yield ContextOverflowed(action.step, first)
            return
        async with aclosing(self._attempts(turn, action, ready, history)) as happenings:
            async for happened in happenings:
                yield happened

    async def first(self, turn: Turn, step: UUID) -> ModelRequest:
        """Returns what a call would send first. Raises LociError."""
        ready = await self.ready(turn, step)
        return next(await self._requests(turn, ready, sendable_history(turn)))

    async def ready(self, turn: Turn, step: UUID) -> PreparedRequest:
        """Returns the prompt and the tools of a call. Raises LociError."""
        view, attached = await self._context.view, await self._context.tools
        offered, window = offer(turn, attached), self._context.window(turn.settings.context_window_limit)
        policy = POLICIES[turn.settings.agent_type]
        reasons = policy.inner_thoughts and await self._models.reasons(turn.settings.model)
        tools = offered_tools(offered, turn.settings, reasons=reasons)
        of_tools = estimate_text(
            orjson.dumps([(tool.name, tool.description, tool.parameters) for tool in tools]).decode()
        )
        prompt = self._context.prompt
        if prompt is None:
            prompt = self._context.prompt = self._compiled(turn, view, window, of_tools)
        options = turn.settings.options
        text = with_instructions(with_skills(prompt.text, options.client_skills), options.instructions)
        request = ModelRequest(
            without_form(turn.settings) if policy.must_call else turn.settings,
            text,
            (),
            tools,
            self._owned.agent_id,
            step,
            stream=self._stream,
            forced=offered.forced,
            only=offered.only,
            parallel=offered.parallel,
        )
        return PreparedRequest(request, offered, estimate_text(text) + of_tools, window)

    async def _attempts(
        self, turn: Turn, action: CallModel, ready: PreparedRequest, history: Sequence[Message]
    ) -> AsyncGenerator[Delta | Abandoned | Fact]:
        first, failure = action.attempt, failure_of(_LOST)
        pictures, model = self._context.pictures, turn.settings.model
        suspects: set[UUID] = set()
        requests = await self._requests(turn, ready, history)
        request = next(requests)
        for attempt in range(first, first + ATTEMPTS):
            message_id, pause = uuid7(), 0.0
            try:
                call = self._ask(turn, action.step, attempt, message_id, request, ready.offered, ready.fixed)
                async with aclosing(call) as happenings:
                    async for happened in happenings:
                        yield happened
                pictures.note_answer(request.history, model, suspects)
                return
            except PeerLost:
                failure, pause = failure_of(_LOST), _FIRST_PAUSE * 2 ** (attempt - first)
            except LociError as error:
                overflow = self._overflow(turn, action.step, attempt, error, request, ready)
                if overflow is not None:
                    yield Abandoned(self._positions.next(), request.step_id, message_id, attempt)
                    yield overflow
                    return
                failure = failure_of(error)
                final = False
                if refuses_pictures(error) or error.reason == "LLM_BAD_REQUEST":
                    suspects = pictures.suspects(request.history, model)
                    final = self._refuses_new_pictures(turn, error, request, suspects)
                shorter = next(requests, None) if refuses_history(error) and not final else None
                if shorter is None:
                    failure = (_prompt_overflow(ready, 1.0) if overflows(error) else None) or failure
                    break
                request = shorter
            yield Abandoned(self._positions.next(), request.step_id, message_id, attempt)
            if attempt + 1 < first + ATTEMPTS:
                await asyncio.sleep(pause)
        yield ModelFailed(action.step, attempt, failure)

    def _refuses_new_pictures(self, turn: Turn, error: LociError, request: ModelRequest, suspects: set[UUID]) -> bool:
        """Returns whether the run's own pictures are refused: what was asked about one is not answered without it."""
        if not refuses_pictures(error) or not brings_pictures(request.history, turn.run_id):
            return False
        own = {message.id for message in request.history if message.run_id == turn.run_id} & suspects
        if not is_blind(error) and suspects - own:
            # It may be an older one.
            return False
        self._context.pictures.note(own, turn.settings.model, taken=False)
        return True

    async def _ask(
        self, turn: Turn, step: int, attempt: int, message_id: UUID, request: ModelRequest, offered: Offer, fixed: int
    ) -> AsyncGenerator[Delta | Fact]:
        began = time.monotonic_ns()
        pieces = PieceDeltas(message_id, request.step_id, turn.settings, offered)
        try:
            async with aclosing(self._models.generate(request)) as generation:
                async for event in generation:
                    self._note_first_token(began)
                    part = sanitize_reply(event) if isinstance(event, Reply) else event
                    if isinstance(part, Reply):
                        self._measured.provider_trace = part.trace
                        if part.tool_problems:
                            self._measured.metrics["tool_problems"] = [
                                (storable(name), storable(why)) for name, why in part.tool_problems
                            ]
                        sent = fixed + sum(map(estimate, request.history))
                        self._context.counted = TokenCounts(sent, part.usage.prompt_tokens)
                        self._context.seen = request.history
                        yield self._replied(turn, step, attempt, message_id, part, offered)
                    elif self._positions.may_show:
                        for delta in pieces.deltas(part):
                            yield replace(delta, sequence=self._positions.next())
        finally:
            self._measured.metrics["llm_request_ns"] = time.monotonic_ns() - began

    def _replied(
        self, turn: Turn, step: int, attempt: int, message_id: UUID, reply: Reply, offered: Offer
    ) -> ModelReplied:
        parts = reply_parts(reply.parts, settings=turn.settings, offered=offered, run_id=turn.run_id, step=step)
        message = Message(message_id, "assistant", parts, datetime.now(UTC), turn.run_id, step_id(turn.run_id, step))
        names = tuple(tool.name for tool in offered.tools) if turn.settings.tool_rules else ()
        other = "" if reply.handle == turn.settings.model else reply.handle
        usage = reply.usage if self._stream else with_zeros(reply.usage)
        return ModelReplied(step, attempt, message, usage, reply.finish, names, reply.outputs, other)

    async def _requests(self, turn: Turn, ready: PreparedRequest, history: Sequence[Message]) -> Iterator[ModelRequest]:
        """Yields the request, and what to ask instead when the model refuses the history in it."""
        if self._context.recalled is not None:
            history = with_passages(history, await self._context.recalled, turn.run_id)
        history = self._context.pictures.without(history, turn.settings.model, keep_run=turn.run_id)
        histories = shortenings(history, window=ready.window, fixed=ready.fixed, run_id=turn.run_id)
        return (replace(ready.request, history=history) for history in histories)

    def _compiled(self, turn: Turn, view: MemoryView, window: int, of_tools: int) -> Prompt:
        if turn.settings.options.system is not None:
            return overriding_prompt(turn.settings.options.system)
        return fit_prompt(
            view, partial(self._compile, turn), window=window, of_tools=of_tools, newest=partial(_newest, turn)
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

    def _overflow(
        self, turn: Turn, step: int, attempt: int, error: LociError, request: ModelRequest, ready: PreparedRequest
    ) -> ContextOverflowed | None:
        """Returns what a refusal as too long says of the window; None where a compaction would not help against it."""
        if not overflows(error) or turn.compactions >= MOST_COMPACTIONS:
            return None
        sent = ready.fixed + sum(map(estimate, request.history))
        limit, requested, output = (tokens_of(error.metadata.get(name) or 0) for name in _SIZES)
        if requested:
            self._context.counted = TokenCounts(sent, requested)
        if limit:
            fact = ContextOverflowed(step, attempt, max(limit - output, 1), limit)
        else:
            counted = self._context.counted
            real = sent * counted.reported // counted.estimated if counted.estimated else sent
            fact = ContextOverflowed(step, attempt, max(int(real * _GUESS), 1))
        return fact if self._context.window(fact.limit) > ready.fixed + LEAST_ROOM else None

    def _note_first_token(self, began: int) -> None:
        if self._measured.first_token_at is None:
            self._measured.first_token_at = datetime.now(UTC)
        self._measured.metrics.setdefault("ttft_ns", time.monotonic_ns() - began)


def sendable_history(turn: Turn) -> Sequence[Message]:
    """Returns the history of a turn in the form in which it can be sent."""
    return restore_thoughts(sendable(with_clamped_returns(turn.history, turn.settings.context_window_limit)))


def discard(future: "asyncio.Future[Any]") -> None:
    """Cancels a task that nobody will await; its error, if any, is of no interest."""
    future.cancel()
    future.add_done_callback(lambda done: None if done.cancelled() else done.exception())


def _prompt_overflow(ready: PreparedRequest, surely: float) -> Failure | None:
    """Returns why not even an empty history can be sent, when this part of the estimate is sure."""
    of_prompt = estimate_text(ready.request.prompt)
    sizes = {"the system prompt": of_prompt, "the tools": ready.fixed - of_prompt}
    sentence = overflow_in_system({name: int(size * surely) for name, size in sizes.items()}, ready.window)
    if sentence is None:
        return None
    reason = StopReason.CONTEXT_WINDOW_OVERFLOW_IN_SYSTEM_PROMPT
    return Failure(reason, reason.value, sentence, reason="LLM_CONTEXT_OVERFLOW")


def _newest(turn: Turn) -> int:
    return pinned_tokens(sendable(with_clamped_returns(turn.history, turn.settings.context_window_limit)))
