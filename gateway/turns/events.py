"""Turns, over as many agent replicas as it takes: when one is lost, the run is found again by its id.

Sending a turn again with the same run id attaches to it, so nothing here can start a second one.
"""

import time
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Any, TypeVar

import grpc
from google.protobuf.message import Message

from gateway.peers import Patience, Peers, stream
from loci.agent.v1 import message_service_pb2, run_service_pb2
from services.common.errors import LociError, Unavailable, from_rpc

Request = TypeVar("Request", bound=Message)
Response = TypeVar("Response")

# A call that lasted this long had found a replica: its loss is a new one.
_SETTLED_SECONDS = 5.0


@dataclass(frozen=True)
class Interruption:
    """Stands among a turn's events where they were interrupted. Deltas may be missing here."""


async def call_until_answered(
    rpc: "grpc.aio.UnaryUnaryMultiCallable[Request, Response]", request: Request, *, window: float
) -> Response:
    """Calls `rpc`, which takes a turn, and returns when it has ended, however long that takes. Raises LociError."""
    patience = Patience(window)
    while True:
        began = time.monotonic()
        try:
            return await rpc(request)
        except grpc.RpcError as error:
            failure = from_rpc(error)
        if time.monotonic() - began > _SETTLED_SECONDS:
            patience.renew()
        await patience.wait(failure)


class TurnEvents:
    """The events of one turn, or of a run that is there already (`joined` says which), each once.

    Where `joined` wants context, deltas that were told before come first.
    """

    def __init__(
        self,
        peers: Peers,
        *,
        turn: message_service_pb2.TurnRequest | None = None,
        joined: run_service_pb2.StreamRunRequest | None = None,
        tokens: bool,
        window: float,
    ) -> None:
        self._peers = peers
        self._turn = turn
        self._tokens = tokens
        self._patience = Patience(window)
        self._joined = joined
        self._sequence = joined.after_sequence if joined else 0
        self._in_context = False
        # Empty until the service has said which run it is: a repeated request may get another than it asked for.
        self.run_id = ""

    async def events(self) -> AsyncGenerator[message_service_pb2.TurnEvent | Interruption, None]:
        """Yields everything until the end, whoever owns the run. Raises LociError; before the first event, that of
        the request.
        """
        begun = False
        while True:
            try:
                async with stream(self._open()) as responses:
                    async for response in responses:
                        event = response.event
                        if self._is_news(event, begun):
                            begun = True
                            yield event
                        if event.WhichOneof("event") == "end":
                            return
                failure: LociError = Unavailable("the stream ended before the turn", reason="STREAM_INCOMPLETE")
            except LociError as error:
                failure = error
            await self._patience.wait(failure)
            if begun:
                yield Interruption()

    def _open(self) -> Any:
        if self._turn is not None and not self.run_id:
            first = message_service_pb2.StreamMessagesRequest(turn=self._turn, stream_tokens=self._tokens)
            return self._peers.messages.StreamMessages(first)
        self._in_context = self._joined is not None and self._joined.with_context and not self.run_id
        if self._joined is not None and not self.run_id:
            return self._peers.runs.StreamRun(self._joined)
        again = run_service_pb2.StreamRunRequest(
            run_id=self.run_id, after_sequence=self._sequence, stream_tokens=self._tokens
        )
        return self._peers.runs.StreamRun(again)

    def _is_news(self, event: message_service_pb2.TurnEvent, begun: bool) -> bool:
        self._patience.renew()
        if event.WhichOneof("event") == "attached":
            self.run_id = event.attached.run_id
            return not begun
        if event.sequence <= self._sequence:
            return self._in_context or event.WhichOneof("event") == "end"
        self._in_context = False
        self._sequence = event.sequence
        return True
