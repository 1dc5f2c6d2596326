"""The tool runner's end of the launcher: one process, many requests at once, answers by id."""

import asyncio
import contextlib
import itertools
import json
import sys
from collections.abc import Mapping

from services.common.processes import Child
from services.tool_runner.sandboxes.launcher.wire import Message, encode, length

_MODULE = "services.tool_runner.sandboxes.launcher"
_END_SECONDS = 20.0


class LauncherProcess:
    """One running launcher; made by `start`."""

    def __init__(self, child: Child) -> None:
        self._child = child
        self._answers: dict[int, asyncio.Future[Message | None]] = {}
        self._ids = itertools.count(1)
        self._ended = False
        self._reading = asyncio.create_task(self._read())

    @classmethod
    async def start(cls, image: str, warm: int, environment: Mapping[str, str]) -> "LauncherProcess":
        """Start it by exec, in a session of its own: Ctrl-C is for this process, whose end it sees."""
        command = (sys.executable, "-m", _MODULE, image, str(warm))
        return cls(await Child.start(*command, environment=environment, new_session=True))

    @property
    def alive(self) -> bool:
        """Whether it takes requests."""
        return not self._ended

    @property
    def busy(self) -> bool:
        """Whether requests wait for answers."""
        return bool(self._answers)

    async def ask(self, request: Message) -> Message | None:
        """Its answer; None where it died first. Cancelling cancels it there, then waits for its end."""
        identity = next(self._ids)
        answer: asyncio.Future[Message | None] = asyncio.get_running_loop().create_future()
        if self._ended:
            return None
        self._answers[identity] = answer
        try:
            await self._send({"id": identity, **request})
            return await asyncio.shield(answer)
        except asyncio.CancelledError:
            await self._send({"op": "cancel", "target": identity})
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(answer, _END_SECONDS)
            raise
        finally:
            self._answers.pop(identity, None)

    def end_input(self) -> None:
        """Let it end: it removes its containers, then goes."""
        self._ended = True
        self._child.end_input()

    async def close(self) -> None:
        """End it, wait for it, and kill it where it does not end."""
        self.end_input()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._child.wait(), _END_SECONDS)
        await self._child.end()
        await self._reading

    async def _send(self, request: Message) -> None:
        """A launcher that died is noticed by the reader, not here."""
        with contextlib.suppress(ConnectionError):
            await self._child.send(encode(request))

    async def _read(self) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError, ValueError):
            while True:
                header = await self._child.reader.readexactly(4)
                message = json.loads(await self._child.reader.readexactly(length(header)))
                self._hand_out(message["id"], message)
        self._ended = True
        await self._child.end()
        for identity in list(self._answers):
            self._hand_out(identity, None)

    def _hand_out(self, identity: int, message: Message | None) -> None:
        answer = self._answers.get(identity)
        if answer and not answer.done():
            answer.set_result(message)
