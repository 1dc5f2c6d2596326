"""The streams of a worker beside its answer: connections of the tool, and stdin and stdout of a program."""

import asyncio
import contextlib
from collections import deque
from collections.abc import Awaitable, Callable

from services.tool_runner.sandboxes.protocol.wire import CHUNK_BYTES, WINDOW_BYTES, Frame

_ERRORS_CHARS = 4000
_FIRST_CHARS = 1000
MOST_WAITING = 64  # chunks of a program's output; it waits then
_GIVE_BACK = WINDOW_BYTES // 4


class _Window:
    """The number of bytes that may be sent; `take` waits for some."""

    def __init__(self) -> None:
        self._left = WINDOW_BYTES
        self._changed = asyncio.Event()
        self.gone = False

    async def take(self, most: int) -> int:
        """Takes at least one byte, at most `most`; raises ConnectionError once it is gone."""
        while self._left <= 0 and not self.gone:
            self._changed.clear()
            await self._changed.wait()
        if self.gone:
            raise ConnectionError("the tool closed the connection")
        size = min(most, self._left)
        self._left -= size
        return size

    def widen(self, size: int) -> None:
        self._left += size
        self._changed.set()

    def lose(self) -> None:
        self.gone = True
        self._changed.set()


class RelayedConnection:
    """See `ports.Connection`. `say(kind, id, data)` sends a frame."""

    def __init__(self, identity: int, say: Callable[[Frame, int, bytes], Awaitable[None]]) -> None:
        self._identity = identity
        self._say = say
        self._window = _Window()
        self._came: deque[bytes] = deque()
        self._arrived = asyncio.Event()
        self._ended = False
        self._taken = 0
        self._closed = False

    async def read(self) -> bytes:
        """See `ports.Connection`."""
        while not self._came:
            if self._ended or self._closed:
                return b""
            self._arrived.clear()
            await self._arrived.wait()
        data = self._came.popleft()
        self._taken += len(data)
        if self._taken >= _GIVE_BACK or not self._came:
            size, self._taken = self._taken, 0
            if not self._window.gone and not self._ended:
                with contextlib.suppress(OSError):  # the reader of the worker notices
                    await self._say(Frame.WINDOW, self._identity, size.to_bytes(4, "big"))
        return data

    async def write(self, data: bytes) -> None:
        """See `ports.Connection`."""
        rest = memoryview(data)
        while rest:
            if self._closed:
                raise ConnectionError("the connection is closed")
            size = await self._window.take(min(CHUNK_BYTES, len(rest)))
            try:
                await self._say(Frame.BYTES, self._identity, bytes(rest[:size]))
            except OSError as error:
                raise ConnectionError("the sandbox is gone") from error
            rest = rest[size:]

    async def end(self) -> None:
        """See `ports.Connection`."""
        if self._closed or self._window.gone:
            raise ConnectionError("the connection is closed")
        try:
            await self._say(Frame.BYTES, self._identity, b"")
        except OSError as error:
            raise ConnectionError("the sandbox is gone") from error

    async def close(self) -> None:
        """See `ports.Connection`."""
        if self._closed:
            return
        self._closed = True
        self._arrived.set()
        with contextlib.suppress(OSError):
            await self._say(Frame.CLOSE, self._identity, b"")

    def abandon(self) -> None:
        """Ends it silently: the call is over."""
        self._closed = True
        self.lose()

    def put(self, data: bytes) -> None:
        """Takes what came; b"": no more will."""
        if data:
            self._came.append(data)
        else:
            self._ended = True
        self._arrived.set()

    def widen(self, size: int) -> None:
        """Widens the window by what the tool took."""
        self._window.widen(size)

    def lose(self) -> None:
        """Ends it: the tool is gone from it."""
        self._ended = True
        self._window.lose()
        self._arrived.set()


def without_middle(errors: str) -> str:
    """Returns the beginning and the end: the cause may be at the first, and most of the rest be its stack."""
    middle = max(0, len(errors) - _ERRORS_CHARS)
    return errors[:_FIRST_CHARS] + errors[_FIRST_CHARS + middle :]


class WorkerProcess:
    """See `ports.Process`. `say` sends to its stdin, `close_worker` kills its sandbox; `following` is who fills it."""

    def __init__(self, say: Callable[[bytes], Awaitable[None]], close_worker: Callable[[], Awaitable[None]]) -> None:
        self.following: asyncio.Task[None] | None = None
        self._say = say
        self._close_worker = close_worker
        self._window = _Window()
        self._came: deque[bytes] = deque()
        self._changed = asyncio.Condition()
        self._ended = False
        self._errors = ""

    async def read(self) -> bytes:
        """See `ports.Process`."""
        async with self._changed:
            await self._changed.wait_for(lambda: self._came or self._ended)
            self._changed.notify_all()
            return self._came.popleft() if self._came else b""

    async def write(self, data: bytes) -> None:
        """See `ports.Process`."""
        rest = memoryview(data)
        while rest:
            size = await self._window.take(min(CHUNK_BYTES, len(rest)))
            try:
                await self._say(bytes(rest[:size]))
            except OSError as error:
                raise ConnectionError("the program is gone") from error
            rest = rest[size:]

    @property
    def waiting(self) -> int:
        """Returns how many pieces of what it wrote are held here for a reader."""
        return len(self._came)

    @property
    def errors(self) -> str:
        """See `ports.Process`."""
        return self._errors

    async def close(self) -> None:
        """See `ports.Process`."""
        await self._close_worker()

    async def put(self, data: bytes) -> None:
        """Takes what it wrote; waits while nobody reads."""
        async with self._changed:
            await self._changed.wait_for(lambda: len(self._came) < MOST_WAITING)
            self._came.append(data)
            self._changed.notify_all()

    def complain(self, text: str) -> None:
        """Takes what it wrote to stderr."""
        self._errors = without_middle(self._errors + text)

    def widen(self, size: int) -> None:
        """Widens the window by what it took of its stdin."""
        self._window.widen(size)

    async def end(self) -> None:
        """Ends it: it will write no more."""
        self._window.lose()
        async with self._changed:
            self._ended = True
            self._changed.notify_all()
