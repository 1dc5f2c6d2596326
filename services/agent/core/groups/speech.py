"""What a member of a group says, as the group's stream shows it while it is said. Pure.

A speech is one message of the group, whatever steps the member's run had: its texts, with an empty line between them.
What was shown of it is always a beginning of what it will be; where it was not, it is declared void and shown anew.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from uuid import UUID

from services.agent.core.calls.agent_words import spoken
from services.agent.core.events import Abandoned, Delta, Ended, Event, MessagePiece
from services.agent.core.messages import Message, Text, piece_otid

BETWEEN = "\n\n"


@dataclass(slots=True)
class Speech:
    """The stream of one speech; its events have no positions yet. `message`: what it becomes, still empty."""

    message: Message
    _said: list[str] = field(default_factory=list)
    _shown: str = ""
    # The piece that is being said, of the member's own message.
    _piece: str = ""
    _attempt: int = 0

    def seen(self, event: Event) -> Iterator[Delta | Abandoned]:
        """Yields what readers of the group see of an event of the member's run."""
        match event:
            case Delta(part=Text(text=text), otid=otid):
                begins = otid != self._piece and bool(self._shown)
                self._piece = otid
                yield self._delta(f"{BETWEEN}{text}" if begins else text)
            case Abandoned() | Ended():
                self._piece = ""
                yield from self._catch_up(void=True)
            case MessagePiece(message=message, parts=parts) if message.role == "assistant":
                self._piece = ""
                self._said += spoken(parts)
                yield from self._catch_up(void=False)

    def _catch_up(self, *, void: bool) -> Iterator[Delta | Abandoned]:
        """Yields what is durable and was not shown. `void`: what was shown and is not durable will not be."""
        whole = BETWEEN.join(self._said)
        if self._shown.startswith(whole) and not void:
            # The other pieces of the message are about to be durable, too.
            return
        if not whole.startswith(self._shown):
            self._attempt, self._shown = self._attempt + 1, ""
            yield Abandoned(0, self._step_id, self.message.id, self._attempt)
        if rest := whole[len(self._shown) :]:
            yield self._delta(rest)

    def _delta(self, text: str) -> Delta:
        self._shown += text
        message = self.message
        otid = piece_otid(message.id, 0)
        return Delta(0, message.id, self._step_id, otid, Text(text), message.name, message.sender_id)

    @property
    def _step_id(self) -> UUID:
        assert self.message.step_id is not None
        return self.message.step_id
