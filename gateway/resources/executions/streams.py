"""The output of a call as server-sent events: `id` is the number after which a reader may go on.

event: stdout | stderr      data: {"text": ...}
event: receipt              data: the receipt; the last event
"""

import asyncio
from collections.abc import AsyncGenerator

from starlette.responses import Response, StreamingResponse

from gateway.peers import Patience, Peers, stream
from gateway.resources.executions.responses import receipt_rest
from gateway.rest.convert import Rest
from gateway.rest.event_frames import HEADERS, PING, frame
from loci.tool.v1 import execution_service_pb2 as pb
from services.common.errors import LociError, Unavailable


async def stream_response(peers: Peers, call_key: str, after: int, *, ping: float, window: float) -> Response:
    """Returns the stream of a call. Raises LociError where it cannot begin."""
    events = _events(peers, call_key, after, window)
    first = asyncio.ensure_future(anext(events))
    try:
        # A call that prints nothing yet is not waited for: that there is such a call shows in the first moment.
        await asyncio.wait({first}, timeout=1.0)
        if first.done():
            first.result()
    except BaseException:
        await _leave(events, first)
        raise
    return StreamingResponse(_frames(events, first, ping), media_type="text/event-stream", headers=HEADERS)


async def _events(
    peers: Peers, call_key: str, after: int, window: float
) -> AsyncGenerator[pb.StreamExecutionResponse, None]:
    """Yields the output until the receipt, over as many replicas of the tool runner as it takes."""
    patience = Patience(window)
    while True:
        call = peers.executions.StreamExecution(
            pb.StreamExecutionRequest(call_key=call_key, after_sequence=after), wait_for_ready=True
        )
        try:
            async with stream(call) as events:
                async for event in events:
                    patience.renew()
                    after = event.sequence
                    yield event
                    if event.HasField("receipt"):
                        return
            failure: LociError = Unavailable("the stream ended before its receipt", reason="STREAM_INCOMPLETE")
        except LociError as error:
            failure = error
        await patience.wait(failure)


async def _frames(
    events: AsyncGenerator[pb.StreamExecutionResponse, None],
    first: "asyncio.Future[pb.StreamExecutionResponse]",
    ping: float,
) -> AsyncGenerator[bytes, None]:
    waiting = first
    try:
        while True:
            await asyncio.wait({waiting}, timeout=ping)
            if not waiting.done():
                yield PING
                continue
            try:
                yield _frame(waiting.result())
            except StopAsyncIteration:
                return
            waiting = asyncio.ensure_future(anext(events))
    except LociError as error:
        yield _event("error", {"message": error.message, "reason": error.reason})
    finally:
        await _leave(events, waiting)


async def _leave(
    events: AsyncGenerator[pb.StreamExecutionResponse, None], waiting: "asyncio.Future[pb.StreamExecutionResponse]"
) -> None:
    """Ends the events, where they stand or where somebody waits for the next one."""
    if waiting.done():
        await events.aclose()
    else:
        waiting.cancel()


def _frame(event: pb.StreamExecutionResponse) -> bytes:
    kind = event.WhichOneof("event") or "stdout"
    data = receipt_rest(event.receipt) if kind == "receipt" else {"text": getattr(event, kind)}
    return f"id: {event.sequence}\n".encode() + _event(kind, data)


def _event(kind: str, data: Rest) -> bytes:
    return frame(data, kind)
