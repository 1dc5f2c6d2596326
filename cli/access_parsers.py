"""What `loci keys` and `loci orgs` take; access.py does it."""

from __future__ import annotations

import argparse

ROLES = ("admin", "developer", "agent-only", "read-only")


def add_parsers(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """`keys` and `orgs`."""
    keys = _verbs(commands, "keys", "API keys: make, list, revoke")
    create = _verb(keys, "create", "make a key; what it says is shown this once")
    create.add_argument("name", help="for people")
    create.add_argument("--role", choices=ROLES, default="developer")
    create.add_argument("--agent", action="append", default=[], metavar="ID", help="of agent-only: one it may reach")
    create.add_argument("--rpm", type=int, metavar="N", help="requests a minute (default: the server's setting)")
    create.add_argument("--expires", metavar="TIME", help="for example 2027-01-31T00:00:00Z (default: never)")
    create.add_argument("--org", metavar="ID", help="whose key it is (default: yours; another's is for the operator)")
    _verb(keys, "list", "the keys there are")
    _verb(keys, "revoke", "end a key").add_argument("id", help="key-...")
    orgs = _verbs(commands, "orgs", "organizations, each a tenant: make, list, delete")
    _verb(orgs, "create", "make one").add_argument("name", nargs="?", help="default: a random one")
    _verb(orgs, "list", "those there are")
    delete = _verb(orgs, "delete", "end one with all it has: its agents, and what they remember")
    delete.add_argument("id", help="org-...")
    delete.add_argument("--yes", action="store_true", help="do not ask")


def _verbs(
    commands: argparse._SubParsersAction[argparse.ArgumentParser], name: str, says: str
) -> argparse._SubParsersAction[argparse.ArgumentParser]:
    return commands.add_parser(name, help=says).add_subparsers(dest="verb", required=True)


def _verb(verbs: argparse._SubParsersAction[argparse.ArgumentParser], name: str, says: str) -> argparse.ArgumentParser:
    parser = verbs.add_parser(name, help=says)
    parser.add_argument("--url", help="the server (default: LOCI_BASE_URL, LETTA_BASE_URL, else http://localhost:8283)")
    return parser
