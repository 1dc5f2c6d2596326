"""Models to protobuf."""

from loci.llm.v1 import model_pb2
from services.llm_gateway.provider import Capabilities, ChatModel, EmbeddingModel, Price, ValueSource

_SOURCES = {
    None: model_pb2.VALUE_SOURCE_UNSPECIFIED,
    ValueSource.ENDPOINT: model_pb2.VALUE_SOURCE_ENDPOINT,
    ValueSource.TABLE: model_pb2.VALUE_SOURCE_TABLE,
    ValueSource.OVERRIDE: model_pb2.VALUE_SOURCE_OVERRIDE,
}


def model_message(model: ChatModel) -> model_pb2.Model:
    """A chat model."""
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
    )


def category(is_tenants: bool) -> model_pb2.ProviderCategory.ValueType:
    """Whose a provider is."""
    return model_pb2.PROVIDER_CATEGORY_BYOK if is_tenants else model_pb2.PROVIDER_CATEGORY_BASE


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
    """An embedding model."""
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
