"""Prints the Secrets and the ConfigMap that `k8s/base` refers to, with fresh keys, for `kubectl create`.

    python -m k8s.make_secrets --postgres | kubectl create -n loci -f -
    python -m k8s.make_secrets --database-url postgresql://loci:...@host/loci | kubectl create -n loci -f -

Use `create`, not `apply`: with a second encryption key nobody could read what the first one encrypted.
"""

import argparse
import base64
import json
import secrets
import sys
from collections.abc import Mapping
from typing import Any

from services.common.keys import new_private_key, public_keys_of

SERVICES = ("agent", "memory", "llm-gateway", "tool-runner")
POSTGRES_HOST = "postgres"


def manifests(database_url: str, postgres_password: str | None = None) -> list[dict[str, Any]]:
    """Every object that the base expects; `postgres_password` adds the secret of `overlays/dev`."""
    signing_key, memory_key = new_private_key(), new_private_key()
    objects = [
        _config_map(
            "loci-public-keys", {"LOCI_CONTEXT_PUBLIC_KEYS": public_keys_of(signing_key, memory_key=memory_key)}
        ),
        _secret("loci-signing-key", {"LOCI_CONTEXT_SIGNING_KEY": signing_key}),
        _secret("loci-memory-signing-key", {"LOCI_CONTEXT_SIGNING_KEY": memory_key}),
        _secret(
            "loci-encryption-key",
            {"LOCI_ENCRYPTION_KEY": base64.b64encode(secrets.token_bytes(32)).decode()},
        ),
        _secret("loci-password", {"LETTA_SERVER_PASSWORD": secrets.token_urlsafe(24)}),
        _secret("loci-database", dict.fromkeys(SERVICES, database_url)),
    ]
    if postgres_password is not None:
        objects.append(_secret("loci-postgres", {"POSTGRES_PASSWORD": postgres_password}))
    return objects


def _secret(name: str, values: Mapping[str, str]) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": dict(values)}


def _config_map(name: str, values: Mapping[str, str]) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": dict(values)}


def main() -> None:
    """Prints one List."""
    parser = argparse.ArgumentParser(prog="python -m k8s.make_secrets", description="Fresh secrets for k8s/base.")
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--database-url", help="a Postgres with pgvector: postgresql://role:password@host/database")
    where.add_argument("--postgres", action="store_true", help="the Postgres of overlays/dev, with a fresh password")
    arguments = parser.parse_args()
    password = secrets.token_hex(24) if arguments.postgres else None
    url = arguments.database_url or f"postgresql://loci:{password}@{POSTGRES_HOST}/loci"
    json.dump({"apiVersion": "v1", "kind": "List", "items": manifests(url, password)}, sys.stdout, indent=2)
    print()


if __name__ == "__main__":
    main()
