"""Models."""

from gateway.openai_api.schemas import OPENAI_MODELS
from gateway.openapi.schemas import (
    ANY,
    FLAG,
    NUMBER,
    TEXT,
    WHOLE,
    Schema,
    array,
    choice,
    maybe,
    members_of,
    of,
    record,
    some,
)
from gateway.resources.models.responses import NULLS
from loci.agent.v1 import learned_window_service_pb2
from loci.llm.v1 import model_pb2

_OWN = members_of(model_pb2.Model.DESCRIPTOR)
_PRICE = members_of(type(model_pb2.Model().price).DESCRIPTOR)
_PRICES = {name.removesuffix("_nanos_usd"): maybe(NUMBER) for name in _PRICE if name.endswith("_nanos_usd")}
_NAMES: dict[str, Schema] = {
    "handle": TEXT,
    "name": TEXT,
    "display_name": TEXT,
    "provider_type": TEXT,
    "provider_name": TEXT,
    "provider_category": choice("base", "byok"),
}
MODEL = record(
    "Model",
    {
        **_NAMES,
        "model": TEXT,
        "model_type": choice("llm"),
        "model_endpoint_type": TEXT,
        "model_endpoint": maybe(TEXT),
        "context_window": WHOLE,
        "max_context_window": WHOLE,
        "max_tokens": maybe(WHOLE),
        "temperature": NUMBER,
        "max_reasoning_tokens": WHOLE,
        **dict.fromkeys(
            (
                "enable_reasoner",
                "parallel_tool_calls",
                "put_inner_thoughts_in_kwargs",
                "return_logprobs",
                "return_token_ids",
                "strict",
            ),
            FLAG,
        ),
        **dict.fromkeys(NULLS, ANY),
        **{
            name: _OWN[name]
            for name in ("context_window_source", "max_output_tokens_source", "capabilities", "capabilities_source")
        },
        "price": maybe(record("ModelPrice", {**_PRICES, "source": _PRICE["source"]})),
    },
)
EMBEDDING_MODEL = record(
    "EmbeddingModel",
    {
        **_NAMES,
        "model_type": choice("embedding"),
        "embedding_model": TEXT,
        "embedding_endpoint_type": TEXT,
        "embedding_endpoint": maybe(TEXT),
        "embedding_dim": WHOLE,
        "embedding_chunk_size": WHOLE,
        "batch_size": WHOLE,
        "search": choice("indexed", "exact"),
        "dimensions_source": members_of(model_pb2.EmbeddingModel.DESCRIPTOR)["dimensions_source"],
        **dict.fromkeys(("azure_endpoint", "azure_version", "azure_deployment"), maybe(TEXT)),
    },
)
LEARNED_WINDOW = of("LearnedWindow", learned_window_service_pb2.LearnedWindow.DESCRIPTOR)
MODELS = some(array(MODEL), OPENAI_MODELS)
