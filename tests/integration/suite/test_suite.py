"""One run of the suite: what it says of tests, which of them get a second try, and which are chosen."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import groupby
from pathlib import Path

import pytest

from tests.suite.parts import SHORT, SPLIT, all_names, parts_of_file

ROOT = Path(__file__).resolve().parents[3]
SETTINGS = """
[pytest]
addopts = -q -p tests.standstill -p tests.suite.requirements -p tests.suite.results -p tests.suite.selection
markers = timing
asyncio_default_fixture_loop_scope = function
"""
# Fails whenever a file is there no longer.
ONCE = """
import pathlib, pytest

def first_time():
    mark = pathlib.Path("mark")
    try: mark.touch(exist_ok=False)
    except FileExistsError: return False
    return True
"""


def run(folder: Path, tests: str, *arguments: str, **environment: str) -> tuple[int, str, list[str]]:
    """Runs these tests as a suite; returns its exit code, what it printed, and its tally."""
    (folder / "pytest.ini").write_text(SETTINGS)
    (folder / "test_it.py").write_text(ONCE + tests)
    command = [sys.executable, "-m", "tests.suite", f"--tally={folder}/tally", *(arguments or ("short",))]
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("LOCI_", "PYTEST_"))}
    settings = plain | {"PYTHONPATH": str(ROOT), "LOCI_TEST_WORKERS": "0"} | environment
    done = subprocess.run(command, cwd=folder, env=settings, capture_output=True, text=True, check=False)
    tally = folder / "tally"
    return done.returncode, done.stdout + done.stderr, tally.read_text().splitlines() if tally.exists() else []


def test_a_test_of_time_has_a_second_try_and_is_named(tmp_path: Path) -> None:
    tests = "@pytest.mark.timing\ndef test_slow():\n    assert not first_time(), 'too slow'\ndef test_good(): ..."
    code, output, tally = run(tmp_path, tests, LOCI_TEST_WORKERS="2")
    assert code == 0, output
    assert tally[:2] == ["passed\t2", "skipped\t0"]
    assert tally[2].startswith("second\ttest_it.py::test_slow\tAssertionError: too slow (")
    assert "== passed at the second try, alone\ntest_it.py::test_slow\n" in output
    assert output.endswith("\n2 passed, 0 failed, 0 skipped\n")


def test_another_one_has_none(tmp_path: Path) -> None:
    code, output, tally = run(tmp_path, "def test_logic():\n    assert not first_time(), 'two\\nlines'")
    assert code == 1
    assert tally == ["passed\t0", "skipped\t0", "failed\ttest_it.py::test_logic\tAssertionError: two"]
    assert output.endswith("\n0 passed, 1 failed, 0 skipped\n")


def test_what_fails_twice_fails(tmp_path: Path) -> None:
    code, _, tally = run(tmp_path, "@pytest.mark.timing\ndef test_slow():\n    assert 2 < 1")
    assert code == 1
    assert tally[2:] == ["failed\ttest_it.py::test_slow\tassert 2 < 1"]


def test_a_test_that_passes_and_cannot_be_torn_down_counts_once(tmp_path: Path) -> None:
    tests = "@pytest.fixture\ndef thing():\n    yield\n    raise OSError('left')\ndef test_it(thing): ..."
    code, _, tally = run(tmp_path, tests)
    assert code == 1
    assert tally == ["passed\t0", "skipped\t0", "failed\ttest_it.py::test_it\tOSError: left"]


def test_a_module_that_cannot_be_imported_is_named(tmp_path: Path) -> None:
    code, _, tally = run(tmp_path, "import no_such_module")
    assert code == 1
    assert "failed\ttest_it.py\tModuleNotFoundError: No module named 'no_such_module'" in tally


def test_a_run_that_is_killed_is_no_success(tmp_path: Path) -> None:
    code, _, tally = run(tmp_path, "import os\ndef test_good(): ...\ndef test_end(): os._exit(0)")
    assert code == 1
    assert tally == ["passed\t1", "skipped\t0", "failed\tpytest (first)\tit ended before its tests did"]


@pytest.mark.parametrize(
    ("reason", "required", "failed"),
    [
        ("no Docker engine answers", "docker", True),
        ("no Docker engine answers", "node,bwrap", False),
        ("needs: npm ci --prefix tests/e2e/npm", "node,bwrap", True),
        ("needs bubblewrap, or a Docker engine", ",node,bwrap", True),
        ("kubectl is not installed", "docker,node,bwrap", False),
    ],
)
def test_what_is_required_is_not_skipped(tmp_path: Path, reason: str, required: str, failed: bool) -> None:
    code, _, tally = run(tmp_path, f"def test_it(): pytest.skip({reason!r})", LOCI_REQUIRE=required)
    assert code == failed
    assert any(line.startswith("failed\ttest_it.py::test_it\tLOCI_REQUIRE=") for line in tally) == failed


STILL = """
import pathlib
from tests import standstill

class Still:
    def stood_still(self, since): return 2.0
    def close(self): pass

def pytest_configure(config):
    config.pluginmanager.register(standstill.Standstill(Still()), "still")
    config.pluginmanager.register(standstill.Told(), "told")

def note(what):
    with pathlib.Path("timers").open("a") as file: file.write(what + " ")
def pytest_timeout_set_timer(item, settings): note("set")
def pytest_timeout_cancel_timer(item): note("cancel")
"""


def test_after_a_standstill_a_test_has_all_of_its_time_again(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(STILL)
    tests = "@pytest.mark.timeout(60)\ndef test_it(): assert not first_time()"
    code, output, _ = run(tmp_path, tests, "short", "-p", "no:tests.standstill")
    assert code == 0, output
    assert "2.0 s  test_it.py::test_it" in output
    # No timer is left when the test is over, nor while it is asked whether the machine stood still.
    timers = (tmp_path / "timers").read_text().split()
    assert [what for what, _ in groupby(timers)] == ["set", "cancel", "set", "cancel"]


def test_a_word_that_is_no_part_is_refused(tmp_path: Path) -> None:
    code, output, _ = run(tmp_path, "", "shrot")
    assert code == 2
    assert "The parts are: ade, all, cli, clients" in output


def collected(*arguments: str) -> list[str]:
    command = [sys.executable, "-m", "pytest", "--collect-only", "-qq", "-n", "0", "-p", "no:cacheprovider"]
    done = subprocess.run([*command, *arguments, *SPLIT], cwd=ROOT, capture_output=True, text=True, check=False)
    counts = [line.rpartition(": ") for line in done.stdout.splitlines() if line.startswith("tests/")]
    assert counts or "no tests" in done.stdout, done.stdout + done.stderr
    return [f"{path}: {count}" for path, _, count in counts]


def test_no_test_of_a_module_in_two_parts_is_lost_or_run_twice() -> None:
    def total(lines: list[str]) -> int:
        return sum(int(line.rpartition(" ")[2]) for line in lines)

    whole, short, rest = collected(), collected(f"--parts={SHORT}"), collected(f"--parts={' '.join(all_names())}")
    assert len(short) == len(rest) == len(SPLIT)
    assert total(short) + total(rest) == total(whole)
    assert all(parts_of_file(path) == {SHORT, "deaths"} for path in SPLIT)
