"""The answer to a request for a turn: a JSON body when it has ended, or its events as they come."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from starlette.requests import Request
from starlette.responses import Response

from gateway.errors.problems import Problem, problem_of_turn, turn_error
from gateway.errors.table import TOLD_IN_STREAM
from gateway.resources.messages.requests import AttachRun, SendMessages, TurnBody
from gateway.resources.messages.responses import message, message_type, stop_reason, usage_statistics
from gateway.rest.convert import Rest, from_json
from gateway.rest.responses import json_response
from gateway.rest.services import Services
from gateway.turns.event_stream import Events, EventStream
from gateway.turns.events import Interruption, TurnEvents, call_until_answered
from gateway.turns.reattach import ReattachedRun, last_event_id, reattach
from gateway.turns.sse import SseRenderer
from gateway.turns.views import View
from loci.agent.v1 import agent_pb2, message_service_pb2, run_service_pb2
from services.common.errors import LociError
from services.common.interruption import Interrupted, run_unless

T = TypeVar("T")


async def blocking_turn(
    request: Request, loci: Services, turn: message_service_pb2.TurnRequest, body: TurnBody
) -> Response:
    """Takes a turn; answered when it has ended."""
    answer = await run_turn(request, loci, turn)
    if answer is None:
        return Response(status_code=499)
    if answer.end.HasField("error"):
        return problem_of_turn(answer.end.error).response()
    return json_response(
        {
            "messages": render_messages(answer, View.of(body)),
            "stop_reason": stop_reason(answer.end),
            "usage": usage_statistics(answer.end.usage),
            "logprobs": from_json(answer.end.logprobs_json),
            "turns": from_json(answer.end.turns_json),
        }
    )


async def run_turn(
    request: Request, loci: Services, turn: message_service_pb2.TurnRequest
) -> message_service_pb2.SendMessagesResponse | None:
    """Takes a turn and waits for its end. None when the client has left before."""
    sent = message_service_pb2.SendMessagesRequest(turn=turn)
    work = call_until_answered(loci.peers.messages.SendMessages, sent, window=loci.settings.reattach_window)
    answer = await _while_connected(request, work)
    if answer is None:
        # Cancelled with its RPC: a turn that has not begun may be withdrawn, one that has goes on.
        await _leave(loci, turn.agent_id, turn.run_id)
    return answer


def render_messages(answer: message_service_pb2.SendMessagesResponse, view: View) -> list[Rest]:
    """Returns the messages of a turn, as the client wants to see them."""
    types, speech = view.shown_types, view.speech()
    parts = [part for one in answer.messages for part in (speech.whole(one) if speech else [one])]
    return [message(one) for one in parts if message_type(one) in types]


async def stream_turn(
    request: Request, loci: Services, turn: message_service_pb2.TurnRequest, body: SendMessages
) -> Response:
    """Takes a turn as server-sent events: whole messages, or with stream_tokens=true pieces of them.

    A background turn that was begun by the same request before goes on after the request's `Last-Event-ID`.
    """
    view = View.of(body)
    after = last_event_id(request) if body.background else 0
    events = TurnEvents(loci.peers, turn=turn, tokens=view.tokens, window=loci.settings.reattach_window)
    frames = SseRenderer(
        deltas=view.deltas(),
        types=view.shown_types,
        speech=view.speech(),
        pings=body.include_pings,
        numbered=body.background,
        run_id=turn.run_id,
    )
    if after:
        return await _resume_turn(loci, events, frames, after, pings=body.include_pings)
    left = None if body.background else leave_callback(loci, turn, events)
    return await stream(loci, events, frames, pings=body.include_pings, on_disconnect=left)


def resume_stream(loci: Services, run: ReattachedRun, *, pings: bool) -> Response:
    """Returns a run that is there already, from where its reader is."""
    frames = SseRenderer(
        deltas=run.view.deltas(resumed=run.resumed),
        types=run.view.shown_types,
        speech=run.view.speech(resumed=run.resumed),
        pings=pings and not run.knows_run,
        numbered=True,
        after=run.after,
    )
    # A reader that leaves again is not the one whose turn it is: nothing is cancelled.
    return event_stream(loci, run.first, run.events, frames, pings=pings)


async def _resume_turn(loci: Services, turn: TurnEvents, frames: SseRenderer, after: int, *, pings: bool) -> Response:
    """Returns a request that may have been made before: then its run is joined where the reader left it."""
    first, events = await _first_event(turn, frames)
    if isinstance(first, Interruption) or first.attached.started:
        return event_stream(loci, first, events, frames, pings=pings)
    await events.aclose()
    request = run_service_pb2.StreamRunRequest(run_id=turn.run_id)
    return resume_stream(loci, await reattach(loci, request, AttachRun(starting_after=after)), pings=pings)


def leave_callback(
    loci: Services, turn: message_service_pb2.TurnRequest, events: TurnEvents
) -> Callable[[], Awaitable[None]]:
    """Returns the callback for a client that leaves its streamed turn."""

    async def leave() -> None:
        await _leave(loci, turn.agent_id, events.run_id)

    return leave


async def stream(
    loci: Services,
    turn: TurnEvents,
    frames: SseRenderer,
    *,
    pings: bool,
    on_disconnect: Callable[[], Awaitable[None]] | None = None,
) -> Response:
    """Returns the events of `turn` as a response.

    What fails before the first is an HTTP error, TOLD_IN_STREAM excepted.
    """
    first, events = await _first_event(turn, frames)
    return event_stream(loci, first, events, frames, pings=pings, on_disconnect=on_disconnect)


async def _first_event(
    turn: TurnEvents, frames: SseRenderer
) -> tuple[message_service_pb2.TurnEvent | Interruption, Events]:
    events: Events = turn.events()
    try:
        return await anext(events), events
    except LociError as error:
        if error.reason not in TOLD_IN_STREAM:
            raise
        events = refusal_events(frames.run_id, error)
        return await anext(events), events


def event_stream(
    loci: Services,
    first: message_service_pb2.TurnEvent | Interruption,
    events: Events,
    frames: SseRenderer,
    *,
    pings: bool,
    on_disconnect: Callable[[], Awaitable[None]] | None = None,
) -> Response:
    """Returns a stream of which the first event is there."""
    interval = loci.settings.ping_interval if pings else None
    return EventStream(first, events, frames, ping_interval=interval, on_disconnect=on_disconnect or _nothing)


async def compact(
    request: Request, loci: Services, compaction: message_service_pb2.CompactConversationRequest
) -> Response:
    """Compacts a window. 400 when nothing became shorter although there was something to compact, as the reference."""
    work = call_until_answered(
        loci.peers.messages.CompactConversation, compaction, window=loci.settings.reattach_window
    )
    answer = await _while_connected(request, work)
    if answer is None:
        await _leave(loci, compaction.agent_id, compaction.run_id)
        return Response(status_code=499)
    before, after = answer.messages_count_before, answer.messages_count_after
    if answer.summary and after >= before:
        detail = f"compaction left {after} of {before} messages in the window: there is too little to summarise yet"
        return Problem(400, {"detail": detail}).response()
    return json_response({"summary": answer.summary, "num_messages_before": before, "num_messages_after": after})


async def _while_connected(request: Request, work: Coroutine[Any, Any, T]) -> T | None:
    """Returns the result of `work`; None when the client leaves before, and then `work` is cancelled."""
    gone = asyncio.create_task(_disconnected(request))
    try:
        return await run_unless(gone, work)
    except Interrupted:
        return None
    finally:
        gone.cancel()


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def _leave(loci: Services, agent_id: str, run_id: str) -> None:
    """Cancels the turn of a client that has left, where the operator wants it so (LOCI_ON_DISCONNECT)."""
    if not loci.settings.cancel_on_disconnect or not run_id:
        return
    # A group's runs are those of the agent that stands for it.
    agent_id = agent_id.replace("group-", "agent-", 1)
    request = run_service_pb2.CancelRunsRequest(agent_id=agent_id, run_ids=[run_id])
    try:
        await loci.peers.call(loci.peers.runs.CancelRuns, request)
    except LociError:
        return  # it has ended, or nobody can be asked: there is nobody to tell


async def refusal_events(
    run_id: str, error: LociError
) -> AsyncGenerator[message_service_pb2.TurnEvent | Interruption, None]:
    """Yields the events of a request that was refused, as if its run had begun: clients look for the failure in the
    stream.
    """
    yield message_service_pb2.TurnEvent(attached=message_service_pb2.RunAttached(run_id=run_id, started=True))
    end = message_service_pb2.TurnEnd(stop_reason=agent_pb2.STOP_REASON_ERROR, error=turn_error(error))
    yield message_service_pb2.TurnEvent(end=end)


async def _nothing() -> None:
    """Does nothing."""
