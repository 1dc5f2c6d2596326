"""The output of a worker elsewhere, between the SDK that brings it and its reader."""

import asyncio


class Pieces:
    """At most `most` wait; then whoever brings more waits. An empty one is the end."""

    def __init__(self, most: int) -> None:
        self._queue: asyncio.Queue[bytes] = asyncio.Queue(most)

    async def put(self, piece: bytes) -> None:
        """Adds the next piece, or b"" for the end."""
        await self._queue.put(piece)

    async def next(self) -> bytes:
        """Returns the pieces in order; b"" once the end was reached, however often it is asked."""
        piece = await self._queue.get()
        if not piece:
            self._queue.put_nowait(b"")
        return piece
