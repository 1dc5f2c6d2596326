"""Deltas of a model's reply as readers see them. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from uuid import UUID

from services.agent.core.calls.offers import Offer
from services.agent.core.events import Delta
from services.agent.core.facts import Settings
from services.agent.core.messages import Call, Gate, Kind, Part, Reasoning, Text, kind_of, piece_otid, request_otid
from services.agent.core.ports import PartDelta


@dataclass(frozen=True, slots=True)
class _Call:
    """A call of the reply: the how manieth it is, and whether it is stored otherwise than it comes (see replies.py)."""

    place: int
    gate: Gate
    thinks: bool
    filled: bool


class PieceDeltas:
    """Gives the deltas of one message the otid that their piece of it will have."""

    def __init__(self, message_id: UUID, step_id: UUID, settings: Settings, offered: Offer) -> None:
        self._message_id = message_id
        self._step_id = step_id
        self._settings = settings
        self._offered = offered
        self._kinds: list[str] = []
        self._pieces: dict[int, int] = {}
        self._calls: dict[int, _Call] = {}
        self._lost = False

    def deltas(self, part: PartDelta) -> Iterator[Delta]:
        """Yields the events for more of a part. The name of a call comes alone, so that a reader may go on after it."""
        begins = part.call_name and part.text and part.index not in self._calls
        for one in (replace(part, text=""), part) if begins else (part,):
            if (delta := self.delta(one)) is not None:
                yield delta

    def delta(self, part: PartDelta) -> Delta | None:
        """Returns the event for more of a part, without its position; None for what is shown as a whole only, or not at
        all.
        """
        call = self._call(part) if part.kind == "call" else None
        if call is not None and call.place and not self._offered.parallel:
            return None
        # What follows a thought in an argument is a piece with a number that is not known yet.
        self._lost |= call is not None and call.thinks
        if self._lost:
            return None
        piece = _delta_part(part, "" if call is None else call.gate)
        otid = self._otid(part.index, kind_of(piece))
        if call is not None and call.filled:
            return None
        return Delta(0, self._message_id, self._step_id, otid, piece)

    def _otid(self, index: int, kind: Kind) -> str:
        """Returns the otid of a part's piece; calls that wait are behind all others and have no number."""
        if kind == "gated_call":
            return request_otid(self._message_id)
        if index not in self._pieces:
            if not self._kinds or self._kinds[-1] != kind:
                self._kinds.append(kind)
            self._pieces[index] = len(self._kinds) - 1
        return piece_otid(self._message_id, self._pieces[index])

    def _call(self, part: PartDelta) -> _Call:
        """Returns the state of a call; its first delta has the name."""
        if part.index not in self._calls:
            name, settings, offered = part.call_name, self._settings, self._offered
            gate, thinks = offered.gate(settings, name), offered.thinks(settings, name)
            self._calls[part.index] = _Call(len(self._calls), gate, thinks, bool(offered.values(name)))
        return self._calls[part.index]


def _delta_part(part: PartDelta, gate: Gate) -> Part:
    match part.kind:
        case "reasoning":
            return Reasoning(part.text)
        case "call":
            return Call("", part.call_id, part.call_name, part.text, gate)
        case _:
            return Text(part.text)
