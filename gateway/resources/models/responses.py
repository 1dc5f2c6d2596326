"""Models as REST."""

from gateway.resources.agents.responses import provider_category as provider_category_of
from gateway.resources.agents.responses import usual_output_tokens
from gateway.rest.convert import Rest, to_rest
from loci.llm.v1 import model_pb2

# Members of the reference that Loci has no use for.
NULLS = dict.fromkeys(
    (
        "model_wrapper",
        "compatibility_type",
        "tier",
        "frequency_penalty",
        "effort",
        "verbosity",
        "reasoning_effort",
        "response_format",
        "tool_call_parser",
        "top_logprobs",
    )
)
# Longer vectors have no index: archives of such a model are read through, which takes longer the more they hold.
_MOST_INDEXED = 4_000
# Fields of ours that go out as they are.
_OUR_FIELDS = ("context_window_source", "max_output_tokens_source", "capabilities", "capabilities_source")
# What the reference's clients know as types of an endpoint; all others speak OpenAI's dialect, more or less.
_ENDPOINT_TYPES = frozenset(
    {"anthropic", "azure", "baseten", "bedrock", "deepseek", "google_ai", "google_vertex", "groq", "hugging-face"}
    | {"minimax", "mistral", "moonshot", "moonshot_coding", "ollama", "openai", "openrouter", "together", "vllm", "xai"}
    | {"zai", "zai_coding"}
)
_EMBEDDING_ENDPOINT_TYPES = frozenset(
    {"anthropic", "azure", "bedrock", "google_ai", "google_vertex", "groq", "hugging-face", "mistral", "ollama"}
    | {"openai", "together", "vllm"}
)
_EMBEDDING_NULLS = dict.fromkeys(("azure_endpoint", "azure_version", "azure_deployment"))


def model_to_rest(model: model_pb2.Model) -> Rest:
    """Returns the reference's Model, and what it can do and costs besides, with where each comes from."""
    own = to_rest(model)
    return NULLS | {
        "handle": model.handle,
        "name": model.name,
        "model": model.name,
        "display_name": model.display_name or model.name,
        "model_type": "llm",
        "model_endpoint_type": _endpoint_type(model.provider_type, _ENDPOINT_TYPES),
        "model_endpoint": model.endpoint or None,
        "provider_type": model.provider_type,
        "provider_name": model.provider_name,
        "provider_category": provider_category_of(model),
        "context_window": model.context_window,
        "max_context_window": model.context_window,
        "max_tokens": usual_output_tokens(model),
        "temperature": 1.0,
        "enable_reasoner": True,
        "max_reasoning_tokens": 0,
        "parallel_tool_calls": False,
        "put_inner_thoughts_in_kwargs": False,
        "return_logprobs": False,
        "return_token_ids": False,
        "strict": False,
        **{name: own[name] for name in _OUR_FIELDS},
        "price": None if own["price"] is None else _price(own["price"]),
    }


def _price(price: Rest) -> Rest:
    """US dollars for a million tokens, as vendors print them."""
    figures = {name.removesuffix("_nanos_usd"): value for name, value in price.items() if name.endswith("_nanos_usd")}
    return {name: None if value is None else value / 1_000 for name, value in figures.items()} | {
        "source": price["source"]
    }


def _endpoint_type(provider_type: str, known_types: frozenset[str]) -> str:
    """Returns the nearest of the types that the reference's clients know."""
    if provider_type in known_types:
        return provider_type
    return "lmstudio" if provider_type == "lmstudio_openai" else "openai"


def embedding_model_to_rest(model: model_pb2.EmbeddingModel) -> Rest:
    return _EMBEDDING_NULLS | {
        "handle": model.handle,
        "name": model.name,
        "display_name": model.display_name or model.name,
        "model_type": "embedding",
        "embedding_model": model.name,
        "embedding_endpoint_type": _endpoint_type(model.provider_type, _EMBEDDING_ENDPOINT_TYPES),
        "embedding_endpoint": model.endpoint or None,
        "embedding_dim": model.dimensions,
        "embedding_chunk_size": 300,
        "batch_size": 32,
        "search": "indexed" if model.dimensions <= _MOST_INDEXED else "exact",
        "provider_type": model.provider_type,
        "provider_name": model.provider_name,
        "provider_category": provider_category_of(model),
        "dimensions_source": to_rest(model)["dimensions_source"],
    }
