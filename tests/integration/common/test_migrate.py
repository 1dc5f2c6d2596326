"""Migrations of a service made up for the test: forward, again, at the same time, and against a newer database."""

import asyncio
import subprocess
import sys
import textwrap
from pathlib import Path

import asyncpg
import pytest

from services.common.migrate import head_of, migrate, read_revisions
from services.common.migrations import locks
from services.common.settings import SettingsError
from tests.conftest import DatabaseUrl
from tests.postgres import Postgres

REPOSITORY = Path(__file__).parents[3]
ENV = "from services.common.migrations.env import run_migrations\n\nrun_migrations()\n"
FIRST = '''
"""Notes."""
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    op.execute("CREATE TABLE {schema}.notes (organization_id uuid, id uuid, PRIMARY KEY (organization_id, id))")


def downgrade() -> None:
    op.execute("DROP TABLE {schema}.notes")
'''
SECOND = """
from alembic import op

revision: str = "0002"
down_revision: str | None = "0001"


def upgrade() -> None:
    with op.get_context().autocommit_block():
        op.execute("CREATE INDEX CONCURRENTLY notes_by_id ON {schema}.notes (organization_id, id)")
"""
COLUMN = """
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.execute("ALTER TABLE {schema}.notes ADD COLUMN text text")
"""
INDEX = """
from services.common.migrations.indexes import add_index

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    add_index("{schema}", "notes_by_id", "notes (organization_id, id)")
"""
BROKEN = """
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.execute("CREATE TABLE {schema}.half (id uuid)")
    op.execute("SELECT 1/0")
"""


class Service:
    """A package with migrations; its name is its schema's."""

    def __init__(self, folder: Path, schema: str) -> None:
        self.schema = schema
        self.package = f"made_up.{schema}"
        self.versions = folder / "made_up" / schema / "migrations" / "versions"
        self.versions.mkdir(parents=True)
        for package in self.versions.parents[2], self.versions.parents[1]:
            (package / "__init__.py").touch()
        (self.versions.parent / "env.py").write_text(ENV)
        self.add("0001_notes", FIRST)

    def add(self, name: str, source: str) -> None:
        text = textwrap.dedent(source).lstrip().replace("{schema}", self.schema)
        (self.versions / f"{name}.py").write_text(text)


@pytest.fixture
def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Service:
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in [name for name in sys.modules if name.partition(".")[0] == "made_up"]:
        monkeypatch.delitem(sys.modules, name)
    return Service(tmp_path, "memory")


async def value(url: str, query: str) -> object:
    connection = await asyncpg.connect(url)
    try:
        return await connection.fetchval(query)
    finally:
        await connection.close()


VERSION = "SELECT version_num FROM memory.alembic_version"


async def test_forward_again_and_further(service: Service, fresh_database_url: DatabaseUrl) -> None:
    url = fresh_database_url("memory")
    assert await migrate(url, service.package) is True
    assert await value(url, VERSION) == "0001"
    assert await migrate(url, service.package) is False
    service.add("0002_index", SECOND)
    assert await migrate(url, service.package) is True
    assert await value(url, VERSION) == "0002"
    assert await value(url, "SELECT to_regclass('memory.notes_by_id') IS NOT NULL") is True
    elsewhere = (
        "SELECT count(*) FROM pg_class WHERE relname LIKE 'alembic%' AND relnamespace::regnamespace::text <> 'memory'"
    )
    assert await value(url, elsewhere) == 0


async def test_replicas_may_migrate_at_the_same_time(service: Service, fresh_database_url: DatabaseUrl) -> None:
    """Migrates in processes, as replicas do; a concurrent index would deadlock with waiters that hold a snapshot."""
    service.add("0002_index", SECOND)
    url = fresh_database_url("memory")
    program = f"""
import asyncio
from services.common.migrate import migrate
print(asyncio.run(migrate({url!r}, {service.package!r})))
"""
    path = f"{service.versions.parents[3]}:{REPOSITORY}:{REPOSITORY / 'gen'}"
    running = [
        await asyncio.create_subprocess_exec(
            sys.executable, "-c", program, env={"PYTHONPATH": path}, stdout=subprocess.PIPE
        )
        for _ in range(3)
    ]
    outputs = await asyncio.wait_for(asyncio.gather(*(process.communicate() for process in running)), 60)
    assert [process.returncode for process in running] == [0, 0, 0]
    assert sorted(out for out, _ in outputs) == [b"False\n", b"False\n", b"True\n"]
    assert await value(url, VERSION) == "0002"


