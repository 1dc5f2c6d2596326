"""Organizations and users in Postgres, and what is left of a deleted organization."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar
from uuid import UUID

import asyncpg
from sqlalchemy import Select, select
from sqlalchemy.ext.asyncio import AsyncEngine

from services.agent.resources.access.model import Organization, User
from services.agent.resources.queries import autocommit
from services.agent.resources.tables import organizations, users
from services.common.core.paging import Page, PageOf
from services.common.core.records import record
from services.common.errors import NotFound
from services.common.ids import uuid7
from services.common.keyset import Keyset
from services.common.purge import check_not_default, purge_rows

_ORGANIZATION = "organization_id AS id, name, created_at"
_USER = "id, organization_id, name, created_at"
_ADD_ORGANIZATION = f"""
INSERT INTO agent.organizations (organization_id, name) VALUES ($1, $2) RETURNING {_ORGANIZATION}
"""
_ADD_USER = f"INSERT INTO agent.users (organization_id, id, name) VALUES ($1, $2, $3) RETURNING {_USER}"
_PRESENT = "SELECT FROM agent.organizations WHERE organization_id = $1 AND deleted_at IS NULL FOR SHARE"
_RENAME_ORGANIZATION = f"""
UPDATE agent.organizations SET name = $2 WHERE organization_id = $1 AND deleted_at IS NULL RETURNING {_ORGANIZATION}
"""
_RENAME_USER = f"""
UPDATE agent.users SET name = $3 WHERE ($1::uuid IS NULL OR organization_id = $1) AND id = $2 AND deleted_at IS NULL
RETURNING {_USER}
"""
_DELETE_ORGANIZATION = f"""
UPDATE agent.organizations SET deleted_at = now() WHERE organization_id = $1 AND deleted_at IS NULL
RETURNING {_ORGANIZATION}
"""
_END_USERS = "UPDATE agent.users SET deleted_at = now() WHERE organization_id = $1 AND deleted_at IS NULL"
_CLOSE = "DELETE FROM agent.credentials WHERE organization_id = $1"
_DELETE_KEYS = "DELETE FROM agent.api_keys WHERE organization_id = $1"
_DELETE_TOKENS = "DELETE FROM agent.client_tokens WHERE organization_id = $1"
# Again and again: edges remember a key for up to ten seconds, contexts are good for five minutes, and something may be
# made with them meanwhile. The last order is that after which the tenant is forgotten.
_ORDER = """
INSERT INTO agent.outbox (organization_id, id, kind, subject_id, payload, not_before)
VALUES ($1, $2, 'purge_organization', $1, $3, now() + $4 * interval '1 second')
"""
_LOOKS_SECONDS = (0, 20, 600)
_DELETE_USER = f"""
UPDATE agent.users SET deleted_at = now()
WHERE ($1::uuid IS NULL OR organization_id = $1) AND id = $2 AND deleted_at IS NULL RETURNING {_USER}
"""
_CLOSE_USER = """
WITH keys AS (DELETE FROM agent.api_keys WHERE organization_id = $1 AND user_id = $2 RETURNING id),
     tokens AS (DELETE FROM agent.client_tokens WHERE organization_id = $1 AND user_id = $2 RETURNING id)
