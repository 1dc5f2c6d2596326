"""Embeddings from the llm gateway."""

from collections.abc import Sequence

import grpc

from loci.llm.v1 import model_service_pb2, model_service_pb2_grpc
from services.common.context import time_remaining
from services.common.errors import Internal, from_rpc

_SHARE = 0.8


class GatewayEmbedder:
    """`Embedder` over loci.llm.v1.ModelService. The call's context goes along by the channel."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self._models = model_service_pb2_grpc.ModelServiceStub(channel)

    async def embed(self, handle: str, texts: Sequence[str], seconds: float) -> list[list[float]]:
        response = await self._ask(model_service_pb2.EmbedRequest(handle=handle, texts=texts), seconds)
        vectors = [list(vector.values) for vector in response.vectors]
        if len(vectors) != len(texts) or any(len(vector) != response.dimensions for vector in vectors):
            raise Internal(f"{handle} answered with vectors that do not fit the texts", reason="EMBEDDING_INVALID")
        return vectors

    async def check(self, handle: str, seconds: float) -> None:
        request = model_service_pb2.GetEmbeddingModelRequest(handle=handle)
        try:
            await self._models.GetEmbeddingModel(request, timeout=seconds, wait_for_ready=True)
        except grpc.RpcError as error:
            raise from_rpc(error) from None

    async def _ask(self, request: model_service_pb2.EmbedRequest, seconds: float) -> model_service_pb2.EmbedResponse:
        """Waits for the gateway to be there, and asks again where the connection broke, not where it failed.

        A part of the caller's time is left, so that he learns of the failure.
        """
        left = time_remaining()
        if left is not None:
            seconds = min(seconds, _SHARE * left)
        try:
            return await self._models.Embed(request, timeout=seconds, wait_for_ready=True)
        except grpc.RpcError as error:
            if (failure := from_rpc(error)).reason != "PEER_UNAVAILABLE":
                raise failure from None
        try:
            return await self._models.Embed(request, timeout=seconds, wait_for_ready=True)
        except grpc.RpcError as error:
            raise from_rpc(error) from None
