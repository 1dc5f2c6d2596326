"""The table at the end of a run says what was not tested and why."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

TESTS = """
import pytest

@pytest.mark.skip(reason="no Docker engine answers")
def test_marked(): ...

@pytest.mark.parametrize("n", [1, 2])
def test_called(n):
    pytest.skip("npm is not installed")
"""


def run(folder: Path, tests: str) -> str:
    (folder / "test_it.py").write_text(tests)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-c",
        "/dev/null",
        "--rootdir",
        str(folder),
        "-p",
        "tests.skip_table",
    ]
    done = subprocess.run([*command, str(folder)], capture_output=True, text=True, check=False)
    return done.stdout


def test_reasons_are_counted(tmp_path: Path) -> None:
    output = run(tmp_path, TESTS)
    assert "    2  npm is not installed\n    1  no Docker engine answers\n" in output


def test_a_full_run_says_so(tmp_path: Path) -> None:
    assert "nothing: every test ran" in run(tmp_path, "def test_it(): ...")
