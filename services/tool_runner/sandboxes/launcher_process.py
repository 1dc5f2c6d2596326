"""The tool runner's end of the launcher: one process, many channels at once; see `launcher.wire`."""

import asyncio
import contextlib
import itertools
import sys
from collections.abc import Mapping

from services.common.processes import Child
from services.tool_runner.sandboxes.launcher.wire import (
    CHUNK_BYTES,
    HEADER_BYTES,
    WINDOW_BYTES,
    Frame,
    Message,
    encode,
    encode_fields,
    encode_window,
    header,
    read_json,
)

_MODULE = "services.tool_runner.sandboxes.launcher"
_END_SECONDS = 20.0
_DIED: Message = {"problem": "the sandbox launcher died", "out_of_memory": False, "no_layer": False}


class Channel:
    """One container, from `LauncherProcess.open` to `close`."""

    def __init__(self, number: int, child: Child) -> None:
        self.opened = asyncio.Event()
        self.ended: Message | None = None
        self.closed = asyncio.Event()
        self._number = number
        self._child = child
        self._received: asyncio.Queue[bytes] = asyncio.Queue()  # at most a window of them; b"" is their end
        self._window = WINDOW_BYTES
        self._wider = asyncio.Event()
        self._taken = 0
        self._closing = False

    async def read(self) -> bytes:
        """Returns what the container wrote; b"" once it is gone."""
        if self._received.empty() and self.ended:
            return b""
        data = await self._received.get()
        self._taken += len(data)
        if self._taken >= CHUNK_BYTES and not self.ended:  # not for every few bytes
            taken, self._taken = self._taken, 0
            await self._send(encode_window(self._number, taken))
        return data

    async def write(self, data: bytes) -> None:
        """Writes to its stdin, as fast as it reads; raises ConnectionError when it is gone."""
        rest = memoryview(data)
        while rest:
            while self._window <= 0 and not self.ended:
                self._wider.clear()
                await self._wider.wait()
            if self.ended or self._closing:
                raise ConnectionError(self.ended["problem"] if self.ended else "the sandbox is closed")
            size = min(self._window, CHUNK_BYTES)
            piece, rest = rest[:size], rest[size:]
            self._window -= len(piece)
            await self._child.send(encode(Frame.DATA, self._number, bytes(piece)))

    async def close(self) -> None:
        """Kills it; returns when nothing of it is left."""
        if not self._closing and not self.closed.is_set():
            self._closing = True
            await self._send(encode(Frame.CLOSE, self._number))
        await self.closed.wait()

    def take(self, kind: Frame, body: bytes) -> None:
        """Takes what the launcher sent for it."""
        match kind:
            case Frame.OPENED:
                self.opened.set()
            case Frame.DATA:
                self._received.put_nowait(body)
            case Frame.WINDOW:
                self._window += int.from_bytes(body, "big")
                self._wider.set()
            case Frame.ENDED:
                self._end(read_json(body))
            case Frame.CLOSED:
                self._end(self.ended or {**_DIED, "problem": "the sandbox is closed"})
                self.closed.set()

    def lose(self) -> None:
        """Ends it: the launcher is gone, and with it the container's stdin."""
        self._end(self.ended or _DIED)
        self.closed.set()

    def _end(self, how: Message) -> None:
        self.ended = how
        self._received.put_nowait(b"")
        self._wider.set()
        self.opened.set()

    async def _send(self, frame: bytes) -> None:
        """Sends a frame. The reader notices a launcher that died, not this."""
        with contextlib.suppress(ConnectionError):
            await self._child.send(frame)


class LauncherProcess:
    """One running launcher; made by `start`."""

    def __init__(self, child: Child) -> None:
        self._child = child
        self._channels: dict[int, Channel] = {}
        self._answers: dict[int, asyncio.Future[Message | None]] = {}
        self._numbers = itertools.count(1)
        self._ended = False
        self._reading = asyncio.create_task(self._read())

    @classmethod
    async def start(cls, image: str, runtime: str, environment: Mapping[str, str]) -> "LauncherProcess":
        """Starts it by exec, in a session of its own: Ctrl-C is for this process, whose end it sees. Raises OSError."""
        command = (sys.executable, "-m", _MODULE, image, runtime)
        return cls(await Child.start(*command, environment=environment, new_session=True))

    @property
    def alive(self) -> bool:
        """Returns whether it takes requests."""
        return not self._ended

    @property
    def busy(self) -> bool:
        """Returns whether containers are open or questions wait for answers."""
        return bool(self._channels or self._answers)

    async def open(self, fields: Message) -> Channel:
        """Starts a container; returns when it runs, or has ended: then `ended` says why."""
        number = next(self._numbers)
        channel = Channel(number, self._child)
        if self._ended:
            channel.lose()
            return channel
        self._channels[number] = channel
        try:
            await self._send(encode_fields(Frame.OPEN, number, fields))
            await channel.opened.wait()
        except asyncio.CancelledError:
            await channel.close()
            raise
        return channel

    async def ask(self, question: Message) -> Message | None:
        """Returns its answer; None where it died first."""
        if self._ended:
            return None
        number = next(self._numbers)
        answer: asyncio.Future[Message | None] = asyncio.get_running_loop().create_future()
        self._answers[number] = answer
        try:
            await self._send(encode_fields(Frame.ASK, number, question))
            return await answer
        finally:
            self._answers.pop(number, None)

    def end_input(self) -> None:
        """Lets it end: it removes its containers, then goes."""
        self._ended = True
        self._child.end_input()

    async def close(self) -> None:
        """Ends it, waits for it, and kills it where it does not end."""
        self.end_input()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._child.wait(), _END_SECONDS)
        await self._child.end()
        await self._reading

    async def _send(self, frame: bytes) -> None:
        with contextlib.suppress(ConnectionError):
            await self._child.send(frame)

    async def _read(self) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError, ValueError):
            while True:
                kind, number, size = header(await self._child.reader.readexactly(HEADER_BYTES))
                self._take(kind, number, await self._child.reader.readexactly(size))
        self._ended = True
        await self._child.end()
        for channel in list(self._channels.values()):
            channel.lose()
        self._channels.clear()
        for answer in self._answers.values():
            if not answer.done():
                answer.set_result(None)

    def _take(self, kind: Frame, number: int, body: bytes) -> None:
        if kind is Frame.ANSWER:
            answer = self._answers.get(number)
            if answer and not answer.done():
                answer.set_result(read_json(body))
            return
        if channel := self._channels.get(number):
            channel.take(kind, body)
            if kind is Frame.CLOSED:
                del self._channels[number]
