"""A WebSocket over which one talks to an agent: frames in, the events of several runs out. See docs/websocket.md.

What is sent begins background runs, so whoever is cut off goes on elsewhere: closing the socket ends nothing.
"""

import asyncio
import json
import logging
from collections.abc import Coroutine
from contextlib import aclosing, suppress
from typing import Any

import orjson
from pydantic import BaseModel, ValidationError
from starlette.websockets import WebSocket, WebSocketDisconnect

from gateway.access.auth import Caller
from gateway.errors.problems import UNKNOWN_ERROR, Problem, invalid, problem_of
from gateway.resources.conversations.responses import ConversationKey
from gateway.resources.messages.responses import stop_reason, usage_statistics
from gateway.resources.messages.routes import fates
from gateway.rest.json_body import parse
from gateway.rest.services import Services
from gateway.sockets.frames import (
    CLIENT_FRAME,
    Accepted,
    Approve,
    Cancel,
    Cancelling,
    End,
    Error,
    Ping,
    Pong,
    Resume,
    Send,
)
from gateway.sockets.outbox import Outbox
from gateway.turns.event_stream import Events
from gateway.turns.events import Interruption, TurnEvents
from gateway.turns.idempotency import retry_keys
from gateway.turns.reattach import reattach
from gateway.turns.renderer import EventRenderer
from gateway.turns.turn_requests import build_turn
from gateway.turns.views import View
from loci.agent.v1 import message_service_pb2, run_service_pb2
from services.common.errors import LociError, NotFound

logger = logging.getLogger(__name__)

# Runs that one socket follows at a time.
MOST_RUNS = 32
# What may wait to be sent, beside what the connection itself holds.
_MOST_WAITING = 1024 * 1024
_TRY_AGAIN_LATER = 1013
_TOO_SLOW = "you read too slowly: open a new socket and send resume with each run_id and its last seq_id"
_BROKE_OFF = "the run's events broke off, and it goes on: send resume with its run_id and the last seq_id"
# Stands for the method of a frame where requests are told apart.
_METHOD = "WEBSOCKET"


