"""Keys and tokens in Postgres: their hashes, and all about them but what they say."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import asyncpg
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncEngine

from services.agent.resources.access.model import (
    CLIENT_ROLE,
    AgentAccess,
    ApiKey,
    ApiKeySettings,
    ClientToken,
    ClientTokenSettings,
    Principal,
    hash_of,
    hint_of,
    new_key,
    new_token,
)
from services.agent.resources.agents.rows import agent_not_found
from services.agent.resources.queries import autocommit
from services.agent.resources.tables import api_keys
from services.common.core.paging import Page, PageOf
from services.common.core.records import record
from services.common.errors import NotFound, Unauthenticated
from services.common.ids import from_public, to_public, uuid7
from services.common.keyset import Keyset

_KEY = "k.id, k.user_id, k.name, k.hint, k.role, k.agent_ids, k.requests_per_minute, k.created_at, k.expires_at, \
k.last_used_at"
_TOKEN = "t.id, t.hostname, t.policy, t.expires_at"

# $1 hash. The users' rows are not asked for: what deletes one deletes its credentials.
_FIND = """
SELECT c.organization_id, c.kind, c.id, k.user_id, k.role, k.agent_ids, k.requests_per_minute,
       k.expires_at AS key_expires_at, t.user_id AS token_user_id, t.hostname, t.policy, t.expires_at,
       c.kind = 'api_key' AND coalesce(k.last_used_at < now() - interval '1 minute', true) AS first_in_a_minute
FROM agent.credentials c
JOIN agent.organizations o ON o.organization_id = c.organization_id AND o.deleted_at IS NULL
LEFT JOIN agent.api_keys k ON c.kind = 'api_key' AND k.organization_id = c.organization_id AND k.id = c.id
LEFT JOIN agent.client_tokens t ON c.kind = 'client_token' AND t.organization_id = c.organization_id AND t.id = c.id
WHERE c.hash = $1 AND CASE c.kind
    WHEN 'api_key' THEN k.id IS NOT NULL AND coalesce(k.expires_at > now(), true) ELSE t.expires_at > now() END
"""
# Of calls at once only one writes.
_USED = """
UPDATE agent.api_keys SET last_used_at = now()
WHERE organization_id = $1 AND id = $2 AND coalesce(last_used_at < now() - interval '1 minute', true)
"""
# $2 user; $3: tenants may differ
_USER = """
SELECT u.organization_id FROM agent.users u
JOIN agent.organizations o ON o.organization_id = u.organization_id AND o.deleted_at IS NULL
WHERE (u.organization_id = $1 OR $3) AND u.id = $2 AND u.deleted_at IS NULL FOR SHARE
"""
_ADD_CREDENTIAL = "INSERT INTO agent.credentials (hash, kind, organization_id, id) VALUES ($1, $2, $3, $4)"
_ADD_KEY = f"""
INSERT INTO agent.api_keys AS k
    (organization_id, id, user_id, name, hint, role, agent_ids, requests_per_minute, created_by_id, expires_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) RETURNING {_KEY}
