"""A pytest plugin: LOCI_REQUIRE="docker,node" makes a failure of each test that is skipped for want of one (REASONS).

By hand a test that cannot run here is skipped, and a table says why. In CI that would hide a hundred tests.
"""

from __future__ import annotations

import os
import re
from collections.abc import Generator

import pytest

# What a reason to skip says when this is what is missing.
REASONS = {
    "docker": re.compile(r"docker|container engine|local-base|sandbox-image failed|apt-get|dpkg-deb", re.IGNORECASE),
    "node": re.compile(r"\bnode\b|\bnpm\b", re.IGNORECASE),
    "bwrap": re.compile(r"bubblewrap|bwrap", re.IGNORECASE),
    "chromium": re.compile(r"chromium", re.IGNORECASE),
    "nginx": re.compile(r"nginx", re.IGNORECASE),
}


def wanted(setting: str) -> list[str]:
    """Returns the names in LOCI_REQUIRE; raises UsageError for one that does not exist."""
    names = [name.strip() for name in setting.split(",") if name.strip()]
    if unknown := [name for name in names if name not in REASONS]:
        raise pytest.UsageError(f"LOCI_REQUIRE: {', '.join(unknown)} is none of {', '.join(REASONS)}")
    return names


def missing(reason: str, names: list[str]) -> str | None:
    """Returns which of the names a reason to skip is about."""
    return next((name for name in names if REASONS[name].search(reason)), None)


class Requirements:
    """The plugin of a process that runs tests."""

    def __init__(self, names: list[str]) -> None:
        self._names = names

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtest_makereport(self) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Turns a skip into a failure."""
        report = yield
        if report.skipped and isinstance(report.longrepr, tuple):
            reason = report.longrepr[2].removeprefix("Skipped: ")
            if name := missing(reason, self._names):
                report.outcome = "failed"
                report.longrepr = f"LOCI_REQUIRE={name}: {reason}"
        return report


def pytest_configure(config: pytest.Config) -> None:
    """Looks at what is required."""
    if names := wanted(os.environ.get("LOCI_REQUIRE", "")):
        config.pluginmanager.register(Requirements(names), "requirements")
