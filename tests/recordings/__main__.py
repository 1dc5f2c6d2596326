"""Prints how this Loci's answers differ from the recordings.

python -m tests.recordings [--only 'approve-*,conv-list'] [--to FOLDER]
    [--summary] [--no-extra] [--no-wording] [--json OUT]

FOLDER keeps the answers (`FOLDER/actual`); without it they are gone at the end.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tests.recordings.replay import differences, recorder


def main() -> int:
    """Replays, prints the report and returns the comparer's exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="*")
    parser.add_argument("--to", type=Path)
    known, options = parser.parse_known_args()
    with tempfile.TemporaryDirectory(prefix="loci-recordings-") as spare:
        folder = known.to or Path(spare)
        folder.mkdir(parents=True, exist_ok=True)
        with recorder() as ours:
            ours.record(folder, known.only)
        status, report = differences(folder, known.only, tuple(options))
    print(report)
    return status


if __name__ == "__main__":
    sys.exit(main())
