"""The embedded Postgres before the services' migrations: a role and a schema for each of them.

No service is superuser, and none may look into another's schema. Safe to repeat: every start does.
"""

from __future__ import annotations

import asyncpg

from cli.names import DATABASE, SERVICES, role


async def create_roles(superuser: asyncpg.Connection, passwords: dict[str, str]) -> None:
    """Make each service's role with its password from `passwords[role]`; an existing role gets it anew."""
    for name in (role(service) for service in SERVICES):
        exists = await superuser.fetchval("SELECT true FROM pg_roles WHERE rolname = $1", name)
        verb = "ALTER" if exists else "CREATE"
        rights = "LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION"
        await superuser.execute(f"{verb} ROLE {name} {rights} PASSWORD {_quote(passwords[name])}")


async def create_database(superuser: asyncpg.Connection, name: str = DATABASE) -> bool:
    """Make the database; True when it is new. Nobody but its roles connects to it, and they to no other."""
    if await superuser.fetchval("SELECT true FROM pg_database WHERE datname = $1", name):
        return False
    await superuser.execute(f"CREATE DATABASE {name}")
    for other in (name, "postgres", "template1"):
        await superuser.execute(f"REVOKE ALL ON DATABASE {other} FROM PUBLIC")
    return True


async def create_schemas(superuser_in_database: asyncpg.Connection, name: str = DATABASE) -> None:
    """Make the `vector` extension (in `public`, readable for all roles) and each role's own schema."""
    execute = superuser_in_database.execute
    await execute("CREATE EXTENSION IF NOT EXISTS vector WITH SCHEMA public")
    await execute("REVOKE ALL ON SCHEMA public FROM PUBLIC")
    for service in SERVICES:
        owner = role(service)
        await execute(f"CREATE SCHEMA IF NOT EXISTS {service} AUTHORIZATION {owner}")
        await execute(f"GRANT CONNECT, TEMPORARY ON DATABASE {name} TO {owner}")
        await execute(f"GRANT USAGE ON SCHEMA public TO {owner}")


def _quote(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
