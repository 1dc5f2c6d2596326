"""`files.ports.Parser`: a child process for each file, started by exec, with nothing of ours but the file.

Not by asyncio's own functions: uvloop forks, which runs the fork handlers of the libraries in this process (gRPC's can
crash the child, since other threads are at work), while `subprocess` uses vfork, which runs none.
"""

import asyncio
import contextlib
import socket
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable
from pathlib import Path
from typing import Any, TypeVar

import orjson

from services.memory.files.kinds import Kind
from services.memory.files.model import TextPage
from services.memory.files.ports import Parsed, Unparsable

T = TypeVar("T")

_ROOT = Path(__file__).resolve().parents[4]
# -I: neither the environment nor the working directory has a say in the child.
_PROGRAM = (
    f"import sys; sys.path.insert(0, {str(_ROOT)!r}); from services.memory.files.parsing.child import main; main()"
)
_COMMAND = (sys.executable, "-I", "-B", "-c", _PROGRAM)
# Of a page as JSON, whose characters may be twelve bytes each.
_LONGEST_ANSWER = 1024 * 1024
# What really bounds it is its processor time: see files/parsing/child.py.
_WALL_SECONDS = 600.0
# Each may use 768 MiB: see files/parsing/child.py.
_AT_ONCE = 2


class ChildParser:
    """Parses a few files at a time. `seconds`: the longest that one may take."""

    def __init__(self, *, seconds: float = _WALL_SECONDS) -> None:
        self._slots = asyncio.Semaphore(_AT_ONCE)
        self._seconds = seconds

    async def parse(self, kind: Kind, data: AsyncIterator[bytes]) -> AsyncGenerator[TextPage | Parsed]:
        async with self._slots:
            child, patience = await _Child.start(), _Patience(self._seconds)
            try:
                header = {"format": kind.format, "cutting": kind.cutting}
                await patience.wait(child.send(orjson.dumps(header, option=orjson.OPT_APPEND_NEWLINE)))
                async for part in data:
                    await patience.wait(child.send(part))
                child.end_input()
                while line := await patience.wait(child.reader.readline()):
                    yield _answer(line)
                if await patience.wait(child.wait()) != 0:
                    raise Unparsable("it needs too much time or memory to be read")
            except TimeoutError:
                raise Unparsable(f"it could not be read within {self._seconds:g} seconds") from None
            except ConnectionError:
                raise Unparsable("it needs too much time or memory to be read") from None
            finally:
                await child.end()


class _Patience:
    """Seconds to spend on waiting for a child; what others make it wait for costs nothing."""

    def __init__(self, seconds: float) -> None:
        self._left = seconds

    async def wait(self, what: Awaitable[T]) -> T:
        """Raises TimeoutError."""
        begun = time.monotonic()
        try:
            async with asyncio.timeout(self._left):
                return await what
        finally:
            self._left -= time.monotonic() - begun


def _answer(line: bytes) -> TextPage | Parsed:
    try:
        told: dict[str, Any] = orjson.loads(line)
    except orjson.JSONDecodeError:
        # It died in the middle of a line.
        raise Unparsable("it needs too much time or memory to be read") from None
    if "error" in told:
        raise Unparsable(told["error"])
    if "page" not in told:
        return Parsed(**told)
    cuts = tuple((start, end) for start, end in told.pop("cuts"))
    return TextPage(**told, cuts=cuts)


class _Child:
    """A running child, spoken to over one socket that is its stdin and stdout."""

    def __init__(
        self, process: subprocess.Popen[bytes], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.reader = reader
        self._process = process
        self._writer = writer
        self._exited = asyncio.ensure_future(asyncio.to_thread(process.wait))

    @classmethod
    async def start(cls) -> "_Child":
        ours, theirs = socket.socketpair()
        with theirs:
            reader, writer = await asyncio.open_connection(sock=ours, limit=_LONGEST_ANSWER)
            try:
                # No await from here on, so that a cancel cannot lose the process.
                process = subprocess.Popen(  # noqa: ASYNC220 - vfork and exec, about a millisecond
                    _COMMAND, stdin=theirs.fileno(), stdout=theirs.fileno(), stderr=subprocess.DEVNULL, env={}
                )
            except OSError:
                writer.close()
                raise
        return cls(process, reader, writer)

    async def send(self, data: bytes) -> None:
        """Raises ConnectionError where it no longer reads."""
        try:
            self._writer.write(data)
            await self._writer.drain()
        except RuntimeError as error:  # uvloop's, for a socket that it has seen closed
            raise BrokenPipeError(str(error)) from error

    def end_input(self) -> None:
        with contextlib.suppress(OSError, RuntimeError):
            self._writer.write_eof()

    async def wait(self) -> int:
        return await asyncio.shield(self._exited)

    async def end(self) -> None:
        """Kills it if it runs, and waits until it is gone."""
        if self._process.poll() is None:
            self._process.kill()
        self._writer.close()
        await self.wait()
