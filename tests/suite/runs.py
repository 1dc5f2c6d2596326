"""One to three runs of pytest, a second try of the tests of time, and what came of all of it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.suite.endings import Ending, Results
from tests.suite.parts import AGAIN, rounds

# Codes of pytest that say no more than what is known of each test: all passed, or some failed.
_ORDINARY = (0, 1)


@dataclass
class Outcome:
    """What came of a suite."""

    passed: int = 0
    skipped: int = 0
    failed: list[tuple[str, str]] = field(default_factory=list)
    # Tests of time that passed at their second try: why they failed at the first.
    second: list[Ending] = field(default_factory=list)

    def lines(self) -> list[str]:
        """What .ci/run reads: a word, and for a test its id and a reason."""
        return [
            f"passed\t{self.passed}",
            f"skipped\t{self.skipped}",
            *(f"failed\t{test}\t{reason}" for test, reason in self.failed),
            *(f"second\t{one.test}\t{_first_try(one)}" for one in self.second),
        ]

    def __str__(self) -> str:
        lines = [""]
        if self.second:
            lines += [
                "== passed at the second try, alone",
                *(f"{one.test}\n    {_first_try(one)}" for one in self.second),
            ]
        if self.failed:
            lines += ["== failed", *(f"{test}\n    {reason}" for test, reason in self.failed)]
        return "\n".join([*lines, f"{self.passed} passed, {len(self.failed)} failed, {self.skipped} skipped"])


def names_tests(argument: str) -> bool:
    """Returns whether an argument of pytest is a file or a folder, or a test of one."""
    return not argument.startswith("-") and Path(argument.partition("::")[0]).exists()


def _first_try(ending: Ending) -> str:
    return f"{ending.reason} ({ending.seconds:.1f} s, of which it waited {ending.waited:.1f} s for a core)"


class Suite:
    """Runs of pytest that share a folder for what they say."""

    def __init__(self, folder: Path, arguments: Sequence[str]) -> None:
        self._folder = folder
        self._arguments = list(arguments)
        self._outcome = Outcome()

    def run(self, parts: Sequence[str], tally: Path | None) -> int:
        """Runs these parts, or what the arguments name if there are none; returns the exit code."""
        seed = os.environ.get("LOCI_TEST_SEED")
        if seed:
            self._arguments += ["--hypothesis-profile=random", f"--hypothesis-seed={seed}"]
            print(f"examples of Hypothesis are random; the same ones again: LOCI_TEST_SEED={seed}", flush=True)
        workers = ["-n", os.environ.get("LOCI_TEST_WORKERS", "2")]
        dealt = [part for part in parts if part != AGAIN.name]
        if not parts:
            self._pytest("first", [*workers, *self._arguments], {})
        for name, names in zip(("first", "browsers"), rounds(dealt) if dealt else (), strict=False):
            select = f"--parts={' '.join(names)}"
            self._pytest(name, [*workers, select, *self._arguments], _tools_in_bubblewrap())
        if AGAIN.name in parts:
            print("== once more, with tools in containers", flush=True)
            again = [*workers, "-m", "sandbox", *AGAIN.tests, *self._arguments]
            self._pytest("containers", again, {"LOCI_SANDBOX": "docker"})
        outcome = self._outcome
        print(outcome, flush=True)
        if tally:
            tally.write_text("\n".join(outcome.lines()) + "\n")
        return 1 if outcome.failed else 0

    def _pytest(self, name: str, arguments: Sequence[str], environment: Mapping[str, str]) -> None:
        """Runs pytest, then what failed of the tests of time once more, when nothing else runs."""
        results, code = self._once(name, arguments, environment)
        again = [test for test, ending in results.failed.items() if ending.timing]
        if len(results.failed) <= int(os.environ.get("LOCI_TEST_AGAIN", "0")):
            again = list(results.failed)
        second = Results([])
        if again:
            print("== once more, alone: tests that failed", flush=True)
            options = [argument for argument in arguments if not names_tests(argument)]
            second, _ = self._once(f"{name}-second", [*options, "-n", "0", *again], environment)
        outcome = self._outcome
        outcome.passed += len(results.passed)
        outcome.skipped += len(results.skipped)
        for test, ending in results.failed.items():
            if test in second.passed:
                outcome.passed += 1
                outcome.second.append(ending)
            else:
                outcome.failed.append((test, ending.reason))
        if code not in _ORDINARY:
            outcome.failed.append((f"pytest ({name})", f"it ended with exit code {code}; its last lines say why"))
        elif not results.complete:
            outcome.failed.append((f"pytest ({name})", "it ended before its tests did"))
        elif code == 1 and not results.failed:
            outcome.failed.append((f"pytest ({name})", "it says that a test failed, and none is known"))

    def _once(self, name: str, arguments: Sequence[str], environment: Mapping[str, str]) -> tuple[Results, int]:
        file = self._folder / f"{name}.jsonl"
        # The workers must find the same tests: texts hash alike in all of them.
        settings = {**os.environ, "PYTHONHASHSEED": "0", **environment}
        command = [sys.executable, "-m", "pytest", f"--results={file}", *arguments]
        code = subprocess.run(command, env=settings, check=False).returncode
        return Results.of(file), code


def _tools_in_bubblewrap() -> dict[str, str]:
    """Tools run there unless somebody says otherwise; the part `containers` has them in Docker."""
    usable = shutil.which("bwrap") is not None and "LOCI_SANDBOX" not in os.environ
    return {"LOCI_SANDBOX": "bubblewrap"} if usable else {}
