"""How tests ended: what the plugin of tests/suite/results.py writes, and what a run makes of it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

# Of a report: how long the process of the test waited for a core, see tests/standstill.py.
WAITED = "waited for a core"
# The last line of a file, if pytest came to its end.
END = "end"


@dataclass(frozen=True)
class Ending:
    """How one phase of a test ended: its set-up, itself, or what follows."""

    test: str
    outcome: str
    phase: str
    reason: str
    # Whether the test is marked `timing`.
    timing: bool
    seconds: float
    # Of these: for a core.
    waited: float


class Results:
    """What the lines of a file say, by test: failed if any phase of it failed."""

    def __init__(self, endings: Iterable[Ending], *, complete: bool = True) -> None:
        self.complete = complete
        self.failed: dict[str, Ending] = {}
        passed, skipped = set(), set()
        for ending in endings:
            if ending.outcome == "failed":
                self.failed.setdefault(ending.test, ending)
            elif ending.outcome == "skipped":
                skipped.add(ending.test)
            elif ending.phase == "call":
                passed.add(ending.test)
        self.skipped = skipped - self.failed.keys()
        self.passed = passed - self.failed.keys() - skipped

    @classmethod
    def of(cls, file: Path) -> Results:
        """Reads a file; there is none if pytest did not come to its first test."""
        lines = file.read_text().splitlines() if file.exists() else []
        complete = lines[-1:] == [END]
        return cls((Ending(**json.loads(line)) for line in lines if line != END), complete=complete)
