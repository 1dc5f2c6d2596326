"""Identities in Postgres, with SQLAlchemy."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Select, Uuid, bindparam, delete, func, insert, select, text, update
from sqlalchemy.dialects import postgresql
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from services.agent.resources.agents.locks import lock_agents
from services.agent.resources.identities.model import (
    Identity,
    IdentityList,
    IdentitySettings,
    Property,
    merge_properties,
)
from services.agent.resources.identities.rows import agents_of
from services.agent.resources.queries import autocommit, equal_to, matches
from services.agent.resources.tables import agent_identities, identities, outbox
from services.common.core.paging import PageOf
from services.common.core.records import columns, names_in, record
from services.common.errors import AlreadyExists, NotFound
from services.common.ids import uuid7
from services.common.keyset import Keyset

# In the order of the lists, after those that are there.
_LINK = text("""
INSERT INTO agent.agent_identities (organization_id, agent_id, identity_id, attached_at)
SELECT :organization_id, agents.id, identities.id,
    clock_timestamp() + (agents.place + identities.place) * interval '1 microsecond'
FROM unnest(:agent_ids) WITH ORDINALITY AS agents (id, place),
    unnest(:identity_ids) WITH ORDINALITY AS identities (id, place)
ON CONFLICT (organization_id, agent_id, identity_id) DO NOTHING
""").bindparams(
    bindparam("organization_id", type_=Uuid),
    bindparam("agent_ids", type_=postgresql.ARRAY(Uuid)),
    bindparam("identity_ids", type_=postgresql.ARRAY(Uuid)),
)
_COLUMNS = frozenset(names_in(IdentitySettings, identities.c.keys()))

_KEYSET = Keyset(identities, "identity")


class PostgresIdentities:
    """`resources.identities.ports.IdentityStore`."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine
        self._reading = autocommit(engine)

    async def get(self, organization_id: UUID, identity_id: UUID) -> Identity:
        async with self._reading.connect() as connection:
            return await _get(connection, organization_id, identity_id)

    async def find(self, organization_id: UUID, identifier_key: str, project_id: str | None) -> UUID | None:
        query = select(identities.c.id).where(
            identities.c.organization_id == organization_id,
            identities.c.identifier_key == identifier_key,
            func.coalesce(identities.c.project_id, "") == (project_id or ""),
        )
        async with self._reading.connect() as connection:
            return (await connection.execute(query)).scalar_one_or_none()

    async def list(self, organization_id: UUID, filters: IdentityList) -> PageOf[Identity]:
        query = _whole().where(identities.c.organization_id == organization_id, *_conditions(filters))
        async with self._reading.connect() as connection:
            page = await _KEYSET.page(connection, query, filters.page, organization_id)
        return page.map(lambda row: record(Identity, row._mapping))

    async def count(self, organization_id: UUID) -> int:
        query = select(func.count()).where(identities.c.organization_id == organization_id)
        async with self._reading.connect() as connection:
            return (await connection.execute(query)).scalar_one()

    async def insert(
        self, organization_id: UUID, identity_id: UUID, user_id: UUID, settings: IdentitySettings
    ) -> Identity:
        values = columns(settings, _COLUMNS) | {"created_by_id": user_id}
        values |= {"organization_id": organization_id, "id": identity_id, "last_updated_by_id": user_id}
        try:
            async with self._engine.begin() as connection:
                await lock_agents(connection, organization_id, settings.agent_ids)
                await connection.execute(insert(identities).values(values))
                await _link(connection, organization_id, settings.agent_ids, [identity_id])
                return await _get(connection, organization_id, identity_id)
        except IntegrityError:
            pass
        try:
            return await self.get(organization_id, identity_id)
        except NotFound:
            raise _taken(settings.identifier_key) from None

    async def update(
        self, organization_id: UUID, identity_id: UUID, user_id: UUID, draft: IdentitySettings, names: frozenset[str]
    ) -> Identity:
        try:
            async with self._engine.begin() as connection:
                # Agents first, as everywhere: two that lock both get in each other's way otherwise.
                await lock_agents(connection, organization_id, draft.agent_ids if "agent_ids" in names else ())
                await _change(connection, organization_id, identity_id, user_id, columns(draft, names & _COLUMNS))
                if "agent_ids" in names:
                    others = agent_identities.c.agent_id.not_in(draft.agent_ids)
                    of_identity = matches(agent_identities, organization_id=organization_id, identity_id=identity_id)
                    await connection.execute(delete(agent_identities).where(*of_identity, others))
                    await _link(connection, organization_id, draft.agent_ids, [identity_id])
                return await _get(connection, organization_id, identity_id)
        except IntegrityError:
            raise _taken(draft.identifier_key) from None

    async def upsert_properties(
        self, organization_id: UUID, identity_id: UUID, user_id: UUID, properties: Sequence[Property]
    ) -> Identity:
        async with self._engine.begin() as connection:
            lock = (
                select(identities.c.properties)
                .where(*matches(identities, organization_id=organization_id, id=identity_id))
                .with_for_update()
            )
            row = (await connection.execute(lock)).first()
            if row is None:
                raise identity_not_found(identity_id)
            values = {"properties": [*merge_properties(row.properties, properties)]}
            await _change(connection, organization_id, identity_id, user_id, values)
            return await _get(connection, organization_id, identity_id)

    async def delete(self, organization_id: UUID, identity_id: UUID, user_id: UUID) -> None:
        order_purge = insert(outbox).values(
            organization_id=organization_id,
            id=uuid7(),
            kind="purge_identity",
            subject_id=identity_id,
            payload={"user_id": str(user_id)},
        )
        async with self._engine.begin() as connection:
            deleted = await connection.execute(
                delete(identities).where(*matches(identities, organization_id=organization_id, id=identity_id))
            )
            if not deleted.rowcount:
                raise identity_not_found(identity_id)
            await connection.execute(order_purge)

    async def attach(self, organization_id: UUID, agent_id: UUID, identity_id: UUID) -> None:
        try:
            async with self._engine.begin() as connection:
                await lock_agents(connection, organization_id, [agent_id])
                await _link(connection, organization_id, [agent_id], [identity_id])
        except IntegrityError:
            raise identity_not_found(identity_id) from None

    async def detach(self, organization_id: UUID, agent_id: UUID, identity_id: UUID) -> None:
        link = matches(agent_identities, organization_id=organization_id, agent_id=agent_id, identity_id=identity_id)
        async with self._engine.begin() as connection:
            await lock_agents(connection, organization_id, [agent_id])
            statement = delete(agent_identities).where(*link)
            if not (await connection.execute(statement)).rowcount:
                await _check(connection, organization_id, [identity_id])

    async def check(self, organization_id: UUID, identity_ids: Sequence[UUID]) -> None:
        async with self._reading.connect() as connection:
            await _check(connection, organization_id, identity_ids)

    async def set_of_agent(self, organization_id: UUID, agent_id: UUID, identity_ids: Sequence[UUID]) -> None:
        of_agent = matches(agent_identities, organization_id=organization_id, agent_id=agent_id)
        try:
            async with self._engine.begin() as connection:
                await lock_agents(connection, organization_id, [agent_id])
                others = agent_identities.c.identity_id.not_in(identity_ids)
                await connection.execute(delete(agent_identities).where(*of_agent, others))
                await _link(connection, organization_id, [agent_id], identity_ids)
        except IntegrityError:
            await self.check(organization_id, identity_ids)
            # It went and came; whoever sent it may look.
            raise identity_not_found(identity_ids[0]) from None


