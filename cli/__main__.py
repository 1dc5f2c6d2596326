"""`python -m cli` is the `loci` command."""

from __future__ import annotations

import argparse
import os
import sys

from cli.errors import CliError


def main() -> None:
    """Parse, run, turn a CliError into one line and its exit status."""
    parser = argparse.ArgumentParser(prog="loci", description="A platform for stateful agents on your machine.")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("run", help="start everything here (settings: LOCI_HOME, LOCI_PORT, LOCI_HOST, ...)")
    chat = commands.add_parser("chat", help="talk to an agent in this terminal")
    chat.add_argument("agent", nargs="?", help="id or name; default: the newest agent, or a new one")
    chat.add_argument("--url", help="the server (default: LOCI_BASE_URL, else http://localhost:8283)")
    arguments = parser.parse_args()
    try:
        if arguments.command == "run":
            from cli.run import run  # noqa: PLC0415 - each command pays for its own imports alone

            run()
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


if __name__ == "__main__":
    main()
