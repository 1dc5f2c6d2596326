"""`resources.devices.ports.DeviceStore`."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import fields
from typing import Any
from uuid import UUID

import asyncpg
from sqlalchemy import ColumnElement, literal_column, select
from sqlalchemy.ext.asyncio import AsyncEngine

from services.agent.resources.devices import sql
from services.agent.resources.devices.ports import (
    MOST_WAITING,
    Connection,
    Device,
    DeviceList,
    DeviceMessage,
    Registration,
)
from services.agent.resources.queries import autocommit
from services.agent.resources.tables import devices
from services.common.core.paging import PageOf
from services.common.errors import FailedPrecondition, InvalidArgument, NotFound, ResourceExhausted
from services.common.ids import to_public, uuid7
from services.common.keyset import Keyset

_FIELDS = tuple(field.name for field in fields(Device))

_KEYSET = Keyset(devices, "device", time=devices.c.first_seen_at)


class PostgresDevices:
    """Devices of tenants."""

    def __init__(self, pool: asyncpg.Pool, engine: AsyncEngine) -> None:
        self._pool = pool
        self._reading = autocommit(engine)

    async def register(self, registration: Registration) -> Device:
        values = (
            registration.organization_id,
            uuid7(),
            registration.device_id,
            registration.name,
            registration.user_id,
            registration.source,
            registration.connection_id,
            dict(registration.metadata),
        )
        try:
            return _device(await self._pool.fetchrow(sql.REGISTER, *values))
        except asyncpg.UniqueViolationError:
            sentence = "connection_id is that of another device; make up a new one"
            raise InvalidArgument(sentence, reason="DEVICE_INVALID") from None

    async def get(self, organization_id: UUID, device_id: str) -> Device:
        row = await self._pool.fetchrow(sql.GET, organization_id, device_id)
        if row is None:
            raise NotFound(f"No device {device_id[:80]!r} has registered", reason="DEVICE_NOT_FOUND")
        return _device(row)

    async def list(self, organization_id: UUID, filters: DeviceList) -> PageOf[Device]:
        online: ColumnElement[bool] = literal_column(f"({sql.ONLINE})")
        query = select(devices, online.label("online")).where(devices.c.organization_id == organization_id)
        if filters.online_only:
            query = query.where(online)
        if filters.source is not None:
            query = query.where(devices.c.source == filters.source)
        if filters.user_id is not None:
            query = query.where(devices.c.user_id == filters.user_id)
        async with self._reading.connect() as connection:
            page = await _KEYSET.page(connection, query, filters.page, organization_id)
        return page.map(lambda row: _device(row._mapping))

    async def update(
        self, organization_id: UUID, connection_id: UUID, mode: str | None, metadata: Mapping[str, Any]
    ) -> Device:
        row = await self._pool.fetchrow(sql.UPDATE, organization_id, connection_id, mode, dict(metadata))
        if row is None:
            await self._by(self._pool, sql.BY_CONNECTION, organization_id, connection_id)
            sentence = f"metadata must have at most {sql.LONGEST_METADATA} bytes as JSON"
            raise InvalidArgument(sentence, reason="DEVICE_INVALID")
        return _device(row)

    async def connect(self, organization_id: UUID, connection_id: UUID) -> tuple[Device, Connection]:
        row = await self._by(self._pool, sql.CONNECT, organization_id, connection_id)
        return _device(row), Connection(organization_id, row["id"], row["connected_at"])

    async def disconnect(self, connection: Connection) -> None:
        await self._pool.execute(sql.DISCONNECT, connection.organization_id, connection.device_id, connection.since)

    async def beat(self, connections: Collection[Connection]) -> None:
        await self._pool.execute(sql.BEAT, *_columns(connections))

    async def to_wake(self, connections: Collection[Connection]) -> Sequence[Connection]:
        return [Connection(**row) for row in await self._pool.fetch(sql.STIRRING, *_columns(connections))]

    async def waiting_ids(self, connection: Connection) -> Sequence[UUID] | None:
        ids = (connection.organization_id, connection.device_id)
        if await self._pool.fetchval(sql.IS_OVER, *ids, connection.since):
            return None
        return [row["id"] for row in await self._pool.fetch(sql.WAITING, *ids)]

    async def read(self, connection: Connection, ids: Sequence[UUID]) -> Sequence[DeviceMessage]:
        rows = await self._pool.fetch(sql.READ, connection.organization_id, connection.device_id, ids)
        return [DeviceMessage(**row) for row in rows]

    async def acknowledge(self, organization_id: UUID, connection_id: UUID, ids: Sequence[UUID]) -> None:
        device = await self._by(self._pool, sql.BY_CONNECTION, organization_id, connection_id)
        await self._pool.execute(sql.ACKNOWLEDGE, organization_id, device["id"], ids)

    async def send(
        self, organization_id: UUID, connection_id: UUID, messages: Mapping[UUID, Mapping[str, Any]]
    ) -> UUID:
        async with self._pool.acquire() as connection, connection.transaction():
            device = await self._by(connection, sql.LOCK, organization_id, connection_id)
            if not device["online"]:
                raise FailedPrecondition(f"The device {device['name']!r} is not connected", reason="DEVICE_OFFLINE")
            ids = (organization_id, device["id"])
            if await connection.fetchval(sql.COUNT, *ids, list(messages)) + len(messages) > MOST_WAITING:
                sentence = f"{MOST_WAITING} messages wait for the device {device['name']!r} already; try again later"
                raise ResourceExhausted(sentence, reason="DEVICE_QUEUE_FULL")
            await connection.executemany(sql.PUT, [(*ids, each, dict(body)) for each, body in messages.items()])
        device_id: UUID = device["id"]
        return device_id

    async def _by(
        self, connection: Any, statement: str, organization_id: UUID, connection_id: UUID
    ) -> Mapping[str, Any]:
        row: Mapping[str, Any] | None = await connection.fetchrow(statement, organization_id, connection_id)
        if row is None:
            sentence = f"No device has the connection {to_public('connection', connection_id)}; register it"
            raise NotFound(sentence, reason="DEVICE_NOT_FOUND")
        return row


def _device(row: Mapping[Any, Any]) -> Device:
    return Device(**{name: row[name] for name in _FIELDS})


def _columns(connections: Collection[Connection]) -> tuple[list[Any], list[Any], list[Any]]:
    return (
        [each.organization_id for each in connections],
        [each.device_id for each in connections],
        [each.since for each in connections],
    )
