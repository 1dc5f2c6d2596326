"""Talking to agents."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Annotated

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import Response

from gateway.bodies.messages import CancelRuns, MessageTypeName, SendMessages
from gateway.body import JsonRoute
from gateway.convert import Rest
from gateway.deltas import Deltas
from gateway.errors import problem_of_turn
from gateway.event_stream import EventStream
from gateway.idempotency import retry_keys
from gateway.messages import SAID, message, message_type, stop_reason, usage_statistics
from gateway.params import MOST_PER_PAGE, AgentId, Cursor, Limit, Order, page_size, unsupported
from gateway.responses import json_response
from gateway.services import Loci, Services, caller_of
from gateway.sse import Frames
from gateway.turns import TurnEvents, send_messages
from loci.agent.v1 import message_service_pb2, run_pb2, run_service_pb2
from services.common.errors import LociError
from services.common.ids import to_public, uuid7

router = APIRouter(prefix="/agents/{agent_id}/messages", tags=["agents"], route_class=JsonRoute)

Types = Annotated[list[MessageTypeName] | None, Query(description="Only messages of these types.")]
# Pages that are read to fill one of filtered messages: 10,000 stored messages at most.
_PAGES_READ = 10


@router.post("")
async def send(agent_id: AgentId, body: SendMessages, request: Request, loci: Loci) -> Response:
    """Takes a turn: answered when it has ended, or with streaming=true as server-sent events.

    The reference refuses streaming=true on this route to clients that are not its SDK of version 1 or later. Loci does
    not: a person with curl may stream.
    """
    if body.streaming:
        return await send_streaming(agent_id, body, request, loci)
    body.check(streams=False)
    turn = await _turn(agent_id, body, request)
    work = asyncio.create_task(send_messages(loci.peers, turn, window=loci.settings.reattach_window))
    if not await _outlasts(request, work):
        # Cancelled with its RPC: a turn that has not begun may be withdrawn, one that has goes on.
        await _leave(loci, turn.agent_id, turn.run_id)
        return Response(status_code=499)
    answer = work.result()
    if answer.end.HasField("error"):
        return problem_of_turn(answer.end.error).response()
    types = body.include_return_message_types
    kept = SAID if types is None else SAID.intersection(types)
    return json_response(
        {
            "messages": [message(one) for one in answer.messages if message_type(one) in kept],
            "stop_reason": stop_reason(answer.end),
            "usage": usage_statistics(answer.end.usage),
            "logprobs": None,
            "turns": None,
        }
    )


@router.post("/stream")
async def send_streaming(agent_id: AgentId, body: SendMessages, request: Request, loci: Loci) -> Response:
    """Takes a turn as server-sent events: whole messages, or with stream_tokens=true pieces of them."""
    body.check(streams=True)
    turn = await _turn(agent_id, body, request)
    types = body.include_return_message_types
    events = TurnEvents(loci.peers, turn=turn, tokens=body.stream_tokens, window=loci.settings.reattach_window)
    frames = Frames(
        deltas=Deltas() if body.stream_tokens else None,
        types=None if types is None else frozenset(types),
        pings=body.include_pings,
        numbered=body.background,
    )

    async def leave() -> None:
        await _leave(loci, agent_id, events.run_id)

    return await stream(
        loci, events, frames, pings=body.include_pings, on_disconnect=None if body.background else leave
    )


@router.get("")
async def list_messages(
    agent_id: AgentId,
    loci: Loci,
    after: Cursor = None,
    before: Cursor = None,
    limit: Limit = None,
    order: Order = "desc",
    conversation_id: str | None = None,
    group_id: str | None = None,
    include_return_message_types: Types = None,
) -> Response:
    """A page of the agent's history, newest first. `limit` counts stored messages; one may show as several."""
    unsupported(group_id=group_id)
    wanted = None if include_return_message_types is None else frozenset(include_return_message_types)
    most = page_size(limit, 100)
    request = message_service_pb2.ListMessagesRequest(
        agent_id=agent_id,
        conversation_id="" if conversation_id in (None, "default") else conversation_id,
        page_size=most if wanted is None else MOST_PER_PAGE,
        after=after,
        before=before,
        ascending=order == "asc",
    )
    shown: list[Rest] = []
    # A client takes an empty page for the end, so with a filter the next pages are read until this one is full.
    for _ in range(1 if wanted is None else _PAGES_READ):
        page = await loci.peers.call(loci.peers.messages.ListMessages, request)
        for one in page.messages:
            if wanted is None or message_type(one) in wanted:
                if wanted is not None and len(shown) >= most and shown[-1]["id"] != one.id:
                    return json_response(shown)
                shown.append(message(one))
        request.page_token = page.next_page_token
        if not page.next_page_token:
            break
    return json_response(shown)


@router.post("/cancel")
async def cancel(agent_id: AgentId, loci: Loci, body: CancelRuns | None = None) -> Response:
    """Asks runs to stop; without a list, all that are active. Answers with the fate of each."""
    request = run_service_pb2.CancelRunsRequest(agent_id=agent_id, run_ids=body.run_ids if body else None)
    runs = (await loci.peers.call(loci.peers.runs.CancelRuns, request)).runs
    # The flag is set at once; a run that is still running will see it.
    ended = (run_pb2.RUN_STATUS_COMPLETED, run_pb2.RUN_STATUS_FAILED)
    return json_response({run.id: "failed" if run.status in ended else "cancelled" for run in runs})


async def stream(
    loci: Services,
    turn: TurnEvents,
    frames: Frames,
    *,
    pings: bool,
    on_disconnect: Callable[[], Awaitable[None]] | None = None,
) -> Response:
    """The events of `turn` as a response. What fails before the first event is an HTTP error."""
    events = turn.events()
    first = await anext(events)
    interval = loci.settings.ping_interval if pings else None
    return EventStream(first, events, frames, ping_interval=interval, on_disconnect=on_disconnect or _nothing)


async def _turn(agent_id: str, body: SendMessages, request: Request) -> message_service_pb2.TurnRequest:
    caller = caller_of(request)
    return message_service_pb2.TurnRequest(
        agent_id=agent_id,
        run_id=to_public("run", uuid7()),
        messages=body.input_messages(),
        max_steps=body.max_steps,
        retry=retry_keys(
            dict(request.scope["headers"]),
            credential=caller.credential,
            user_id=str(caller.context.user_id),
            method=request.method,
            path=request.scope["path"],
            body=await request.body(),
        ),
    )


async def _outlasts(request: Request, work: "asyncio.Task[object]") -> bool:
    """Whether the client stays until `work` is done; else `work` is cancelled."""
    gone = asyncio.create_task(_disconnected(request))
    try:
        await asyncio.wait((work, gone), return_when=asyncio.FIRST_COMPLETED)
        return work.done()
    finally:
        gone.cancel()
        work.cancel()


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def _leave(loci: Services, agent_id: str, run_id: str) -> None:
    """The client of a turn has gone. That ends the turn only where the operator wants it so."""
    if not loci.settings.cancel_on_disconnect or not run_id:
        return
    request = run_service_pb2.CancelRunsRequest(agent_id=agent_id, run_ids=[run_id])
    try:
        await loci.peers.call(loci.peers.runs.CancelRuns, request)
    except LociError:
        return  # it has ended, or nobody can be asked: there is nobody to tell


async def _nothing() -> None:
    """Nothing."""
