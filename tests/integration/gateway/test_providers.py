"""Providers and models over REST."""

from __future__ import annotations

from typing import Any

from google.protobuf.timestamp_pb2 import Timestamp

from loci.llm.v1 import model_pb2, model_service_pb2, provider_pb2, provider_service_pb2
from services.common.errors import AlreadyExists, FailedPrecondition, InvalidArgument
from tests.integration.gateway.conftest import Edge
from tests.integration.gateway.scripted import Backend

IDS = [f"provider-00000000-0000-4000-8000-00000000000{number}" for number in range(4)]


def provider(number: int = 0, **fields: Any) -> provider_pb2.Provider:
    given: dict[str, Any] = {
        "id": IDS[number],
        "name": f"mine{number}",
        "provider_type": "openai",
        "category": model_pb2.PROVIDER_CATEGORY_BYOK,
        "base_url": "https://llm.example.com/v1",
        "options_json": "{}",
        "has_key": True,
        "version": 1,
        "created_at": Timestamp(seconds=number + 1),
        "updated_at": Timestamp(seconds=number + 1),
    }
    return provider_pb2.Provider(**(given | fields))


async def test_a_provider_is_created_and_its_key_is_not_shown(edge: Edge, backend: Backend) -> None:
    made = provider_service_pb2.CreateProviderResponse(provider=provider(region="eu"))
    backend.on("CreateProvider", lambda _: made)
    body = {
        "name": "mine0",
        "provider_type": "openai",
        "api_key": "sk-secret",
        "access_key": None,
        "base_url": "https://llm.example.com/v1",
        "options": {"max_concurrency": 3},
    }
    answer = await edge.http.post("/v1/providers/", json=body)
    assert answer.status_code == 200
    shown = answer.json()
    assert "sk-secret" not in answer.text
    assert shown["id"] == IDS[0]
    assert (shown["name"], shown["provider_type"], shown["provider_category"]) == ("mine0", "openai", "byok")
    assert (shown["api_key"], shown["access_key"], shown["has_key"]) == (None, None, True)
    assert (shown["base_url"], shown["region"], shown["api_version"]) == ("https://llm.example.com/v1", "eu", None)
    assert (shown["last_synced"], shown["sync_error"], shown["options"]) == (None, None, {})
    assert shown["created_at"] == "1970-01-01T00:00:01+00:00"
    [asked] = backend.requests("CreateProvider")
    assert asked.id.startswith("provider-")
    assert (asked.provider.name, asked.provider.api_key, asked.provider.provider_type) == (
        "mine0",
        "sk-secret",
        "openai",
    )
    assert asked.provider.options_json == '{"max_concurrency":3}'


async def test_a_list_is_paged_newest_first_with_the_operators_last(edge: Edge, backend: Backend) -> None:
    base = provider(3, name="openai", category=model_pb2.PROVIDER_CATEGORY_BASE, created_at=None, updated_at=None)
    found = provider_service_pb2.ListProvidersResponse(providers=[provider(0), base, provider(1), provider(2)])
    backend.on("ListProviders", lambda _: found)

    async def ids(query: str) -> list[int]:
        return [IDS.index(one["id"]) for one in (await edge.http.get(f"/v1/providers?{query}")).json()]

    assert await ids("") == [2, 1, 0, 3]
    assert await ids("order=asc") == [3, 0, 1, 2]
    assert await ids("limit=2") == [2, 1]
    assert await ids(f"limit=2&after={IDS[1]}") == [0, 3]
    assert await ids(f"before={IDS[0]}&limit=1") == [1]
    assert await ids("provider_category=base") == [3]
    await ids("name=mine0&provider_type=openai")
    asked = backend.requests("ListProviders")[-1]
    assert (asked.name, asked.provider_type) == ("mine0", "openai")


async def test_only_what_is_sent_changes(edge: Edge, backend: Backend) -> None:
    changed = provider_service_pb2.UpdateProviderResponse(provider=provider(version=2))
    backend.on("UpdateProvider", lambda _: changed)
    answer = await edge.http.patch(f"/v1/providers/{IDS[0]}", json={"api_key": "sk-new", "region": None, "version": 1})
    assert (answer.status_code, answer.json()["version"]) == (200, 2)
    [asked] = backend.requests("UpdateProvider")
    assert (list(asked.update_mask.paths), asked.provider.api_key) == (["api_key"], "sk-new")
    assert (asked.id, asked.version) == (IDS[0], 1)


async def test_checks_refreshes_and_deletes(edge: Edge, backend: Backend) -> None:
    checked = provider_service_pb2.CheckProviderResponse(model_count=7)
    backend.on("CheckProvider", lambda _: checked)
    refreshed = provider_service_pb2.RefreshProviderResponse(provider=provider(model_count=8))
    backend.on("RefreshProvider", lambda _: refreshed)
    backend.on("DeleteProvider", lambda _: provider_service_pb2.DeleteProviderResponse())
    backend.on("GetProvider", lambda _: provider_service_pb2.GetProviderResponse(provider=provider()))
    new = await edge.http.post("/v1/providers/check", json={"provider_type": "openai", "api_key": "sk"})
    assert (new.status_code, new.json()["model_count"]) == (200, 7)
    stored = await edge.http.post(f"/v1/providers/{IDS[0]}/check")
    assert (stored.status_code, stored.json()["model_count"]) == (200, 7)
    first, second = backend.requests("CheckProvider")
    assert (first.provider.api_key, second.id) == ("sk", IDS[0])
    assert (await edge.http.patch(f"/v1/providers/{IDS[0]}/refresh")).json()["model_count"] == 8
    assert (await edge.http.get(f"/v1/providers/{IDS[0]}")).json()["id"] == IDS[0]
    assert (await edge.http.delete(f"/v1/providers/{IDS[0]}")).status_code == 200


