"""Embeddings from the llm gateway."""

import grpc

from loci.llm.v1 import model_service_pb2
from services.common.context import time_remaining
from services.common.embedder import GatewayEmbedder
from services.common.errors import LociError, from_rpc

_SHARE = 0.8


class RepeatingEmbedder(GatewayEmbedder):
    """`Embedder`: asks again where the connection broke, not where the gateway failed."""

    async def check(self, handle: str, seconds: float) -> None:
        request = model_service_pb2.GetEmbeddingModelRequest(handle=handle)
        try:
            await self._models.GetEmbeddingModel(request, timeout=seconds, wait_for_ready=True)
        except grpc.RpcError as error:
            raise from_rpc(error) from None

    async def _request(
        self, request: model_service_pb2.EmbedRequest, seconds: float
    ) -> model_service_pb2.EmbedResponse:
        # A part of the caller's time is left, so that he learns of the failure.
        left = time_remaining()
        if left is not None:
            seconds = min(seconds, _SHARE * left)
        try:
            return await super()._request(request, seconds)
        except LociError as failure:
            if failure.reason != "PEER_UNAVAILABLE":
                raise
        return await super()._request(request, seconds)
