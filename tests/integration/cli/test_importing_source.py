"""The old server's database as it is read: of older revisions too, whose tables lack columns."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import asyncpg
import pytest

from cli.errors import CliError
from cli.importing import schema
from cli.importing.message_source import MessageSource
from cli.importing.source import Source
from tests import letta_database, letta_oddities
from tests import letta_world as old
from tests.letta_oddities import OTHER_ORGANIZATION
from tests.postgres import Postgres


@pytest.fixture
def empty(postgres: Postgres) -> Iterator[str]:
    """The URL of a database without tables in `public_id`."""
    name = postgres.create_database()
    yield postgres.superuser_url(name)
    postgres.drop_database(name)


@pytest.fixture(scope="module")
def letta(postgres: Postgres) -> Iterator[str]:
    """The URL of a database with the small world."""
    name = postgres.create_database()
    url = postgres.superuser_url(name)
    asyncio.run(letta_database.create(url, old.build()))
    yield url
    postgres.drop_database(name)


async def execute(url: str, *statements: str) -> None:
    connection = await asyncpg.connect(url)
    for statement in statements:
        await connection.execute(statement)
    await connection.close()


async def all_of(rows: AsyncIterator[Any]) -> list[Any]:
    return [row async for row in rows]


async def test_rows_are_whole_and_kept_ones_alone(letta: str) -> None:
    # As SQLAlchemy writes it.
    async with Source.open(letta.replace("postgresql://", "postgresql+asyncpg://")) as source:
        assert await source.revision() == schema.REVISION
        await source.choose_organization(letta_database.ORGANIZATION)
        agents = {row["id"]: row for row in await all_of(source.rows(schema.AGENTS))}
        assert agents.keys() == {old.ADA, old.BEN, old.CLEO, old.REFUSED, letta_oddities.ODD}
        ada = agents[old.ADA]
        assert (ada["response_format"], ada["metadata_"], ada["hidden"]) == (None, {"team": "owls"}, None)
        assert await source.count("agents") == len(agents)
        [passage, *_] = await all_of(source.rows(schema.PASSAGES, archive_id=old.LARGE_ARCHIVE))
        assert len(passage["embedding"]) == schema.PADDED
        assert set(await source.linked_ids(schema.AGENT_BLOCKS, old.ADA)) == {
            old.ADAS_HUMAN,
            old.SHARED,
            old.MISSING_BLOCK,
            letta_database.identifier("block", 9),
        }
        there = await source.existing_ids("block", [old.SHARED, old.MISSING_BLOCK, old.ADAS_HUMAN])
        assert there == [old.SHARED, old.ADAS_HUMAN]


async def test_every_row_has_a_key(empty: str) -> None:
    """Of every table: also those without ids, of other organizations, and marked as deleted."""
    await letta_database.create(empty, old.build())
    await execute(empty, "CREATE TABLE of_tomorrow (a int, b text, PRIMARY KEY (a, b))", "CREATE TABLE bare (c int)")
    await execute(empty, "INSERT INTO of_tomorrow VALUES (1, 'x')", "INSERT INTO bare VALUES (1)")
    async with Source.open(empty) as source, asyncpg.create_pool(empty, min_size=0) as pool:
        names = [row[0] for row in await pool.fetch("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")]
        tables = (*schema.TABLES, *await source.other_tables())
        assert {table.name for table in tables} == set(names)
        for table in tables:
            keys = await all_of(source.keys(table))
            count = await pool.fetchval(f'SELECT count(*) FROM "{table.name}"')
            assert len({key.text for key in keys}) == count > 0, table.name
        [deleted] = [key for key in await all_of(source.keys(schema.AGENTS)) if key.deleted]
        assert (deleted.text, deleted.organization) == (old.GONE, letta_database.ORGANIZATION)
        tags = {key.text: key.owners for key in await all_of(source.keys(schema.BLOCK_TAGS))}
        assert tags[f"{old.SHARED}/owl"] == ((old.SHARED, "block"),)
        # The real schema has no other columns than those that are known.
        known = {table.name: source.unknown_columns(table) for table in schema.TABLES if not table.left_behind}
        assert not any(known.values())
    await execute(empty, "ALTER TABLE messages ADD mood text")
    async with Source.open(empty) as source:
        assert source.unknown_columns(schema.MESSAGES) == ["mood"]
        tables = (*schema.TABLES, *await source.other_tables())
        [composite] = [key.text for key in await all_of(source.keys(tables[-1]))]
        assert composite == "1/x"


async def test_messages_come_as_each_conversation_lists_them(letta: str) -> None:
    async with Source.open(letta) as source:
        await source.choose_organization(letta_database.ORGANIZATION)
        window = [old.message_id(number) for number in (1, 5, 4)]
        shown = await all_of(MessageSource(source).window_messages(old.ADA, window))
        assert [(row["id"], row["keeper"]) for row in shown] == [(one, None) for one in window]
        older = [row["id"] for row in await all_of(MessageSource(source).older_messages(old.ADA, window))]
        assert older == [old.message_id(number) for number in (2, 3, 6, 7, 8, 9, 10, 11)]
        talk = [
            (row["id"], row["keeper"]) for row in await all_of(MessageSource(source).conversation_messages(old.TALK))
        ]
        fork = [
            (row["id"], row["keeper"]) for row in await all_of(MessageSource(source).conversation_messages(old.FORK))
        ]
        assert talk == [(old.message_id(number), old.TALK) for number in (40, 41, 42)]
        own = {43: old.FORK, 41: old.TALK, 42: old.TALK, 44: old.FORK}
        assert fork == [(old.message_id(number), keeper) for number, keeper in own.items()]


async def test_a_database_of_an_older_revision(empty: str) -> None:
    await execute(
        empty,
        "CREATE TABLE agents (id text, name text, message_ids json, created_at timestamptz)",
        "CREATE TABLE messages (id text, agent_id text, role text, text text, created_at timestamptz)",
        "INSERT INTO agents VALUES ('agent-1', 'older', '[\"message-2\"]', now())",
        "INSERT INTO messages SELECT 'message-' || n, 'agent-1', 'user', 'said', now() + n * interval '1 s'"
        " FROM generate_series(1, 3) n",
    )
    async with Source.open(empty) as source:
        assert (await source.revision(), await source.choose_organization("")) == ("", "")
        [agent] = await all_of(source.rows(schema.AGENTS))
        assert (agent["name"], agent["message_ids"], agent["llm_config"]) == ("older", ["message-2"], None)
        assert [row["id"] for row in await all_of(MessageSource(source).older_messages("agent-1", ["message-2"]))] == [
            "message-1",
            "message-3",
        ]
        [shown] = await all_of(MessageSource(source).window_messages("agent-1", ["message-2"]))
        assert (shown["text"], shown["content"], shown["keeper"]) == ("said", None, None)
        assert (
            await all_of(source.rows(schema.GROUPS))
            == await all_of(MessageSource(source).conversation_messages("conv-1"))
            == []
        )
        assert (
            await source.linked_ids(schema.AGENT_TAGS, "agent-1"),
            await MessageSource(source).approval_answers("agent-1"),
        ) == (
            [],
            [],
        )
        assert (await source.count("runs"), await all_of(source.keys(schema.LEFT_BEHIND[-1]))) == (0, [])
        assert [key.text for key in await all_of(source.keys(schema.AGENTS))] == ["agent-1"]


async def test_one_of_several_organizations(empty: str) -> None:
    await letta_database.create(empty, old.build())
    async with Source.open(empty) as source:
        with pytest.raises(CliError, match=OTHER_ORGANIZATION) as error:
            await source.choose_organization("")
        assert error.value.code == 2
        assert await source.choose_organization(OTHER_ORGANIZATION) == OTHER_ORGANIZATION
        assert [row["id"] for row in await all_of(source.rows(schema.AGENTS))] == [letta_oddities.STRANGER]


async def test_it_is_read_only(letta: str) -> None:
    async with Source.open(letta) as source:
        with pytest.raises(asyncpg.ReadOnlySQLTransactionError):
            await source._connection.execute("DELETE FROM agents")


async def test_what_is_no_old_server(empty: str) -> None:
    with pytest.raises(CliError, match="no tables of a Letta server"):
        async with Source.open(empty):
            pass
