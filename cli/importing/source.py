"""The old server's database: one snapshot, read-only, row by row through cursors."""

import asyncio
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import asyncpg

from cli.errors import CliError
from cli.importing.schema import COMMON, TABLES, Join, Table
from cli.importing.values import Row, decode_json

# Rows that are held at a time; of passages each has a vector of 4,096 numbers.
_AT_ONCE = 200
_CONNECT_SECONDS = 15.0
_COLUMNS = """
SELECT c.relname AS table_name, a.attname AS column_name
FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_class c ON c.oid = a.attrelid
WHERE c.relkind IN ('r', 'p') AND pg_catalog.pg_table_is_visible(c.oid) AND a.attnum > 0 AND NOT a.attisdropped
    AND c.relnamespace <> 'pg_catalog'::regnamespace
"""
_PRIMARY_KEYS = """
SELECT c.relname AS table_name, a.attname AS column_name
FROM pg_catalog.pg_index i JOIN pg_catalog.pg_class c ON c.oid = i.indrelid
JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum = ANY(i.indkey)
WHERE i.indisprimary AND pg_catalog.pg_table_is_visible(c.oid)
"""


@dataclass(frozen=True, slots=True)
class Key:
    """A row as the report names it. owners: keys of the rows it belongs to, with their tables."""

    text: str
    organization: str
    deleted: bool
    owners: tuple[tuple[str, str], ...]


