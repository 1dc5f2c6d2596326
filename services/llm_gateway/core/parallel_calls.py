"""One tool call where several were not wanted: some providers do not know `parallel_tool_calls=false`. Pure.

The first call is kept, and every text and thought before and after it. What the provider counted stays as it is: the
calls that are left out were generated, and are paid for.
"""

from collections.abc import Sequence
from dataclasses import replace

from services.llm_gateway.core.chat import Completed, Event, Part, RedactedReasoning, ToolCall, ToolCallDelta


class FirstCallOnly:
    """The filter of one reply. Parts keep their order; the indexes of deltas are those of the parts that are left.

    `excess`: how many calls the complete reply had after its first.
    """

    def __init__(self) -> None:
        self.excess = 0
        self._first: int | None = None
        self._seen: set[int] = set()
        self._dropped: set[int] = set()

    def passed(self, event: Event) -> Event | None:
        """Returns the event as it goes on, None for one of a call that is left out."""
        if isinstance(event, Completed):
            generation = event.generation
            self.excess = max(0, sum(isinstance(part, ToolCall) for part in generation.message.parts) - 1)
            message = replace(generation.message, parts=first_call_only(generation.message.parts))
            return Completed(replace(generation, message=message))
        index = event.index
        self._seen.add(index)
        if isinstance(event, ToolCallDelta):
            if self._first is None:
                self._first = index
            if index != self._first:
                self._drop(index)
                return None
        before = sum(one < index for one in self._dropped)
        return replace(event, index=index - before) if before else event

    def _drop(self, index: int) -> None:
        self._dropped.add(index)
        # No delta tells of encrypted thoughts; those just before a call are the call's.
        if index and index - 1 not in self._seen:
            self._dropped.add(index - 1)


def first_call_only(parts: Sequence[Part]) -> list[Part]:
    """Returns the parts without the calls after the first, and without the encrypted thoughts that belong to those."""
    parts_left: list[Part] = []
    called = False
    for part in parts:
        if isinstance(part, ToolCall):
            if called:
                if parts_left and isinstance(parts_left[-1], RedactedReasoning):
                    parts_left.pop()
                continue
            called = True
        parts_left.append(part)
    return parts_left
