"""Tenants' providers: who sees them, when the database is asked, and where a key may go."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID, uuid4

import pytest

from services.common.core.drafts import Draft
from services.common.encryption import Sealer
from services.common.errors import Unavailable
from services.llm_gateway.core.errors import (
    CredentialsUnreadable,
    LlmAuthentication,
    ModelNotFound,
    ModelWindowUnknown,
    ProviderChanged,
    ProviderInvalid,
    ProviderNameTaken,
    ProviderNotFound,
    ProviderReadOnly,
)
from services.llm_gateway.core.models import ListedModel
from services.llm_gateway.core.overrides import OperatorOverrides
from services.llm_gateway.core.provider_config import ProviderConfig
from services.llm_gateway.models.service import Catalogue
from services.llm_gateway.providers import tenant_cache as tenants_module
from services.llm_gateway.providers.credentials import Vault
from services.llm_gateway.providers.entries import Patience, ProviderEntryFactory
from services.llm_gateway.providers.model import ProviderSettings, StoredProvider
from services.llm_gateway.providers.registry import ProviderRegistry
from services.llm_gateway.providers.service import ProviderService
from services.llm_gateway.providers.tenant_cache import TenantProviderCache
from tests.unit.llm_gateway.builders import config
from tests.unit.llm_gateway.provider_memory import ProviderMemory

ADA, EVE, USER, ID = UUID(int=1), UUID(int=2), UUID(int=3), UUID(int=4)
KEY, OTHER_KEY = bytes(32), bytes(range(32))


class Vendor:
    """Lists one model for the right key, at any address; remembers who asked."""

    def __init__(self, configured: ProviderConfig, asked: list[ProviderConfig]) -> None:
        self._config = configured
        self._asked = asked
        self.closed = False

    async def list_models(self, timeout: float) -> Sequence[ListedModel]:
        self._asked.append(self._config)
        if not self._config.api_key.startswith("sk-"):
            raise LlmAuthentication("refuses the key", provider=self._config.name)
        return [ListedModel("gpt-4o"), ListedModel("mystery")]

    async def close(self) -> None:
        self.closed = True


class Vendors(ProviderRegistry):
    """Makes vendors, whichever the type."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[ProviderConfig] = []
        self.made: list[Vendor] = []

    async def get(self, config: ProviderConfig) -> Any:
        return await self.once(config)

    async def once(self, config: ProviderConfig) -> Any:
        self.made.append(Vendor(config, self.asked))
        return self.made[-1]


@dataclass
class Replica:
    admin: ProviderService
    catalogue: Catalogue
    tenants: TenantProviderCache
    vendors: Vendors


def replica(store: ProviderMemory, key: bytes = KEY) -> Replica:
    """One process before `store`, with the operator's provider `openai`."""
    vendors, vault = Vendors(), Vault(Sealer([key]))
    maker = ProviderEntryFactory(vendors, store, vault, patience=Patience(), allow_private=False)
    operators = maker.operators([config("openai", "https://api.openai.com/v1")], OperatorOverrides())
    tenants = TenantProviderCache(store, maker, vendors)
    admin = ProviderService(tenants, operators, store, vault, maker, vendors, allow_private=False)
    return Replica(admin, Catalogue(vendors, operators, tenants), tenants, vendors)


def change(**fields: Any) -> Draft[ProviderSettings]:
    return Draft(ProviderSettings(**fields), frozenset(fields))


def draft(name: str = "mine", **fields: Any) -> ProviderSettings:
    return ProviderSettings(
        **{"name": name, "provider_type": "openai", "api_key": "sk-1", "base_url": "https://a.example", **fields}
    )


@pytest.fixture
def store() -> ProviderMemory:
    return ProviderMemory()


async def test_a_provider_is_its_tenants_alone(store: ProviderMemory) -> None:
    one = replica(store)
    made = await one.admin.create(ADA, USER, ID, draft())
    assert (made.id, made.config.name, len(made.listing.by_name)) == (ID, "mine", 2)
    assert [model.handle for model in (await one.catalogue.chat_models(ADA, ["mine"]))[0]] == ["mine/gpt-4o"]
    assert (await one.catalogue.callable_model(ADA, "mine/gpt-4o")).model.is_tenants
    assert await one.catalogue.chat_models(EVE, ["mine"]) == ([], [])
    with pytest.raises(ModelNotFound, match="configured providers are openai"):
        await one.catalogue.callable_model(EVE, "mine/gpt-4o")
    with pytest.raises(ProviderNotFound):
        await one.admin.get(EVE, ID)
    assert [found.config.name for found in await one.admin.list(EVE, "", "")] == ["openai"]
    with pytest.raises(ModelWindowUnknown, match=f"PATCH /v1/providers/provider-{ID} with .*models.*mystery"):
        await one.catalogue.chat_model(ADA, "mine/mystery")