class AgentSocket:
    """One socket, from its acceptance on. `conversation`: whether it is for one conversation alone.

    group_id: the group that takes the turns, where `place` is a group's; empty: its agent.
    """

    def __init__(
        self, socket: WebSocket, loci: Services, place: ConversationKey, *, conversation: bool, group_id: str = ""
    ) -> None:
        self._socket = socket
        self._loci = loci
        self._place = place
        self._conversation = conversation
        self._addressee = group_id or place.agent_id
        self._caller: Caller = socket.scope["loci.caller"]
        self._outbox = Outbox(_MOST_WAITING)
        self._at_work: set[asyncio.Task[None]] = set()

    async def serve(self) -> None:
        """Serves the socket until either side closes it."""
        await self._socket.accept()
        write, read = asyncio.create_task(self._write()), asyncio.create_task(self._read())
        try:
            await asyncio.wait((write, read), return_when=asyncio.FIRST_COMPLETED)
            if write.done() and write.result():
                await self._socket.close(_TRY_AGAIN_LATER, _TOO_SLOW)
            elif read.done():
                read.result()
        finally:
            left = [write, read, *self._at_work]
            for task in left:
                task.cancel()
            await asyncio.gather(*left, return_exceptions=True)

    async def _write(self) -> bool:
        """Sends what waits. True when the client took nothing for too long, False when it left."""
        with suppress(WebSocketDisconnect, RuntimeError):
            while True:
                text = await self._outbox.get()
                try:
                    async with asyncio.timeout(self._loci.settings.socket_stall):
                        await self._socket.send_text(text)
                except TimeoutError:
                    return True
        return False

    async def _read(self) -> None:
        while (received := await self._socket.receive())["type"] == "websocket.receive":
            text = received.get("text")
            data: bytes = received.get("bytes") or b"" if text is None else text.encode()
            await self._take(data)

    async def _take(self, data: bytes) -> None:
        frame_id = None
        try:
            if len(data) > self._loci.settings.max_body_bytes:
                raise _InvalidFrame(Problem(413, {"detail": "the frame is larger than LOCI_MAX_BODY_MIB allows"}))
            content = _parsed(data)
            frame_id = _id_of(content)
            frame = CLIENT_FRAME.validate_python(content)
        except ValidationError as error:
            await self._say(_error(invalid(error.errors(include_url=False, include_context=False)), frame_id))
            return
        except _InvalidFrame as refused:
            await self._say(_error(refused.problem, frame_id))
            return
        if isinstance(frame, Ping):
            await self._say(Pong(id=frame.id))
        elif len(self._at_work) >= MOST_RUNS:
            sentence = f"this socket follows {MOST_RUNS} runs; wait until one has ended, or open another socket"
            await self._say(Error(id=frame.id, status=429, detail=sentence))
        else:
            try:
                self._socket.scope["loci.count"]()
            except LociError as error:
                await self._say(_error(problem_of(error), frame.id))
                return
            self._begin(frame, data)

    def _begin(self, frame: Send | Approve | Cancel | Resume, data: bytes) -> None:
        """In a task of its own, so that more can be said meanwhile. The agent service sees them in this order."""
        work: Coroutine[Any, Any, None]
        match frame:
            case Cancel():
                work = self._cancel(frame)
            case Resume():
                work = self._resume(frame)
            case _:
                work = self._turn(frame, data)
        task = asyncio.create_task(self._guarded(work, frame.id))
        self._at_work.add(task)
        task.add_done_callback(self._at_work.discard)

    async def _guarded(self, work: Coroutine[Any, Any, None], frame_id: str | None) -> None:
        try:
            await work
        except LociError as error:
            await self._say(_error(problem_of(error), frame_id))
        except Exception:  # the socket serves other runs, too
            logger.exception("a frame of a socket met an unexpected error")
            await self._say(_error(Problem(500, {"detail": UNKNOWN_ERROR}), frame_id))

    async def _turn(self, frame: Send | Approve, data: bytes) -> None:
        headers = self._socket.scope["headers"]
        retry = retry_keys(
            {},
            credential=self._caller.credential,
            user_id=str(self._caller.context.user_id),
            method=_METHOD,
            path=self._socket.scope["path"],
            body=data,
        )
        turn = build_turn(
            frame,
            self._addressee,
            headers=headers,
            retry=retry,
            conversation_id=self._place.conversation_id,
            background=True,
        )
        turn.retry.idempotency_key = _repetition_key(turn)
        view = View.of(frame)
        source = TurnEvents(self._loci.peers, turn=turn, tokens=view.tokens, window=self._loci.settings.reattach_window)
        renderer = EventRenderer(
            deltas=view.deltas(), types=view.shown_types, speech=view.speech(), pings=False, numbered=True
        )
        events = source.events()
        await self._follow(await anext(events), events, renderer, frame.id)

    async def _resume(self, frame: Resume) -> None:
        await self._check_own(frame.run_id)
        run = await reattach(self._loci, run_service_pb2.StreamRunRequest(run_id=frame.run_id), frame.attach_run())
        renderer = EventRenderer(
            deltas=run.view.deltas(resumed=run.resumed),
            types=run.view.shown_types,
            speech=run.view.speech(resumed=run.resumed),
            pings=False,
            numbered=True,
            after=run.after,
        )
        await self._follow(run.first, run.events, renderer, frame.id)

    async def _check_own(self, run_id: str) -> None:
        """Raises NotFound (RUN_NOT_FOUND) for a run of another agent or conversation: this socket is not for them."""
        request = run_service_pb2.GetRunRequest(run_id=run_id)
        run = (await self._loci.peers.call(self._loci.peers.runs.GetRun, request)).run
        elsewhere = self._conversation and run.conversation_id != self._place.run_filter
        if run.agent_id != self._place.agent_id or elsewhere:
            raise NotFound(f"there is no run {run_id} here", reason="RUN_NOT_FOUND")

    async def _follow(
        self,
        first: message_service_pb2.TurnEvent | Interruption,
        events: Events,
        renderer: EventRenderer,
        frame_id: str | None,
    ) -> None:
        async with aclosing(events):
            await self._tell(first, renderer)
            await self._say(Accepted(id=frame_id, run_id=renderer.run_id))
            try:
                async for event in events:
                    await self._tell(event, renderer)
            except LociError as error:
                logger.warning("the events of %s broke off: %r", renderer.run_id, error)
                detail = f"{_BROKE_OFF} ({error.message})"
                await self._say(Error(id=frame_id, run_id=renderer.run_id, status=503, detail=detail))

    async def _tell(self, event: message_service_pb2.TurnEvent | Interruption, renderer: EventRenderer) -> None:
        if isinstance(event, Interruption):
            renderer.interrupted()
            return
        for content in renderer.render(event):
            seq_id = content.get("seq_id") or renderer.number(event)
            await self._put(content | {"run_id": content.get("run_id") or renderer.run_id, "seq_id": seq_id})
        if event.WhichOneof("event") == "end":
            usage = usage_statistics(event.end.usage)
            del usage["message_type"]
            reason = stop_reason(event.end)["stop_reason"]
            await self._say(End(run_id=renderer.run_id, stop_reason=reason, usage=usage))

    async def _cancel(self, frame: Cancel) -> None:
        request = run_service_pb2.CancelRunsRequest(
            agent_id=self._place.agent_id,
            conversation_id=self._place.run_filter if self._conversation else "",
            run_ids=[frame.run_id] if frame.run_id else None,
        )
        if frame.run_id:
            await self._check_own(frame.run_id)
        cancelled = await self._loci.peers.call(self._loci.peers.runs.CancelRuns, request)
        await self._say(Cancelling(id=frame.id, runs=fates(cancelled.runs)))

    async def _say(self, frame: BaseModel) -> None:
        await self._put(frame.model_dump())

    async def _put(self, content: Any) -> None:
        await self._outbox.put(orjson.dumps(content).decode())


class _InvalidFrame(Exception):
    """A frame that is not read."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.body)
        self.problem = problem


def _parsed(data: bytes) -> Any:
    try:
        return parse(data)
    except json.JSONDecodeError as error:
        sentence = f"the frame is not JSON that is taken here: {error.msg}"
        raise _InvalidFrame(invalid([{"type": "json_invalid", "loc": ("frame",), "msg": sentence}])) from None


def _repetition_key(turn: message_service_pb2.TurnRequest) -> str:
    """Returns what makes a repeated frame the same request: the otids, if all of its messages have one."""
    otids = [message.otid for message in turn.messages if message.HasField("otid")]
    return json.dumps(otids) if otids and len(otids) == len(turn.messages) else ""


def _id_of(frame: Any) -> str | None:
    frame_id = frame.get("id") if isinstance(frame, dict) else None
    return frame_id if isinstance(frame_id, str) and len(frame_id) <= 200 else None


def _error(problem: Problem, frame_id: str | None) -> Error:
    detail = problem.body.get("detail", problem.body.get("error"))
    return Error(id=frame_id, status=problem.status, detail=detail)
