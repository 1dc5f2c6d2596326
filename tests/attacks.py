"""`python -m tests.attacks`: counts the attacks in each row of docs/security.md; fails where there are too few.

A case of a test is an attack; of the tenants' tests each place for an id is.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.e2e.tenants.hidden_routes import ASKED
from tests.e2e.tenants.places import places
from tests.e2e.tenants.rpcs import rpcs, ways
from tests.e2e.tenants.test_rest import ROUTES
from tests.role_matrix import ROLES, routes

PAGE = Path(__file__).parents[1] / "docs" / "security.md"
_ROW = re.compile(r"\| (?P<subject>[^|]+) \| (?P<least>\d+) \| (?P<modules>`tests/[^|]+) \|")
_TENANTS = "tests/e2e/tenants/"


class Row(NamedTuple):
    """Attacks on something. `least`: how many there are at least."""

    subject: str
    least: int
    modules: Sequence[str]


def rows() -> Iterator[Row]:
    """Yields the rows of the page's table."""
    for found in _ROW.finditer(PAGE.read_text()):
        yield Row(found["subject"], int(found["least"]), re.findall("`(.+?)`", found["modules"]))


def cases(modules: Sequence[str]) -> Counter[str]:
    """Returns how many cases each module of tests has."""
    command = (sys.executable, "-m", "pytest", "--collect-only", "-q", "-n", "0", *modules)
    done = subprocess.run(command, cwd=PAGE.parents[1], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"pytest cannot collect these modules:\n{done.stdout}")
    return Counter(line.partition("::")[0] for line in done.stdout.splitlines() if "::" in line)


def of_tenants() -> int:
    """Returns how many places for ids are attacked."""
    return len(ASKED) + sum(len(places(label)) for label in ROUTES) + sum(_ids_of_rpcs())


def _ids_of_rpcs() -> list[int]:
    return [len(list(ways(rpc.method.input_type))) for rpc in rpcs()]


def main() -> int:
    """Prints a line for each row; returns 1 where attacks are missing."""
    table = list(rows())
    found = cases([module for row in table for module in row.modules if module != _TENANTS])
    found[_TENANTS] = of_tenants()
    missing = False
    for row in table:
        number = sum(found[module] for module in row.modules)
        missing |= number < row.least
        print(f"{number:5}  {row.subject}" + (f": the page says {row.least}" if number < row.least else ""))
    in_rpcs = _ids_of_rpcs()
    print(f"{found.total():5}  in all")
    print(f"{len(routes()):5}  routes, each by {len(ROLES)} roles, a page's token and a tool")
    print(f"{len(in_rpcs):5}  RPCs, {sum(map(bool, in_rpcs))} of them with {sum(in_rpcs)} fields for ids")
    return int(missing)


if __name__ == "__main__":
    sys.exit(main())
