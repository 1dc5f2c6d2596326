"""The stream of a call's output: live where it runs, by looking again and again elsewhere."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing
from uuid import UUID

from services.tool_runner.core.job import Output
from services.tool_runner.core.model import Receipt, State
from services.tool_runner.executions.output import pieces_of
from services.tool_runner.executions.ports import CallId, OutputStore
from services.tool_runner.executions.running_call import Execution

_POLL_SECONDS = 0.25
# A call whose owner died before it began is run again by whoever asks for it; a watcher waits no longer for that.
_ABANDONED_SECONDS = 10.0

# The last has the number after the last piece.
Event = tuple[int, Output | Receipt]


class CallWatcher:
    """Streams of calls. `running` are those of this process; `settled` reads a receipt, and ends one that was lost."""

    def __init__(
        self,
        running: Mapping[CallId, Execution],
        outputs: OutputStore,
        settled: Callable[[UUID, str], Awaitable[Receipt]],
    ) -> None:
        self._running = running
        self._outputs = outputs
        self._settled = settled

    async def watch(self, call: CallId, after: int) -> AsyncGenerator[Event]:
        """Pieces after this number, then the receipt. Raises NotFound (CALL_NOT_FOUND), and what the call raises."""
        sequence, waited = after, 0.0
        while True:
            execution = self._running.get(call)
            if execution is not None and execution.owned and execution.printed is not None:
                async with aclosing(execution.printed.after(sequence)) as pieces:
                    async for piece in pieces:
                        sequence = piece.sequence
                        yield sequence, piece
                receipt = await asyncio.shield(execution.task)
            else:
                receipt = await self._settled(*call)
                if is_open := receipt.state in (State.RESERVED, State.STARTED):
                    for piece in await self._outputs.after(call, sequence):
                        sequence = piece.sequence
                        yield sequence, piece
                    waited = 0.0 if receipt.owner_alive or execution else waited + _POLL_SECONDS
                if is_open and waited < _ABANDONED_SECONDS:
                    await asyncio.sleep(_POLL_SECONDS)
                    continue
            for piece in pieces_of(receipt)[sequence:]:
                sequence = piece.sequence
                yield sequence, piece
            yield sequence + 1, receipt
            return
