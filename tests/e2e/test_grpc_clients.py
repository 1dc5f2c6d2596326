"""Clients of the public gRPC API in two languages: TypeScript from the protos with buf, and the documented Python."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.stack import ROOT, Stack

TYPESCRIPT = Path(__file__).parent / "typescript"
PYTHON_PAGE = ROOT / "docs" / "clients" / "python-grpc.md"


def output(*command: str, cwd: Path, **environment: str) -> str:
    """Runs a command, which must succeed; returns its output."""
    done = subprocess.run(
        command, cwd=cwd, env=os.environ | environment, capture_output=True, text=True, timeout=90, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def built() -> Path:
    """The TypeScript project, generated and compiled."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        pytest.skip("Node is not installed")
    if not (TYPESCRIPT / "node_modules").is_dir():
        pytest.skip("needs: npm ci --prefix tests/e2e/typescript")
    output("npm", "run", "build", cwd=TYPESCRIPT)
    return TYPESCRIPT


def test_typescript(built: Path, stack: Stack) -> None:
    printed = output("node", "dist/src/main.js", cwd=built, LOCI_GRPC_PORT=str(stack.grpc_port)).splitlines()
    assert printed[0].startswith("agent agent-")
    assert sum(line.startswith("delta ") for line in printed) > 1, printed
    assert "message toolReturnMessage" in printed
    assert "message assistantMessage" in printed
    assert [line for line in printed if line.startswith("end ")] == ["end END_TURN"]
    assert printed[-1].startswith("human ")
    assert "Ada" in printed[-1]


def test_the_documented_python(stack: Stack) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", PYTHON_PAGE.read_text(), flags=re.DOTALL)
    assert len(example.splitlines()) <= 12
    program = example.replace("127.0.0.1:8284", f"127.0.0.1:{stack.grpc_port}")
    assert program != example
    answer, _, block = (
        output(sys.executable, "-c", program, cwd=ROOT, PYTHONPATH=str(ROOT / "gen")).rstrip().rpartition("\n")
    )
    assert answer.strip()
    assert "Ada" in block
