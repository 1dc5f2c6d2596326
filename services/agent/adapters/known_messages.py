"""Messages of windows that were read lately: a conversation that goes on reads all of its window again at each turn."""

import time
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import Any

from services.agent.core.messages import Message
from services.agent.core.window.sizes import weight
from services.agent.postgres.rows import message_from_json

# Of all together, in bytes: more than the heaviest window has.
MOST_BYTES = 44 * 1024 * 1024
# Who has said nothing for so long is forgotten.
IDLE_SECONDS = 600.0
# What a message takes beside its texts.
_BESIDE = 2_000


class KnownMessages:
    """A row that is as it was the last time is the message that it was, with what was found out about it.

    The whole row is compared: a message whose text was changed is another.
    """

    def __init__(self, most_bytes: int = MOST_BYTES, idle_seconds: float = IDLE_SECONDS) -> None:
        self._most_bytes = most_bytes
        self._idle_seconds = idle_seconds
        self._bytes = 0
        # By id, the longest unread first: when it was read, the row, the message.
        self._cache: OrderedDict[str, tuple[float, Mapping[str, Any], Message]] = OrderedDict()

    def read(self, rows: Iterable[Mapping[str, Any]]) -> tuple[Message, ...]:
        """Returns the messages of rows that came as JSON."""
        now = time.monotonic()
        messages = tuple([self._message(row, now) for row in rows])
        self._forget(now)
        return messages

    def _message(self, row: Mapping[str, Any], now: float) -> Message:
        known = self._cache.pop(row["id"], None)
        if known is not None and known[1] == row:
            self._cache[row["id"]] = (now, *known[1:])
            return known[2]
        if known is not None:
            self._bytes -= _cost(known[2])
        message = message_from_json(row)
        self._cache[row["id"]] = now, row, message
        self._bytes += _cost(message)
        return message

    def _forget(self, now: float) -> None:
        while self._cache:
            _, (read, _, message) = oldest = next(iter(self._cache.items()))
            if self._bytes <= self._most_bytes and now - read <= self._idle_seconds:
                return
            del self._cache[oldest[0]]
            self._bytes -= _cost(message)


def _cost(message: Message) -> int:
    return _BESIDE + weight(message)
