"""OpenAI's embeddings over our providers: here `model` is an embedding model, not an agent."""

import struct
from base64 import b64encode
from collections.abc import Sequence
from typing import Annotated, Any, Literal

from fastapi import APIRouter
from pydantic import Field
from starlette.responses import Response

from gateway.errors.invalid import InvalidRequest
from gateway.openai_api.schemas import OPENAI_EMBEDDINGS
from gateway.openapi.answers import returns
from gateway.resources.model_calls.routes import GENERATE_SECONDS
from gateway.rest.body import LenientBody, Positive
from gateway.rest.convert import Rest
from gateway.rest.responses import json_response
from gateway.rest.services import Loci, Services
from loci.llm.v1 import model_service_pb2

router = APIRouter(tags=["openai"])


class CreateEmbeddings(LenientBody):
    """Body of embeddings.create. `model` is the handle of an embedding model, or its name where no other has it."""

    model: Annotated[str, Field(min_length=1)]
    # Its members are checked below, so that an error is about one form and not about each.
    input: str | list[Any]
    encoding_format: Literal["float", "base64"] = "float"
    dimensions: Positive | None = None

    def texts(self) -> list[str]:
        """Returns the texts. Raises InvalidRequest for tokens: no model but the one they were made for has the same."""
        texts = [self.input] if isinstance(self.input, str) else self.input
        for text in texts:
            if not isinstance(text, str):
                raise InvalidRequest(
                    "`input` holds tokens; send texts (in LangChain: check_embedding_ctx_length=False)", "body", "input"
                )
        if not texts or not all(texts):
            raise InvalidRequest("`input` must hold at least one text, and none may be empty", "body", "input")
        return texts


@router.post("/embeddings")
@returns(OPENAI_EMBEDDINGS)
async def embed(body: CreateEmbeddings, loci: Loci) -> Response:
    """Vectors of texts, in their order, by an embedding model of the tenant's providers."""
    texts = body.texts()
    model = await _model_named(loci, body.model)
    if body.dimensions is not None:
        await _check_dimensions(loci, model, body.dimensions)
    request = model_service_pb2.EmbedRequest(handle=model, texts=texts)
    response = await loci.peers.call(loci.peers.models.Embed, request, timeout=GENERATE_SECONDS)
    encode = _base64 if body.encoding_format == "base64" else list
    return json_response(
        {
            "object": "list",
            "data": [
                {"object": "embedding", "index": index, "embedding": encode(vector.values)}
                for index, vector in enumerate(response.vectors)
            ],
            "model": body.model,
            "usage": _usage(response.prompt_tokens),
        }
    )


async def _model_named(loci: Services, name: str) -> str:
    """Returns the handle of a model: the name itself, unless it is what one provider's model is called."""
    if "/" in name:
        return name
    response = await loci.peers.call(
        loci.peers.models.ListEmbeddingModels, model_service_pb2.ListEmbeddingModelsRequest()
    )
    handles = [model.handle for model in response.models if model.name == name]
    if len(handles) > 1:
        raise InvalidRequest(f"several providers have {name!r}; give one of {', '.join(handles)}", "body", "model")
    return handles[0] if handles else name


async def _check_dimensions(loci: Services, handle: str, wanted: int) -> None:
    request = model_service_pb2.GetEmbeddingModelRequest(handle=handle)
    model = (await loci.peers.call(loci.peers.models.GetEmbeddingModel, request)).model
    if model.dimensions != wanted:
        raise InvalidRequest(
            f"`dimensions`: the vectors of {handle} have {model.dimensions}; leave it out", "body", "dimensions"
        )


def _usage(tokens: int) -> Rest:
    return {"prompt_tokens": tokens, "total_tokens": tokens}


def _base64(values: Sequence[float]) -> str:
    return b64encode(struct.pack(f"<{len(values)}f", *values)).decode()
