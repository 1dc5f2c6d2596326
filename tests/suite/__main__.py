"""Runs parts of the suite, gives tests of time their second try, and says at the end how all of it went.

    python -m tests.suite short                      what `make test` runs
    python -m tests.suite all -x tests/unit          arguments after the parts go to pytest
    python -m tests.suite --tally FILE deaths cli    writes what .ci/run needs for its table

Where the arguments name tests, these run, whatever part they belong to. LOCI_TEST_WORKERS (2) is the number of
processes, 0 for one alone; LOCI_TEST_SEED=N tries random examples of Hypothesis instead of the same ones each time.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tests.suite.parts import SHORT, all_names
from tests.suite.runs import Suite, names_tests


def main() -> int:
    """Returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.suite", add_help=False)
    parser.add_argument("--tally", type=Path)
    options, rest = parser.parse_known_args()
    known = {SHORT, "all", *all_names()}
    count = next((place for place, word in enumerate(rest) if word not in known), len(rest))
    parts, arguments = rest[:count], rest[count:]
    if not parts:
        print(__doc__, f"The parts are: {', '.join(sorted(known))}.", file=sys.stderr, sep="\n")
        return 2
    if "all" in parts:
        parts = [SHORT, *all_names()]
    if any(map(names_tests, arguments)):
        parts = []
    with tempfile.TemporaryDirectory(prefix="loci-results-") as folder:
        return Suite(Path(folder), arguments).run(parts, options.tally)


if __name__ == "__main__":
    sys.exit(main())
