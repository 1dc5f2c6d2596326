"""The port Models over gRPC to the model gateway."""

import logging
from collections.abc import AsyncGenerator

import grpc

from loci.llm.v1 import chat_service_pb2, chat_service_pb2_grpc
from services.agent.adapters.chat_wire import generation_request, part_of, reply_of
from services.agent.core.ports import ModelRequest, PartDelta, PeerLost, Reply
from services.agent.resources.agents.ports import ModelCatalogue
from services.common.channel import call_idempotent
from services.common.context import current, run_independent
from services.common.errors import LociError, from_rpc

# A count only corrects an estimate.
COUNT_SECONDS = 5.0
RENDER_SECONDS = 20.0

_log = logging.getLogger(__name__)


class GrpcModels:
    """Chat models behind the model gateway."""

    def __init__(self, channel: grpc.aio.Channel, catalogue: ModelCatalogue) -> None:
        self._chat = chat_service_pb2_grpc.ChatServiceStub(channel)
        self._catalogue = catalogue

    async def generate(self, request: ModelRequest) -> AsyncGenerator[PartDelta | Reply]:
        """See ports.Models.generate."""
        try:
            if not request.stream:
                single = chat_service_pb2.GenerateRequest(request=generation_request(request))
                with run_independent():
                    reply = self._chat.Generate(single)
                yield reply_of((await reply).generation)
                return
            streamed = chat_service_pb2.StreamGenerateRequest(request=generation_request(request))
            with run_independent():
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

    async def render(self, request: ModelRequest) -> str:
        """See resources.model_calls.ports.Renderer."""
        preview = chat_service_pb2.PreviewGenerationRequest(request=generation_request(request), stream=request.stream)
        body: str = (await call_idempotent(self._chat.PreviewGeneration, preview, timeout=RENDER_SECONDS)).body_json
        return body

    async def count(self, request: ModelRequest) -> int | None:
        """See ports.Models.count."""
        count = chat_service_pb2.CountTokensRequest(request=generation_request(request))
        try:
            with run_independent():
                counted = await self._chat.CountTokens(count, timeout=COUNT_SECONDS)
        except grpc.RpcError as error:
            _log.info("a request was not counted: %s", from_rpc(error).message)
            return None
        return None if counted.estimated else counted.tokens

    async def window(self, handle: str) -> int:
        """See ports.Models.window. For the tenant of the run that asks."""
        return await self._catalogue.window(current().organization_id, handle)

    async def reasons(self, handle: str) -> bool:
        """See ports.Models.reasons. A model that the gateway calls without listing it is described by nobody."""
        try:
            return await self._catalogue.reasons(current().organization_id, handle)
        except LociError as error:
            _log.info("a model is not described: %s", error.message)
            return False
