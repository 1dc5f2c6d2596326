"""`loci export` and `loci import FILE.af`: agents as files, over REST."""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from pathlib import Path

from cli.errors import CliError
from cli.server import base_url, password
from cli.streaming import Client

_NOT_IN_NAMES = re.compile(r"[^\w-]+")


def run(arguments: argparse.Namespace) -> None:
    """Runs the command. Raises CliError."""
    with Client(base_url(arguments.url, os.environ), password(os.environ)) as client:
        if arguments.command == "export":
            export(client, arguments.agent, arguments.output, scrub_messages=arguments.scrub_messages)
        else:
            import_file(client, Path(arguments.file), arguments)


def export(client: Client, id_or_name: str, output: str | None, *, scrub_messages: bool) -> None:
    """Writes the agent of that id or name into a file."""
    agent = client.get_agent(id_or_name)
    document = client.export_agent(agent["id"], scrub_messages=scrub_messages)
    text = json.dumps(document, indent=2, ensure_ascii=False) + "\n"
    if output == "-":
        sys.stdout.write(text)
        return
    path = Path(output or f"{_NOT_IN_NAMES.sub('_', agent['name'])}.af")
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise CliError(f"{path} cannot be written: {error.strerror}") from None
    print(f"{agent['name']} ({agent['id']}) is in {path}")


def import_file(client: Client, path: Path, options: argparse.Namespace) -> None:
    """Creates the agents of a file, with the names they have there."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise CliError(f"{path} cannot be read: {error.strerror}") from None
    answer = client.import_agents(
        data,
        name=options.name,
        model=options.model,
        embedding=options.embedding,
        append_copy_suffix="false",
    )
    for warning in answer.get("warnings", ()):
        print(f"note: {warning}", file=sys.stderr)
    for agent_id in answer["agent_ids"]:
        agent = client.get_agent(agent_id)
        print(f"{agent['name']} ({agent_id}), model {agent.get('model')}")
