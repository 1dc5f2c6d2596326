"""The process of `loci import --verify`."""

from collections.abc import Mapping

from cli.errors import CliError
from cli.importing.verify.calls import CALLS, NOT_COMPARED
from cli.importing.verify.walk import Server, Walk
from cli.server import password


def verify(old_url: str, url: str, environment: Mapping[str, str]) -> None:
    """Compares both servers and prints each difference and their number. Raises CliError where there is any."""
    key = environment.get("LETTA_OLD_PASSWORD", "")
    with Server(old_url, key) as old, Server(url, password(environment)) as new:
        walk = Walk(old, new, lambda line: print(line, flush=True))
        for call in CALLS:
            walk.compare(call)
    for subject in NOT_COMPARED:
        print(f"not compared: {subject}")
    print(f"{walk.lists:,} lists compared, {walk.differences:,} differences")
    if walk.differences:
        raise CliError(f"{walk.differences:,} differences from {old_url}")
