"""`Parser`: a child process for each file, with nothing of ours but the file."""

import asyncio
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable
from pathlib import Path
from typing import Any, TypeVar

import orjson

from services.common.processes import Child
from services.memory.core.errors import Unparsable
from services.memory.core.file_text.kinds import FileKind
from services.memory.files.model import ParseSummary, TextPage

T = TypeVar("T")

_ROOT = Path(__file__).resolve().parents[3]
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

    async def parse(self, kind: FileKind, data: AsyncIterator[bytes]) -> AsyncGenerator[TextPage | ParseSummary]:
        async with self._slots:
            child = await Child.start(
                *_COMMAND, environment={}, errors=subprocess.DEVNULL, longest_line=_LONGEST_ANSWER
            )
            patience = _TimeBudget(self._seconds)
            try:
                header = {"format": kind.format, "split_mode": kind.split_mode}
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


class _TimeBudget:
    """Seconds to spend on waiting for a child; what others make it wait for costs nothing."""

    def __init__(self, seconds: float) -> None:
        self._left = seconds

    async def wait(self, awaitable: Awaitable[T]) -> T:
        """Raises TimeoutError."""
        begin = time.monotonic()
        try:
            async with asyncio.timeout(self._left):
                return await awaitable
        finally:
            self._left -= time.monotonic() - begin


def _answer(line: bytes) -> TextPage | ParseSummary:
    try:
        fields: dict[str, Any] = orjson.loads(line)
    except orjson.JSONDecodeError:
        # It died in the middle of a line.
        raise Unparsable("it needs too much time or memory to be read") from None
    if "error" in fields:
        raise Unparsable(fields["error"])
    if "page" not in fields:
        return ParseSummary(**fields)
    cuts = tuple((start, end) for start, end in fields.pop("cuts"))
    return TextPage(**fields, cuts=cuts)
