"""The models that can be used now."""

from collections.abc import Sequence
from typing import Annotated, Literal

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import Response

from gateway.openai_api import routes as openai_compatible
from gateway.openai_api.errors import asks_openai
from gateway.resources.agents.responses import provider_category as provider_category_of
from gateway.rest.convert import Rest, to_rest
from gateway.rest.json_body import JsonRoute
from gateway.rest.responses import json_response
from gateway.rest.services import Loci
from loci.llm.v1 import model_pb2, model_service_pb2

router = APIRouter(prefix="/models", tags=["models"], route_class=JsonRoute)

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


@router.get("")
async def list_models(
    request: Request,
    loci: Loci,
    provider_category: Annotated[list[Literal["base", "byok"]] | None, Query()] = None,
    provider_name: str | None = None,
    provider_type: str | None = None,
) -> Response:
    """Chat models of all providers that answer: the operator's, category "base", and one's own, "byok".

    OpenAI's clients are told what they can ask: agents, see openai_compatible.py.
    """
    if asks_openai(request.scope):
        return await openai_compatible.list_agents(loci)
    names = None if provider_name is None else [provider_name]
    wanted = model_service_pb2.ListModelsRequest(provider_names=names)
    found = await loci.peers.call(loci.peers.models.ListModels, wanted)
    models = map(_model, found.models)
    return json_response([one for one in models if _is_wanted(one, provider_category, provider_type)])


@router.get("/embedding")
async def list_embedding_models(
    loci: Loci,
    provider_category: Annotated[list[Literal["base", "byok"]] | None, Query()] = None,
    provider_name: str | None = None,
    provider_type: str | None = None,
) -> Response:
    """Embedding models of all providers, as far as it is known how long their vectors are."""
    request = model_service_pb2.ListEmbeddingModelsRequest()
    found = await loci.peers.call(loci.peers.models.ListEmbeddingModels, request)
    models = [_embedding_model(one) for one in found.models if provider_name in (None, one.provider_name)]
    return json_response([one for one in models if _is_wanted(one, provider_category, provider_type)])


def _is_wanted(model: Rest, categories: Sequence[str] | None, provider_type: str | None) -> bool:
    return (not categories or model["provider_category"] in categories) and provider_type in (
        None,
        model["provider_type"],
    )


def _model(model: model_pb2.Model) -> Rest:
    """The reference's Model, and what it can do and costs besides, with where each comes from."""
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
        "max_tokens": model.max_output_tokens or None,
        "temperature": 1.0,
        "enable_reasoner": model.capabilities.reasoning,
        "max_reasoning_tokens": 0,
        "parallel_tool_calls": model.capabilities.parallel_tool_calls,
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


def _endpoint_type(provider_type: str, known: frozenset[str]) -> str:
    """The nearest of the types that the reference's clients know."""
    if provider_type in known:
        return provider_type
    return "lmstudio" if provider_type == "lmstudio_openai" else "openai"


def _embedding_model(model: model_pb2.EmbeddingModel) -> Rest:
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
        "batch_size": model.batch_size,
        "search": "indexed" if model.dimensions <= _MOST_INDEXED else "exact",
        "provider_type": model.provider_type,
        "provider_name": model.provider_name,
        "provider_category": provider_category_of(model),
        "dimensions_source": to_rest(model)["dimensions_source"],
    }
