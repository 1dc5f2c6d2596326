"""The models that can be used now."""

from typing import Annotated, Literal

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import Response

from gateway.body import JsonRoute
from gateway.convert import Rest
from gateway.openai_errors import asks_openai
from gateway.responses import json_response
from gateway.routes import openai_compatible
from gateway.services import Loci
from loci.llm.v1 import model_pb2, model_service_pb2

router = APIRouter(prefix="/models", tags=["models"], route_class=JsonRoute)

_NULLS = dict.fromkeys(
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
_EMBEDDING_NULLS = dict.fromkeys(("azure_endpoint", "azure_version", "azure_deployment"))


@router.get("")
async def list_models(
    request: Request,
    loci: Loci,
    provider_category: Annotated[list[Literal["base", "byok"]] | None, Query()] = None,
    provider_name: str | None = None,
    provider_type: str | None = None,
) -> Response:
    """Chat models of all providers that answer. All of them are the operator's own, category "base".

    OpenAI's clients are told what they can ask: agents, see openai_compatible.py.
    """
    if asks_openai(request.scope):
        return await openai_compatible.list_agents(loci)
    if provider_category is not None and "base" not in provider_category:
        return json_response([])
    names = None if provider_name is None else [provider_name]
    wanted = model_service_pb2.ListModelsRequest(provider_names=names)
    found = await loci.peers.call(loci.peers.models.ListModels, wanted)
    return json_response([_model(one) for one in found.models if provider_type in (None, one.provider_type)])


@router.get("/embedding")
async def list_embedding_models(loci: Loci) -> Response:
    """Embedding models of all providers."""
    request = model_service_pb2.ListEmbeddingModelsRequest()
    found = await loci.peers.call(loci.peers.models.ListEmbeddingModels, request)
    return json_response([_embedding_model(one) for one in found.models])


def _model(model: model_pb2.Model) -> Rest:
    return _NULLS | {
        "handle": model.handle,
        "name": model.name,
        "model": model.name,
        "display_name": model.display_name or model.name,
        "model_type": "llm",
        "model_endpoint_type": model.provider_type,
        "model_endpoint": model.endpoint or None,
        "provider_type": model.provider_type,
        "provider_name": model.provider_name,
        "provider_category": "base",
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
    }


def _embedding_model(model: model_pb2.EmbeddingModel) -> Rest:
    return _EMBEDDING_NULLS | {
        "handle": model.handle,
        "name": model.name,
        "display_name": model.display_name or model.name,
        "model_type": "embedding",
        "embedding_model": model.name,
        "embedding_endpoint_type": model.provider_type,
        "embedding_endpoint": model.endpoint or None,
        "embedding_dim": model.dimensions,
        "embedding_chunk_size": 300,
        "batch_size": model.batch_size,
        "search": "indexed" if model.dimensions <= _MOST_INDEXED else "exact",
        "provider_type": model.provider_type,
        "provider_name": model.provider_name,
    }
