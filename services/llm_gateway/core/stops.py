"""The end of a reply at a text that the caller names, whatever the provider can do. Pure.

Providers that have a field for such texts are told them as settings, so that they write no more than is wanted. The
filter does the rest: it holds back what may be the beginning of a stop, and leaves out what follows one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from services.llm_gateway.core.chat import (
    Completed,
    Event,
    FinishReason,
    Generation,
    Part,
    Text,
    TextDelta,
)

# More than these, and blank ones, are refused by some.
_MOST_OF_PROVIDERS = 4


def stop_settings(stops: Sequence[str]) -> Mapping[str, Any]:
    """Returns the stops as the settings of the providers that know them, by each of their names."""
    if not stops or len(stops) > _MOST_OF_PROVIDERS or not all(text.strip() for text in stops):
        return {}
    return {"stop": list(stops), "stop_sequences": list(stops)}


class StopFilter:
    """The filter of one reply's events."""

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = stops
        self._held = ""
        self._index = -1
        self._stopped = False

    def passed(self, event: Event) -> list[Event]:
        """Returns the events that go on."""
        if isinstance(event, Completed):
            return [*self._release(), Completed(cut(event.generation, self._stops))]
        if self._stopped:
            return []
        if not isinstance(event, TextDelta):
            return [*self._release(), event]
        before = self._release() if event.index != self._index else []
        return [*before, *self._text(event)]

    def _text(self, event: TextDelta) -> list[Event]:
        text, self._index = self._held + event.text, event.index
        place = find_stop(text, self._stops)
        self._stopped = place is not None
        end = len(text) - _unfinished(text, self._stops) if place is None else place
        self._held = text[end:] if place is None else ""
        return [replace(event, text=text[:end])] if end else []

    def _release(self) -> list[Event]:
        held, self._held = self._held, ""
        return [TextDelta(self._index, held)] if held else []


def cut(generation: Generation, stops: Sequence[str]) -> Generation:
    """Returns the reply up to the first stop."""
    parts: list[Part] = []
    for part in generation.message.parts:
        place = find_stop(part.text, stops) if isinstance(part, Text) else None
        if isinstance(part, Text) and place is not None:
            # A signature is that of the whole text.
            kept = [*parts, Text(part.text[:place])] if place else parts
            message = replace(generation.message, parts=kept)
            return replace(generation, message=message, finish_reason=FinishReason.STOP)
        parts.append(part)
    return generation


def find_stop(text: str, stops: Sequence[str]) -> int | None:
    """Returns where the first stop begins, None where there is none."""
    return min((place for stop in stops if (place := text.find(stop)) >= 0), default=None)


def _unfinished(text: str, stops: Sequence[str]) -> int:
    """Returns the length of the end of `text` with which a stop may begin."""
    longest = max(map(len, stops)) - 1
    tails = (text[-length:] for length in range(min(longest, len(text)), 0, -1))
    return next((len(tail) for tail in tails if any(stop.startswith(tail) for stop in stops)), 0)
