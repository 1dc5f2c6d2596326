"""The launcher's work with the engine, each kind in threads of its own, so that no kind waits for another."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from services.tool_runner.core.job import SandboxUnavailable
from services.tool_runner.sandboxes.launcher.engine import Container, Engine
from services.tool_runner.sandboxes.launcher.spec import read_request
from services.tool_runner.sandboxes.launcher.wire import Message

T = TypeVar("T")
# More at once take longer each, and all of them together no less.
_STARTS, _REMOVALS, _QUESTIONS = 4, 2, 4


class Work:
    """The engine's side of the launcher; it connects at the first use, and again where that failed."""

    def __init__(self, image: str, runtime: str) -> None:
        self._image = image
        self._runtime = runtime
        self._engine: Engine | None = None
        self._connecting = asyncio.Lock()
        self._starts = ThreadPoolExecutor(_STARTS, "start")
        self._removals = ThreadPoolExecutor(_REMOVALS, "remove")
        self._questions = ThreadPoolExecutor(_QUESTIONS, "ask")

    async def start(self, fields: Message, is_wanted: Callable[[], bool]) -> Container | None:
        """Returns None where it is no longer wanted when its turn comes.

        Raises SandboxUnavailable, NoLayer, and KeyError or TypeError for fields that are none.
        """
        request = read_request(fields)
        engine = await self._connect_engine()
        return await self._in(self._starts, lambda: engine.start(request) if is_wanted() else None)

    async def remove(self, container: Container) -> None:
        """Kills and removes it."""
        engine = await self._connect_engine()
        await self._in(self._removals, lambda: engine.remove(container.identity))

    async def ran_out_of_memory(self, container: Container) -> bool:
        """Returns it of a container that has ended."""
        engine = await self._connect_engine()
        return await self._in(self._questions, lambda: engine.ran_out_of_memory(container.identity))

    async def answer(self, question: Message) -> Message:
        """Returns the answer to what ASK brought; see `wire`."""
        if question["op"] == "add_layer":
            return await self._add_layer(str(question["key"]), Path(question["archive"]))
        return await self._probe(float(question["pull_seconds"]))

    async def _add_layer(self, key: str, archive: Path) -> Message:
        try:
            engine = await self._connect_engine()
            await self._in(self._questions, lambda: engine.add_layer(key, archive))
        except SandboxUnavailable as error:
            return {"problem": str(error)}
        return {"problem": ""}

    async def _probe(self, pull_seconds: float) -> Message:
        """Returns whether there is an engine with the runtime, and the image in it."""
        try:
            engine = await self._connect_engine()
            await self._in(self._questions, engine.check_runtime)
            image, problem = await self._in(self._questions, engine.has_image), ""
            if not image and pull_seconds:
                problem = await self._in(self._questions, lambda: engine.pull(pull_seconds))
                image = not problem
            return {"engine": True, "image": image, "problem": problem}
        except SandboxUnavailable as error:
            return {"engine": False, "image": False, "problem": str(error)}

    async def _connect_engine(self) -> Engine:
        async with self._connecting:
            if self._engine is None:
                engine = await self._in(self._questions, lambda: Engine(self._image, self._runtime))
                # What dead launchers left goes first, so that the machine is whole again before it works.
                await self._in(self._questions, engine.reap)
                self._engine = engine
            return self._engine

    def close(self) -> None:
        """Waits for what is being done."""
        for pool in (self._starts, self._questions, self._removals):
            pool.shutdown()

    async def _in(self, pool: ThreadPoolExecutor, call: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(pool, call)
