"""Attacks with a page's token that shall outlive what made it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import grpc
import pytest

from loci.agent.v1 import access_service_pb2 as wire
from services.common.context import CallContext, use_context
from services.common.errors import InvalidArgument, PermissionDenied, Unauthenticated, from_rpc
from tests.integration.agent.admin_world import AUDIENCE, ORGANIZATION, AdminWorld, admin_world
from tests.integration.agent.resources.test_access import DEFAULT_USER, Access, access, stamp, unknown

__all__ = ["access"]


@pytest.fixture
async def world(agent_url: str, tmp_path: Path) -> AsyncIterator[AdminWorld]:
    """The service with an external listener without a password."""
    async with admin_world(agent_url, tmp_path, external=True) as made:
        yield made


async def made_with(access: Access, world: AdminWorld, key_id: str, token: wire.ClientToken) -> Any:
    """A token that the holder of a key makes. Raises LociError."""
    caller = CallContext(ORGANIZATION, DEFAULT_USER, "developer", AUDIENCE, credential_id=key_id)
    with use_context(caller, signer=world.signer):
        try:
            return await access.stub.CreateClientToken(wire.CreateClientTokenRequest(token=token), timeout=10)
        except grpc.RpcError as error:
            raise from_rpc(error) from None


async def draft(world: AdminWorld, **fields: Any) -> wire.ClientToken:
    agent = (await world.create(model="loci/demo")).id
    policy = [wire.AgentAccess(agent_id=agent, access=["write_messages"])]
    return wire.ClientToken(hostname="https://app.test", policy=policy, **fields)


async def test_a_token_ends_with_the_key_that_made_it(access: Access, world: AdminWorld) -> None:
    token = await draft(world)
    mine, theirs = [(await access("CreateApiKey", key=wire.ApiKey(name=name))).key for name in ("mine", "theirs")]
    ends = await made_with(access, world, mine.id, token)
    stays = await made_with(access, world, theirs.id, token)
    nobodys = await made_with(access, world, "", token)
    await access("DeleteApiKey", key_id=mine.id)
    assert await unknown(access, ends.secret)
    assert [each.id for each in (await access("ListClientTokens")).tokens] == [nobodys.token.id, stays.token.id]
    assert (await access.whom(stays.secret)).credential_id == stays.token.id
    assert await world.pool.fetchval("SELECT count(*) FROM agent.credentials WHERE kind = 'client_token'") == 2
    # What a key could still ask for while its end was on its way.
    with pytest.raises(Unauthenticated, match="not known"):
        await made_with(access, world, mine.id, token)


async def test_a_token_does_not_outlive_a_key_that_ends_by_itself(access: Access, world: AdminWorld) -> None:
    key = (await access("CreateApiKey", key=wire.ApiKey(name="short", expires_at=stamp(100)))).key
    made = await made_with(access, world, key.id, await draft(world, expires_at=stamp(1_000)))
    assert made.token.expires_at == key.expires_at
    sooner = await made_with(access, world, key.id, await draft(world, expires_at=stamp(10)))
    assert sooner.token.expires_at.ToDatetime(tzinfo=UTC) < datetime.now(UTC) + timedelta(seconds=11)


async def test_a_token_has_a_longest_life(access: Access, world: AdminWorld) -> None:
    with pytest.raises(InvalidArgument, match="within 7 days"):
        await access("CreateClientToken", token=await draft(world, expires_at=stamp(7 * 86_400 + 60)))
    await access("CreateClientToken", token=await draft(world, expires_at=stamp(7 * 86_400 - 60)))


async def test_admins_of_a_tenant_know_its_secret_for_callbacks_and_no_other(access: Access) -> None:
    tenants = [ORGANIZATION, await access.tenant(), await access.tenant()]
    secrets = [(await access("GetWebhookSecret", tenant=tenant)).secret for tenant in tenants]
    assert len(set(secrets)) == 3
    for role in ("developer", "agent-only", "read-only", "client", "run"):
        with pytest.raises(PermissionDenied):
            await access("GetWebhookSecret", tenant=tenants[1], role=role)
