"""The gRPC methods: parse, call,  Who pays comes from the verified call context."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from loci.llm.v1 import chat_service_pb2 as chat_pb
from loci.llm.v1 import chat_service_pb2_grpc as chat_grpc
from loci.llm.v1 import model_service_pb2 as model_pb
from loci.llm.v1 import model_service_pb2_grpc as model_grpc
from services.common.context import current, time_remaining
from services.llm_gateway.calls import Account, Calls
from services.llm_gateway.catalogue import Catalogue
from services.llm_gateway.chat import ChatRequest
from services.llm_gateway.convert.models import embedding_model_message, model_message
from services.llm_gateway.convert.replies import event_message, generation_message
from services.llm_gateway.convert.requests import chat_request, optional_id, texts_to_embed


def _account(request: chat_pb.GenerationRequest) -> Account:
    caller = current()
    return Account(
        organization_id=caller.organization_id,
        run_id=caller.run_id,
        step_id=optional_id("step", request.step_id),
        agent_id=optional_id("agent", request.agent_id),
    )


def _request(request: chat_pb.GenerationRequest) -> ChatRequest:
    run_id = current().run_id
    return chat_request(request, "" if run_id is None else str(run_id))


class ChatServicer(chat_grpc.ChatServiceServicer):
    """loci.llm.v1.ChatService."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    async def Generate(self, request: chat_pb.GenerateRequest, context: Any) -> chat_pb.GenerateResponse:
        asked = _request(request.request)
        generation = await self._calls.generate(asked, _account(request.request), time_remaining())
        return chat_pb.GenerateResponse(generation=generation_message(generation))

    async def StreamGenerate(
        self, request: chat_pb.StreamGenerateRequest, context: Any
    ) -> AsyncGenerator[chat_pb.StreamGenerateResponse, None]:
        asked = _request(request.request)
        sequence = 0
        async with aclosing(self._calls.stream(asked, _account(request.request), time_remaining())) as events:
            async for event in events:
                sequence += 1
                yield event_message(event, sequence)

    async def CountTokens(self, request: chat_pb.CountTokensRequest, context: Any) -> chat_pb.CountTokensResponse:
        asked, account = _request(request.request), _account(request.request)
        tokens, estimated = await self._calls.count_tokens(asked, account, time_remaining())
        return chat_pb.CountTokensResponse(tokens=tokens, estimated=estimated)


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
        model, embeddings = await self._calls.embed(request.handle, texts, account, time_remaining())
        return model_pb.EmbedResponse(
            vectors=[model_pb.Vector(values=vector) for vector in embeddings.vectors],
            dimensions=model.dimensions,
            prompt_tokens=embeddings.prompt_tokens,
        )
