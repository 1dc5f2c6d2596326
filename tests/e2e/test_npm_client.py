"""The walk with the official TypeScript client."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.e2e.stack import Stack

FOLDER = Path(__file__).parent / "npm"


@pytest.mark.skipif(shutil.which("node") is None, reason="Node is not installed")
@pytest.mark.skipif(not (FOLDER / "node_modules").is_dir(), reason="needs: npm ci --prefix tests/e2e/npm")
def test_walk(stack: Stack) -> None:
    command = ["node", "walk.mjs", stack.url]
    walked = subprocess.run(command, cwd=FOLDER, capture_output=True, text=True, timeout=90, check=False)
    assert walked.returncode == 0, walked.stderr
    seen = json.loads(walked.stdout)
    assert {"memory_insert", "memory_replace", "conversation_search", "archival_memory_insert"} <= set(seen["tools"])
    assert seen["stopReason"] == "end_turn"
    assert "Ada" in seen["human"]
    assert "Haskell" in seen["human"]
    assert seen["steps"][-2:] == ["stop_reason", "usage_statistics"]
    assert len(seen["tokens"]) > 1
    assert "Ada" in "".join(seen["tokens"])
    assert "GHC" in seen["found"]
    assert seen["doubled"] == "42"
    assert seen["listed"] >= 10
    assert seen["gone"] == 404
