"""The models that can be used now."""

from collections.abc import Sequence
from typing import Annotated, Literal

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import Response

from gateway.openai_api import routes as openai_compatible
from gateway.openai_api.errors import asks_openai
from gateway.openapi.answers import returns
from gateway.openapi.schemas import array
from gateway.resources.models.responses import embedding_model_to_rest, model_to_rest
from gateway.resources.models.schemas import EMBEDDING_MODEL, MODELS
from gateway.rest.body import ENUM
from gateway.rest.convert import Rest
from gateway.rest.responses import json_response
from gateway.rest.services import Loci
from loci.llm.v1 import model_service_pb2

Category = Annotated[Literal["base", "byok"], ENUM]

router = APIRouter(prefix="/models", tags=["models"])


@router.get("")
@returns(MODELS)
async def list_models(
    request: Request,
    loci: Loci,
    provider_category: Annotated[list[Category] | None, Query()] = None,
    provider_name: str | None = None,
    provider_type: str | None = None,
) -> Response:
    """Chat models of all providers that answer: the operator's, category "base", and one's own, "byok".

    OpenAI's clients are told what they can ask: agents, see openai_api.
    """
    if asks_openai(request.scope):
        return await openai_compatible.list_agents(loci)
    names = None if provider_name is None else [provider_name]
    rpc_request = model_service_pb2.ListModelsRequest(provider_names=names)
    response = await loci.peers.call(loci.peers.models.ListModels, rpc_request)
    models = map(model_to_rest, response.models)
    return json_response([one for one in models if _is_wanted(one, provider_category, provider_type)])


@router.get("/embedding")
@returns(array(EMBEDDING_MODEL))
async def list_embedding_models(
    loci: Loci,
    provider_category: Annotated[list[Category] | None, Query()] = None,
    provider_name: str | None = None,
    provider_type: str | None = None,
) -> Response:
    """Embedding models of all providers, as far as it is known how long their vectors are."""
    request = model_service_pb2.ListEmbeddingModelsRequest()
    response = await loci.peers.call(loci.peers.models.ListEmbeddingModels, request)
    models = [embedding_model_to_rest(one) for one in response.models if provider_name in (None, one.provider_name)]
    return json_response([one for one in models if _is_wanted(one, provider_category, provider_type)])


def _is_wanted(model: Rest, categories: Sequence[str] | None, provider_type: str | None) -> bool:
    return (not categories or model["provider_category"] in categories) and provider_type in (
        None,
        model["provider_type"],
    )
