"""Migrations: each service has an Alembic history in `services/<name>/migrations` and a schema `<name>`.

When the database is up to date, one query says so and neither Alembic nor SQLAlchemy is imported.
"""

import ast
import asyncio
import importlib.util
import logging
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import asyncpg

from services.common.settings import SettingsError

logger = logging.getLogger(__name__)
VERSION_TABLE = "alembic_version"


async def migrate(url: str, package: str) -> bool:
    """Brings `package`'s schema ("services.memory": `memory`) to its newest revision; whether it had to.

    url: a direct connection, not through PgBouncer. Replicas may do this at the same time; one works, the
    others wait. Raises SettingsError where the database is newer than this code, or has no such schema and
    the role may not make it.
    """
    schema = package.rpartition(".")[2]
    folder = migrations_folder(package)
    revisions = read_revisions(folder / "versions")
    head = head_of(revisions)
    connection = await asyncpg.connect(url, timeout=10.0)
    try:
        if await _is_at(connection, schema, head, revisions):
            return False
        async with _only_one(connection, f"loci.migrate.{schema}"):
            if await _is_at(connection, schema, head, revisions):
                return False
            await _make_schema(connection, schema)
            # Alembic and SQLAlchemy cost 30 MB that a service which is up to date does not spend.
            from services.common.migrations.upgrade import upgrade  # noqa: PLC0415

            await upgrade(url, folder, schema, head)
    finally:
        await connection.close()
    logger.info("migrated", extra={"schema": schema, "revision": head})
    return True


def migrations_folder(package: str) -> Path:
    """Returns `<package>/migrations`, found without importing the package."""
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise ValueError(f"{package} is not a package")
    return Path(spec.submodule_search_locations[0]) / "migrations"


def read_revisions(versions: Path) -> dict[str, str | None]:
    """Returns revision -> down_revision of every file in `versions`, read as text; ValueError for one without."""
    revisions: dict[str, str | None] = {}
    for path in sorted(versions.glob("[!_]*.py")):
        values = _assignments(path)
        if "revision" not in values or "down_revision" not in values:
            raise ValueError(f"{path.name} does not assign revision and down_revision")
        revisions[str(values["revision"])] = values["down_revision"]
    return revisions


def head_of(revisions: dict[str, str | None]) -> str:
    """Returns the one revision that no other builds on; ValueError for none or several: a history is a line."""
    heads = set(revisions) - set(revisions.values())
    if len(heads) != 1:
        raise ValueError(f"a migration history has one newest revision; found {sorted(heads)}")
    return heads.pop()


def _assignments(path: Path) -> dict[str, str | None]:
    values: dict[str, str | None] = {}
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        value = getattr(getattr(node, "value", None), "value", ...)
        if isinstance(target, ast.Name) and (value is None or isinstance(value, str)):
            values[target.id] = value
    return values


async def _is_at(connection: asyncpg.Connection, schema: str, head: str, revisions: dict[str, str | None]) -> bool:
    try:
        present = await connection.fetchval(f'SELECT version_num FROM "{schema}"."{VERSION_TABLE}"')
    except (asyncpg.UndefinedTableError, asyncpg.InvalidSchemaNameError):
        return False
    if present is not None and present not in revisions:
        raise SettingsError(
            f"the database's schema {schema} is at revision {present}, which this version of Loci does not "
            f"know (its newest is {head}); run the newer version, or restore a backup"
        )
    return bool(present == head)


async def _make_schema(connection: asyncpg.Connection, schema: str) -> None:
    # Only where it is missing: the role may well use its schema and not be allowed to make one.
    if await connection.fetchval("SELECT to_regnamespace($1) IS NOT NULL", schema):
        return
    try:
        await connection.execute(f'CREATE SCHEMA IF NOT EXISTS "{schema}"')
    except asyncpg.InsufficientPrivilegeError:
        role = await connection.fetchval("SELECT current_user")
        raise SettingsError(
            f"the database has no schema {schema} and the role {role} may not make it; "
            f"as its owner run: CREATE SCHEMA {schema} AUTHORIZATION {role}"
        ) from None


@asynccontextmanager
async def _only_one(connection: asyncpg.Connection, name: str) -> AsyncIterator[None]:
    # Asked again and again rather than waited for: a session that waits holds a snapshot, and CREATE INDEX
    # CONCURRENTLY in the session that works would wait for it. It is the database that tells.
    key = zlib.crc32(name.encode())
    while not await connection.fetchval("SELECT pg_try_advisory_lock($1)", key):  # noqa: ASYNC110
        await asyncio.sleep(0.1)
    try:
        yield
    finally:
        await connection.execute(f"SELECT pg_advisory_unlock({key})")
