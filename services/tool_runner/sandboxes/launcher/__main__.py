"""Starts the launcher: `python -m services.tool_runner.sandboxes.launcher IMAGE [RUNTIME]`.

The engine's address comes from the Docker SDK's own variables (DOCKER_HOST and its family).
"""

import asyncio
import os
import signal
import socket
import sys
import traceback
from collections.abc import Coroutine

from services.tool_runner.sandboxes.launcher.channel import Channel
from services.tool_runner.sandboxes.launcher.wire import HEADER_BYTES, Frame, Message, encode_fields, header, read_json
from services.tool_runner.sandboxes.launcher.work import Work


class Launcher:
    """Serves the frames of one runner until they end."""

    def __init__(self, work: Work, output: asyncio.StreamWriter) -> None:
        self._work = work
        self._output = output
        self._channels: dict[int, Channel] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def serve(self, source: asyncio.StreamReader) -> None:
        """Takes frames to the end of the input, then leave nothing of what was started."""
        try:
            while True:
                kind, number, size = header(await source.readexactly(HEADER_BYTES))
                self._take(kind, number, await source.readexactly(size))
        except (asyncio.IncompleteReadError, ConnectionError):
            return
        finally:
            for channel in self._channels.values():
                channel.close()
            await asyncio.gather(*self._tasks)

    def _take(self, kind: Frame, number: int, body: bytes) -> None:
        channel = self._channels.get(number)
        match kind:
            case Frame.OPEN:
                self._channels[number] = Channel(number, self._work, self._output.write)
                self._do(self._run(number, self._channels[number], read_json(body)))
            case Frame.ASK:
                self._do(self._answer(number, read_json(body)))
            case Frame.DATA if channel:
                channel.feed(body)
            case Frame.WINDOW if channel:
                channel.widen(int.from_bytes(body, "big"))
            case Frame.CLOSE if channel:
                channel.close()
            case _:
                return  # of a channel that has just ended

    async def _run(self, number: int, channel: Channel, fields: Message) -> None:
        try:
            await channel.serve(fields)
        finally:
            del self._channels[number]

    async def _answer(self, number: int, question: Message) -> None:
        self._output.write(encode_fields(Frame.ANSWER, number, await self._work.answer(question)))

    def _do(self, what: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(_supervised(what))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


async def _supervised(what: Coroutine[None, None, None]) -> None:
    try:
        await what
    # A fault of ours must be seen, and whoever waits must not wait for ever: the runner sees this process end.
    except Exception:  # noqa: BLE001
        traceback.print_exc()
        os._exit(1)


async def _serve(image: str, runtime: str) -> None:
    # The process that starts this one gives it one socket as stdin and stdout.
    reader, writer = await asyncio.open_connection(sock=socket.socket(fileno=os.dup(0)))
    os.dup2(2, 1)  # a stray print goes to stderr
    work = Work(image, runtime)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, reader.feed_eof)
    try:
        await Launcher(work, writer).serve(reader)
    finally:
        work.close()
        writer.close()


def main() -> None:
    """Serves the process that started this one."""
    image, runtime = sys.argv[1], (sys.argv[2:] or [""])[0]
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, whose end this one sees
    asyncio.run(_serve(image, runtime))


if __name__ == "__main__":
    main()
