"""The port Models over gRPC to the model gateway."""

import logging
import time
from collections.abc import AsyncGenerator

import grpc

from loci.llm.v1 import chat_service_pb2, chat_service_pb2_grpc, model_service_pb2, model_service_pb2_grpc
from services.agent.adapters.chat_wire import generation_request, part_of, reply_of
from services.agent.ports import ModelRequest, PartDelta, PeerLost, Reply
from services.common.channel import call_idempotent
from services.common.context import shared
from services.common.errors import from_rpc

PATIENCE_SECONDS = 15.0
# A count only corrects an estimate.
COUNT_SECONDS = 5.0
# A window that was asked for is not asked for again so soon.
KNOWN_SECONDS = 30.0
_MOST_KNOWN = 10_000

_log = logging.getLogger(__name__)


class GrpcModels:
    """Chat models behind the model gateway."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self._chat = chat_service_pb2_grpc.ChatServiceStub(channel)
        self._models = model_service_pb2_grpc.ModelServiceStub(channel)
        self._windows: dict[str, tuple[float, int]] = {}

    async def generate(self, request: ModelRequest) -> AsyncGenerator[PartDelta | Reply]:
        """See ports.Models.generate."""
        try:
            if not request.stream:
                single = chat_service_pb2.GenerateRequest(request=generation_request(request))
                with shared():
                    reply = self._chat.Generate(single)
                yield reply_of((await reply).generation)
                return
            streamed = chat_service_pb2.StreamGenerateRequest(request=generation_request(request))
            with shared():
                call = self._chat.StreamGenerate(streamed)
            try:
                async for event in call:
                    if (part := part_of(event)) is not None:
                        yield part
                    if isinstance(part, Reply):
                        return
            finally:
                call.cancel()
            raise PeerLost("The model gateway's stream ended before the reply did.")
        except grpc.RpcError as error:
            failure = from_rpc(error)
            # CANCELLED is what a gateway that shuts down says.
            if failure.reason in ("PEER_UNAVAILABLE", "CANCELLED"):
                raise PeerLost(failure.message) from error
            raise failure from error

    async def count(self, request: ModelRequest) -> int | None:
        """See ports.Models.count."""
        wanted = chat_service_pb2.CountTokensRequest(request=generation_request(request))
        try:
            with shared():
                counted = await self._chat.CountTokens(wanted, timeout=COUNT_SECONDS)
        except grpc.RpcError as error:
            _log.info("a request was not counted: %s", from_rpc(error).message)
            return None
        return None if counted.estimated else counted.tokens

    async def window(self, handle: str) -> int:
        """See ports.Models.window."""
        known_until, window = self._windows.get(handle, (0.0, 0))
        if known_until < time.monotonic():
            request = model_service_pb2.GetModelRequest(handle=handle)
            response = await call_idempotent(self._models.GetModel, request, timeout=PATIENCE_SECONDS)
            window = response.model.context_window
            if len(self._windows) >= _MOST_KNOWN:
                self._windows.clear()
            self._windows[handle] = time.monotonic() + KNOWN_SECONDS, window
        return window