DELETE FROM agent.credentials
WHERE organization_id = $1 AND id IN (SELECT id FROM keys UNION ALL SELECT id FROM tokens)
"""
_AGENTS = "SELECT id FROM agent.agents WHERE organization_id = $1 AND deleted_at IS NULL LIMIT $2"
_ANY_AGENT = "SELECT EXISTS (SELECT FROM agent.agents WHERE organization_id = $1)"
# A tenant that is deleted shows in lists where a page ended until it is forgotten; its orders are those that erase it.
_STAYS = frozenset({"organizations", "users", "outbox"})
_FORGET = (
    "DELETE FROM agent.outbox WHERE organization_id = $1 AND kind <> 'purge_organization'",
    "DELETE FROM agent.users WHERE organization_id = $1",
    "DELETE FROM agent.organizations WHERE organization_id = $1",
)

# A cursor holds when what it names is deleted.
_tenants = select(organizations, organizations.c.organization_id.label("id")).subquery()
_ORGANIZATIONS = Keyset(_tenants, "org")
_USERS = Keyset(users, "user")

T = TypeVar("T")


class PostgresTenants:
    """`resources.access.ports.TenantStore`."""

    def __init__(self, pool: asyncpg.Pool, engine: AsyncEngine) -> None:
        self._pool = pool
        self._reading = autocommit(engine)

    async def create_organization(self, name: str) -> Organization:
        organization_id = uuid7()
        async with self._pool.acquire() as connection, connection.transaction():
            row = await connection.fetchrow(_ADD_ORGANIZATION, organization_id, name)
            await connection.fetchrow(_ADD_USER, organization_id, organization_id, name)
        return Organization(**row)

    async def list_organizations(self, within: UUID | None, page: Page) -> PageOf[Organization]:
        return await self._page(_ORGANIZATIONS, Organization, within, page)

    async def rename_organization(self, organization_id: UUID, name: str) -> Organization:
        row = await self._pool.fetchrow(_RENAME_ORGANIZATION, organization_id, name)
        if row is None:
            raise _no_organization(organization_id)
        return Organization(**row)

    async def delete_organization(self, organization_id: UUID, by: UUID) -> Organization:
        async with self._pool.acquire() as connection, connection.transaction():
            row = await connection.fetchrow(_DELETE_ORGANIZATION, organization_id)
            if row is None:
                raise _no_organization(organization_id)
            for statement in (_END_USERS, _CLOSE, _DELETE_KEYS, _DELETE_TOKENS):
                await connection.execute(statement, organization_id)
            for seconds in _LOOKS_SECONDS:
                payload = {"user_id": str(by), "last": seconds == _LOOKS_SECONDS[-1]}
                await connection.execute(_ORDER, organization_id, uuid7(), payload, seconds)
        return Organization(**row)

    async def create_user(self, organization_id: UUID, name: str) -> User:
        async with self._pool.acquire() as connection, connection.transaction():
            if await connection.fetchrow(_PRESENT, organization_id) is None:
                raise _no_organization(organization_id)
            return User(**await connection.fetchrow(_ADD_USER, organization_id, uuid7(), name))

    async def list_users(self, within: UUID | None, page: Page) -> PageOf[User]:
        return await self._page(_USERS, User, within, page)

    async def rename_user(self, within: UUID | None, user_id: UUID, name: str) -> User:
        return _user(await self._pool.fetchrow(_RENAME_USER, within, user_id, name), user_id)

    async def delete_user(self, within: UUID | None, user_id: UUID) -> User:
        async with self._pool.acquire() as connection, connection.transaction():
            user = _user(await connection.fetchrow(_DELETE_USER, within, user_id), user_id)
            await connection.execute(_CLOSE_USER, user.organization_id, user.id)
        return user

    async def _page(self, keyset: Keyset, of: type[T], within: UUID | None, page: Page) -> PageOf[T]:
        query: Select[Any] = select(keyset.table).where(keyset.table.c.deleted_at.is_(None))
        if within is not None:
            query = query.where(keyset.table.c.organization_id == within)
        async with self._reading.connect() as connection:
            rows = await keyset.page(connection, query, page, within)
        return rows.map(lambda row: record(of, row._mapping))


class PostgresTenantEraser:
    """`resources.access.ports.TenantEraser`."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool

    async def agents(self, organization_id: UUID, most: int) -> Sequence[UUID]:
        return [row["id"] for row in await self._pool.fetch(_AGENTS, organization_id, most)]

    async def erase(self, organization_id: UUID) -> bool:
        if await self._pool.fetchval(_ANY_AGENT, organization_id):
            return False
        return await purge_rows(self._pool, "agent", organization_id, keep=_STAYS)

    async def forget(self, organization_id: UUID) -> None:
        async with self._pool.acquire() as connection, connection.transaction():
            for statement in _FORGET:
                await connection.execute(statement, check_not_default(organization_id))


def _user(row: Mapping[str, Any] | None, user_id: UUID) -> User:
    if row is None:
        raise _no_user(user_id)
    return User(**row)


def _no_organization(organization_id: UUID) -> NotFound:
    return NotFound(f"Organization org-{organization_id} not found", reason="ORGANIZATION_NOT_FOUND")


def _no_user(user_id: UUID) -> NotFound:
    return NotFound(f"User user-{user_id} not found", reason="USER_NOT_FOUND")
