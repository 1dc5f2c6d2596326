"""The command lines of `loci keys` and `loci orgs`; access.py runs them."""

from __future__ import annotations

import argparse

from cli.server import DEFAULT

ROLES = ("admin", "developer", "agent-only", "read-only")


def add_parsers(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds `keys` and `orgs`."""
    keys = _verbs(commands, "keys", "create, list and revoke API keys")
    create = _verb(keys, "create", "create a key; its secret is printed this once")
    create.add_argument("name", help="a name for people")
    create.add_argument("--role", choices=ROLES, default="developer")
    create.add_argument(
        "--agent",
        action="append",
        default=[],
        metavar="ID",
        help="an agent that an agent-only key may reach; repeatable",
    )
    create.add_argument("--rpm", type=int, metavar="N", help="requests a minute (default: the server's setting)")
    create.add_argument("--expires", metavar="TIME", help="for example 2027-01-31T00:00:00Z (default: never)")
    create.add_argument(
        "--org", metavar="ID", help="organization of the key (default: yours; others need the operator)"
    )
    _verb(keys, "list", "list the keys")
    _verb(keys, "revoke", "revoke a key").add_argument("id", help="key-...")
    orgs = _verbs(commands, "orgs", "create, list and delete organizations (tenants)")
    _verb(orgs, "create", "create an organization").add_argument("name", nargs="?", help="default: a random one")
    _verb(orgs, "list", "list the organizations")
    delete = _verb(orgs, "delete", "delete an organization with its agents and their memory")
    delete.add_argument("id", help="org-...")
    delete.add_argument("--yes", action="store_true", help="do not ask")


def _verbs(
    commands: argparse._SubParsersAction[argparse.ArgumentParser], name: str, text: str
) -> argparse._SubParsersAction[argparse.ArgumentParser]:
    return commands.add_parser(name, help=text).add_subparsers(dest="verb", required=True)


def _verb(verbs: argparse._SubParsersAction[argparse.ArgumentParser], name: str, text: str) -> argparse.ArgumentParser:
    parser = verbs.add_parser(name, help=text)
    parser.add_argument("--url", help=f"the server ({DEFAULT})")
    return parser
