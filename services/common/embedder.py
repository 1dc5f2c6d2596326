"""Embeddings from the llm gateway."""

from collections.abc import Sequence

import grpc

from loci.llm.v1 import model_service_pb2, model_service_pb2_grpc
from services.common.errors import Internal, from_rpc


class GatewayEmbedder:
    """Vectors of texts over loci.llm.v1.ModelService. The call's context goes along by the channel."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self._models = model_service_pb2_grpc.ModelServiceStub(channel)

    async def embed(self, handle: str, texts: Sequence[str], seconds: float) -> list[list[float]]:
        """Returns a vector for each text. Raises LociError; Internal (EMBEDDING_INVALID) where they do not fit."""
        response = await self._request(model_service_pb2.EmbedRequest(handle=handle, texts=texts), seconds)
        vectors = [list(vector.values) for vector in response.vectors]
        if len(vectors) != len(texts) or any(len(vector) != response.dimensions for vector in vectors):
            raise Internal(f"{handle} answered with vectors that do not fit the texts", reason="EMBEDDING_INVALID")
        return vectors

    async def rerank(self, handle: str, query: str, texts: Sequence[str], seconds: float) -> list[float]:
        """Returns how well each text answers the query, 0 to 1. Raises LociError."""
        request = model_service_pb2.RerankRequest(handle=handle, query=query, texts=texts)
        try:
            response = await self._models.Rerank(request, timeout=seconds, wait_for_ready=True)
        except grpc.RpcError as error:
            raise from_rpc(error) from None
        return list(response.scores)

    async def _request(
        self, request: model_service_pb2.EmbedRequest, seconds: float
    ) -> model_service_pb2.EmbedResponse:
        """Waits for the gateway to be there."""
        try:
            return await self._models.Embed(request, timeout=seconds, wait_for_ready=True)
        except grpc.RpcError as error:
            raise from_rpc(error) from None
