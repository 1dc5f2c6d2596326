"""The queue of texts that wait to be sent over a socket: in order, and never more than so many bytes."""

import asyncio
from collections import deque


class Outbox:
    """Texts to send. Who puts more in than `most_bytes` waits; one text is taken whatever its size."""

    def __init__(self, most_bytes: int) -> None:
        self._most = most_bytes
        self._texts: deque[tuple[str, int]] = deque()
        self._bytes = 0
        self._changed = asyncio.Condition()

    async def put(self, text: str) -> None:
        """Adds a text when there is room for it."""
        size = len(text)
        async with self._changed:
            await self._changed.wait_for(lambda: not self._texts or self._bytes + size <= self._most)
            self._texts.append((text, size))
            self._bytes += size
            self._changed.notify_all()

    async def get(self) -> str:
        """Takes the oldest, when there is one."""
        async with self._changed:
            await self._changed.wait_for(lambda: bool(self._texts))
            text, size = self._texts.popleft()
            self._bytes -= size
            self._changed.notify_all()
            return text
