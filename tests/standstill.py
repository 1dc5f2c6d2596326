"""A pytest plugin: a test that failed while the machine itself stood still is run once more, and the end says so.

A virtual machine that is paused, or a disk that answers after seconds, ends every wait in every test at once: nothing
of ours failed. A child process with nothing to do but sleep and write one byte measures it: where it lost more than
a second, nothing here could run. A failure at any other time is a failure, whatever another try would give. Of each one
it is noted how long this process waited for a core: that tells a busy machine from a slow program.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest
import pytest_timeout
from _pytest.runner import runtestprotocol

from tests.suite.endings import WAITED

_PROGRAM = Path(__file__).with_name("standstill_watch.py")
# Of a report: how long the machine stood still while the test ran first.
_PROPERTY = "stood still"
_SCHEDULER = Path("/proc/self/schedstat")


class Watch:
    """Measures when the machine stood still, from now until `close`."""

    def __init__(self) -> None:
        self._told = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `close`
        self._child = subprocess.Popen(
            [sys.executable, "-I", str(_PROGRAM)],
            stdin=subprocess.PIPE,
            stdout=self._told,
            cwd="/",
            start_new_session=True,  # Ctrl-C is for the tests
        )

    def stood_still(self, since: float) -> float:
        """Seconds that were lost in one piece at or after `since` (`time.monotonic()`), the most; 0.0 for none."""
        time.sleep(0.5)  # the child may not have told of the last one yet
        size = os.fstat(self._told.fileno()).st_size
        lines = os.pread(self._told.fileno(), size, 0).decode().splitlines()
        lost = [ended - began for began, ended in (map(float, line.split()) for line in lines) if ended >= since]
        return max(lost, default=0.0)

    def close(self) -> None:
        """Ends the child."""
        assert self._child.stdin is not None
        self._child.stdin.close()
        self._child.wait(10)
        self._told.close()


class Standstill:
    """The plugin of a process that runs tests: in turn, beside a watch."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool:
        """Runs a test as pytest does, and once more after a standstill."""
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        since = time.monotonic()
        reports = _run(item, nextitem)
        if any(report.failed for report in reports) and (lost := self._watch.stood_still(since)):
            # What fixtures of more than this test were left in is not known either.
            item.session._setupstate.teardown_exact(None)
            set_timer(item)
            reports = _run(item, nextitem)
            reports[0].user_properties.append((_PROPERTY, lost))
        for report in reports:
            item.ihook.pytest_runtest_logreport(report=report)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        return True

    def pytest_unconfigure(self) -> None:
        """The watch ends with the run."""
        self._watch.close()


def _run(item: pytest.Item, nextitem: pytest.Item | None) -> list[pytest.TestReport]:
    """Runs a test; its time ends with it, so that it cannot run out between two tests, where nobody expects it."""
    waited = seconds_waited()
    try:
        reports = runtestprotocol(item, nextitem=nextitem, log=False)
    finally:
        item.config.hook.pytest_timeout_cancel_timer(item=item)
    for report in reports:
        if report.failed:
            report.user_properties.append((WAITED, seconds_waited() - waited))
    return reports


def set_timer(item: pytest.Item) -> None:
    """Gives a test that runs once more all of its time."""
    settings = pytest_timeout._get_item_settings(item)
    if settings.timeout and not settings.func_only:
        item.config.hook.pytest_timeout_set_timer(item=item, settings=settings)


def seconds_waited() -> float:
    """How long this process was ready to run and had no core, since it began; 0.0 where the system does not tell."""
    return int(_SCHEDULER.read_text().split()[1]) / 1e9 if _SCHEDULER.exists() else 0.0


class Told:
    """The plugin that says at the end what was run again, here or by workers."""

    def __init__(self) -> None:
        self._again: list[tuple[str, float]] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Notes a test that was run again."""
        for name, lost in report.user_properties:
            if name == _PROPERTY and isinstance(lost, float):
                self._again.append((report.nodeid, lost))

    @pytest.hookimpl(trylast=True)
    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Name the tests that were run again."""
        if self._again:
            terminalreporter.section("run again, for the machine stood still during them")
        for name, lost in self._again:
            terminalreporter.write_line(f"{lost:6.1f} s  {name}")


def pytest_configure(config: pytest.Config) -> None:
    """Begin to watch, where tests will run."""
    is_worker = hasattr(config, "workerinput")
    has_workers = not is_worker and config.getoption("dist", "no") != "no"
    if not (config.option.collectonly or has_workers):
        config.pluginmanager.register(Standstill(Watch()), "standstill")
    if not is_worker:
        config.pluginmanager.register(Told(), "standstill told")
