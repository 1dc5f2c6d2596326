"""What is built: its size, and its own unit tests."""

import gzip
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.stack import ROOT

MOST_BYTES = 300_000


def test_the_first_load_is_small(built_page: Path) -> None:
    manifest: dict[str, Any] = json.loads((built_page / "manifest.json").read_text())
    [entry] = [name for name, chunk in manifest.items() if chunk.get("isEntry")]
    scripts = _with_imports(manifest, entry)
    size = sum(len(gzip.compress((built_page / script).read_bytes())) for script in scripts)
    assert 50_000 < size < MOST_BYTES


def _with_imports(manifest: dict[str, Any], name: str) -> set[str]:
    """The scripts that the page cannot begin without."""
    chunk = manifest[name]
    return {chunk["file"]}.union(*(_with_imports(manifest, each) for each in chunk.get("imports", ())))


def test_unit_tests_of_the_page() -> None:
    if shutil.which("npm") is None:
        pytest.skip("needs npm")
    command = [sys.executable, str(ROOT / "scripts" / "ade.py"), "test"]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=110)
    assert result.returncode == 0, result.stdout + result.stderr