"""
# What opens the door goes first, and with it whose key it was.
_CLOSE = """
DELETE FROM agent.credentials WHERE (organization_id = $1 OR $4) AND id = $2 AND kind = $3 RETURNING organization_id
"""
_DELETE_KEY = "DELETE FROM agent.api_keys WHERE organization_id = $1 AND id = $2"
# Held, so that it does not go before its token is there to go with it.
_MAKER = "SELECT expires_at FROM agent.api_keys WHERE organization_id = $1 AND id = $2 FOR SHARE"
_DELETE_TOKENS_OF_KEY = """
WITH tokens AS (DELETE FROM agent.client_tokens WHERE organization_id = $1 AND key_id = $2 RETURNING id)
DELETE FROM agent.credentials WHERE organization_id = $1 AND id IN (SELECT id FROM tokens)
"""
_DELETE_TOKEN = "DELETE FROM agent.client_tokens WHERE organization_id = $1 AND id = $2"
# A few of those that are over, each time one is made.
_SWEEP = """
WITH over AS (
    DELETE FROM agent.client_tokens WHERE (organization_id, id) IN (
        SELECT organization_id, id FROM agent.client_tokens WHERE expires_at < now() LIMIT 100 FOR UPDATE SKIP LOCKED)
    RETURNING organization_id, id
)
DELETE FROM agent.credentials c USING over WHERE c.organization_id = over.organization_id AND c.id = over.id
"""
_AGENTS = "SELECT id FROM agent.agents WHERE organization_id = $1 AND id = ANY($2) AND deleted_at IS NULL"
_ADD_TOKEN = f"""
INSERT INTO agent.client_tokens AS t (organization_id, id, user_id, hostname, policy, expires_at, key_id)
VALUES ($1, $2, $3, $4, $5, least($6::timestamptz, $7::timestamptz), $8) RETURNING {_TOKEN}
"""
# $2 most, $3 offset, $4: a policy that names the agent, or null
_LIST_TOKENS = f"""
SELECT {_TOKEN} FROM agent.client_tokens t
WHERE t.organization_id = $1 AND t.expires_at > now() AND ($4::jsonb IS NULL OR t.policy @> $4)
ORDER BY t.created_at DESC, t.id DESC LIMIT $2 OFFSET $3
"""

_KEYSET = Keyset(api_keys, "key")


class PostgresCredentials:
    """`resources.access.ports.CredentialStore`."""

    def __init__(self, pool: asyncpg.Pool, engine: AsyncEngine) -> None:
        self._pool = pool
        self._reading = autocommit(engine)

    async def find(self, credential_hash: bytes) -> Principal | None:
        row = await self._pool.fetchrow(_FIND, credential_hash)
        if row is None:
            return None
        if row["first_in_a_minute"]:
            await self._pool.execute(_USED, row["organization_id"], row["id"])
        if row["kind"] == "client_token":
            token = _token(row)
            return Principal(
                organization_id=row["organization_id"],
                user_id=row["token_user_id"],
                role=CLIENT_ROLE,
                id=token.id,
                expires_at=token.expires_at,
                token=token,
            )
        return record(Principal, dict(row) | {"expires_at": row["key_expires_at"]})

    async def create_key(
        self, organization_id: UUID, by: UUID, settings: ApiKeySettings, *, anywhere: bool
    ) -> tuple[str, ApiKey]:
        secret, key_id, user_id = new_key(), uuid7(), settings.user_id or by
        async with self._pool.acquire() as connection, connection.transaction():
            owner = await connection.fetchval(_USER, organization_id, user_id, anywhere)
            if owner is None:
                raise NotFound(f"User user-{user_id} not found", reason="USER_NOT_FOUND")
            await _check_agents(connection, owner, settings.agent_ids)
            values = (settings.role, list(settings.agent_ids), settings.requests_per_minute, by, settings.expires_at)
            row = await connection.fetchrow(_ADD_KEY, owner, key_id, user_id, settings.name, hint_of(secret), *values)
            await connection.execute(_ADD_CREDENTIAL, hash_of(secret), "api_key", owner, key_id)
        return secret, record(ApiKey, row)

    async def list_keys(self, organization_id: UUID, page: Page) -> PageOf[ApiKey]:
        query = select(api_keys).where(api_keys.c.organization_id == organization_id)
        async with self._reading.connect() as connection:
            rows = await _KEYSET.page(connection, query, page, organization_id)
        return rows.map(lambda row: record(ApiKey, row._mapping))

    async def delete_key(self, organization_id: UUID, key_id: UUID, *, anywhere: bool) -> None:
        async with self._pool.acquire() as connection, connection.transaction():
            owner = await connection.fetchval(_CLOSE, organization_id, key_id, "api_key", anywhere)
            if owner is None:
                raise NotFound(f"API key key-{key_id} not found", reason="API_KEY_NOT_FOUND")
            await connection.execute(_DELETE_KEY, owner, key_id)
            await connection.execute(_DELETE_TOKENS_OF_KEY, owner, key_id)

    async def create_token(
        self, organization_id: UUID, by: UUID, settings: ClientTokenSettings, key_id: UUID | None
    ) -> tuple[str, ClientToken]:
        token_id = uuid7()
        secret, named = new_token(token_id), [each.agent_id for each in settings.policy]
        async with self._pool.acquire() as connection, connection.transaction():
            await connection.execute(_SWEEP)
            key_end = None if key_id is None else await _end_of_key(connection, organization_id, key_id)
            await _check_agents(connection, organization_id, named)
            policy = [_policy_entry(access) for access in settings.policy]
            values = (settings.hostname, policy, settings.expires_at, key_end, key_id)
            row = await connection.fetchrow(_ADD_TOKEN, organization_id, token_id, by, *values)
            await connection.execute(_ADD_CREDENTIAL, hash_of(secret), "client_token", organization_id, token_id)
        return secret, _token(row)

    async def list_tokens(
        self, organization_id: UUID, size: int, offset: int, agent_id: UUID | None
    ) -> tuple[Sequence[ClientToken], bool]:
        named = None if agent_id is None else [{"id": to_public("agent", agent_id)}]
        rows = await self._pool.fetch(_LIST_TOKENS, organization_id, size + 1, offset, named)
        return [_token(row) for row in rows[:size]], len(rows) > size

    async def delete_token(self, organization_id: UUID, token_id: UUID) -> None:
        async with self._pool.acquire() as connection, connection.transaction():
            if await connection.fetchval(_CLOSE, organization_id, token_id, "client_token", False) is None:
                raise NotFound(f"Token ct-{token_id} not found", reason="CLIENT_TOKEN_NOT_FOUND")
            await connection.execute(_DELETE_TOKEN, organization_id, token_id)


async def _check_agents(connection: Any, organization_id: UUID, named: Sequence[UUID]) -> None:
    """Raises NotFound (AGENT_NOT_FOUND) for one that the tenant does not have."""
    there = {row["id"] for row in await connection.fetch(_AGENTS, organization_id, named)} if named else set[UUID]()
    for agent_id in named:
        if agent_id not in there:
            raise agent_not_found(agent_id)


async def _end_of_key(connection: Any, organization_id: UUID, key_id: UUID) -> datetime | None:
    key = await connection.fetchrow(_MAKER, organization_id, key_id)
    if key is None:
        raise Unauthenticated("this key or token is not known, or its time is over", reason="CREDENTIAL_INVALID")
    end: datetime | None = key["expires_at"]
    return end


def _token(row: Mapping[str, Any]) -> ClientToken:
    policy = (AgentAccess(from_public("agent", each["id"]), tuple(each["access"])) for each in row["policy"])
    return ClientToken(id=row["id"], hostname=row["hostname"], policy=tuple(policy), expires_at=row["expires_at"])


def _policy_entry(access: AgentAccess) -> dict[str, Any]:
    return {"type": "agent", "id": to_public("agent", access.agent_id), "access": list(access.access)}
