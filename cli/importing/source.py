"""The old server's database: one snapshot, read-only, row by row through cursors."""

import asyncio
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import asyncpg

from cli.errors import CliError
from cli.importing.schema import CONVERSATION_MESSAGES, CONVERSATIONS, MESSAGES, Join, Table
from cli.importing.values import Row, decode_json

# Rows that are held at a time; of passages each has a vector of 4,096 numbers.
_AT_ONCE = 200
_CONNECT_SECONDS = 15.0
_COLUMNS = """
SELECT c.relname AS table_name, a.attname AS column_name
FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_class c ON c.oid = a.attrelid
WHERE c.relkind IN ('r', 'p') AND pg_catalog.pg_table_is_visible(c.oid) AND a.attnum > 0 AND NOT a.attisdropped
"""


class Source:
    """An open snapshot of one organization's rows."""

    def __init__(self, connection: asyncpg.Connection, columns: dict[str, set[str]]) -> None:
        self._connection = connection
        self._columns = columns
        self._organization = ""
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

    async def choose_organization(self, wanted: str) -> str:
        """Returns the organization whose rows are read: `wanted`, else the only one that has any.

        Raises CliError, listing them.
        """
        tables = [name for name in ("agents", "block", "tools", "sources", "archives") if self._has(name, _TENANT)]
        parts = " UNION ".join(f"SELECT {_TENANT} AS id FROM {name} WHERE {_TENANT} IS NOT NULL" for name in tables)
        found = [row["id"] for row in await self._connection.fetch(f"{parts} ORDER BY id")] if parts else []
        if wanted and wanted not in found:
            raise CliError(f"the database to import has no organization {wanted}; it has: {', '.join(found) or 'none'}")
        if not wanted and len(found) > 1:
            raise CliError(f"the database to import has several organizations: name one of {', '.join(found)}", code=2)
        self._organization = wanted or "".join(found)
        return self._organization

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
        order = "created_at, id" if self._has(table.name, "created_at") else "id"
        query = f"SELECT {self._selected(table)} FROM {table.name} WHERE {' AND '.join(conditions)}"
        if not table.vectors:  # to sort them, all vectors would be unpacked
            query += f" ORDER BY {order}"
        async for row in self._read(query, *values):
            yield _complete(table, row)

    async def count(self, table: str, **where: str) -> int:
        """Counts the rows of a table; 0 where there is no such table."""
        if table not in self._columns:
            return 0
        conditions, values = self._conditions(table)
        for name, value in where.items():
            values.append(value)
            conditions.append(f'"{name}" = ${len(values)}')
        return await self._number(f"SELECT count(*) FROM {table} WHERE {' AND '.join(conditions)}", *values)

    async def count_deleted(self, table: str) -> int:
        """Counts the rows that are marked as deleted."""
        if not self._has(table, _DELETED):
            return 0
        conditions, values = self._conditions(table, deleted=True)
        return await self._number(f"SELECT count(*) FROM {table} WHERE {' AND '.join(conditions)}", *values)

    async def linked_ids(self, join: Join, owner: str) -> list[str]:
        """Returns the others of an owner."""
        if not (self._has(join.table, join.owner) and self._has(join.table, join.other)):
            return []
        query = f"SELECT {join.other} AS other FROM {join.table} WHERE {join.owner} = $1 ORDER BY {join.other}"
        return [row["other"] for row in await self._all(query, owner) if row["other"] is not None]

    async def existing_ids(self, table: str, ids: Sequence[str]) -> list[str]:
        """Returns those of the ids that are there and not marked as deleted, oldest first."""
        if not ids or table not in self._columns:
            return []
        conditions, values = self._conditions(table)
        query = (
            f"SELECT id FROM {table} WHERE {' AND '.join(conditions)} AND id = ANY(${len(values) + 1}::text[])"
            " ORDER BY created_at, id"
        )
        return [row["id"] for row in await self._all(query, *values, list(ids))]

    async def count_orphans(self, table: Table, of: Table, by: str) -> int:
        """Counts rows whose owner is not there."""
        if not self._has(table.name, by):
            return 0
        conditions, values = self._conditions(table.name)
        return await self._number(
            f"SELECT count(*) FROM {table.name} WHERE {' AND '.join(conditions)} AND {by} NOT IN"
            f" (SELECT id FROM {of.name} o WHERE {self._not_deleted(of.name, 'o')})",
            *values,
        )

    # Messages ---------------------------------------------------------------------------------------------------------

    async def approval_answers(self, agent_id: str) -> list[Row]:
        """Returns the `approvals` of an agent's messages that answer calls which waited."""
        if not self._has(MESSAGES.name, "approvals"):
            return []
        query = "SELECT approvals FROM messages WHERE agent_id = $1 AND role = 'approval' AND approvals IS NOT NULL"
        return [dict(row) for row in await self._all(query, agent_id)]

    async def older_messages(self, agent_id: str, window: Sequence[str]) -> AsyncIterator[Row]:
        """Yields the messages of the default conversation outside of its window, oldest first."""
        in_default = "m.conversation_id IS NULL" if self._has(MESSAGES.name, "conversation_id") else "true"
        query = (
            f"SELECT {self._selected(MESSAGES, 'm')}, NULL AS keeper FROM messages m WHERE m.agent_id = $1"
            f" AND {in_default} AND {self._not_deleted(MESSAGES.name, 'm')} AND NOT m.id = ANY($2::text[])"
            f" ORDER BY {self._sequence()}"
        )
        async for row in self._read(query, agent_id, list(window)):
            yield _complete(MESSAGES, row)

    async def window_messages(self, agent_id: str, window: Sequence[str]) -> AsyncIterator[Row]:
        """Yields the messages with these ids, in their order; `keeper`: the conversation in which each keeps its id."""
        query = (
            f"SELECT {self._selected(MESSAGES, 'm')}, {self._keeper()} AS keeper FROM messages m WHERE m.agent_id = $1"
            f" AND {self._not_deleted(MESSAGES.name, 'm')} AND m.id = ANY($2::text[])"
            " ORDER BY array_position($2::text[], m.id::text)"
        )
        async for row in self._read(query, agent_id, list(window)):
            yield _complete(MESSAGES, row)

    async def conversation_messages(self, conversation_id: str) -> AsyncIterator[Row]:
        """Yields the messages of a conversation: those not `in_context` by age, then the others by their place."""
        if CONVERSATION_MESSAGES.name not in self._columns:
            return
        listed = "cm.in_context, CASE WHEN cm.in_context THEN cm.position END"
        query = (
            f"SELECT {self._selected(MESSAGES, 'm')}, {self._keeper()} AS keeper, cm.in_context"
            " FROM conversation_messages cm JOIN messages m ON m.id = cm.message_id"
            f" WHERE cm.conversation_id = $1 AND {self._not_deleted(CONVERSATION_MESSAGES.name, 'cm')}"
            f" AND {self._not_deleted(MESSAGES.name, 'm')} ORDER BY {listed}, {self._sequence()}"
        )
        async for row in self._read(query, conversation_id):
            yield _complete(MESSAGES, row)

    async def count_missing_messages(self, conversation_id: str) -> int:
        """Counts entries of a conversation whose messages are not there."""
        if CONVERSATION_MESSAGES.name not in self._columns:
            return 0
        return await self._number(
            "SELECT count(*) FROM conversation_messages cm WHERE cm.conversation_id = $1"
            f" AND {self._not_deleted(CONVERSATION_MESSAGES.name, 'cm')}"
            " AND NOT EXISTS (SELECT FROM messages m WHERE m.id = cm.message_id"
            f" AND {self._not_deleted(MESSAGES.name, 'm')})",
            conversation_id,
        )

    async def count_unlisted_messages(self, agent_id: str) -> int:
        """Counts messages that were written in other conversations and are listed in none."""
        if not self._has(MESSAGES.name, "conversation_id") or CONVERSATION_MESSAGES.name not in self._columns:
            return 0
        return await self._number(
            f"SELECT count(*) FROM messages m WHERE m.agent_id = $1 AND {self._not_deleted(MESSAGES.name, 'm')}"
            f" AND m.conversation_id IS NOT NULL AND NOT EXISTS ({self._lists('cm.conversation_id IS NOT NULL')})",
            agent_id,
        )

    def _keeper(self) -> str:
        """SQL: of the conversations that list a message `m`, the one it was written in, else the first; null: the
        default one."""
        if not self._has(MESSAGES.name, "conversation_id") or CONVERSATION_MESSAGES.name not in self._columns:
            return "NULL"
        home = self._lists("cm.conversation_id = m.conversation_id")
        first = self._lists("cm.conversation_id IS NOT NULL", "min(cm.conversation_id)")
        return (
            f"CASE WHEN m.conversation_id IS NULL THEN NULL WHEN EXISTS ({home}) THEN m.conversation_id"
            f" ELSE ({first}) END"
        )

    def _lists(self, condition: str, what: str = "") -> str:
        return (
            f"SELECT {what} FROM conversation_messages cm JOIN conversations c ON c.id = cm.conversation_id"
            f" WHERE cm.message_id = m.id AND {condition} AND {self._not_deleted(CONVERSATION_MESSAGES.name, 'cm')}"
            f" AND {self._not_deleted(CONVERSATIONS.name, 'c')}"
        )

    def _sequence(self) -> str:
        return "m.sequence_id" if self._has(MESSAGES.name, "sequence_id") else "m.created_at, m.id"

    # SQL --------------------------------------------------------------------------------------------------------------

    def _has(self, table: str, column: str) -> bool:
        return column in self._columns.get(table, ())

    def _not_deleted(self, table: str, alias: str) -> str:
        return f"NOT coalesce({alias}.{_DELETED}, false)" if self._has(table, _DELETED) else "true"

    def _conditions(self, table: str, *, deleted: bool = False) -> tuple[list[str], list[Any]]:
        """Returns SQL for the organization's rows, (not) marked as deleted. Rows without a tenant are the server's."""
        conditions, values = ["true"], list[Any]()
        if self._has(table, _DELETED):
            conditions.append(f"{'' if deleted else 'NOT '}coalesce({_DELETED}, false)")
        if self._has(table, _TENANT) and self._organization:
            values.append(self._organization)
            # Some tables lack it on rows that are joined to one that has it.
            conditions.append(f"({_TENANT} = $1 OR {_TENANT} IS NULL)")
        return conditions, values

    def _selected(self, table: Table, alias: str = "") -> str:
        dot = f"{alias}." if alias else ""
        plain = [name for name in ("id", "created_at", *table.columns) if self._has(table.name, name)]
        vectors = [name for name in table.vectors if self._has(table.name, name)]
        columns = [f'{dot}"{name}"' for name in plain] + [f'{dot}"{name}"::real[] AS "{name}"' for name in vectors]
        return ", ".join(columns)

    async def _read(self, query: str, *values: Any) -> AsyncIterator[asyncpg.Record]:
        async with self._lock:
            cursor = await self._connection.cursor(query, *values)
        while True:
            async with self._lock:
                records = await cursor.fetch(_AT_ONCE)
            for record in records:
                yield record
            if len(records) < _AT_ONCE:
                return

    async def _all(self, query: str, *values: Any) -> list[asyncpg.Record]:
        async with self._lock:
            found: list[asyncpg.Record] = await self._connection.fetch(query, *values)
        return found

    async def _number(self, query: str, *values: Any) -> int:
        async with self._lock:
            return int(await self._connection.fetchval(query, *values) or 0)


_TENANT, _DELETED = "organization_id", "is_deleted"


def _complete(table: Table, record: asyncpg.Record) -> Row:
    """Returns the row with every column of its table; missing ones are null."""
    return dict.fromkeys(("id", "created_at", *table.columns, *table.vectors)) | dict(record)


def _plain(url: str) -> str:
    """Returns the URL without SQLAlchemy's driver."""
    return re.sub(r"^postgres(ql)?\+\w+://", "postgresql://", url)
