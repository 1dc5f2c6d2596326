"""Providers of tenants over gRPC, on Postgres, with a fake vendor behind them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import grpc
import orjson
import pytest
from google.protobuf.field_mask_pb2 import FieldMask

from loci.llm.v1 import model_pb2
from loci.llm.v1 import provider_service_pb2 as pb
from loci.llm.v1.model_service_pb2 import GetEmbeddingModelRequest, GetModelRequest, ListModelsRequest
from loci.llm.v1.provider_pb2 import Provider
from services.common.context import use_context
from services.common.database import StatementCounter
from services.common.encryption import Sealer
from services.common.errors import LociError, from_rpc
from services.common.ids import to_public
from tests.fakes.openai_server import OpenAIServer
from tests.integration.llm_gateway.harness import SIGNER, Gateway, call_context, gateway_service

KEY = "sk-of-ada-alone"
PRIVATE = {"LOCI_ALLOW_PRIVATE_PROVIDERS": "true", "OPENAI_API_KEY": "", "ANTHROPIC_API_KEY": ""}


def settings(fake: OpenAIServer, **fields: Any) -> Provider:
    given: dict[str, Any] = {"provider_type": "openai", "api_key": KEY, "base_url": fake.base_url}
    return Provider(**(given | fields))


async def create(gateway: Gateway, name: str, provider: Provider, id: UUID | None = None) -> Provider:
    provider.name = name
    request = pb.CreateProviderRequest(id=to_public("provider", id or uuid4()), provider=provider)
    created: Provider = (await gateway.providers.CreateProvider(request)).provider
    return created


def update_of(id: str, **fields: Any) -> pb.UpdateProviderRequest:
    return pb.UpdateProviderRequest(id=id, provider=Provider(**fields), update_mask=FieldMask(paths=sorted(fields)))


async def refused(call: Any) -> LociError:
    with pytest.raises(grpc.RpcError) as caught:
        await call
    return from_rpc(caught.value)


@pytest.fixture
async def gateway(gateway_url: str, tmp_path: Path) -> AsyncIterator[Gateway]:
    """A gateway whose tenants may have providers on this machine, and whose operator has none."""
    async with gateway_service(gateway_url, tmp_path, PRIVATE) as service:
        yield service


async def test_a_provider_from_making_it_to_deleting_it(gateway: Gateway, openai_fake: OpenAIServer) -> None:
    made = await create(gateway, "mine", settings(openai_fake, options_json='{"max_concurrency": 3}'))
    assert (made.name, made.category, made.version, made.has_key) == ("mine", model_pb2.PROVIDER_CATEGORY_BYOK, 1, True)
    assert (made.base_url, made.sync_error) == (f"{openai_fake.base_url.removesuffix('/v1')}/v1", "")
    assert made.model_count > len(openai_fake.chat_models)
    assert made.HasField("synced_at")
    assert orjson.loads(made.options_json) == {"max_concurrency": 3}
    assert KEY not in str(made)
    # Its models, beside those of the operator.
    models = (await gateway.models.ListModels(ListModelsRequest())).models
    [mini] = [model for model in models if model.handle == "mine/gpt-4o-mini"]
    assert (mini.provider_category, mini.provider_type) == (model_pb2.PROVIDER_CATEGORY_BYOK, "openai")
    embedding = GetEmbeddingModelRequest(handle="mine/text-embedding-3-small")
    assert (await gateway.models.GetEmbeddingModel(embedding)).model.dimensions == 1536
    assert (await gateway.generate("mine/gpt-4o-mini")).message.parts
    assert openai_fake.requests[-1].headers["authorization"] == f"Bearer {KEY}"
    # Changed: the next call uses the new key.
    updated = (await gateway.providers.UpdateProvider(update_of(made.id, api_key="sk-second"))).provider
    assert (updated.version, updated.model_count) == (2, made.model_count)
    await gateway.generate("mine/gpt-4o-mini")
    assert openai_fake.requests[-1].headers["authorization"] == "Bearer sk-second"
    request = update_of(made.id, name="x")
    request.version = 1
    assert (await refused(gateway.providers.UpdateProvider(request))).reason == "PROVIDER_CHANGED"
    await gateway.providers.DeleteProvider(pb.DeleteProviderRequest(id=made.id))
    await gateway.providers.DeleteProvider(pb.DeleteProviderRequest(id=made.id))
    gone = await refused(gateway.generate("mine/gpt-4o-mini"))
    assert (gone.code, gone.reason) == (grpc.StatusCode.NOT_FOUND, "MODEL_NOT_FOUND")
    missing = await refused(gateway.providers.GetProvider(pb.GetProviderRequest(id=made.id)))
    assert (missing.code, missing.reason) == (grpc.StatusCode.NOT_FOUND, "PROVIDER_NOT_FOUND")


async def test_two_tenants_share_nothing(gateway: Gateway, openai_fake: OpenAIServer) -> None:
    mine = await create(gateway, "mine", settings(openai_fake))
    with use_context(SIGNER.signed(call_context(uuid4()))):
        theirs = await create(gateway, "mine", settings(openai_fake, api_key="sk-of-eve"))
        assert (await refused(gateway.providers.GetProvider(pb.GetProviderRequest(id=mine.id)))).reason == (
            "PROVIDER_NOT_FOUND"
        )
        change = update_of(mine.id, api_key="sk-stolen")
        assert (await refused(gateway.providers.UpdateProvider(change))).reason == "PROVIDER_NOT_FOUND"
        await gateway.providers.DeleteProvider(pb.DeleteProviderRequest(id=mine.id))
        await gateway.generate("mine/gpt-4o-mini")
        assert openai_fake.requests[-1].headers["authorization"] == "Bearer sk-of-eve"
    listed = (await gateway.providers.ListProviders(pb.ListProvidersRequest())).providers
    assert {one.id for one in listed if one.category == model_pb2.PROVIDER_CATEGORY_BYOK} == {mine.id}
    await gateway.generate("mine/gpt-4o-mini")
    assert openai_fake.requests[-1].headers["authorization"] == f"Bearer {KEY}"
    assert theirs.id != mine.id


async def test_keys_at_rest_are_unreadable(gateway: Gateway, openai_fake: OpenAIServer) -> None:
    await create(gateway, "mine", settings(openai_fake, access_key=""))
    dumped = await gateway.pool.fetchval("SELECT string_agg(p::text, '') FROM llm_gateway.providers p")
    assert "mine" in dumped
    assert KEY not in dumped
    assert KEY.encode().hex() not in dumped


async def test_another_encryption_key_spoils_one_provider_and_not_the_service(
    gateway: Gateway, gateway_url: str, tmp_path: Path, openai_fake: OpenAIServer
) -> None:
    made = await create(gateway, "mine", settings(openai_fake))
    await create(gateway, "keyless", settings(openai_fake, api_key=""))
    folder = tmp_path / "other"
    folder.mkdir()
    tenant = gateway.caller.organization_id
    async with gateway_service(
        gateway_url, folder, PRIVATE, sealer=Sealer([b"another key" + bytes(21)]), organization_id=tenant
    ) as other:
        spoilt = await refused(other.generate("mine/gpt-4o-mini"))
        assert (spoilt.code, spoilt.reason) == (grpc.StatusCode.FAILED_PRECONDITION, "CREDENTIALS_UNREADABLE")
        assert "LOCI_ENCRYPTION_KEY" in spoilt.message
        assert (await other.generate("loci/demo")).message.parts
        models = await other.models.ListModels(ListModelsRequest())
        assert "mine" in models.unreachable
        assert "mine/gpt-4o-mini" not in {model.handle for model in models.models}
        shown = (await other.providers.GetProvider(pb.GetProviderRequest(id=made.id))).provider
        assert "LOCI_ENCRYPTION_KEY" in shown.sync_error


async def test_a_turn_sends_no_statement_once_its_tenant_is_known(
    gateway_url: str, tmp_path: Path, openai_fake: OpenAIServer
) -> None:
    counter = StatementCounter(keep_texts=True)
    async with gateway_service(gateway_url, tmp_path, PRIVATE, counter=counter) as gateway:
        await create(gateway, "mine", settings(openai_fake))
        await gateway.generate("mine/gpt-4o-mini")
        await asyncio.sleep(0)
        counter.reset()
        for _ in range(5):
            await gateway.generate("mine/gpt-4o-mini")
            await gateway.generate("loci/demo")
        await asyncio.sleep(0)
        assert [text for text in counter.texts if "providers" in text] == []
        await gateway.built.tenants.check()
        await asyncio.sleep(0)
        assert len([text for text in counter.texts if "providers" in text]) == 1


async def test_another_replica_has_it_at_once_and_sees_changes(
    gateway: Gateway, gateway_url: str, tmp_path: Path, openai_fake: OpenAIServer
) -> None:
    folder = tmp_path / "other"
    folder.mkdir()
    tenant = gateway.caller.organization_id
    async with gateway_service(gateway_url, folder, PRIVATE, organization_id=tenant) as other:
        with use_context(other.caller):
            await other.generate("loci/demo")
        made = await create(gateway, "mine", settings(openai_fake))
        assert (await other.generate("mine/gpt-4o-mini")).message.parts
        # What it listed came with it.
        asked = [request.path for request in openai_fake.requests].count("/v1/models")
        await other.models.GetModel(GetModelRequest(handle="mine/gpt-4o"))
        assert [request.path for request in openai_fake.requests].count("/v1/models") == asked
        await gateway.providers.DeleteProvider(pb.DeleteProviderRequest(id=made.id))
        await other.built.tenants.check()
        assert (await refused(other.generate("mine/gpt-4o-mini"))).reason == "MODEL_NOT_FOUND"


async def test_an_endpoint_that_is_away_is_stored_and_says_why(gateway: Gateway, openai_fake: OpenAIServer) -> None:
    away = await create(gateway, "away", settings(openai_fake, base_url="http://127.0.0.1:9"))
    assert (away.model_count, away.HasField("synced_at")) == (0, False)
    assert "away" in away.sync_error
    error = await refused(gateway.providers.RefreshProvider(pb.RefreshProviderRequest(id=away.id)))
    assert error.reason == "LLM_CONNECTION"
    error = await refused(gateway.providers.CheckProvider(pb.CheckProviderRequest(id=away.id)))
    assert error.reason == "LLM_CONNECTION"
    # What the table knows can be used all the same, and what the options say.
    options = '{"models": {"own": {"context_window": 9000, "vision": false}}}'
    await gateway.providers.UpdateProvider(update_of(away.id, options_json=options))
    own = (await gateway.models.GetModel(GetModelRequest(handle="away/own"))).model
    assert (own.context_window, own.context_window_source) == (9_000, model_pb2.VALUE_SOURCE_OVERRIDE)
    assert not own.capabilities.vision


async def test_checks_of_what_is_not_stored(gateway: Gateway, openai_fake: OpenAIServer) -> None:
    checked = await gateway.providers.CheckProvider(pb.CheckProviderRequest(provider=settings(openai_fake)))
    assert checked.model_count > 0
    nothing = await refused(gateway.providers.CheckProvider(pb.CheckProviderRequest()))
    assert nothing.reason == "PROVIDER_INVALID"
    wrong = settings(openai_fake, options_json="[]")
    error = await refused(gateway.providers.CheckProvider(pb.CheckProviderRequest(provider=wrong)))
    assert (error.code, error.reason) == (grpc.StatusCode.INVALID_ARGUMENT, "PROVIDER_INVALID")


async def test_names_are_taken_once_and_there_are_at_most_a_hundred(
    gateway: Gateway, openai_fake: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    id = uuid4()
    made = await create(gateway, "mine", settings(openai_fake), id)
    assert await create(gateway, "mine", settings(openai_fake), id) == made
    taken = await refused(create(gateway, "mine", settings(openai_fake)))
    assert (taken.code, taken.reason) == (grpc.StatusCode.ALREADY_EXISTS, "PROVIDER_NAME_TAKEN")
    assert (await refused(create(gateway, "loci", settings(openai_fake)))).reason == "PROVIDER_NAME_TAKEN"
    other = await create(gateway, "other", settings(openai_fake))
    rename = update_of(other.id, name="mine")
    assert (await refused(gateway.providers.UpdateProvider(rename))).reason == "PROVIDER_NAME_TAKEN"
    monkeypatch.setattr("services.llm_gateway.providers.store.MOST_PROVIDERS", 2)
    assert "there can be no more" in (await refused(create(gateway, "third", settings(openai_fake)))).message


async def test_private_addresses_are_refused_unless_the_operator_allows_them(
    gateway_url: str, tmp_path: Path, openai_fake: OpenAIServer
) -> None:
    async with gateway_service(gateway_url, tmp_path, {}) as gateway:
        error = await refused(create(gateway, "mine", settings(openai_fake)))
        assert (error.reason, "LOCI_ALLOW_PRIVATE_PROVIDERS" in error.message) == ("PROVIDER_INVALID", True)
        assert not openai_fake.requests
