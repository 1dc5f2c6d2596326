"""Frames: what a run shows and no fact holds, kept for those who come later or read elsewhere. Pure.

Deltas that follow one another are kept as one frame with the bounds of each, so that a reader may go on after any of
them. What follows from a fact (messages, the end) is not among the frames: readers merge the two by position.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from services.agent.core.events import Abandoned, Compacting, Delta, Event, Transient
from services.agent.core.messages import Call, Part, Reasoning, Text, parts_from_json, parts_to_json
from services.agent.core.window.compaction import Trigger

SCHEMA_VERSION = 1
# Deltas that are kept at most of what was shown since the last durable event: a reply of a hundred thousand tokens.
LONGEST_TAIL = 100_000


@dataclass(slots=True)
class DeltaFrame:
    """Deltas of one piece: `texts[n]` is at position `first + n`; `part` is what they have in common."""

    first: int
    message_id: UUID
    step_id: UUID
    otid: str
    part: Part
    texts: list[str]
    name: str | None = None
    sender_id: str | None = None

    @property
    def last(self) -> int:
        """The position of the last of them."""
        return self.first + len(self.texts) - 1

    def between(self, after: int, until: int | None = None) -> Delta | None:
        """Returns those with `after` < position <= `until` as one delta, at the last one's position."""
        start = max(after - self.first + 1, 0)
        stop = len(self.texts) if until is None else min(until - self.first + 1, len(self.texts))
        if start >= stop:
            return None
        part = _with_text(self.part, "".join(self.texts[start:stop]))
        place = self.first + stop - 1
        return Delta(place, self.message_id, self.step_id, self.otid, part, self.name, self.sender_id)

    def take(self, delta: Delta) -> bool:
        """Appends a delta that is the next of the same piece; False for another, and after the beginning of a call."""
        if (
            self.texts == [""]
            or delta.sequence != self.first + len(self.texts)
            or (delta.message_id, delta.otid) != (self.message_id, self.otid)
            or not _continues(self.part, delta.part)
        ):
            return False
        self.texts.append(_text(delta.part))
        return True


Frame = DeltaFrame | Abandoned | Compacting
# What readers get from wherever it is kept.
Item = Event | DeltaFrame


def position(item: Item) -> int:
    """Returns where an item begins."""
    return item.first if isinstance(item, DeltaFrame) else item.sequence


def last_position(item: Item) -> int:
    """Returns where an item ends."""
    return item.last if isinstance(item, DeltaFrame) else item.sequence


class Tail:
    """The newest frames of a run. Whatever is left out is the end of a message, never its beginning or middle."""

    def __init__(self) -> None:
        self._frames: list[Frame] = []
        self._deltas = 0
        # The message whose end is left out.
        self._cut: UUID | None = None

    def __bool__(self) -> bool:
        return bool(self._frames)

    @property
    def is_cut(self) -> bool:
        """Returns whether deltas of the message under way are missing."""
        return self._cut is not None

    def add(self, event: Transient) -> None:
        """Appends a delta, or an event that is not stored."""
        if not isinstance(event, Delta):
            self._frames.append(event)
            return
        if event.message_id == self._cut:
            return
        self._cut = event.message_id if self._deltas >= LONGEST_TAIL else None
        if self._cut is not None:
            return
        self._deltas += 1
        newest = self._frames[-1] if self._frames else None
        if not (isinstance(newest, DeltaFrame) and newest.take(event)):
            self._frames.append(delta_frame(event))

    def clone(self) -> "Tail":
        """Returns another tail with the same frames."""
        other = Tail()
        other._frames, other._deltas, other._cut = self.copy(), self._deltas, self._cut
        return other

    def copy(self) -> list[Frame]:
        """Returns the frames; what is added later is not seen in them."""
        return [
            replace(frame, texts=[*frame.texts]) if isinstance(frame, DeltaFrame) else frame for frame in self._frames
        ]

    def drain(self) -> list[Frame]:
        """Takes the frames out."""
        frames, self._frames, self._deltas = self._frames, [], 0
        return frames

    def put_back(self, frames: list[Frame]) -> None:
        """Undoes `drain`."""
        self._frames = [*frames, *self._frames]
        self._deltas += sum(len(frame.texts) for frame in frames if isinstance(frame, DeltaFrame))

    def clear(self) -> None:
        """Forgets the frames: they are durable now, or void."""
        self._frames, self._deltas, self._cut = [], 0, None


def delta_frame(delta: Delta) -> DeltaFrame:
    """Returns a frame of one delta."""
    part = _with_text(delta.part, "")
    ids = (delta.message_id, delta.step_id, delta.otid)
    return DeltaFrame(delta.sequence, *ids, part, [_text(delta.part)], delta.name, delta.sender_id)


def frames_to_json(frames: Iterable[Frame]) -> list[dict[str, Any]]:
    """Returns the stored form."""
    return [_to_json(frame) for frame in frames]


def frames_from_json(stored: Sequence[dict[str, Any]], run_id: UUID) -> Iterator[Frame]:
    """Yields the frames of a row, in order."""
    return (_from_json(frame, run_id) for frame in stored)


def _to_json(frame: Frame) -> dict[str, Any]:
    match frame:
        case DeltaFrame():
            ids = {"message": frame.message_id, "step": frame.step_id, "otid": frame.otid}
            if frame.name is not None:
                ids |= {"name": frame.name, "sender": frame.sender_id}
            return {"at": frame.first, **ids, "part": parts_to_json((frame.part,))[0], "texts": frame.texts}
        case Abandoned():
            void = {"message": frame.message_id, "attempt": frame.attempt}
            return {"at": frame.sequence, "step": frame.step_id, "abandoned": void}
        case Compacting():
            sizes = {"tokens": frame.context_tokens, "window": frame.window, "messages": frame.messages}
            compacting = {"trigger": frame.trigger.value, **sizes}
            return {"at": frame.sequence, "step": frame.step_id, "compacting": compacting}


def _from_json(stored: dict[str, Any], run_id: UUID) -> Frame:
    at, step_id = stored["at"], UUID(stored["step"])
    if (void := stored.get("abandoned")) is not None:
        message_id = None if void["message"] is None else UUID(void["message"])
        return Abandoned(at, step_id, message_id, void["attempt"])
    if (seen := stored.get("compacting")) is not None:
        sizes = seen["tokens"], seen["window"], seen["messages"]
        return Compacting(at, run_id, step_id, Trigger(seen["trigger"]), *sizes)
    [part] = parts_from_json((stored["part"],))
    who = (stored.get("name"), stored.get("sender"))
    return DeltaFrame(at, UUID(stored["message"]), step_id, stored["otid"], part, stored["texts"], *who)


def _text(part: Part) -> str:
    match part:
        case Text(text=text) | Reasoning(text=text):
            return text
        case Call(arguments=arguments):
            return arguments
        case _:
            raise ValueError(f"there are no deltas of {type(part).__name__}")


def _with_text(part: Part, text: str) -> Part:
    match part:
        case Text() | Reasoning():
            return replace(part, text=text)
        case Call():
            return replace(part, arguments=text)
        case _:
            raise ValueError(f"there are no deltas of {type(part).__name__}")


def _continues(part: Part, more: Part) -> bool:
    """Returns whether two deltas differ in their text alone; a call's name may come once."""
    if isinstance(part, Call) and isinstance(more, Call) and not more.name:
        more = replace(more, name=part.name)
    return part == _with_text(more, "")
