"""One container and its two streams, relayed: bytes are carried, never looked into, and never piled up."""

import asyncio
import contextlib
from collections.abc import Callable

from services.tool_runner.core.job import SandboxUnavailable
from services.tool_runner.sandboxes.launcher.attached import AttachedStream, Streams
from services.tool_runner.sandboxes.launcher.engine import Container, NoLayer
from services.tool_runner.sandboxes.launcher.wire import (
    CHUNK_BYTES,
    WINDOW_BYTES,
    Frame,
    Message,
    encode,
    encode_fields,
    encode_window,
)
from services.tool_runner.sandboxes.launcher.work import Work

_COMPLAINT_BYTES = 2000


class Channel:
    """From OPEN to CLOSED; `serve` is its life, `feed`, `widen` and `close` are what the runner's frames do to it."""

    def __init__(self, number: int, work: Work, send: Callable[[bytes], None]) -> None:
        self._number = number
        self._work = work
        self._send = send
        self._input: asyncio.Queue[bytes] = asyncio.Queue()
        self._owed = 0  # bytes in `_input`
        self._window = WINDOW_BYTES
        self._wider = asyncio.Event()
        self._closing = asyncio.Event()
        self._complaint = b""

    def feed(self, data: bytes) -> None:
        """Takes data for its stdin. Who sends more than its window is cut off: nothing is piled up here."""
        self._owed += len(data)
        if self._owed > WINDOW_BYTES:
            self._closing.set()
            return
        self._input.put_nowait(data)

    def widen(self, size: int) -> None:
        """Lets that many bytes more be sent to the runner."""
        self._window += size
        self._wider.set()

    def close(self) -> None:
        """Ends it."""
        self._closing.set()

    async def serve(self, fields: Message) -> None:
        """Starts a container, relays until one side ends it, and leaves nothing of it."""
        container = await self._start(fields)
        if container:
            self._send(encode(Frame.OPENED, self._number))
            attached = AttachedStream(container.attached)
            ended = await self._relay(attached)
            attached.close()
            if ended:
                await self._tell_end(container)
            await self._work.remove(container)
        self._send(encode(Frame.CLOSED, self._number))

    async def _start(self, fields: Message) -> Container | None:
        try:
            return await self._work.start(fields, lambda: not self._closing.is_set())
        except NoLayer:
            self._end("the engine has no image with these packages", no_layer=True)
        except (SandboxUnavailable, KeyError, TypeError) as error:
            self._end(str(error))
        return None

    async def _relay(self, attached: AttachedStream) -> bool:
        """Returns whether the container ended it."""
        output = asyncio.create_task(self._carry_output(attached))
        tasks = [output, asyncio.create_task(self._carry_input(attached)), asyncio.create_task(self._closing.wait())]
        # Input that is no longer taken says nothing: what is left of the output may say why.
        await asyncio.wait([output, tasks[2]], return_when=asyncio.FIRST_COMPLETED)
        ended = output.done() and not self._closing.is_set()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return ended

    async def _carry_output(self, attached: AttachedStream) -> None:
        streams = Streams()
        with contextlib.suppress(OSError):
            while chunk := await attached.read():
                out, err = streams.split(chunk)
                self._complaint = (self._complaint + err)[-_COMPLAINT_BYTES:]
                while out:
                    while self._window <= 0:
                        self._wider.clear()
                        await self._wider.wait()
                    piece, out = out[: self._window], out[self._window :]
                    self._window -= len(piece)
                    self._send(encode(Frame.DATA, self._number, piece))

    async def _carry_input(self, attached: AttachedStream) -> None:
        carried = 0
        with contextlib.suppress(OSError):
            while True:
                data = await self._input.get()
                await attached.write(data)
                self._owed -= len(data)
                carried += len(data)
                if carried >= CHUNK_BYTES:  # not for every few bytes
                    self._send(encode_window(self._number, carried))
                    carried = 0

    async def _tell_end(self, container: Container) -> None:
        out_of_memory = await self._work.ran_out_of_memory(container)
        self._end(self._complaint.decode("utf-8", "replace").strip(), out_of_memory=out_of_memory)

    def _end(self, problem: str, *, out_of_memory: bool = False, no_layer: bool = False) -> None:
        fields = {"problem": problem, "out_of_memory": out_of_memory, "no_layer": no_layer}
        self._send(encode_fields(Frame.ENDED, self._number, fields))
