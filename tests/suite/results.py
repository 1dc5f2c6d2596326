"""A pytest plugin: `--results FILE` writes a line of JSON for each test as soon as it is known how it ended.

So what is known stays known if the run itself is ended from outside. tests/suite/endings.py reads the file.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from tests.suite.endings import END, WAITED, Ending


class Writer:
    """The plugin of the process that hears of all tests."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Writes how a phase of a test ended; set-ups that passed say nothing."""
        if report.when == "call" or not report.passed:
            waited = next((value for name, value in report.user_properties if name == WAITED), 0.0)
            seconds = report.duration
            timing = "timing" in report.keywords
            self._write(
                Ending(
                    report.nodeid,
                    report.outcome,
                    report.when,
                    reason(report),
                    timing,
                    seconds,
                    float(str(waited)),
                )
            )

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Writes of a module that cannot be imported."""
        if report.failed:
            self._write(Ending(report.nodeid, "failed", "collect", reason(report), False, 0.0, 0.0))

    def pytest_sessionfinish(self) -> None:
        """Writes that there is no more to come."""
        self._write_line(END)

    def _write(self, ending: Ending) -> None:
        self._write_line(json.dumps(asdict(ending)))

    def _write_line(self, line: str) -> None:
        with self._file.open("a") as file:
            file.write(f"{line}\n")


def reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    """Returns the first line of why a test failed or was skipped."""
    match report.longrepr:
        case None:
            text = ""
        case (_, _, why):
            text = why.removeprefix("Skipped: ")
        case str(why):
            text = why
        case crash if (found := getattr(crash, "reprcrash", None)) is not None:
            text = found.message
        case other:  # a module that cannot be imported tells its reason last
            text = str(other).strip().rpartition("\n")[2].removeprefix("E").strip()
    return next(iter(text.strip().splitlines()), "")[:300]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds --results."""
    parser.addoption("--results", type=Path, help="write a line of JSON for each test into this file")


def pytest_configure(config: pytest.Config) -> None:
    """Begins a new file, in the process that hears of all tests."""
    file = config.getoption("results")
    if file and not hasattr(config, "workerinput"):
        file.write_text("")
        config.pluginmanager.register(Writer(file), "results")
