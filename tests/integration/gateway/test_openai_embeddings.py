"""Embeddings through OpenAI's own SDK: texts, forms, names of models, and what is refused."""

from __future__ import annotations

import struct
from base64 import b64decode
from collections.abc import AsyncIterator
from typing import Any

import openai
import pytest
import pytest_asyncio
from openai import AsyncOpenAI

from loci.llm.v1 import model_pb2, model_service_pb2
from services.common.errors import NotFound
from tests.integration.gateway import samples
from tests.integration.gateway.conftest import Edge
from tests.integration.gateway.scripted import Backend
from tests.integration.gateway.test_openai import openai_client

_VECTORS = [[0.5, -0.25], [1.0, 0.0]]


@pytest_asyncio.fixture(loop_scope="module")
async def client(edge: Edge, backend: Backend) -> AsyncIterator[AsyncOpenAI]:
    """The SDK, and a provider that has these vectors."""
    answer = model_service_pb2.EmbedResponse(
        vectors=[model_service_pb2.Vector(values=one) for one in _VECTORS], dimensions=2, prompt_tokens=7
    )
    backend.on("Embed", lambda _: answer)
    backend.on("GetEmbeddingModel", lambda _: model_service_pb2.GetEmbeddingModelResponse(model=_model("loci")))
    async with openai_client(f"{edge.url}/openai/v1") as made:
        yield made


def _model(provider: str) -> model_pb2.EmbeddingModel:
    model = samples.embedding_model()
    model.handle, model.provider_name = f"{provider}/hash", provider
    return model


async def test_texts_become_vectors_in_their_order(client: AsyncOpenAI, backend: Backend) -> None:
    # The SDK asks for base64 and decodes it.
    made = await client.embeddings.create(model="loci/hash", input=["one", "two"])
    assert [(one.index, one.embedding) for one in made.data] == list(enumerate(_VECTORS))
    assert (made.model, made.usage.prompt_tokens, made.usage.total_tokens) == ("loci/hash", 7, 7)
    (asked,) = backend.requests("Embed")
    assert (asked.handle, list(asked.texts)) == ("loci/hash", ["one", "two"])


@pytest.mark.parametrize("prefix", ["/v1", "/openai/v1"])
async def test_one_text_in_either_form(client: AsyncOpenAI, edge: Edge, backend: Backend, prefix: str) -> None:
    async with openai_client(f"{edge.url}{prefix}") as mine:
        plain: Any = await mine.post("/embeddings", body={"model": "loci/hash", "input": "one"}, cast_to=object)
        packed: Any = await mine.post(
            "/embeddings", body={"model": "loci/hash", "input": "one", "encoding_format": "base64"}, cast_to=object
        )
    assert plain["data"][0] == {"object": "embedding", "index": 0, "embedding": _VECTORS[0]}
    assert list(struct.unpack("<2f", b64decode(packed["data"][0]["embedding"]))) == _VECTORS[0]
    assert [list(asked.texts) for asked in backend.requests("Embed")] == [["one"], ["one"]]


async def test_a_model_by_its_name_alone(client: AsyncOpenAI, backend: Backend) -> None:
    await client.embeddings.create(model="hash", input="one", dimensions=256)
    assert [asked.handle for asked in backend.requests("Embed")] == ["loci/hash"]
    both = model_service_pb2.ListEmbeddingModelsResponse(models=[_model("loci"), _model("other")])
    backend.on("ListEmbeddingModels", lambda _: both)
    with pytest.raises(openai.BadRequestError, match="loci/hash, other/hash") as several:
        await client.embeddings.create(model="hash", input="one")
    assert several.value.param == "model"


async def test_a_model_that_is_not_there(client: AsyncOpenAI, backend: Backend) -> None:
    def missing(request: model_service_pb2.EmbedRequest) -> Any:
        raise NotFound(f"no embedding model {request.handle!r}", reason="EMBEDDING_NOT_FOUND")

    backend.on("Embed", missing)
    with pytest.raises(openai.NotFoundError, match="no embedding model 'ada'") as caught:
        await client.embeddings.create(model="ada", input="one")
    assert caught.value.code == "model_not_found"


@pytest.mark.parametrize(
    ("fields", "param", "words"),
    [
        ({"input": [1, 2, 3]}, "input", "check_embedding_ctx_length=False"),
        ({"input": [[1, 2], [3]]}, "input", "check_embedding_ctx_length=False"),
        ({"input": ""}, "input", "none may be empty"),
        ({"input": []}, "input", "at least one text"),
        ({"input": ["one", ""]}, "input", "none may be empty"),
        ({"dimensions": 3}, "dimensions", "have 256; leave it out"),
        ({"encoding_format": "int8"}, "encoding_format", "float"),
    ],
)
async def test_what_cannot_be_had_is_refused(
    client: AsyncOpenAI, backend: Backend, fields: dict[str, Any], param: str, words: str
) -> None:
    with pytest.raises(openai.BadRequestError, match=words) as caught:
        await client.post("/embeddings", body={"model": "loci/hash", "input": "one"} | fields, cast_to=object)
    assert (caught.value.param, caught.value.type) == (param, "invalid_request_error")
    assert backend.requests("Embed") == []
