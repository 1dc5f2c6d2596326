"""Pools, engines, codecs, the statement counter, and waiting for Postgres."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

import asyncpg
import orjson
import pytest
from sqlalchemy import JSON, bindparam, column, select, text
from sqlalchemy.dialects.postgresql import JSONB

from services.common.database import (
    ConnectFailed,
    StatementCounter,
    connect,
    is_lost,
    open_pool,
    wait_for_database,
    without_password,
)
from services.common.engine import make_engine
from services.common.settings import SettingsError
from tests.conftest import DatabaseUrl
from tests.postgres import Postgres

VALUE = {"name": "Ada", "list": [1, 2.5, None, True], "text": "\N{GRINNING FACE}", "deep": {"a": {"b": []}}}


@pytest.fixture
async def pool(database_url: DatabaseUrl) -> AsyncIterator[Any]:
    async with await open_pool(database_url("memory"), size=3) as pool:
        yield pool


async def settled(counter: StatementCounter) -> tuple[int, int]:
    """The counts, once the loop has delivered them."""
    await asyncio.sleep(0.01)
    return counter.statements, counter.transactions


async def test_jsonb_json_and_uuid_are_python_data(pool: Any) -> None:
    row = await pool.fetchrow(
        "SELECT $1::jsonb AS b, $1::json AS j, $2::uuid AS u, NULL::jsonb AS n", VALUE, UUID(int=7)
    )
    assert (row["b"], row["j"], row["u"], row["n"]) == (VALUE, VALUE, UUID(int=7), None)
    assert type(row["u"]) is not str
    assert isinstance(row["u"], UUID)
    assert await pool.fetchval("SELECT $1::jsonb ->> 'name'", VALUE) == "Ada"


async def test_json_that_is_already_text_passes_as_a_fragment(pool: Any) -> None:
    fragment = orjson.Fragment(json.dumps(VALUE))
    assert await pool.fetchval("SELECT $1::jsonb", fragment) == VALUE
    assert await pool.fetchval("SELECT $1::jsonb", {"inner": fragment}) == {"inner": VALUE}


async def test_connections_are_set_up_alike_and_further_codecs_are_possible(
    database_url: DatabaseUrl,
) -> None:
    prepared: list[Any] = []

    async def init(connection: Any) -> None:
        prepared.append(connection)

    async with await open_pool(database_url("memory"), size=2, init=init) as pool:
        assert await pool.fetchval("SHOW jit") == "off"
        await asyncio.gather(*(pool.fetchval("SELECT pg_sleep(0.05)") for _ in range(4)))
        assert pool.get_size() == 2
    assert len(prepared) == 2


async def test_a_pool_for_pgbouncer_keeps_no_prepared_statements(database_url: DatabaseUrl) -> None:
    async with await open_pool(database_url("memory"), pgbouncer=True) as pool, pool.acquire() as connection:
        for _ in range(3):
            assert await connection.fetchval("SELECT $1::jsonb", VALUE) == VALUE
        named = "SELECT count(*) FROM pg_prepared_statements WHERE name <> ''"
        assert await connection.fetchval(named) == 0


async def test_returning_a_connection_costs_no_round_trip_and_ends_its_transaction(
    database_url: DatabaseUrl,
) -> None:
    counter = StatementCounter(keep_texts=True)
    async with await open_pool(database_url("memory"), size=1, counter=counter) as pool:
        for number in range(3):
            assert await pool.fetchval("SELECT $1::int", number) == number
        await asyncio.sleep(0.01)
        assert counter.texts == ["SELECT $1::int"] * 3


async def test_statements_and_transactions_are_counted(database_url: DatabaseUrl) -> None:
    counter = StatementCounter()
    async with await open_pool(database_url("memory"), size=2, counter=counter) as pool:
        assert await settled(counter) == (0, 0)
        await pool.fetch("SELECT 1")
        await pool.execute("SELECT 1")
        await pool.execute("SELECT $1::int", 1)
        await pool.fetchrow("SELECT 1")
        assert await settled(counter) == (4, 4)

        counter.reset()
        async with pool.acquire() as connection:
            async with connection.transaction():
                await connection.execute("SET LOCAL statement_timeout = 1000")
                async with connection.transaction():
                    await connection.fetch("SELECT 1")
                statement = await connection.prepare("SELECT 2")
                await statement.fetch()
            await connection.fetch("SELECT 3")
        async with pool.acquire() as connection:
            block = connection.transaction(isolation="repeatable_read")
            await block.start()
            await connection.fetch("SELECT 4")
            await block.rollback()
        assert await settled(counter) == (5, 3)

        counter.reset()
        with pytest.raises(asyncpg.PostgresError):
            await pool.execute("SELECT 1/0")
        assert await settled(counter) == (1, 1)

        counter.reset()
        await asyncio.gather(*(pool.fetch("SELECT pg_sleep(0.02)") for _ in range(5)))
        assert await settled(counter) == (5, 5)


async def test_an_engine_speaks_to_the_same_url_with_the_same_json(database_url: DatabaseUrl) -> None:
    counter = StatementCounter()
    engine = make_engine(database_url("memory"), size=2, counter=counter)
    try:
        async with engine.connect() as connection:
            await connection.execute(text("SELECT 1"))
        before = await settled(counter)
        async with engine.begin() as connection:
            await connection.execute(text("CREATE TEMPORARY TABLE t (id uuid, b jsonb, j json) ON COMMIT DROP"))
            insert = text("INSERT INTO t VALUES (:id, :b, :j)").bindparams(
                bindparam("b", type_=JSONB), bindparam("j", type_=JSON)
            )
            await connection.execute(insert, {"id": UUID(int=7), "b": VALUE, "j": VALUE})
            query = select(column("id"), column("b", JSONB), column("j", JSON)).select_from(text("t"))
            row = (await connection.execute(query)).one()
            assert (row.id, row.b, row.j) == (UUID(int=7), VALUE, VALUE)
        async with engine.connect() as connection:
            assert (await connection.execute(text("SHOW jit"))).scalar() == "off"
        # Four statements in two transactions, and a ping for each of the two that took a used connection.
        assert await settled(counter) == (before[0] + 6, before[1] + 4)
    finally:
        await engine.dispose()


async def test_whoever_asks_a_database_that_is_gone_is_told_that_it_cannot_be_reached() -> None:
    with Postgres.started() as server:
        url = server.service_url("memory", server.create_database())
        pool, engine = await open_pool(url, size=2), make_engine(url)
        assert await pool.fetchval("SELECT 1") == 1
        async with engine.connect() as connection:
            assert (await connection.execute(text("SELECT 1"))).scalar() == 1
    try:
        # First the connections that were open turn out to be broken, then no new ones are to be had.
        for _ in range(3):
            with pytest.raises(Exception, match=r".") as caught:
                await pool.fetchval("SELECT 1")
            assert is_lost(caught.value), repr(caught.value)
            with pytest.raises(Exception, match=r".") as caught:
                async with engine.connect():
                    pass
            assert is_lost(caught.value), repr(caught.value)
        with pytest.raises(ConnectFailed):
            await pool.fetchval("SELECT 1")
    finally:
        pool.terminate()
        await engine.dispose()


async def test_a_database_that_does_not_answer_in_time_cannot_be_reached() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        with pytest.raises(ConnectFailed, match=r"."):
            await connect(f"postgresql://loci@127.0.0.1:{port}/loci", timeout=0.2)


@pytest.mark.parametrize("error", [OSError("disk"), ValueError("x"), asyncpg.UniqueViolationError("y"), None])
def test_other_errors_say_nothing_of_the_database(error: Exception | None) -> None:
    assert not is_lost(error)


async def test_waiting_returns_once_the_database_answers(database_url: DatabaseUrl) -> None:
    await wait_for_database(database_url("memory"), timeout=60)


async def test_waiting_ends_with_one_line_that_names_the_setting_and_no_password() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    async with asyncio.timeout(20):
        with pytest.raises(SettingsError) as caught:
            await wait_for_database(f"postgresql://loci:s3cret@127.0.0.1:{port}/loci", timeout=0.5, setting="LOCI_X")
    assert "LOCI_X (postgresql://loci@127.0.0.1" in str(caught.value)
    assert "does not answer within 0.5 s" in str(caught.value)
    assert "s3cret" not in str(caught.value)
    assert "\n" not in str(caught.value)


async def test_what_will_never_work_is_said_at_once(database_url: DatabaseUrl) -> None:
    url = database_url("memory")
    user, at, rest = url.partition("@")
    for wrong in (
        f"{user}x{at}{rest}",
        url.replace("/test_", "/no_such_database_"),
        "postgresql://loci:x@localhost:notaport/loci",
        "mysql://localhost/loci",
        "nonsense",
    ):
        async with asyncio.timeout(20):
            with pytest.raises(SettingsError, match="LOCI_DATABASE_URL") as caught:
                await wait_for_database(wrong, timeout=60)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://u:p@h:5/d", "postgresql://u@h:5/d"),
        ("postgresql://h/d", "postgresql://h/d"),
        ("postgresql:///d?host=/run&user=u&password=p%40", "postgresql:///d?host=/run&user=u&password=***"),
        ("postgresql://u:p@/d?host=/run", "postgresql://u@/d?host=/run"),
    ],
)
def test_urls_are_shown_without_password(url: str, shown: str) -> None:
    assert without_password(url) == shown
