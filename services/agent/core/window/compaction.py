"""The moment at which the window is compacted, and the messages that a summary then stands for. Pure.

    due, or the model refused       plans(history, ...)            the model, or bare_summary (summary.py)
    ------------------------> Trigger ---------------> Cut, Cut... -----------------------------> packed summary

A summary takes the place of history[:cut.kept_from]; what is stored stays stored, and searchable. Source: LETTA V1
API, compaction. A cut never parts a call from its return, and never takes calls that wait for the client; the newest
message goes only where the settings say that all is summarised. An earlier summary is part of what is summarised. When
every plan fails, `context.fit` still fits.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import accumulate
from typing import Any

from services.agent.core.messages import Message, calls_of
from services.agent.core.window.budget import FILL
from services.agent.core.window.context import answered_call_ids, waiting_place
from services.agent.core.window.sizes import estimate

# What the older types' partial_evict summarises of the messages.
EVICTED = 0.3
# The cut begins a step behind what the settings say, and goes on by this part of the messages.
_STEP = 0.1
# A compaction that frees less of the window is not worth a model call, unless it must be.
_WORTH = 0.05


class Mode(StrEnum):
    """The way a window is summarised. The last two are those of older agent types; clients cannot choose them."""

    SLIDING_WINDOW = "sliding_window"
    ALL = "all"
    SELF_COMPACT_ALL = "self_compact_all"
    SELF_COMPACT_SLIDING_WINDOW = "self_compact_sliding_window"
    PARTIAL_EVICT = "partial_evict"
    STATIC_BUFFER = "static_buffer"

    @property
    def by_itself(self) -> bool:
        """Returns whether the agent's own model writes the summary, from the prefix that its provider has cached."""
        return self in (Mode.SELF_COMPACT_ALL, Mode.SELF_COMPACT_SLIDING_WINDOW)


# All is summarised that may be.
_WHOLE = (Mode.ALL, Mode.SELF_COMPACT_ALL)


class Trigger(StrEnum):
    """The reason why a window is compacted; values are those of the reference API."""

    CONTEXT_WINDOW_EXCEEDED = "context_window_exceeded"
    POST_STEP_CONTEXT_CHECK = "post_step_context_check"
    MANUAL = "manual"


@dataclass(frozen=True, slots=True)
class CompactionSettings:
    """An agent's settings of compaction.

    model: handle of the summariser; None: see `summariser`. prompt: None for the mode's own.
    prompt_acknowledgement: the summariser is asked after an exchange in which it agrees to write nothing else.
    clip_chars: characters of a summary at most; None or less than 1 for no limit.
    sliding_window_percentage: the part of the window that is free after compaction, 0 to 1.
    """

    model: str | None = None
    model_settings: dict[str, Any] = field(default_factory=dict)
    prompt: str | None = None
    prompt_acknowledgement: bool = False
    clip_chars: int | None = 50_000
    mode: Mode = Mode.SLIDING_WINDOW
    sliding_window_percentage: float = 0.30


@dataclass(frozen=True, slots=True)
class CompactionStats:
    """The statistics of a compaction. Tokens count the prompt too; messages do not."""

    trigger: Trigger
    context_tokens_before: int
    context_tokens_after: int
    context_window: int
    messages_count_before: int
    messages_count_after: int


@dataclass(frozen=True, slots=True)
class Buffer:
    """The buffer of static_buffer: nothing is cut while there are `most` messages, and `least` of the newest stay."""

    most: int = 60
    least: int = 15


@dataclass(frozen=True, slots=True)
class HistoryCut:
    """`history[:kept_from]` is summarised in this mode and `history[kept_from:]` stays.

    `saved` are the tokens that leave the window, before the summary comes into it.
    """

    mode: Mode
    kept_from: int
    saved: int

    def worth_it(self, window: int) -> bool:
        """Returns whether enough is won. What is not worth it would be due again at once, at every step."""
        return self.saved >= window * _WORTH


@dataclass(frozen=True, slots=True)
class _Room:
    """The window and what it holds; `tokens[n]` are those of the messages from the nth on."""

    window: int
    fixed: int
    tokens: list[int]

    def left(self, place: int) -> float:
        """Returns the part of the window that is filled when the messages begin at `place`."""
        return (self.fixed + self.tokens[place]) / self.window


def is_due(context_tokens: int, window: int) -> bool:
    """Returns whether a context of so many tokens, prompt and all, should be compacted."""
    return context_tokens > FILL * window


