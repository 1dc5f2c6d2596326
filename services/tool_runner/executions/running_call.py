"""A call that this process runs: who asks attaches to it, and it can be interrupted. asyncio alone."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from services.tool_runner.core.model import Call, Receipt
from services.tool_runner.executions.output import CallOutput

T = TypeVar("T")


class Cancelled(Exception):
    """CancelExecution ended the call."""


class Stopping(Exception):
    """This process is about to end, and the call with it."""


class Execution:
    """`task` drives the call to its receipt.

    `owned`: the receipt is this process's to write. `began`: the tool may have acted. `printed`: once it is prepared.
    """

    def __init__(self, call: Call, arguments_hash: str) -> None:
        self.call = call
        self.arguments_hash = arguments_hash
        self.task: asyncio.Task[Receipt]
        self.owned = False
        self.began = False
        self.printed: CallOutput | None = None
        self._reason: Exception | None = None
        self._work: asyncio.Task[Any] | None = None

    async def interruptible(self, work: Coroutine[Any, Any, T]) -> T:
        """Does this part of it; raises what `interrupt` was given, once the part has ended."""
        if self._reason:
            work.close()
            raise self._reason
        task: asyncio.Task[T] = asyncio.create_task(work)
        self._work = task
        try:
            return await task
        except asyncio.CancelledError:
            if self._reason:
                raise self._reason from None
            raise
        finally:
            self._work = None

    def interrupt(self, reason: Exception) -> None:
        """Ends what can be interrupted, now and from now on. The first reason counts."""
        self._reason = self._reason or reason
        if self._work:
            self._work.cancel()
