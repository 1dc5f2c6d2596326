"""Pictures that a model's provider refused, so that no later turn sends them again first. Pure.

Kept for a process: after a restart a picture is refused once more.
"""

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from uuid import UUID

from services.agent.core.messages import Message
from services.agent.core.window.shrinking import in_words

_MOST = 20_000


class RefusedPictures:
    """The fates of pictures in messages, by model: refused or taken."""

    def __init__(self) -> None:
        self._taken: OrderedDict[tuple[str, UUID], bool] = OrderedDict()

    def without(self, history: Sequence[Message], model: str, *, keep_run: UUID) -> list[Message]:
        """Returns the history with a few words instead of the pictures that the model's provider refused; those of the
        run `keep_run` stay."""
        refused = {message.id for message in history if self._taken.get((model, message.id)) is False}
        return [in_words(each) if each.id in refused and each.run_id != keep_run else each for each in history]

    def suspects(self, history: Iterable[Message], model: str) -> set[UUID]:
        """Returns the messages with pictures of which it is not known that they were taken."""
        return {id for id in _with_pictures(history) if not self._taken.get((model, id))}

    def note(self, messages: Iterable[UUID], model: str, *, taken: bool) -> None:
        """Notes what became of the pictures in these messages."""
        for id in messages:
            self._taken[model, id] = taken
            self._taken.move_to_end((model, id))
        while len(self._taken) > _MOST:
            self._taken.popitem(last=False)

    def note_answer(self, history: Iterable[Message], model: str, suspects: set[UUID]) -> None:
        """Notes that a request with this history was answered, after one in which the suspects were was refused."""
        shown = set(_with_pictures(history))
        self.note(shown, model, taken=True)
        self.note(suspects - shown, model, taken=False)


def _with_pictures(history: Iterable[Message]) -> list[UUID]:
    return [message.id for message in history if in_words(message) is not message]
