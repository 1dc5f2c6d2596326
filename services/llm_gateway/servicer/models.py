"""loci.llm.v1.ModelService."""

from typing import Any

from loci.llm.v1 import model_service_pb2 as model_pb
from loci.llm.v1 import model_service_pb2_grpc as model_grpc
from services.common.context import current, time_remaining
from services.llm_gateway.calls import Account, Calls
from services.llm_gateway.catalogue import Catalogue
from services.llm_gateway.convert.models import embedding_model_message, model_message
from services.llm_gateway.convert.requests import texts_to_embed


class ModelServicer(model_grpc.ModelServiceServicer):
    """loci.llm.v1.ModelService."""

    def __init__(self, catalogue: Catalogue, calls: Calls) -> None:
        self._catalogue = catalogue
        self._calls = calls

    async def GetModel(self, request: model_pb.GetModelRequest, context: Any) -> model_pb.GetModelResponse:
        model = await self._catalogue.chat_model(current().organization_id, request.handle)
        return model_pb.GetModelResponse(model=model_message(model))

    async def ListModels(self, request: model_pb.ListModelsRequest, context: Any) -> model_pb.ListModelsResponse:
        models, unreachable = await self._catalogue.chat_models(current().organization_id, request.provider_names)
        return model_pb.ListModelsResponse(models=map(model_message, models), unreachable=unreachable)

    async def ListEmbeddingModels(
        self, request: model_pb.ListEmbeddingModelsRequest, context: Any
    ) -> model_pb.ListEmbeddingModelsResponse:
        models = await self._catalogue.embedding_models(current().organization_id)
        return model_pb.ListEmbeddingModelsResponse(models=map(embedding_model_message, models))

    async def GetEmbeddingModel(
        self, request: model_pb.GetEmbeddingModelRequest, context: Any
    ) -> model_pb.GetEmbeddingModelResponse:
        target = await self._catalogue.embedding_model(current().organization_id, request.handle)
        return model_pb.GetEmbeddingModelResponse(model=embedding_model_message(target.model))

    async def Embed(self, request: model_pb.EmbedRequest, context: Any) -> model_pb.EmbedResponse:
        texts = texts_to_embed(request.texts)
        caller = current()
        account = Account(caller.organization_id, caller.run_id)
        model, embeddings, cost = await self._calls.embed(request.handle, texts, account, time_remaining())
        return model_pb.EmbedResponse(
            vectors=[model_pb.Vector(values=vector) for vector in embeddings.vectors],
            dimensions=model.dimensions,
            prompt_tokens=embeddings.prompt_tokens,
            cost_nanos_usd=cost,
        )
