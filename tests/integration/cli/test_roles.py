"""The embedded Postgres trusts nobody: who may log in, and who sees what."""

from __future__ import annotations

import stat

import asyncpg
import pytest

from cli.names import SERVICES, role
from cli.postgres import url
from tests.conftest import DatabaseUrl
from tests.postgres import Postgres


async def test_a_service_owns_its_schema_and_has_vectors(database_url: DatabaseUrl) -> None:
    connection = await asyncpg.connect(database_url("memory"))
    await connection.execute("CREATE TABLE memory.probe (v halfvec(3))")
    distance = await connection.fetchval("SELECT '[1,2,3]'::halfvec <-> '[1,2,4]'::halfvec")
    await connection.close()
    assert distance == 1


async def test_no_service_reads_anothers_schema(database_url: DatabaseUrl) -> None:
    owner = await asyncpg.connect(database_url("agent"))
    await owner.execute("CREATE TABLE agent.secret AS SELECT 1 AS x")
    await owner.close()
    for service in set(SERVICES) - {"agent"}:
        other = await asyncpg.connect(database_url(service))
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await other.fetch("SELECT * FROM agent.secret")
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await other.execute("CREATE TABLE public.probe (x int)")
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await other.execute("CREATE ROLE intruder SUPERUSER")
        assert await other.fetchval("SELECT rolsuper FROM pg_roles WHERE rolname = current_user") is False
        await other.close()


@pytest.mark.parametrize("password", ["wrong", ""])
async def test_a_wrong_password_is_refused(postgres: Postgres, password: str) -> None:
    for name in ("postgres", role("agent")):
        with pytest.raises(asyncpg.InvalidPasswordError):
            await asyncpg.connect(url(postgres.cluster.sockets, name, password, "postgres"), password=password)


@pytest.mark.parametrize("database", ["postgres", "template1"])
async def test_a_service_connects_to_no_other_database(postgres: Postgres, database: str) -> None:
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        await asyncpg.connect(postgres.service_url("agent", database))


async def test_it_listens_on_no_port_and_its_folders_are_closed(postgres: Postgres) -> None:
    connection = await asyncpg.connect(postgres.superuser_url())
    assert await connection.fetchval("SHOW listen_addresses") == ""
    assert await connection.fetchval("SHOW password_encryption") == "scram-sha-256"
    rules = await connection.fetch("SELECT type, auth_method FROM pg_hba_file_rules")
    await connection.close()
    assert [tuple(rule) for rule in rules] == [("local", "scram-sha-256")]
    for folder in (postgres.cluster.data, postgres.cluster.sockets):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
