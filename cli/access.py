"""`loci keys` and `loci orgs`: keys and tenants, over REST."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Mapping
from typing import Any

from cli.errors import CliError
from cli.server import base_url, password
from cli.streaming.client import Client
from cli.streaming.events import Json

_MOST_ORGANIZATIONS = 1_000


class AccessClient(Client):
    """A Loci server, as admins see it. Every method raises ApiError, Unreachable."""

    def create_key(self, **draft: Any) -> Json:
        """Creates a key; `key` of the answer is the secret."""
        return self._object("POST", "/v1/api-keys/", json=draft)

    def keys(self) -> list[Json]:
        """Returns the keys of the tenant."""
        rows: list[Json] = self._call("GET", "/v1/api-keys/")
        return rows

    def revoke_key(self, key_id: str) -> None:
        """Revokes a key."""
        self._call("DELETE", f"/v1/api-keys/{key_id}")

    def create_organization(self, name: str | None) -> Json:
        """Creates a tenant."""
        return self._object("POST", "/v1/orgs/", json={"name": name} if name else {})

    def organizations(self) -> list[Json]:
        """Returns all tenants, for the operator."""
        rows: list[Json] = []
        while True:
            after = {"after": rows[-1]["id"]} if rows else {}
            page = self._call("GET", "/v1/orgs/", params={"limit": _MOST_ORGANIZATIONS, **after})
            rows += page
            if len(page) < _MOST_ORGANIZATIONS:
                return rows

    def delete_organization(self, organization_id: str) -> Json:
        """Deletes a tenant with all it has."""
        return self._object("DELETE", "/v1/orgs/", params={"org_id": organization_id})


def run(arguments: argparse.Namespace) -> None:
    """Runs the command. Raises CliError."""
    with AccessClient(base_url(arguments.url, os.environ), password(os.environ)) as client:
        _ACTIONS[arguments.command, arguments.verb](client, arguments)


def _create_key(client: AccessClient, arguments: argparse.Namespace) -> None:
    draft = {
        "name": arguments.name,
        "role": arguments.role,
        "agent_ids": arguments.agent,
        "requests_per_minute": arguments.rpm,
        "expires_at": arguments.expires,
        # Every organization has one user of the same UUID.
        "user_id": arguments.org and f"user-{arguments.org.removeprefix('org-')}",
    }
    print(client.create_key(**{name: value for name, value in draft.items() if value})["key"])


def _list_keys(client: AccessClient, arguments: argparse.Namespace) -> None:
    _print(["id", "name", "role", "hint", "last_used_at", "expires_at"], client.keys())


def _revoke_key(client: AccessClient, arguments: argparse.Namespace) -> None:
    client.revoke_key(arguments.id)


def _create_organization(client: AccessClient, arguments: argparse.Namespace) -> None:
    print(client.create_organization(arguments.name)["id"])


def _list_organizations(client: AccessClient, arguments: argparse.Namespace) -> None:
    _print(["id", "name", "created_at"], client.organizations())


def _delete_organization(client: AccessClient, arguments: argparse.Namespace) -> None:
    if not arguments.yes and input(f"Delete {arguments.id} with all it has? Type its id: ").strip() != arguments.id:
        raise CliError("nothing was deleted")
    client.delete_organization(arguments.id)


_ACTIONS: Mapping[tuple[str, str], Callable[[AccessClient, argparse.Namespace], None]] = {
    ("keys", "create"): _create_key,
    ("keys", "list"): _list_keys,
    ("keys", "revoke"): _revoke_key,
    ("orgs", "create"): _create_organization,
    ("orgs", "list"): _list_organizations,
    ("orgs", "delete"): _delete_organization,
}


def _print(columns: list[str], rows: list[Json]) -> None:
    table = [columns, *([str(row.get(column) or "") for column in columns] for row in rows)]
    widths = [max(len(line[place]) for line in table) for place in range(len(columns))]
    for line in table:
        print("  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip())