def identity_not_found(identity_id: UUID) -> NotFound:
    """Returns the error for an identity that is not there."""
    return NotFound(f"Identity identity-{identity_id} not found", reason="IDENTITY_NOT_FOUND")


def _taken(identifier_key: str) -> AlreadyExists:
    sentence = f"the identifier key {identifier_key[:80]!r} is that of another identity of the project"
    return AlreadyExists(sentence, reason="IDENTITY_KEY_TAKEN")


def _whole() -> Select[Any]:
    return select(identities, agents_of(identities))


def _conditions(filters: IdentityList) -> list[ColumnElement[bool]]:
    conditions = equal_to(identities, filters, "name", "identity_type", "project_id")
    if filters.identifier_keys:
        conditions.append(identities.c.identifier_key.in_(filters.identifier_keys))
    return conditions


async def _get(connection: AsyncConnection, organization_id: UUID, identity_id: UUID) -> Identity:
    row = (
        await connection.execute(_whole().where(*matches(identities, organization_id=organization_id, id=identity_id)))
    ).first()
    if row is None:
        raise identity_not_found(identity_id)
    return record(Identity, row._mapping)


async def _change(
    connection: AsyncConnection, organization_id: UUID, identity_id: UUID, user_id: UUID, values: dict[str, Any]
) -> None:
    statement = (
        update(identities)
        .where(*matches(identities, organization_id=organization_id, id=identity_id))
        .values(**values, last_updated_by_id=user_id, updated_at=func.now())
    )
    if not (await connection.execute(statement)).rowcount:
        raise identity_not_found(identity_id)


async def _link(
    connection: AsyncConnection, organization_id: UUID, agent_ids: Sequence[UUID], identity_ids: Sequence[UUID]
) -> None:
    if agent_ids and identity_ids:
        values = {"agent_ids": list(agent_ids), "identity_ids": list(identity_ids)}
        await connection.execute(_LINK, {"organization_id": organization_id, **values})


async def _check(connection: AsyncConnection, organization_id: UUID, identity_ids: Sequence[UUID]) -> None:
    """Raises NotFound (IDENTITY_NOT_FOUND) for the first that is not there."""
    query = select(identities.c.id).where(
        identities.c.organization_id == organization_id, identities.c.id.in_(identity_ids)
    )
    present = set((await connection.execute(query)).scalars()) if identity_ids else set()
    for identity_id in identity_ids:
        if identity_id not in present:
            raise identity_not_found(identity_id)
