"""Passwords and keys that the first start makes and every later one finds again in LOCI_HOME/secrets."""

from __future__ import annotations

import base64
import json
import secrets
from pathlib import Path

from cli.errors import CliError
from cli.home import write_secret
from cli.names import SERVICES, role
from cli.postgres import SUPERUSER

SIGNING_KEY = "context-signing-key.pem"
MEMORY_KEY = "memory-signing-key.pem"
PUBLIC_KEYS = "context-public-keys.json"
ENCRYPTION_KEY = "encryption-key"
PASSWORDS = "database-passwords.json"


def make_encryption_key(folder: Path) -> None:
    """The AES key of secrets at rest: 32 random bytes in base64."""
    if not (folder / ENCRYPTION_KEY).exists():
        write_secret(folder / ENCRYPTION_KEY, base64.b64encode(secrets.token_bytes(32)).decode())


def passwords(folder: Path) -> dict[str, str]:
    """role -> password of the embedded Postgres, made at the first call. Raises CliError."""
    path = folder / PASSWORDS
    names = (SUPERUSER, *map(role, SERVICES))
    if not path.exists():
        write_secret(path, json.dumps({name: secrets.token_hex(24) for name in names}))
    try:
        by_name = json.loads(path.read_text())
        return {name: str(by_name[name]) for name in names}
    except (ValueError, KeyError, TypeError):
        raise CliError(f"{path} is damaged: expected JSON with a password for each role; remove it") from None