async def test_creating_is_idempotent_and_names_are_taken_once(store: ProviderMemory) -> None:
    one = replica(store)
    for _ in range(2):
        assert (await one.admin.create(ADA, USER, ID, draft())).id == ID
    assert len(one.vendors.asked) == 1
    for name in ("mine", "openai"):
        with pytest.raises(ProviderNameTaken):
            await one.admin.create(ADA, USER, uuid4(), draft(name))
    # An operator who adds one of that name later does not take it away.
    other = await one.admin.create(EVE, USER, ID, draft())
    assert other.config.organization_id == EVE


async def test_no_call_waits_for_the_database_but_the_first(store: ProviderMemory) -> None:
    one = replica(store)
    await one.admin.create(ADA, USER, ID, draft())
    store.reads = 0
    for _ in range(5):
        await one.catalogue.callable_model(ADA, "mine/gpt-4o")
        await one.catalogue.callable_model(ADA, "openai/gpt-4o")
    assert store.reads == 0
    other = replica(store)
    await asyncio.gather(*(other.catalogue.callable_model(ADA, "mine/gpt-4o") for _ in range(5)))
    assert store.reads == 1
    # And not while the database is away, of which the operator's providers know nothing anyway.
    store.is_away = True
    assert await other.catalogue.callable_model(ADA, "mine/gpt-4o")
    assert await other.catalogue.callable_model(EVE, "openai/gpt-4o")
    with pytest.raises(Unavailable):
        await other.catalogue.callable_model(EVE, "mine/gpt-4o")


async def test_other_replicas_see_what_changed(store: ProviderMemory) -> None:
    one, other = replica(store), replica(store)
    with pytest.raises(ModelNotFound):
        await other.catalogue.callable_model(ADA, "mine/gpt-4o")
    await one.admin.create(ADA, USER, ID, draft())
    # What is not found is looked for once more.
    assert (await other.catalogue.callable_model(ADA, "mine/gpt-4o")).config.api_key == "sk-1"
    await one.admin.update(ADA, ID, change(api_key="sk-2"), None)
    await other.tenants.check()
    store.reads = 0
    assert (await other.catalogue.callable_model(ADA, "mine/gpt-4o")).config.api_key == "sk-2"
    assert store.reads == 0
    await other.tenants.check()
    assert store.reads == 1
    await one.admin.delete(ADA, ID)
    await one.admin.delete(ADA, ID)
    await other.tenants.check()
    with pytest.raises(ModelNotFound):
        await other.catalogue.callable_model(ADA, "mine/gpt-4o")


async def test_who_makes_no_calls_is_forgotten(store: ProviderMemory, monkeypatch: pytest.MonkeyPatch) -> None:
    one = replica(store)
    await one.admin.create(ADA, USER, ID, draft())
    monkeypatch.setattr(tenants_module, "IDLE_SECONDS", -1.0)
    await one.tenants.check()
    store.reads = 0
    await one.catalogue.callable_model(ADA, "mine/gpt-4o")
    assert store.reads == 1


async def test_changes(store: ProviderMemory) -> None:
    one = replica(store)
    await one.admin.create(ADA, USER, ID, draft())
    renamed = await one.admin.update(ADA, ID, change(name="ours", options={"max_concurrency": 2}), 1)
    assert (renamed.config.name, renamed.config.version, renamed.config.api_key) == ("ours", 2, "sk-1")
    assert len(one.vendors.asked) == 1
    with pytest.raises(ProviderChanged):
        await one.admin.update(ADA, ID, change(name="theirs"), 1)
    with pytest.raises(ProviderInvalid, match="with a new address comes a new api_key"):
        await one.admin.update(ADA, ID, change(base_url="https://evil.example"), None)
    with pytest.raises(ProviderNameTaken):
        await one.admin.update(ADA, ID, change(name="openai"), None)
    moved = await one.admin.update(ADA, ID, change(base_url="https://b.example", api_key="sk-2"), None)
    assert (moved.config.base_url, moved.config.api_key) == ("https://b.example/v1", "sk-2")
    assert [config.base_url for config in one.vendors.asked] == ["https://a.example/v1", "https://b.example/v1"]
    # A key that is wrong is stored, says so, and the models are still known.
    wrong = await one.admin.update(ADA, ID, change(api_key="nonsense"), None)
    assert (wrong.listing.error_text, len(wrong.listing.by_name)) == ("refuses the key", 2)
    with pytest.raises(LlmAuthentication):
        await one.admin.refresh(ADA, ID)
    with pytest.raises(LlmAuthentication):
        await one.admin.check(ADA, ID)


