"""`python -m cli.prepare`: keys, roles and migrations, in a process that ends and takes its imports with it.

Reads one JSON object from stdin: `secrets` and `logs` (folders), `superuser` (URLs of the databases `postgres`, `loci`;
absent with an external Postgres), `passwords` (role -> password), `services` (service -> URL for migrations).
Ends with status 0, or with one line on stderr.
"""

from __future__ import annotations

import asyncio
import json
import sys
import traceback
from pathlib import Path
from typing import Any

import asyncpg

from cli.errors import CliError
from cli.home import write_secret
from cli.roles import create_database, create_roles, create_schemas
from cli.secrets import MEMORY_KEY, PUBLIC_KEYS, SIGNING_KEY, make_encryption_key
from services.common.database import wait_for_database
from services.common.keys import load_private_key, new_private_key, public_keys_of
from services.common.migrate import migrate
from services.common.settings import SettingsError

PATIENCE = 10.0  # seconds for a database to answer


def make_keys(folder: Path) -> None:
    """The Ed25519 keys that sign call contexts, their public halves, and the key of secrets at rest."""
    signing, memory = [_private_key(folder / name) for name in (SIGNING_KEY, MEMORY_KEY)]
    write_secret(folder / PUBLIC_KEYS, public_keys_of(signing, memory_key=memory))
    make_encryption_key(folder)


def _private_key(path: Path) -> str:
    if not path.exists():
        write_secret(path, new_private_key())
    text = path.read_text().strip()
    try:
        load_private_key(text)
    except ValueError:
        raise CliError(f"{path} is damaged: expected an Ed25519 key in PEM; remove it for a new one") from None
    return text


async def make_database(urls: dict[str, str], passwords: dict[str, str]) -> None:
    """Roles, database, extension and schemas of the embedded Postgres; idempotent."""
    await wait_for_database(urls["postgres"])
    superuser = await asyncpg.connect(urls["postgres"])
    await create_roles(superuser, passwords)
    await create_database(superuser)
    await superuser.close()
    inside = await asyncpg.connect(urls["loci"])
    await create_schemas(inside)
    await inside.close()


async def prepare(task: dict[str, Any]) -> None:
    """Everything in order. Raises CliError or SettingsError."""
    make_keys(Path(task["secrets"]))
    if "superuser" in task:
        await make_database(task["superuser"], task["passwords"])
    for service, url in task["services"].items():
        await wait_for_database(url, timeout=PATIENCE)
        try:
            await migrate(url, f"services.{service}")  # one after the other: Alembic's context is global
        except SettingsError:
            raise
        except Exception as error:  # noqa: BLE001 - a migration may fail in any way; one line and a file tell of it
            log = Path(task["logs"]) / "migrations.log"
            log.write_text(traceback.format_exc())
            first = (str(error).splitlines() or [type(error).__name__])[0]
            raise CliError(f"the migration of {service} failed: {first} (all of it: {log})") from None


def main() -> None:
    """Exit 0, or 1 or 2 with one line."""
    try:
        asyncio.run(prepare(json.load(sys.stdin)))
    except SettingsError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
    except (CliError, OSError, asyncpg.PostgresError) as error:
        print(error, file=sys.stderr)
        sys.exit(getattr(error, "code", 1))


if __name__ == "__main__":
    main()
