"""Compaction carried out: a model writes the summary, and when every model fails there is one still."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import orjson

from services.agent.calls.model_calls import ModelCalls, PreparedRequest, TurnContext
from services.agent.core.calls.positions import Positions
from services.agent.core.calls.replies import restore_thoughts, sanitize_reply
from services.agent.core.events import Compacting
from services.agent.core.facts import Compact, Compacted, Fact, Settings, Usage
from services.agent.core.messages import Call, Message, Text
from services.agent.core.policy import POLICIES
from services.agent.core.ports import CallSite, Memory, ModelRequest, Models, PeerLost, Reply
from services.agent.core.summaries.bare_summary import bare_summary
from services.agent.core.summaries.compaction_settings import light_model, settings_from_json
from services.agent.core.summaries.summary import clip_summary, joined_block, pack, summary_tokens, unpack
from services.agent.core.summaries.transcript import SummaryRequest, request, request_to_itself
from services.agent.core.turn import Turn, has_too_many_messages, step_id
from services.agent.core.window.budget import room_for_messages
from services.agent.core.window.compaction import CompactionSettings, CompactionStats, HistoryCut, Mode, Trigger, plans
from services.agent.core.window.context import sendable
from services.agent.core.window.shrinking import with_clamped_returns
from services.agent.core.window.sizes import estimate
from services.agent.core.zones import zone
from services.common.errors import LociError
from services.common.ids import uuid7

# Summarisers that take longer together are as good as none.
PATIENCE_SECONDS = 60.0

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _WrittenSummary:
    """A summary, and what it cost."""

    text: str
    usage: Usage = field(default_factory=Usage)


class Compactor:
    """Compacts the window of one run."""

    def __init__(
        self,
        models: Models,
        memory: Memory,
        calls: ModelCalls,
        context: TurnContext,
        positions: Positions,
        site: CallSite,
    ) -> None:
        self._models = models
        self._memory = memory
        self._calls = calls
        self._context = context
        self._positions = positions
        self._site = site

    async def perform(self, turn: Turn, action: Compact) -> AsyncGenerator[Compacting | Fact]:
        """Yields an event that it begins, where there is something to do, then the fact that came of it."""
        # The summary stands for what the model saw, and so do the measures.
        turn = replace(turn, history=with_clamped_returns(turn.history, turn.settings.context_window_limit))
        step = step_id(turn.run_id, turn.step)
        settings, ready = _settings(turn), await self._ready(turn, step)
        fixed = 0 if ready is None else ready.fixed
        cuts = self._cuts(turn, action.trigger, settings, fixed)
        if not cuts and action.trigger is not Trigger.MANUAL:
            yield self._compacted(turn, action.trigger, None, None, fixed)
            return
        window, messages = turn.settings.context_window_limit, len(turn.history) + 1
        yield Compacting(
            self._positions.next(), turn.run_id, step, action.trigger, turn.context_tokens, window, messages
        )
        cut, written = await self._written(turn, settings, ready, cuts, fixed)
        if cut is not None and written is not None:
            await self._collect(turn, written.text, cut)
            self._context.begin_anew(self._memory, self._site)
        yield await self._counted(turn, self._compacted(turn, action.trigger, cut, written, fixed), cut, ready)

    async def _counted(
        self, turn: Turn, compacted: Compacted, cut: HistoryCut | None, ready: PreparedRequest | None
    ) -> Compacted:
        """Returns the same with the provider's own count of what is left, where it has one."""
        if compacted.summary is None or cut is None or ready is None:
            return compacted
        history = restore_thoughts(sendable((compacted.summary, *turn.history[cut.kept_from :])))
        tokens = await self._models.count(replace(ready.request, history=history))
        if tokens is None:
            return compacted
        stats = replace(compacted.stats, context_tokens_after=tokens)
        text = unpack("".join(part.text for part in compacted.summary.parts if isinstance(part, Text)))
        summary = self._message(turn, text[0] if text else "", stats)
        return replace(compacted, summary=replace(summary, id=compacted.summary.id), stats=stats)

    async def _ready(self, turn: Turn, step: UUID) -> PreparedRequest | None:
        try:
            return await self._calls.ready(turn, step)
        except LociError as error:
            # Without its prompt the window is only guessed at; the model call that follows tells what is wrong.
            _log.warning("compacting without a prompt: %s", error.message)
            return None

    def _cuts(self, turn: Turn, trigger: Trigger, settings: CompactionSettings, fixed: int) -> tuple[HistoryCut, ...]:
        """Returns the cuts to try, best first. None: there is nothing to summarise, or it is not worth it."""
        window = self._context.window(turn.settings.context_window_limit)
        cuts = tuple(plans(turn.history, self._mode(turn, settings), settings, window=window, fixed=fixed))
        if trigger is Trigger.MANUAL:
            # A summary in the place of one message makes no window shorter.
            return tuple(cut for cut in cuts if cut.kept_from > 1)
        if trigger is Trigger.POST_STEP_CONTEXT_CHECK and not has_too_many_messages(turn):
            return tuple(cut for cut in cuts if cut.worth_it(window))
        return cuts

    def _mode(self, turn: Turn, settings: CompactionSettings) -> Mode:
        return POLICIES[turn.settings.agent_type].compaction or settings.mode

    async def _written(
        self,
        turn: Turn,
        settings: CompactionSettings,
        ready: PreparedRequest | None,
        cuts: Sequence[HistoryCut],
        fixed: int,
    ) -> tuple[HistoryCut | None, _WrittenSummary | None]:
        """Returns the cut, and the summary of what is before it; without a cut there is nothing that could be
        summarised.
        """
        window = self._context.window(turn.settings.context_window_limit)
        if ready is not None and self._by_model_at_all(turn, cuts, window):
            try:
                async with asyncio.timeout(PATIENCE_SECONDS):
                    for cut in cuts:
                        if (written := await self._by_model(turn, settings, cut, ready)) is not None:
                            return cut, written
            except TimeoutError:
                _log.warning("no summary was written in %d s", PATIENCE_SECONDS)
        last = next(iter(cuts), None)
        if last is None:
            return None, None
        budget = min(summary_tokens(window), room_for_messages(window, fixed) // 4)
        return last, _WrittenSummary(bare_summary(turn.history[: last.kept_from], budget=max(budget, 1)))

    def _by_model_at_all(self, turn: Turn, cuts: Sequence[HistoryCut], window: int) -> bool:
        """Returns whether a model is asked: not again for one reply, nor for the little that a large prompt leaves room
        for.
        """
        seen_by_us = turn.overflow is not None and not turn.overflow.limit
        return not turn.compactions and not (seen_by_us and not any(cut.worth_it(window) for cut in cuts))

    async def _by_model(
        self, turn: Turn, settings: CompactionSettings, cut: HistoryCut, ready: PreparedRequest
    ) -> _WrittenSummary | None:
        """Returns the summary of a model: the one that the settings want, else the agent's own; None when both fail."""
        messages = turn.history[: cut.kept_from]
        for model_request in await self._requests(turn, settings, cut.mode, messages, ready):
            try:
                reply = await self._reply(model_request)
            except (LociError, PeerLost) as error:
                _log.warning("%s wrote no summary: %s", model_request.settings.model, error)
                continue
            text = clip_summary(
                "".join(part.text for part in reply.parts if isinstance(part, Text)),
                settings.clip_chars,
                turn.settings.context_window_limit,
            )
            if text:
                return _WrittenSummary(text, reply.usage)
        return None

    async def _requests(
        self, turn: Turn, settings: CompactionSettings, mode: Mode, messages: Sequence[Message], ready: PreparedRequest
    ) -> Sequence[ModelRequest]:
        window = turn.settings.context_window_limit
        if mode.by_itself:
            summary_request = request_to_itself(messages, settings, mode, window=window, fixed=ready.fixed)
            return [] if summary_request is None else [_asking(ready.request, summary_request, turn.settings)]
        requests = []
        for handle in dict.fromkeys((settings.model or light_model(turn.settings.model), turn.settings.model)):
            own = turn.settings.model == handle
            room = window if own else await self._window(handle)
            if room:
                model_settings = turn.settings.model_settings if own else settings.model_settings
                summariser = replace(turn.settings, model=handle, model_settings=_summariser_settings(model_settings))
                summary_request = request(messages, settings, mode, window=room)
                requests.append(_asking(replace(ready.request, tools=()), summary_request, summariser))
        return requests

    async def _window(self, handle: str) -> int:
        """Returns tokens of a model's window; 0 for one that is not to be had."""
        try:
            return await self._models.window(handle)
        except LociError:
            return 0

    async def _reply(self, model_request: ModelRequest) -> Reply:
        async for part in self._models.generate(model_request):
            if isinstance(part, Reply):
                return sanitize_reply(part)
        raise PeerLost("The summariser's answer ended before it began.")

    def _compacted(
        self, turn: Turn, trigger: Trigger, cut: HistoryCut | None, written: _WrittenSummary | None, fixed: int
    ) -> Compacted:
        history, window = turn.history, turn.settings.context_window_limit
        before = turn.context_tokens or fixed + sum(map(estimate, history))
        if cut is None or written is None:
            stats = CompactionStats(trigger, before, before, window, len(history) + 1, len(history) + 1)
            return Compacted(trigger, None, None, stats)
        kept = history[cut.kept_from :]
        stats = CompactionStats(trigger, before, 0, window, len(history) + 1, len(kept) + 2)
        draft = self._message(turn, written.text, stats)
        after = fixed + sum(map(estimate, (draft, *kept)))
        summary = self._message(turn, written.text, replace(stats, context_tokens_after=after))
        kept_from = kept[0].id if kept else summary.id
        return Compacted(trigger, summary, kept_from, replace(stats, context_tokens_after=after), written.usage)

    def _message(self, turn: Turn, text: str, stats: CompactionStats) -> Message:
        now = datetime.now(UTC)
        content = Text(pack(text, at=now.astimezone(zone(turn.settings.timezone)), stats=stats))
        return Message(uuid7(), "summary", (content,), now, turn.run_id)

    async def _collect(self, turn: Turn, summary: str, cut: HistoryCut) -> None:
        """Writes the summary into the block that collects them, for the agent types that have one."""
        label = POLICIES[turn.settings.agent_type].summary_block
        if label is None:
            return
        # The same for every owner of the run, and another for the next compaction.
        key = f"{turn.run_id}/summary/{turn.history[cut.kept_from - 1].id}"
        try:
            view = await self._context.view
            block = next((block for block in view.blocks if block.label == label), None)
            value = summary if block is None else joined_block(block.value, summary, block.limit)
            await self._memory.apply(_rethink(key, label, value), self._site, create_block=True)
        except LociError as error:
            # The summary is in the window; the block is for later windows.
            _log.warning("the block %s did not get the summary: %s", label, error.message)


def _settings(turn: Turn) -> CompactionSettings:
    options = turn.settings.options.compact or {}
    try:
        return settings_from_json({**(turn.settings.compaction_settings or {}), **options})
    except ValueError as error:
        # They were checked when they were set, maybe by another release.
        _log.warning("compaction settings are not understood: %s", error)
        return CompactionSettings()


def _asking(like: ModelRequest, summary_request: SummaryRequest, settings: Settings) -> ModelRequest:
    return replace(
        like,
        # What the request wants of the answer is not meant for the summary.
        settings=replace(settings, response_format=None, options=replace(settings.options, stop=())),
        prompt=like.prompt if summary_request.prompt is None else summary_request.prompt,
        history=summary_request.history,
        stream=False,
        forced=False,
        only=None,
        text_only=True,
    )


def _summariser_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Returns model settings without what a summary has no use for."""
    useful = {name: value for name, value in settings.items() if name not in ("response_format", "max_output_tokens")}
    # Claude would think by default.
    return {"thinking": {"type": "disabled"}, **useful}


def _rethink(key: str, label: str, value: str) -> Call:
    return Call(key, key, "memory_rethink", orjson.dumps({"label": label, "new_memory": value}).decode())