class Source:
    """An open snapshot of one organization's rows."""

    def __init__(self, connection: asyncpg.Connection, columns: dict[str, set[str]]) -> None:
        self._connection = connection
        self._columns = columns
        self.organization = ""
        self._lock = asyncio.Lock()

    @classmethod
    @asynccontextmanager
    async def open(cls, url: str) -> AsyncIterator["Source"]:
        """Opens a snapshot. Raises CliError when the database cannot be read."""
        try:
            connection = await asyncpg.connect(_plain(url), timeout=_CONNECT_SECONDS)
        except (OSError, asyncpg.PostgresError, ValueError, asyncpg.InterfaceError) as error:
            raise CliError(f"the database to import cannot be opened: {error or type(error).__name__}") from None
        try:
            async with connection.transaction(isolation="repeatable_read", readonly=True):
                # The snapshot stays open between the tables, for as long as it takes to send what was read.
                await connection.execute("SET LOCAL statement_timeout = 0")
                await connection.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
                for name in ("json", "jsonb"):
                    await connection.set_type_codec(name, schema="pg_catalog", encoder=str, decoder=decode_json)
                yield await cls._inspect(connection)
        finally:
            await connection.close(timeout=_CONNECT_SECONDS)

    @classmethod
    async def _inspect(cls, connection: asyncpg.Connection) -> "Source":
        columns: dict[str, set[str]] = {}
        for row in await connection.fetch(_COLUMNS):
            columns.setdefault(row["table_name"], set()).add(row["column_name"])
        if not {"agents", "messages"} <= columns.keys():
            raise CliError("the database to import has no tables of a Letta server (agents, messages)")
        return cls(connection, columns)

    async def revision(self) -> str:
        """Returns the revision of the schema; empty where it has none."""
        if "alembic_version" not in self._columns:
            return ""
        return await self._connection.fetchval("SELECT version_num FROM alembic_version LIMIT 1") or ""

    async def choose_organization(self, name: str) -> str:
        """Returns the organization whose rows are read: the one of this id, else the only one that has any.

        Raises CliError, listing them.
        """
        tables = [one for one in ("agents", "block", "tools", "sources", "archives") if self.has(one, _TENANT)]
        parts = " UNION ".join(f"SELECT {_TENANT} AS id FROM {one} WHERE {_TENANT} IS NOT NULL" for one in tables)
        ids = [row["id"] for row in await self._connection.fetch(f"{parts} ORDER BY id")] if parts else []
        if name and name not in ids:
            raise CliError(f"the database to import has no organization {name}; it has: {', '.join(ids) or 'none'}")
        if not name and len(ids) > 1:
            raise CliError(f"the database to import has several organizations: name one of {', '.join(ids)}", code=2)
        self.organization = name or "".join(ids)
        return self.organization

    async def rows(self, table: Table, **where: str) -> AsyncIterator[Row]:
        """Yields the organization's rows that are not marked as deleted; `where`: columns and their values.

        Oldest first, but for tables with vectors.
        """
        if table.name not in self._columns:
            return
        conditions, values = self._conditions(table.name)
        for name, value in where.items():
            values.append(value)
            conditions.append(f'"{name}" = ${len(values)}')
        created = ("created_at",) if self.has(table.name, "created_at") else ()
        order = ", ".join((*created, *(name for name in table.key if self.has(table.name, name))))
        query = f"SELECT {self.selected(table)} FROM {table.name} WHERE {' AND '.join(conditions)}"
        if not table.vectors:  # to sort them, all vectors would be unpacked
            query += f" ORDER BY {order}"
        async for row in self.read(query, *values):
            yield complete(table, row)

    async def count(self, table: str, **where: str) -> int:
        """Counts the rows of a table; 0 where there is no such table."""
        if table not in self._columns:
            return 0
        conditions, values = self._conditions(table)
        for name, value in where.items():
            values.append(value)
            conditions.append(f'"{name}" = ${len(values)}')
        return await self._number(f"SELECT count(*) FROM {table} WHERE {' AND '.join(conditions)}", *values)

    async def keys(self, table: Table) -> AsyncIterator[Key]:
        """Yields every row of a table, of all organizations and also those that are marked as deleted."""
        if table.name not in self._columns:
            return
        names = [f'"{name}"' for name in table.key if self.has(table.name, name)] or ["ctid"]
        key = " || '/' || ".join(f"coalesce({name}::text, '')" for name in names)
        tenant = f"{_TENANT}::text" if self.has(table.name, _TENANT) else "NULL"
        deleted = f"coalesce({_DELETED}, false)" if self.has(table.name, _DELETED) else "false"
        owners = [(column, owner) for column, owner in table.owners if self.has(table.name, column)]
        columns = "".join(f', "{column}"::text' for column, _ in owners)
        query = f'SELECT {key} AS key, {tenant} AS tenant, {deleted} AS deleted{columns} FROM "{table.name}"'
        async for row in self.read(query):
            mine = tuple((row[column], owner) for column, owner in owners if row[column])
            yield Key(row["key"], row["tenant"] or "", row["deleted"], mine)

    async def other_tables(self) -> list[Table]:
        """Returns the tables that are not of the schema that is known."""
        names = sorted(self._columns.keys() - {table.name for table in TABLES})
        primary: dict[str, list[str]] = {name: [] for name in names}
        for row in await self.all(_PRIMARY_KEYS):
            primary.get(row["table_name"], []).append(row["column_name"])
        return [Table(name, key=tuple(primary[name])) for name in names]

    def unknown_columns(self, table: Table) -> list[str]:
        """Returns the columns of a table that are not known."""
        owners = (column for column, _ in table.owners)
        known = {*COMMON, *table.key, *table.columns, *table.vectors, *table.unread, *owners}
        return sorted(self._columns.get(table.name, set()) - known)

    async def linked_ids(self, join: Join, owner: str) -> list[str]:
        """Returns the others of an owner."""
        mine, other = join.owner[0], join.other[0]
        if not (self.has(join.name, mine) and self.has(join.name, other)):
            return []
        query = f"SELECT {other} AS other FROM {join.name} WHERE {mine} = $1 ORDER BY {other}"
        return [row["other"] for row in await self.all(query, owner) if row["other"] is not None]

    async def existing_ids(self, table: str, ids: Sequence[str]) -> list[str]:
        """Returns those of the ids that are there and not marked as deleted, oldest first."""
        if not ids or table not in self._columns:
            return []
        conditions, values = self._conditions(table)
        query = (
            f"SELECT id FROM {table} WHERE {' AND '.join(conditions)} AND id = ANY(${len(values) + 1}::text[])"
            " ORDER BY created_at, id"
        )
        return [row["id"] for row in await self.all(query, *values, list(ids))]

    def has(self, table: str, column: str) -> bool:
        """Returns whether there is such a column."""
        return column in self._columns.get(table, ())

    def not_deleted(self, table: str, alias: str) -> str:
        """Returns SQL: the row is not marked as deleted."""
        return f"NOT coalesce({alias}.{_DELETED}, false)" if self.has(table, _DELETED) else "true"

    def _conditions(self, table: str) -> tuple[list[str], list[Any]]:
        """Returns SQL for the organization's rows that are not marked as deleted. Those without a tenant are the
        server's."""
        conditions, values = ["true"], list[Any]()
        if self.has(table, _DELETED):
            conditions.append(f"NOT coalesce({_DELETED}, false)")
        if self.has(table, _TENANT) and self.organization:
            values.append(self.organization)
            # Some tables lack it on rows that are joined to one that has it.
            conditions.append(f"({_TENANT} = $1 OR {_TENANT} IS NULL)")
        return conditions, values

    def selected(self, table: Table, alias: str = "") -> str:
        """Returns SQL: the columns of the table that are read, as far as they are there."""
        dot = f"{alias}." if alias else ""
        names = dict.fromkeys((*table.key, "created_at", *table.columns))
        plain = [name for name in names if self.has(table.name, name)]
        vectors = [name for name in table.vectors if self.has(table.name, name)]
        columns = [f'{dot}"{name}"' for name in plain] + [f'{dot}"{name}"::real[] AS "{name}"' for name in vectors]
        return ", ".join(columns)

    async def read(self, query: str, *values: Any) -> AsyncIterator[asyncpg.Record]:
        """Yields the records of a query, some at a time."""
        async with self._lock:
            cursor = await self._connection.cursor(query, *values)
        while True:
            async with self._lock:
                records = await cursor.fetch(_AT_ONCE)
            for record in records:
                yield record
            if len(records) < _AT_ONCE:
                return

    async def all(self, query: str, *values: Any) -> list[asyncpg.Record]:
        """Returns the records of a query."""
        async with self._lock:
            records: list[asyncpg.Record] = await self._connection.fetch(query, *values)
        return records

    async def _number(self, query: str, *values: Any) -> int:
        async with self._lock:
            return int(await self._connection.fetchval(query, *values) or 0)


_TENANT, _DELETED = "organization_id", "is_deleted"


def complete(table: Table, record: asyncpg.Record) -> Row:
    """Returns the row with every column of its table; missing ones are null."""
    return dict.fromkeys((*table.key, "created_at", *table.columns, *table.vectors)) | dict(record)


def _plain(url: str) -> str:
    """Returns the URL without SQLAlchemy's driver."""
    return re.sub(r"^postgres(ql)?\+\w+://", "postgresql://", url)