def fallback_modes(mode: Mode) -> tuple[Mode, ...]:
    """Returns the mode and those to try when it finds no cut or its summariser fails, in order."""
    match mode:
        case Mode.SELF_COMPACT_ALL:
            return (mode, Mode.SELF_COMPACT_SLIDING_WINDOW, Mode.ALL)
        case Mode.PARTIAL_EVICT:
            return (mode, Mode.SLIDING_WINDOW, Mode.ALL)
        case Mode.ALL:
            return (mode,)
        case Mode.SLIDING_WINDOW | Mode.SELF_COMPACT_SLIDING_WINDOW | Mode.STATIC_BUFFER:
            return (mode, Mode.ALL)


def plans(
    history: Sequence[Message],
    mode: Mode,
    settings: CompactionSettings,
    *,
    window: int,
    fixed: int,
    measure: Callable[[Message], int] = estimate,
    buffer: Buffer = Buffer(),
) -> Iterator[HistoryCut]:
    """Yields the cuts to try, best first: those of `fallback_modes`. None where nothing can be summarised."""
    whole = mode in _WHOLE
    for tried in fallback_modes(mode):
        cut = plan(history, tried, settings, window=window, fixed=fixed, measure=measure, buffer=buffer, whole=whole)
        if cut is not None:
            yield cut


def plan(
    history: Sequence[Message],
    mode: Mode,
    settings: CompactionSettings,
    *,
    window: int,
    fixed: int,
    measure: Callable[[Message], int] = estimate,
    buffer: Buffer = Buffer(),
    whole: bool = True,
) -> HistoryCut | None:
    """Returns which of the stored messages, oldest first, are summarised in `mode`; None where it finds no cut that
    helps.

    `fixed` are the tokens of prompt and tools; `measure` gives those of a message. whole: a mode that summarises all
    takes the newest message, too.
    """
    tokens = list(accumulate(map(measure, reversed(history)), initial=0))[::-1]
    room = _Room(window, fixed, tokens)
    if mode in _WHOLE and whole:
        place = _whole(history)
    elif mode in (Mode.SLIDING_WINDOW, Mode.SELF_COMPACT_SLIDING_WINDOW):
        places = [place for place in cuts(history) if history[place].role == "assistant"]
        place = _slide(places, room, settings.sliding_window_percentage)
    else:
        place = _place(mode, cuts(history), room, buffer)
    return None if place is None else HistoryCut(mode, place, tokens[0] - tokens[place])


def cuts(history: Sequence[Message]) -> list[int]:
    """Returns where the kept part may begin, oldest first: at a message of the user or the assistant, with at least one
    message before it that no summary stands for yet.
    """
    summaries = [place for place, message in enumerate(history) if message.role == "summary"]
    first = summaries[-1] + 2 if summaries else 1
    waiting = waiting_place(history)
    last = len(history) - 1 if waiting is None else waiting
    places = []
    # Calls that are answered at or after a place, and may be made before it.
    answered = False
    for place in range(len(history) - 1, first - 1, -1):
        answered = not calls_of(history[place]) and (answered or bool(answered_call_ids(history[place])))
        if place <= last and not answered and history[place].role in ("user", "assistant"):
            places.append(place)
    return places[::-1]


def _whole(history: Sequence[Message]) -> int | None:
    """Returns the place behind everything but calls that wait; None where no message is there but a summary."""
    waiting = waiting_place(history)
    place = len(history) if waiting is None else waiting
    return place if any(message.role != "summary" for message in history[:place]) else None


def _place(mode: Mode, places: Sequence[int], room: _Room, buffer: Buffer) -> int | None:
    count = len(room.tokens) - 1
    match mode:
        case Mode.PARTIAL_EVICT:
            place = _first(places, count * EVICTED)
            return place if place is not None and room.left(place) <= FILL else None
        case Mode.STATIC_BUFFER:
            if count <= buffer.most and room.left(0) <= FILL:
                return None
            place = max((place for place in places if place <= count - buffer.least), default=None)
            return place if place is not None and room.left(place) <= FILL else None
        case _:
            return places[-1] if places else None


def _slide(places: Sequence[int], room: _Room, percentage: float) -> int | None:
    """Returns the first cut, in steps of a tenth of the messages, that leaves so much of the window free."""
    # The system message counts as one of them.
    count = len(room.tokens)
    steps = math.ceil((1 - percentage) / _STEP)
    for step in range(1, steps + 1):
        place = _first(places, round(count * (percentage + step * _STEP)) - 1)
        if place is None:
            return None
        if room.left(place) <= 1 - percentage:
            return place
    return None


def _first(places: Sequence[int], least: float) -> int | None:
    # A float may be a little more than the whole number that it stands for.
    return next((place for place in places if place >= least - 1e-6), None)
