"""Deltas of a model's reply as readers see them. Pure."""

from uuid import UUID

from services.agent.events import Delta
from services.agent.messages import Call, Part, Reasoning, Text, kind_of, piece_otid
from services.agent.ports import PartDelta


class PieceDeltas:
    """Gives the deltas of one message the otid that their piece of it will have."""

    def __init__(self, message_id: UUID, step_id: UUID) -> None:
        self._message_id = message_id
        self._step_id = step_id
        self._kinds: list[str] = []
        self._pieces: dict[int, int] = {}

    def delta(self, sequence: int, part: PartDelta) -> Delta:
        """The event for more of a part."""
        shown = _shown(part)
        if part.index not in self._pieces:
            kind = kind_of(shown)
            if not self._kinds or self._kinds[-1] != kind:
                self._kinds.append(kind)
            self._pieces[part.index] = len(self._kinds) - 1
        otid = piece_otid(self._message_id, self._pieces[part.index])
        return Delta(sequence, self._message_id, self._step_id, otid, shown)


def _shown(part: PartDelta) -> Part:
    match part.kind:
        case "reasoning":
            return Reasoning(part.text)
        case "call":
            return Call("", part.call_id, part.call_name, part.text)
        case _:
            return Text(part.text)
