"""Deltas of a model's reply as readers see them. Pure."""

from collections.abc import Callable
from uuid import UUID

from services.agent.events import Delta
from services.agent.messages import Call, Gate, Part, Reasoning, Text, kind_of, piece_otid
from services.agent.ports import PartDelta


class PieceDeltas:
    """Gives the deltas of one message the otid that their piece of it will have.

    gate: why a call of a tool waits for the client. calls: False where calls are stored otherwise than they come.
    """

    def __init__(self, message_id: UUID, step_id: UUID, gate: Callable[[str], Gate], *, calls: bool = True) -> None:
        self._message_id = message_id
        self._step_id = step_id
        self._gate = gate
        self._calls = calls
        self._hidden = False
        self._kinds: list[str] = []
        self._pieces: dict[int, int] = {}
        self._gates: dict[int, Gate] = {}

    def delta(self, part: PartDelta) -> Delta | None:
        """The event for more of a part, without its position; None for what is shown as a whole only."""
        self._hidden |= part.kind == "call" and not self._calls
        if self._hidden:
            # What comes after a call that is stored otherwise is a piece with a number that is not known yet.
            return None
        shown = self._shown(part)
        if part.index not in self._pieces:
            kind = kind_of(shown)
            if not self._kinds or self._kinds[-1] != kind:
                self._kinds.append(kind)
            self._pieces[part.index] = len(self._kinds) - 1
        otid = piece_otid(self._message_id, self._pieces[part.index])
        return Delta(0, self._message_id, self._step_id, otid, shown)

    def _shown(self, part: PartDelta) -> Part:
        match part.kind:
            case "reasoning":
                return Reasoning(part.text)
            case "call":
                gate = self._gates.setdefault(part.index, self._gate(part.call_name))
                return Call("", part.call_id, part.call_name, part.text, gate)
            case _:
                return Text(part.text)
