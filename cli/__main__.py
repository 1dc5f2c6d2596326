"""`python -m cli` is the `loci` command."""

from __future__ import annotations

import argparse
import os
import sys

from cli import access_parsers
from cli.errors import CliError


def main() -> None:
    """Parse, run, turn a CliError into one line and its exit status."""
    parser = argparse.ArgumentParser(prog="loci", description="A platform for stateful agents on your machine.")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("run", help="start everything here (settings: LOCI_HOME, LOCI_PORT, LOCI_HOST, ...)")
    chat = commands.add_parser("chat", help="talk to an agent in this terminal")
    chat.add_argument("agent", nargs="?", help="id or name; default: the newest agent, or a new one")
    chat.add_argument("--url", help="the server (default: LOCI_BASE_URL, else http://localhost:8283)")
    _add_import(commands)
    exporting = commands.add_parser("export", help="write an agent and what was said to it into an agent file")
    exporting.add_argument("agent", help="id or name")
    exporting.add_argument("-o", "--output", metavar="FILE", help="default: <name>.af; - for the terminal")
    exporting.add_argument("--scrub-messages", action="store_true", help="without what was said")
    exporting.add_argument("--url", help="the server (default: LOCI_BASE_URL, else http://localhost:8283)")
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
            if not arguments.postgres:
                raise CliError("name an agent file, or a database with --postgres")
            from cli.importing.run import ImportOptions  # noqa: PLC0415
            from cli.importing.run import run as bring_over  # noqa: PLC0415

            fields = ImportOptions.__dataclass_fields__
            bring_over(ImportOptions(**{name: value for name, value in vars(arguments).items() if name in fields}))
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
    except BrokenPipeError:  # whoever read our output has seen enough; nothing may be flushed to him at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)


def _add_import(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    importing = commands.add_parser(
        "import",
        help="take in an agent file, or bring over what a Letta V1 server keeps in its Postgres "
        "(Loci must run; see docs/agent-files.md and docs/moving-in.md)",
    )
    importing.add_argument("file", nargs="?", metavar="FILE.af", help="an agent file in any of its forms")
    importing.add_argument("--name", help="of an agent file: the name of its agents")
    importing.add_argument("--model", metavar="HANDLE", help="of an agent file: the model of its agents")
    importing.add_argument("--embedding", metavar="HANDLE", help="of an agent file: their embedding model")
    importing.add_argument("--url", help="of an agent file: the server (default: LOCI_BASE_URL, else localhost:8283)")
    importing.add_argument("--postgres", default="", metavar="URL", help="the old server's database, only read")
    importing.add_argument(
        "--encryption-key", default="", metavar="KEY", help="the old server's (default: LETTA_ENCRYPTION_KEY)"
    )
    importing.add_argument(
        "--organization", default="", metavar="ORG", help="whose rows of the old server (default: the only one's)"
    )
    importing.add_argument("--into", default="", metavar="ORG", help="whose they are to be here (default: org-0000...)")
    importing.add_argument("--report", default="", metavar="FILE", help="write every row that is not taken, as JSON")
    importing.add_argument("--dry-run", action="store_true", help="read everything, say what would come, write nothing")


if __name__ == "__main__":
    main()