async def test_the_operators_can_be_read_and_refreshed_and_not_changed(store: ProviderMemory) -> None:
    one = replica(store)
    [base] = await one.admin.list(ADA, "openai", "openai")
    assert (await one.admin.get(EVE, base.id)).config.name == "openai"
    assert len((await one.admin.refresh(ADA, base.id)).listing.by_name) == 2
    with pytest.raises(ProviderReadOnly):
        await one.admin.update(ADA, base.id, change(name="x"), None)
    with pytest.raises(ProviderReadOnly):
        await one.admin.delete(ADA, base.id)


async def test_what_is_not_stored_can_be_checked(store: ProviderMemory) -> None:
    one = replica(store)
    assert await one.admin.check_settings(ADA, draft()) == 2
    with pytest.raises(LlmAuthentication):
        await one.admin.check_settings(ADA, draft(api_key="wrong"))
    assert all(vendor.closed for vendor in one.vendors.made)
    assert not store.rows


async def test_another_encryption_key_spoils_that_provider_and_no_other(store: ProviderMemory) -> None:
    one = replica(store)
    await one.admin.create(ADA, USER, ID, draft())
    await one.admin.create(ADA, USER, UUID(int=5), draft("keyless", api_key=""))
    other = replica(store, OTHER_KEY)
    with pytest.raises(CredentialsUnreadable, match="LOCI_ENCRYPTION_KEY"):
        await other.catalogue.callable_model(ADA, "mine/gpt-4o")
    assert await other.catalogue.callable_model(ADA, "keyless/gpt-4o")
    assert await other.catalogue.callable_model(ADA, "openai/gpt-4o")
    models, unreachable = await other.catalogue.chat_models(ADA)
    assert {model.provider_name for model in models} == {"openai"}
    assert unreachable == ["keyless", "mine"]
    with pytest.raises(CredentialsUnreadable):
        await other.admin.update(ADA, ID, change(name="x"), None)
    mended = await other.admin.update(ADA, ID, change(api_key="sk-3"), None)
    assert (mended.problem, mended.config.api_key) == (None, "sk-3")


async def test_a_sealed_key_opens_for_its_own_row_alone(store: ProviderMemory) -> None:
    one = replica(store)
    await one.admin.create(ADA, USER, ID, draft())
    stolen = store.rows[ADA, ID].credentials
    assert stolen is not None
    assert b"sk-1" not in stolen
    store.rows[EVE, ID] = replace(store.rows[ADA, ID], organization_id=EVE)
    with pytest.raises(CredentialsUnreadable):
        await one.catalogue.callable_model(EVE, "mine/gpt-4o")
    assert "sk-1" not in repr(await one.admin.get(ADA, ID))
    assert "sk-1" not in repr(change(api_key="sk-1"))


async def test_a_slow_reading_does_not_undo_a_later_one(store: ProviderMemory, monkeypatch: pytest.MonkeyPatch) -> None:
    one = replica(store)
    await one.admin.create(ADA, USER, ID, draft())
    let_go, read = asyncio.Event(), store.list

    async def slowly(organization_id: UUID) -> Any:
        rows = await read(organization_id)
        await let_go.wait()
        return rows

    monkeypatch.setattr(store, "list", slowly)
    slow = asyncio.create_task(one.tenants.read(ADA))
    await asyncio.sleep(0)
    monkeypatch.setattr(store, "list", read)
    await one.admin.delete(ADA, ID)
    let_go.set()
    await slow
    with pytest.raises(ModelNotFound):
        await one.catalogue.callable_model(ADA, "mine/gpt-4o")


async def test_a_replaced_provider_is_closed_once_its_calls_are_over(monkeypatch: pytest.MonkeyPatch) -> None:
    providers = ProviderRegistry()
    old = await providers.get(replace(config("openai", "http://a/v1"), version=1))
    assert await providers.get(replace(config("openai", "http://a/v1"), version=1)) is old
    closed = asyncio.Event()
    monkeypatch.setattr(old, "close", _setting(closed))
    new = await providers.get(replace(config("openai", "http://a/v1"), version=2))
    assert new is not old
    await asyncio.sleep(0)
    assert not closed.is_set()
    async with asyncio.timeout(20):
        await providers.close()
    assert closed.is_set()


def _setting(event: asyncio.Event) -> Any:
    async def close() -> None:
        event.set()

    return close


async def test_a_database_that_hangs_keeps_nobody_from_the_operators_providers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tenants_module, "FIRST_SECONDS", 0.05)
    store = ProviderMemory()
    one, never = replica(store), asyncio.Event()

    async def hang(organization_id: UUID) -> Sequence[StoredProvider]:
        await never.wait()
        return []

    monkeypatch.setattr(store, "list", hang)
    async with asyncio.timeout(20):
        target = await one.catalogue.callable_model(UUID(int=77), "openai/gpt-4o-mini")
        assert target.config.organization_id is None
        with pytest.raises(Unavailable):
            await one.catalogue.callable_model(UUID(int=77), "mine/gpt-4o-mini")
    never.set()
