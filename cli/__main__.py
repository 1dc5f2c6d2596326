"""`python -m cli` is the `loci` command."""

from __future__ import annotations

import argparse
import os
import sys

from cli import access_parsers
from cli.errors import CliError
from cli.server import DEFAULT, base_url


def main() -> None:
    """Parses and runs a command; prints a CliError as one line and exits with its status."""
    parser = argparse.ArgumentParser(prog="loci", description="A platform for stateful agents on your machine.")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("run", help="start everything here (settings: LOCI_HOME, LOCI_PORT, LOCI_HOST, ...)")
    chat = commands.add_parser("chat", help="talk to an agent in this terminal")
    chat.add_argument("agent", nargs="?", help="id or name; default: the newest agent, or a new one")
    chat.add_argument("--url", help=f"the server ({DEFAULT})")
    _add_import(commands)
    exporting = commands.add_parser("export", help="write an agent with its messages into an agent file")
    exporting.add_argument("agent", help="id or name")
    exporting.add_argument("-o", "--output", metavar="FILE", help="default: <name>.af; - for the terminal")
    exporting.add_argument("--scrub-messages", action="store_true", help="leave the messages out")
    exporting.add_argument("--url", help=f"the server ({DEFAULT})")
    access_parsers.add_parsers(commands)
    arguments = parser.parse_args()
    try:
        if arguments.command == "run":
            from cli.run import run  # noqa: PLC0415 - each command pays for its own imports alone

            run()
        elif arguments.command == "export" or (arguments.command == "import" and arguments.file):
            from cli import agent_files  # noqa: PLC0415

            agent_files.run(arguments)
        elif arguments.command == "import":
            _import(arguments)
        elif arguments.command in ("keys", "orgs"):
            from cli.access import run as manage  # noqa: PLC0415

            manage(arguments)
        else:
            from cli.chat import chat as talk  # noqa: PLC0415

            talk(arguments.agent, arguments.url)
    except CliError as error:
        print(f"loci: {error}", file=sys.stderr)
        sys.exit(error.code)
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:  # whoever read our output has seen enough; nothing may be flushed at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)


def _import(arguments: argparse.Namespace) -> None:
    """Imports a database, compares two servers, or one after the other. Raises CliError."""
    if not arguments.postgres and not arguments.verify:
        raise CliError("name an agent file, a database with --postgres, or a server with --verify")
    if arguments.postgres:
        from cli.importing.run import ImportOptions  # noqa: PLC0415
        from cli.importing.run import run as import_database  # noqa: PLC0415

        fields = ImportOptions.__dataclass_fields__
        import_database(ImportOptions(**{name: value for name, value in vars(arguments).items() if name in fields}))
    if arguments.verify:
        from cli.importing.verify.run import verify  # noqa: PLC0415

        verify(arguments.verify, base_url(arguments.url, os.environ), os.environ)


def _add_import(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    importing = commands.add_parser(
        "import",
        help="import an agent file, or all data of a Letta V1 server from its Postgres "
        "(Loci must run; see docs/agent-files.md and docs/moving-in.md)",
    )
    importing.add_argument("file", nargs="?", metavar="FILE.af", help="an agent file in any of its forms")
    importing.add_argument("--name", help="name of the agents (agent files only)")
    importing.add_argument("--model", metavar="HANDLE", help="model of the agents (agent files only)")
    importing.add_argument("--embedding", metavar="HANDLE", help="embedding model of the agents (agent files only)")
    importing.add_argument("--url", help=f"the server (agent files and --verify; {DEFAULT})")
    importing.add_argument(
        "--postgres", default="", metavar="URL", help="URL of the old server's database, which is only read"
    )
    importing.add_argument(
        "--encryption-key",
        default="",
        metavar="KEY",
        help="encryption key of the old server (default: LETTA_ENCRYPTION_KEY)",
    )
    importing.add_argument(
        "--organization",
        default="",
        metavar="ORG",
        help="organization of the old server to import (default: the only one)",
    )
    importing.add_argument(
        "--into", default="", metavar="ORG", help="organization here that gets the data (default: org-0000...)"
    )
    importing.add_argument(
        "--report", default="", metavar="FILE", help="write a JSON report with every row that is not taken"
    )
    importing.add_argument(
        "--verify",
        default="",
        metavar="OLD_BASE_URL",
        help="ask the old server and this one the same, and print each difference (its key: LETTA_OLD_PASSWORD)",
    )
    importing.add_argument("--dry-run", action="store_true", help="read everything and print the report, write nothing")


if __name__ == "__main__":
    main()
