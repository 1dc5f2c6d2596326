"""A pytest plugin: at the end of a run, one table of what was skipped and why."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest


def _reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    if isinstance(report.longrepr, tuple):
        return str(report.longrepr[2]).removeprefix("Skipped: ")
    return str(report.longrepr)


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print how many tests each missing thing cost, the costliest first."""
    if terminalreporter.config.option.collectonly:
        return
    reports = terminalreporter.stats.get("skipped", [])
    counts = Counter(_reason(report) for report in reports)
    terminalreporter.section("not run here, and why")
    if not counts:
        terminalreporter.write_line("nothing: every test ran")
    for reason, count in counts.most_common():
        terminalreporter.write_line(f"{count:5d}  {reason}")