async def test_wrong_input_and_refusals(edge: Edge, backend: Backend) -> None:
    def refuse(error: Exception) -> None:
        def answer(_: Any) -> Any:
            raise error

        for method in ("CreateProvider", "UpdateProvider", "CheckProvider"):
            backend.on(method, answer)

    body = {"name": "a", "provider_type": "openai", "api_key": "sk-secret"}
    no_name = await edge.http.post("/v1/providers", json={"api_key": "sk-secret"})
    assert no_name.status_code == 422
    assert "sk-secret" not in no_name.text
    wrong_key = await edge.http.post("/v1/providers", json=body | {"api_key": ["sk-secret"]})
    assert wrong_key.status_code == 422
    assert "sk-secret" not in wrong_key.text
    assert (await edge.http.get("/v1/providers/nonsense")).status_code == 422
    assert (await edge.http.get("/v1/providers?limit=-1")).status_code == 422
    assert (await edge.http.get("/v1/providers?limit=0")).json() == []
    refuse(InvalidArgument("base_url: the operator allows those", reason="PROVIDER_INVALID"))
    invalid = await edge.http.post("/v1/providers", json=body)
    assert invalid.status_code == 422
    assert "the operator allows" in invalid.json()["detail"]
    refuse(AlreadyExists("there is one", reason="PROVIDER_NAME_TAKEN"))
    taken = await edge.http.post("/v1/providers", json=body)
    assert (taken.status_code, taken.headers["x-should-retry"]) == (409, "false")
    refuse(FailedPrecondition("the environment", reason="PROVIDER_READ_ONLY"))
    assert (await edge.http.patch(f"/v1/providers/{IDS[0]}", json={})).status_code == 400
    refuse(FailedPrecondition("refuses the key", reason="LLM_AUTHENTICATION"))
    refused = await edge.http.post("/v1/providers/check", json=body)
    assert (refused.status_code, refused.json()["error"]["type"]) == (401, "llm_authentication")


def _model(name: str, **fields: Any) -> model_pb2.Model:
    category = model_pb2.PROVIDER_CATEGORY_BASE
    given: dict[str, Any] = {"provider_name": name, "provider_type": "openai", "provider_category": category}
    return model_pb2.Model(handle=f"{name}/m", name="m", context_window=10, **(given | fields))


async def test_models_say_whose_they_are_what_they_can_do_and_what_they_cost(edge: Edge, backend: Backend) -> None:
    mine = _model(
        "mine",
        provider_type="cerebras",
        provider_category=model_pb2.PROVIDER_CATEGORY_BYOK,
        context_window_source=model_pb2.VALUE_SOURCE_OVERRIDE,
        max_output_tokens=5,
        max_output_tokens_source=model_pb2.VALUE_SOURCE_TABLE,
        capabilities=model_pb2.ModelCapabilities(tools=True, logprobs=True),
        price=model_pb2.ModelPrice(
            input_nanos_usd=150, output_nanos_usd=600, cached_input_nanos_usd=75, source=model_pb2.VALUE_SOURCE_TABLE
        ),
    )
    found = model_service_pb2.ListModelsResponse(models=[mine, _model("openai")])
    backend.on("ListModels", lambda _: found)
    embedding = model_pb2.EmbeddingModel(
        handle="mine/e",
        name="e",
        provider_name="mine",
        provider_type="lmstudio_openai",
        provider_category=model_pb2.PROVIDER_CATEGORY_BYOK,
        dimensions=8,
        dimensions_source=model_pb2.VALUE_SOURCE_ENDPOINT,
    )
    listed = model_service_pb2.ListEmbeddingModelsResponse(models=[embedding])
    backend.on("ListEmbeddingModels", lambda _: listed)
    [own] = (await edge.http.get("/v1/models?provider_category=byok")).json()
    assert (own["provider_type"], own["model_endpoint_type"], own["provider_category"]) == (
        "cerebras",
        "openai",
        "byok",
    )
    assert (own["context_window_source"], own["max_output_tokens_source"]) == ("override", "table")
    assert own["capabilities"]["logprobs"] is True
    assert own["price"] == {"input": 0.15, "output": 0.6, "cached_input": 0.075, "cache_write": None, "source": "table"}
    base, byok = await edge.sdk.models.list(provider_category=["base"]), await edge.sdk.models.list()
    assert [model.handle for model in base] == ["openai/m"]
    assert [model.provider_category for model in byok] == ["byok", "base"]
    [model] = (await edge.http.get("/v1/models/embedding?provider_name=mine")).json()
    assert (model["embedding_endpoint_type"], model["embedding_dim"]) == ("lmstudio", 8)
    assert (model["provider_category"], model["dimensions_source"]) == ("byok", "endpoint")
    assert (await edge.http.get("/v1/models/embedding?provider_category=base")).json() == []