async def test_up_to_date_is_one_query_without_alembic(service: Service, fresh_database_url: DatabaseUrl) -> None:
    url = fresh_database_url("memory")
    await migrate(url, service.package)
    program = f"""
import asyncio, sys
from services.common.migrate import migrate
assert asyncio.run(migrate({url!r}, {service.package!r})) is False
print({{"alembic", "sqlalchemy", {service.package!r}}} & set(sys.modules))
"""
    path = f"{service.versions.parents[3]}:{REPOSITORY}"
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", program, env={"PYTHONPATH": path}, stdout=subprocess.PIPE
    )
    out, _ = await asyncio.wait_for(process.communicate(), 30)
    assert out == b"set()\n"


async def test_a_missing_schema_is_made_where_the_role_may(
    tmp_path: Path, service: Service, postgres: Postgres
) -> None:
    database = postgres.create_database()
    url = postgres.superuser_url(database)
    other = Service(tmp_path, "brand_new")
    assert await migrate(url, other.package) is True
    assert await value(url, "SELECT version_num FROM brand_new.alembic_version") == "0001"
    postgres.drop_database(database)


async def test_a_missing_schema_that_the_role_may_not_make_is_one_line(
    tmp_path: Path, service: Service, fresh_database_url: DatabaseUrl
) -> None:
    other = Service(tmp_path, "brand_new")
    with pytest.raises(SettingsError, match="CREATE SCHEMA brand_new AUTHORIZATION loci_memory"):
        await migrate(fresh_database_url("memory"), other.package)


async def test_a_failed_revision_leaves_the_one_before(service: Service, fresh_database_url: DatabaseUrl) -> None:
    service.add("0002_index", SECOND)
    service.add("0003_broken", BROKEN)
    url = fresh_database_url("memory")
    with pytest.raises(Exception, match="division by zero"):
        await migrate(url, service.package)
    assert await value(url, VERSION) == "0002"
    assert await value(url, "SELECT to_regclass('memory.half') IS NULL") is True
    (service.versions / "0003_broken.py").unlink()
    assert await migrate(url, service.package) is False


ADD = "INSERT INTO memory.notes (organization_id, id) VALUES (gen_random_uuid(), gen_random_uuid())"
WAITS = """
SELECT count(*) > 0 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'
"""


@pytest.mark.parametrize("revision", [COLUMN, INDEX])
async def test_a_migration_that_waits_holds_up_nobody(
    service: Service, fresh_database_url: DatabaseUrl, monkeypatch: pytest.MonkeyPatch, revision: str
) -> None:
    monkeypatch.setattr(locks, "LOCK_SECONDS", 0.2)
    url = fresh_database_url("memory")
    await migrate(url, service.package)
    service.add("0002_change", revision)
    holder, served = await asyncpg.connect(url), await asyncpg.connect(url)
    transaction = holder.transaction()
    await transaction.start()
    await holder.execute(ADD)
    migrating = asyncio.create_task(migrate(url, service.package))
    async with asyncio.timeout(60):
        while not await served.fetchval(WAITS):
            await asyncio.sleep(0.01)
        for _ in range(3):
            await served.execute(ADD)
        assert not migrating.done()
        await transaction.commit()
        assert await migrating is True
    assert await value(url, VERSION) == "0002"
    for connection in (holder, served):
        await connection.close()


async def test_an_index_that_was_left_broken_is_made_anew(service: Service, fresh_database_url: DatabaseUrl) -> None:
    url = fresh_database_url("memory")
    await migrate(url, service.package)
    await value(url, "CREATE INDEX notes_by_id ON memory.notes (id)")
    service.add("0002_index", INDEX)
    assert await migrate(url, service.package) is True
    columns = await value(url, "SELECT pg_get_indexdef('memory.notes_by_id'::regclass)")
    assert str(columns).endswith("(organization_id, id)")


async def test_a_newer_database_is_refused(service: Service, fresh_database_url: DatabaseUrl) -> None:
    service.add("0002_index", SECOND)
    url = fresh_database_url("memory")
    await migrate(url, service.package)
    (service.versions / "0002_index.py").unlink()
    with pytest.raises(SettingsError, match="schema memory is at revision 0002, which this version of"):
        await migrate(url, service.package)


def test_a_history_is_a_line(service: Service) -> None:
    assert read_revisions(service.versions) == {"0001": None}
    service.add("0002_index", SECOND)
    assert head_of(read_revisions(service.versions)) == "0002"
    service.add("0003_other", SECOND.replace("0002", "0003"))
    with pytest.raises(ValueError, match="'0002', '0003'"):
        head_of(read_revisions(service.versions))
    service.add("0004_nothing", "x = 1")
    with pytest.raises(ValueError, match=r"0004_nothing.py does not assign"):
        read_revisions(service.versions)
    with pytest.raises(ValueError, match="found"):
        head_of({})


async def test_only_packages_have_migrations(fresh_database_url: DatabaseUrl) -> None:
    with pytest.raises(ValueError, match="is not a package"):
        await migrate(fresh_database_url("memory"), "services.nothing_here")
