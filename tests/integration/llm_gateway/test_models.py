"""Models and embeddings over gRPC."""

from __future__ import annotations

from pathlib import Path

import grpc
import pytest

from loci.llm.v1 import model_pb2
from loci.llm.v1.model_service_pb2 import (
    GetEmbeddingModelRequest,
    GetModelRequest,
    ListEmbeddingModelsRequest,
    ListModelsRequest,
)
from services.common.errors import LociError, from_rpc
from services.llm_gateway.providers import listings
from tests.fakes.openai_server import OpenAIServer
from tests.fakes.script import Reply, Rule
from tests.integration.llm_gateway.harness import Gateway, gateway_service
from tests.polling import until


async def failure(gateway: Gateway, handle: str) -> LociError:
    with pytest.raises(grpc.RpcError) as caught:
        await gateway.models.GetModel(GetModelRequest(handle=handle))
    return from_rpc(caught.value)


async def test_all_models_of_all_providers(gateway: Gateway) -> None:
    response = await gateway.models.ListModels(ListModelsRequest())
    models = {model.handle: model for model in response.models}
    assert [model.handle for model in response.models] == sorted(models)
    assert not response.unreachable
    demo, mini, haiku = models["loci/demo"], models["openai/gpt-4o-mini"], models["anthropic/claude-haiku-4-5"]
    assert (demo.context_window, demo.endpoint, demo.provider_type) == (131_072, "", "loci")
    assert (mini.context_window, mini.context_window_source) == (128_000, model_pb2.VALUE_SOURCE_TABLE)
    assert (haiku.context_window, haiku.context_window_source) == (200_000, model_pb2.VALUE_SOURCE_ENDPOINT)
    assert haiku.max_output_tokens == 64_000
    assert mini.capabilities.tools
    assert mini.capabilities.vision
    assert "openai/mystery" not in models
    only = await gateway.models.ListModels(ListModelsRequest(provider_names=["loci"]))
    assert [model.handle for model in only.models] == ["loci/demo"]


async def test_one_model(gateway: Gateway) -> None:
    response = await gateway.models.GetModel(GetModelRequest(handle="openai/gpt-4o"))
    assert response.model.endpoint.startswith("http://127.0.0.1:")
    missing = await failure(gateway, "openai/gpt-9")
    assert (missing.code, missing.reason) == (grpc.StatusCode.NOT_FOUND, "MODEL_NOT_FOUND")
    assert "openai/gpt-4o-mini" in missing.message
    unknown = await failure(gateway, "openai/mystery")
    assert (unknown.code, unknown.reason) == (grpc.StatusCode.FAILED_PRECONDITION, "MODEL_WINDOW_UNKNOWN")
    assert "LOCI_MODEL_WINDOWS" in unknown.message


async def test_an_endpoint_that_hangs_is_left_out_and_named(
    gateway: Gateway, openai_fake: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    openai_fake.rules(Rule(Reply(hang=True), route="models"))
    response = await gateway.models.ListModels(ListModelsRequest())
    assert list(response.unreachable) == ["openai"]
    assert "loci/demo" in {model.handle for model in response.models}
    await until(lambda: openai_fake.requests[-1].outcome == "gone")
    # It is not asked again for what is known without.
    monkeypatch.setattr(listings, "RETRY_SECONDS", 300.0)
    known = await gateway.models.GetModel(GetModelRequest(handle="openai/gpt-4o"))
    assert known.model.context_window == 128_000
    assert len(openai_fake.requests) == 1


async def test_an_override_is_used_and_named(gateway_url: str, tmp_path: Path, openai_fake: OpenAIServer) -> None:
    environment = {
        "OPENAI_BASE_URL": openai_fake.base_url,
        "LOCI_MODEL_WINDOWS": '{"openai/mystery": 4096, "loci/demo": 60}',
    }
    async with gateway_service(gateway_url, tmp_path, environment) as gateway:
        response = await gateway.models.GetModel(GetModelRequest(handle="openai/mystery"))
        assert response.model.context_window == 4_096
        assert response.model.context_window_source == model_pb2.VALUE_SOURCE_OVERRIDE
        with pytest.raises(grpc.RpcError) as caught:
            await gateway.generate("loci/demo", "x" * 1_000)
        assert from_rpc(caught.value).reason == "LLM_CONTEXT_OVERFLOW"


async def test_without_any_key_the_demo_and_the_hashes_serve(gateway_url: str, tmp_path: Path) -> None:
    async with gateway_service(gateway_url, tmp_path, {"OPENAI_API_KEY": "", "ANTHROPIC_API_KEY": ""}) as gateway:
        models = await gateway.models.ListModels(ListModelsRequest())
        assert [model.handle for model in models.models] == ["loci/demo"]
        embedders = await gateway.models.ListEmbeddingModels(ListEmbeddingModelsRequest())
        assert [model.handle for model in embedders.models] == ["loci/hash"]
        missing = await failure(gateway, "openai/gpt-4o")
        assert missing.reason == "MODEL_NOT_FOUND"
        assert "OPENAI_API_KEY" in missing.message
        assert (await gateway.generate("loci/demo")).message.parts


@pytest.mark.parametrize(("handle", "dimensions"), [("loci/hash", 384), ("openai/text-embedding-3-small", 1536)])
async def test_embeddings(gateway: Gateway, handle: str, dimensions: int) -> None:
    response = await gateway.models.GetEmbeddingModel(GetEmbeddingModelRequest(handle=handle))
    assert response.model.dimensions == dimensions
    texts = [f"text {number}" for number in range(1_100)]
    embedded = await gateway.embed(handle, *texts)
    assert embedded.dimensions == dimensions
    assert len(embedded.vectors) == len(texts)
    alone = await gateway.embed(handle, texts[700])
    assert list(alone.vectors[0].values) == pytest.approx(list(embedded.vectors[700].values), abs=1e-6)


async def test_embeddings_that_fail_fail_whole(gateway: Gateway, openai_fake: OpenAIServer) -> None:
    openai_fake.rules(Rule(Reply(error="authentication"), route="embeddings"))
    with pytest.raises(grpc.RpcError) as caught:
        await gateway.embed("openai/text-embedding-3-small", *["x"] * 1_100)
    assert from_rpc(caught.value).reason == "LLM_AUTHENTICATION"
    for handle, texts, reason in (
        ("anthropic/claude-haiku-4-5", ["x"], "EMBEDDING_NOT_FOUND"),
        ("loci/hash", [], "LLM_BAD_REQUEST"),
        ("loci/hash", ["x", ""], "LLM_BAD_REQUEST"),
        ("loci/hash", ["x"] * 2_049, "LLM_BAD_REQUEST"),
    ):
        with pytest.raises(grpc.RpcError) as caught:
            await gateway.embed(handle, *texts)
        assert from_rpc(caught.value).reason == reason
