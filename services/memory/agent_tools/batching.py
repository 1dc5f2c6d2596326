"""Questions that wait while others are answered are answered together. It costs the first one nothing."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

A = TypeVar("A")
B = TypeVar("B")

_MOST = 100


class _Interrupted(Exception):
    """The task that was about to answer was interrupted; ask again."""


@dataclass(eq=False, slots=True)
class Waiter(Generic[A, B]):
    """A question and who waits for its answer."""

    question: A
    answer: asyncio.Future[B]

    def tell(self, answer: B) -> None:
        """Returns the answer, unless nobody waits for it any more."""
        if not self.answer.done():
            self.answer.set_result(answer)

    def refuse(self, error: Exception) -> None:
        """Returns an error for an answer."""
        if not self.answer.done():
            self.answer.set_exception(error)
            self.answer.exception()  # who asked may be gone, and nobody else misses it


class Batcher(Generic[A, B]):
    """Whoever gets one of `permits` answers all that wait, 100 at most, by `serve`, which must tell each of them."""

    def __init__(self, serve: Callable[[Sequence[Waiter[A, B]]], Awaitable[None]], permits: int = 1) -> None:
        self._serve = serve
        self._permits = asyncio.Semaphore(permits)
        self._waiting: list[Waiter[A, B]] = []

    async def ask(self, question: A) -> B:
        """Returns the answer. Raises what it was refused with; what `serve` raises comes to the one who called it."""
        while True:
            try:
                return await self._once(Waiter(question, asyncio.get_running_loop().create_future()))
            except _Interrupted:
                continue

    async def _once(self, own: Waiter[A, B]) -> B:
        self._waiting.append(own)
        try:
            async with self._permits:
                # Those who come in the same turn of the event loop are served at once.
                await asyncio.sleep(0)
                if own in self._waiting:
                    await self._serve_waiting(own)
        finally:
            if own in self._waiting:
                self._waiting.remove(own)
        return await own.answer

    async def _serve_waiting(self, own: Waiter[A, B]) -> None:
        # The oldest first, among whom is the one who got the permit.
        batch, self._waiting = self._waiting[:_MOST], self._waiting[_MOST:]
        try:
            await self._serve(batch)
        except BaseException:
            for other in batch:
                if other is own:
                    own.answer.cancel()
                else:
                    other.refuse(_Interrupted())
            raise
