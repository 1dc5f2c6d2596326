"""A database that does not answer: every wait ends, is told as a database that is away, and the next one succeeds."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from sqlalchemy import text

from services.common.database import DatabaseSilent, database_guard, is_lost, open_pool
from services.common.engine import make_engine
from services.common.errors import Unavailable
from services.common.own_connection import OwnConnection
from tests.conftest import DatabaseUrl
from tests.postgres_line import PostgresLine

# Far above all the bounds below, which only a product without bounds misses.
LONG = 60.0


@pytest.fixture
async def line(database_url: DatabaseUrl) -> AsyncIterator[PostgresLine]:
    """A line to the module's database."""
    async with PostgresLine(database_url("memory")).serving() as line:
        yield line


async def _silent(line: PostgresLine, work: Callable[[], Awaitable[object]]) -> BaseException:
    """What comes of work that has been begun on a line that falls silent."""
    line.fall_silent()
    async with asyncio.timeout(LONG):
        with pytest.raises(Exception) as caught:  # noqa: PT011 - what it is, is looked at below
            await work()
    line.speak()
    return caught.value


async def test_a_statement_ends_and_the_next_has_a_new_connection(line: PostgresLine) -> None:
    async with await open_pool(line.url, size=1, patience=0.3) as pool:
        assert await pool.fetchval("SELECT 1") == 1
        error = await _silent(line, lambda: pool.fetchval("SELECT 2"))
        assert isinstance(error, DatabaseSilent)
        assert is_lost(error)
        assert await pool.fetchval("SELECT 3") == 3
        assert line.made >= 2


async def test_a_commit_ends(line: PostgresLine) -> None:
    async with await open_pool(line.url, size=1, patience=0.3) as pool:

        async def commit() -> None:
            async with pool.acquire() as connection:
                transaction = connection.transaction()
                line.speak()
                await transaction.start()
                line.fall_silent()
                await transaction.commit()

        assert is_lost(await _silent(line, commit))
        assert await pool.fetchval("SELECT 1") == 1


async def test_who_gives_up_does_not_wait_for_the_cancelling(line: PostgresLine) -> None:
    async with await open_pool(line.url, size=1, patience=0.3) as pool:
        await pool.fetchval("SELECT 1")

        async def give_up() -> None:
            async with asyncio.timeout(0.05):
                await pool.fetchval("SELECT 2")

        assert isinstance(await _silent(line, give_up), TimeoutError | DatabaseSilent)
        assert await pool.fetchval("SELECT 3") == 3


async def test_a_pool_that_is_used_up_is_told_as_a_database_that_is_away(line: PostgresLine) -> None:
    async with await open_pool(line.url, size=1, acquire_patience=0.2) as pool:
        async with pool.acquire():
            with pytest.raises(Unavailable):
                async with asyncio.timeout(LONG), database_guard("the tests"):
                    await pool.fetchval("SELECT 1")
        assert await pool.fetchval("SELECT 1") == 1


async def test_an_engine_ends_its_statements_too(line: PostgresLine) -> None:
    engine = make_engine(line.url, size=1, patience=0.3)

    async def ask() -> Any:
        async with engine.connect() as connection:
            return (await connection.execute(text("SELECT 1"))).scalar()

    assert await ask() == 1
    assert is_lost(await _silent(line, ask))
    assert await ask() == 1
    await engine.dispose()


async def test_a_connection_of_its_own_is_made_anew(line: PostgresLine) -> None:
    beats = OwnConnection(line.url, patience=0.3)
    assert (await beats.fetchrow("SELECT 1 AS one"))["one"] == 1
    for _ in range(2):  # the connection that is there, and one that is begun while nobody answers
        assert is_lost(await _silent(line, lambda: beats.execute("SELECT 2")))
        line.fall_silent()
    line.speak()
    assert (await beats.fetchrow("SELECT 3 AS three"))["three"] == 3
    await beats.close()


async def test_a_transaction_whose_owner_froze_lets_go_of_its_rows(line: PostgresLine) -> None:
    async with await open_pool(line.url, size=2, patience=0.5) as pool:
        await pool.execute("CREATE TABLE memory.held (id int)")
        await pool.execute("INSERT INTO memory.held VALUES (1)")
        frozen = await pool.acquire()
        transaction = frozen.transaction()
        await transaction.start()
        await frozen.execute("UPDATE memory.held SET id = 2")
        # It says nothing more; the server ends it.
        async with asyncio.timeout(LONG):
            while True:
                try:
                    await pool.execute("UPDATE memory.held SET id = 3")
                except DatabaseSilent:
                    continue
                break
        assert await pool.fetchval("SELECT id FROM memory.held") == 3
        await pool.release(frozen)


async def test_a_connection_that_the_server_is_ending_is_given_back(line: PostgresLine) -> None:
    async with await open_pool(line.url, size=2) as pool:
        ended = await pool.acquire()
        await ended.transaction().start()
        line.hold_ends()
        await pool.execute("SELECT pg_terminate_backend($1)", ended.get_server_pid())
        # Long enough for its last word to come: a statement now would be no longer sent.
        await asyncio.sleep(0.2)
        await pool.release(ended)
        line.speak()
        assert await pool.fetchval("SELECT 1") == 1
