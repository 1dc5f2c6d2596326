"""AccessService on the real Postgres: keys open what they should and end when they should, and tenants are apart."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import grpc
import pytest
from google.protobuf.field_mask_pb2 import FieldMask
from google.protobuf.timestamp_pb2 import Timestamp

from loci.agent.v1 import access_service_pb2 as wire
from loci.agent.v1.access_service_pb2_grpc import AccessServiceStub
from loci.agent.v1.agent_service_pb2 import GetAgentRequest, ListAgentsRequest
from loci.agent.v1.agent_service_pb2_grpc import AgentServiceStub
from services.common.channel import make_channel
from services.common.context import CallContext, use_context
from services.common.errors import (
    FailedPrecondition,
    InvalidArgument,
    LociError,
    NotFound,
    PermissionDenied,
    Unauthenticated,
    from_rpc,
)
from tests.integration.agent.admin_world import AUDIENCE, ORGANIZATION, AdminWorld, admin_world
from tests.integration.every_table import rows_of
from tests.page_requests import paged
from tests.postgres import Postgres

DEFAULT_USER = ORGANIZATION


@pytest.fixture
async def world(agent_url: str, tmp_path: Path) -> AsyncIterator[AdminWorld]:
    """The service with an external listener without a password."""
    async with admin_world(agent_url, tmp_path, external=True) as made:
        yield made


class Access:
    """Calls of AccessService, as whom one likes."""

    def __init__(self, world: AdminWorld, channel: grpc.aio.Channel) -> None:
        self._world = world
        self.stub: Any = AccessServiceStub(channel)

    async def __call__(self, method: str, *, tenant: UUID = ORGANIZATION, role: str = "admin", **fields: Any) -> Any:
        request = getattr(wire, f"{method}Request")(**paged(**fields))
        with use_context(CallContext(tenant, DEFAULT_USER, role, AUDIENCE), signer=self._world.signer):
            try:
                return await getattr(self.stub, method)(request, timeout=10)
            except grpc.RpcError as error:
                raise from_rpc(error) from None

    async def whom(self, secret: str) -> wire.AuthenticateResponse:
        """Whom a credential stands for."""
        known: wire.AuthenticateResponse = await self(
            "Authenticate",
            tenant=UUID(int=0),
            role="edge",
            credential_hash=hashlib.sha256(secret.encode()).digest(),
        )
        return known

    async def tenant(self) -> UUID:
        """A new tenant."""
        return UUID(
            (
                await self("CreateOrganization", organization=wire.Organization(name="Other"))
            ).organization.id.removeprefix("org-")
        )


@pytest.fixture
async def access(world: AdminWorld) -> AsyncIterator[Access]:
    """Over the internal listener."""
    channel = make_channel(world.built.servers[0].address)
    yield Access(world, channel)
    await channel.close()


def stamp(seconds: float) -> Timestamp:
    found = Timestamp()
    found.FromDatetime(datetime.now(UTC) + timedelta(seconds=seconds))
    return found


async def unknown(access: Access, secret: str) -> bool:
    try:
        await access.whom(secret)
    except Unauthenticated as error:
        return error.reason == "CREDENTIAL_INVALID"
    return False


async def test_a_key_from_its_making_to_its_end(access: Access, world: AdminWorld) -> None:
    agent = (await world.create(model="loci/demo")).id
    draft = wire.ApiKey(name=" ci ", role="agent-only", agent_ids=[agent, agent], requests_per_minute=7)
    made = await access("CreateApiKey", key=draft)
    assert made.secret.startswith(made.key.hint)
    known = await access.whom(made.secret)
    assert (known.organization_id, known.user_id) == (f"org-{ORGANIZATION}", f"user-{DEFAULT_USER}")
    assert (known.role, list(known.agent_ids), known.requests_per_minute) == ("agent-only", [agent], 7)
    assert known.credential_id == made.key.id
    [listed] = [key for key in (await access("ListApiKeys")).keys if key.id == made.key.id]
    assert (listed.name, listed.role) == ("ci", "agent-only")
    assert listed.HasField("last_used_at")
    assert not listed.HasField("expires_at")
    # What it says is stored nowhere.
    stored = await world.pool.fetchval("SELECT string_agg(k::text, '') FROM agent.api_keys k")
    assert made.secret[len(made.key.hint) :] not in stored
    await access("DeleteApiKey", key_id=made.key.id)
    assert await unknown(access, made.secret)
    with pytest.raises(NotFound):
        await access("DeleteApiKey", key_id=made.key.id)


async def test_its_use_is_noted_once_a_minute(access: Access, world: AdminWorld) -> None:
    made = await access("CreateApiKey", key=wire.ApiKey(name="busy"))
    assert made.key.role == "developer"
    used = "SELECT last_used_at FROM agent.api_keys WHERE name = 'busy'"
    await asyncio.gather(*(access.whom(made.secret) for _ in range(5)))
    first = await world.pool.fetchval(used)
    await access.whom(made.secret)
    assert await world.pool.fetchval(used) == first
    await world.pool.execute("UPDATE agent.api_keys SET last_used_at = now() - interval '2 minutes'")
    await access.whom(made.secret)
    assert await world.pool.fetchval(used) > first


async def test_a_key_ends_by_itself(access: Access, world: AdminWorld) -> None:
    made = await access("CreateApiKey", key=wire.ApiKey(name="short", expires_at=stamp(60)))
    assert (await access.whom(made.secret)).HasField("expires_at")
    await world.pool.execute("UPDATE agent.api_keys SET expires_at = now() WHERE name = 'short'")
    assert await unknown(access, made.secret)


async def test_pages_of_keys(access: Access) -> None:
    tenant = await access.tenant()
    for number in range(3):
        await access("CreateApiKey", key=wire.ApiKey(name=str(number), user_id=f"user-{tenant}"))
    first = await access("ListApiKeys", tenant=tenant, page_size=2)
    second = await access("ListApiKeys", tenant=tenant, page_size=2, page_token=first.next_page_token)
    assert [key.name for key in (*first.keys, *second.keys)] == ["0", "1", "2"]
    assert second.next_page_token == ""
    with pytest.raises(InvalidArgument):
        await access("ListApiKeys", page_token="x")


async def test_tenants_are_apart(access: Access, world: AdminWorld) -> None:
    tenant, other = await access.tenant(), await access.tenant()
    made = await access("CreateApiKey", key=wire.ApiKey(name="theirs", user_id=f"user-{tenant}"))
    assert (await access.whom(made.secret)).organization_id == f"org-{tenant}"
    # Their admins see and end their own, and nobody else's.
    assert [key.name for key in (await access("ListApiKeys", tenant=tenant)).keys] == ["theirs"]
    assert not (await access("ListApiKeys", tenant=other)).keys
    for refused, fields in (
        ("DeleteApiKey", {"key_id": made.key.id}),
        ("CreateApiKey", {"key": wire.ApiKey(name="x", user_id=f"user-{tenant}")}),
        ("DeleteUser", {"user_id": f"user-{tenant}"}),
        (
            "UpdateUser",
            {"user_id": f"user-{tenant}", "user": wire.User(name="x"), "update_mask": FieldMask(paths=["name"])},
        ),
    ):
        with pytest.raises(NotFound):
            await access(refused, tenant=other, **fields)
    for refused, fields in (
        ("CreateOrganization", {"organization": wire.Organization(name="x")}),
        ("DeleteOrganization", {"organization_id": f"org-{tenant}"}),
        ("CreateUser", {"user": wire.User(name="x", organization_id=f"org-{tenant}")}),
        ("ListUsers", {"organization_id": f"org-{tenant}"}),
    ):
        with pytest.raises(PermissionDenied):
            await access(refused, tenant=other, **fields)
    [own] = (await access("ListOrganizations", tenant=other)).organizations
    assert own.id == f"org-{other}"
    everybody = (await access("ListOrganizations")).organizations
    assert {f"org-{each}" for each in (ORGANIZATION, tenant, other)} <= {each.id for each in everybody}
    # The operator may end a key of whomever.
    await access("DeleteApiKey", key_id=made.key.id)
    assert await unknown(access, made.secret)


@pytest.mark.parametrize("role", ["developer", "agent-only", "read-only", "client", "run", "agent", "edge"])
async def test_only_admins_make_keys(access: Access, role: str) -> None:
    for method in ("ListApiKeys", "ListOrganizations", "ListUsers", "CreateOrganization"):
        with pytest.raises(PermissionDenied):
            await access(method, role=role)
    if role != "edge":
        with pytest.raises(PermissionDenied):
            await access("Authenticate", role=role, credential_hash=b"x")


async def test_users(access: Access, world: AdminWorld) -> None:
    tenant = await access.tenant()
    user = (await access("CreateUser", tenant=tenant, user=wire.User(name="Ada"))).user
    assert user.organization_id == f"org-{tenant}"
    listed = (await access("ListUsers", tenant=tenant)).users
    assert [each.id for each in listed] == [f"user-{tenant}", user.id]
    [after] = (await access("ListUsers", tenant=tenant, after=f"user-{tenant}")).users
    assert after == user
    change: dict[str, Any] = {
        "user_id": user.id,
        "user": wire.User(name="Ada L."),
        "update_mask": FieldMask(paths=["name"]),
    }
    assert (await access("UpdateUser", tenant=tenant, **change)).user.name == "Ada L."
    key = await access("CreateApiKey", tenant=tenant, key=wire.ApiKey(name="hers", user_id=user.id))
    assert (await access.whom(key.secret)).user_id == user.id
    await access("DeleteUser", tenant=tenant, user_id=user.id)
    assert await unknown(access, key.secret)
    for method, fields in (("DeleteUser", {"user_id": user.id}), ("UpdateUser", change)):
        with pytest.raises(NotFound):
            await access(method, tenant=tenant, **fields)
    with pytest.raises(FailedPrecondition):
        await access("DeleteUser", user_id=f"user-{DEFAULT_USER}")


async def test_an_organization_ends_with_all_that_is_its_own(
    access: Access, world: AdminWorld, agent_url: str, postgres: Postgres
) -> None:
    tenant = await access.tenant()
    change: dict[str, Any] = {
        "organization": wire.Organization(name="New"),
        "update_mask": FieldMask(paths=["name"]),
    }
    renamed = await access("UpdateOrganization", organization_id=f"org-{tenant}", **change)
    assert renamed.organization.name == "New"
    key = await access("CreateApiKey", key=wire.ApiKey(name="gone", user_id=f"user-{tenant}"))
    agents = [(await world.create(tenant, model="loci/demo")).id for _ in range(2)]
    kept = (await world.create(model="loci/demo")).id
    others = await rows_of(postgres, agent_url, "agent", ORGANIZATION)
    await access("DeleteOrganization", organization_id=f"org-{tenant}")
    assert await unknown(access, key.secret)
    # The tenant's own orders wait for those of its agents, and the other services for these.
    world.peers.unfinished = 2
    await world.deliver()
    assert world.peers.asked["PurgeOrganization"] == 0
    for _ in range(5):
        await world.deliver()
    assert await rows_of(postgres, agent_url, "agent", tenant) == {}
    assert await rows_of(postgres, agent_url, "agent", ORGANIZATION) == others
    assert {("memory", agent) for agent in agents} <= set(world.peers.purged)
    packages = ("loci.memory.v1", "loci.tool.v1", "loci.llm.v1")
    assert {each for each in world.peers.purged if each[0] in packages} == {(each, str(tenant)) for each in packages}
    assert (await world.get(kept)).id == kept
    with pytest.raises(NotFound):
        await access("DeleteOrganization", organization_id=f"org-{tenant}")
    with pytest.raises(NotFound):
        await access("CreateApiKey", key=wire.ApiKey(name="late", user_id=f"user-{tenant}"))
    with pytest.raises(FailedPrecondition):
        await access("DeleteOrganization", organization_id=f"org-{ORGANIZATION}")


async def test_no_order_ends_the_default_organization(world: AdminWorld) -> None:
    kept = (await world.create(model="loci/demo")).id
    await world.deliver()
    order = "INSERT INTO agent.outbox (organization_id, id, kind, subject_id, payload, not_before)"
    order += " VALUES ($1, $2, 'purge_organization', $1, $3, now())"
    payload = {"user_id": str(DEFAULT_USER), "last": True}
    await world.pool.execute(order, ORGANIZATION, uuid4(), payload)
    await world.deliver()
    error = "DELETE FROM agent.outbox WHERE kind = 'purge_organization' RETURNING last_error"
    assert "ORGANIZATION_IS_DEFAULT" in await world.pool.fetchval(error)
    assert (await world.get(kept)).id == kept
    assert world.peers.asked["PurgeOrganization"] == 0


async def test_client_tokens(access: Access, world: AdminWorld) -> None:
    first, second = [(await world.create(model="loci/demo")).id for _ in range(2)]
    policy = [wire.AgentAccess(agent_id=first, access=["read_messages", "write_messages"])]
    token = wire.ClientToken(hostname="https://app.test", policy=policy)
    made = await access("CreateClientToken", role="developer", token=token)
    assert made.secret.startswith(f"loci-ct-{made.token.id.removeprefix('ct-')}-")
    assert 290 < made.token.expires_at.ToDatetime(tzinfo=UTC).timestamp() - datetime.now(UTC).timestamp() <= 300
    known = await access.whom(made.secret)
    assert (known.role, known.credential_id, known.client_token) == ("client", made.token.id, made.token)
    both = [*policy, wire.AgentAccess(agent_id=second, access=["read_agent"])]
    wanted = wire.ClientToken(hostname="https://b.test", policy=both, expires_at=stamp(60))
    later = await access("CreateClientToken", token=wanted)
    page = await access("ListClientTokens", page_size=1)
    assert ([each.id for each in page.tokens], page.has_next_page) == ([later.token.id], True)
    page = await access("ListClientTokens", page_size=1, offset=1)
    assert ([each.id for each in page.tokens], page.has_next_page) == ([made.token.id], False)
    assert [each.id for each in (await access("ListClientTokens", agent_id=second)).tokens] == [later.token.id]
    tenant = await access.tenant()
    assert not (await access("ListClientTokens", tenant=tenant)).tokens
    with pytest.raises(NotFound):
        await access("DeleteClientToken", tenant=tenant, token_id=made.token.id)
    with pytest.raises(NotFound, match="Agent"):
        await access("CreateClientToken", tenant=tenant, token=token)
    await access("DeleteClientToken", token_id=made.token.id)
    assert await unknown(access, made.secret)
    # One that is over opens nothing, is not listed, and goes when the next one is made.
    await world.pool.execute("UPDATE agent.client_tokens SET expires_at = now()")
    assert await unknown(access, later.secret)
    assert not (await access("ListClientTokens")).tokens
    await access("CreateClientToken", token=token)
    assert await world.rows("client_tokens") == 1
    assert await world.pool.fetchval("SELECT count(*) FROM agent.credentials WHERE kind = 'client_token'") == 1


@pytest.mark.parametrize(
    ("method", "fields"),
    [
        ("CreateApiKey", {"key": wire.ApiKey()}),
        ("CreateApiKey", {"key": wire.ApiKey(name="x", role="owner")}),
        ("CreateApiKey", {"key": wire.ApiKey(name="x", agent_ids=["agent-1"])}),
        ("CreateClientToken", {"token": wire.ClientToken(hostname="app.test")}),
        ("ListApiKeys", {"page_size": -1}),
        ("ListClientTokens", {"offset": -1}),
        ("CreateUser", {"user": wire.User(name=" ")}),
        ("DeleteApiKey", {"key_id": "key-1"}),
        ("UpdateUser", {"user_id": f"user-{ORGANIZATION}"}),
    ],
)
async def test_bad_requests(access: Access, method: str, fields: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgument):
        await access(method, **fields)


async def test_the_external_listener_takes_keys(access: Access, world: AdminWorld) -> None:
    tenant = await access.tenant()
    theirs, mine = await world.create(tenant, model="loci/demo"), await world.create(model="loci/demo")
    draft = wire.ApiKey(name="reader", user_id=f"user-{tenant}", role="read-only")
    secret = (await access("CreateApiKey", key=draft)).secret
    channel = make_channel(world.address)
    outside: Any = AgentServiceStub(channel)
    inside: Any = AccessServiceStub(channel)
    shown = [("authorization", f"Bearer {secret}")]
    try:
        listed = await outside.ListAgents(ListAgentsRequest(), metadata=shown, timeout=10)
        assert [agent.id for agent in listed.agents] == [theirs.id]
        for error, rpc, request, metadata in (
            (NotFound, outside.GetAgent, GetAgentRequest(agent_id=mine.id), shown),
            (PermissionDenied, inside.ListApiKeys, wire.ListApiKeysRequest(), shown),
            (Unauthenticated, outside.ListAgents, ListAgentsRequest(), [("authorization", "Bearer loci-key-x")]),
        ):
            with pytest.raises(error):
                await failing(rpc(request, metadata=metadata, timeout=10))
        assert (await outside.GetAgent(GetAgentRequest(agent_id=mine.id), timeout=10)).agent.id == mine.id
    finally:
        await channel.close()


async def failing(call: Any) -> None:
    try:
        await call
    except grpc.RpcError as error:
        failure: LociError = from_rpc(error)
        raise failure from None
