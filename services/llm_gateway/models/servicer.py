"""loci.llm.v1.ModelService."""

from collections.abc import Sequence
from typing import Any

from loci.llm.v1 import model_pb2
from loci.llm.v1 import model_service_pb2 as model_pb
from loci.llm.v1 import model_service_pb2_grpc as model_grpc
from services.common.context import current, time_remaining
from services.common.errors import InvalidArgument
from services.llm_gateway.calls.metering import Account
from services.llm_gateway.calls.service import Calls
from services.llm_gateway.core.models import Capabilities, ChatModel, EmbeddingModel, Price, ValueSource
from services.llm_gateway.core.thinking import usual_budget, usual_effort
from services.llm_gateway.models.service import Catalogue
from services.llm_gateway.providers.servicer import category

_SOURCES = {
    None: model_pb2.VALUE_SOURCE_UNSPECIFIED,
    ValueSource.ENDPOINT: model_pb2.VALUE_SOURCE_ENDPOINT,
    ValueSource.TABLE: model_pb2.VALUE_SOURCE_TABLE,
    ValueSource.OVERRIDE: model_pb2.VALUE_SOURCE_OVERRIDE,
}


# Of one request.
MOST_RERANKED = 100


def model_message(model: ChatModel) -> model_pb2.Model:
    """Returns a chat model's message."""
    return model_pb2.Model(
        handle=model.handle,
        name=model.name,
        provider_type=model.provider_type,
        provider_name=model.provider_name,
        endpoint=model.endpoint,
        context_window=model.context_window or 0,
        context_window_source=_SOURCES[model.context_window_source],
        max_output_tokens=model.max_output_tokens or 0,
        capabilities=_capabilities_message(model.capabilities),
        display_name=model.display_name,
        provider_category=category(model.is_tenants),
        max_output_tokens_source=_SOURCES[model.max_output_tokens_source],
        capabilities_source=_SOURCES[model.capabilities_source],
        price=None if model.price is None else _price_message(model.price),
        usual_thinking_budget=usual_budget(model),
        usual_reasoning_effort=usual_effort(model),
    )


def _price_message(price: Price) -> model_pb2.ModelPrice:
    return model_pb2.ModelPrice(
        input_nanos_usd=price.input,
        output_nanos_usd=price.output,
        cached_input_nanos_usd=price.cached_input,
        cache_write_nanos_usd=price.cache_write,
        source=_SOURCES[price.source],
    )


def _capabilities_message(capabilities: Capabilities) -> model_pb2.ModelCapabilities:
    return model_pb2.ModelCapabilities(
        tools=capabilities.tools,
        parallel_tool_calls=capabilities.tools and capabilities.parallel_tool_calls,
        streaming=capabilities.streaming,
        vision=capabilities.vision,
        reasoning=capabilities.reasoning,
        structured_output=capabilities.structured_output,
        logprobs=capabilities.logprobs,
    )


def embedding_model_message(model: EmbeddingModel) -> model_pb2.EmbeddingModel:
    """Returns an embedding model's message."""
    return model_pb2.EmbeddingModel(
        handle=model.handle,
        name=model.name,
        provider_type=model.provider_type,
        provider_name=model.provider_name,
        endpoint=model.endpoint,
        dimensions=model.dimensions,
        batch_size=model.batch_size,
        display_name=model.display_name,
        provider_category=category(model.is_tenants),
        dimensions_source=_SOURCES[model.dimensions_source],
    )


def _texts_to_embed(texts: Sequence[str]) -> list[str]:
    """Returns the texts. Raises InvalidArgument unless there are 1 to 2,048, none empty."""
    if not 1 <= len(texts) <= 2_048 or not all(texts):
        raise InvalidArgument("an embedding request has 1 to 2,048 texts, none empty", reason="LLM_BAD_REQUEST")
    return list(texts)


def _check_rerank(request: model_pb.RerankRequest) -> None:
    if not request.query or not 1 <= len(request.texts) <= MOST_RERANKED or not all(request.texts):
        sentence = f"a request to rerank has a query and 1 to {MOST_RERANKED} texts, none empty"
        raise InvalidArgument(sentence, reason="LLM_BAD_REQUEST")


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
        texts = _texts_to_embed(request.texts)
        caller = current()
        account = Account(caller.organization_id, caller.run_id)
        model, embeddings, cost = await self._calls.embed(request.handle, texts, account, time_remaining())
        return model_pb.EmbedResponse(
            vectors=[model_pb.Vector(values=vector) for vector in embeddings.vectors],
            dimensions=model.dimensions,
            prompt_tokens=embeddings.prompt_tokens,
            cost_nanos_usd=cost,
        )

    async def Rerank(self, request: model_pb.RerankRequest, context: Any) -> model_pb.RerankResponse:
        _check_rerank(request)
        organization_id = current().organization_id
        scores = await self._calls.rerank(organization_id, request.handle, request.query, list(request.texts))
        return model_pb.RerankResponse(scores=scores)
