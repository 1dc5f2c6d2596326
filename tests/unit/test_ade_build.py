"""What builds the page: which Node will do, and what is said when a step fails."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from scripts import ade


@pytest.mark.parametrize(
    ("version", "will_do"),
    [
        ("v18.20.4\n", False),
        ("v20.18.0\n", False),
        ("v20.19.0\n", True),
        ("v21.7.0\n", False),
        ("v22.11.0\n", False),
        ("v22.12.0\n", True),
        ("v24.1.0\n", True),
        ("", False),
    ],
)
def test_which_node_will_do(version: str, will_do: bool) -> None:
    assert ade.is_new_enough(version) is will_do


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of the script, with sources, and a npm that does what the file `npm-does` says."""
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts" / "ade.py").write_bytes(Path(ade.__file__).read_bytes())
    (tmp_path / "ade" / "src").mkdir(parents=True)
    (tmp_path / "ade" / "package-lock.json").write_text("{}")
    (tmp_path / "ade" / "src" / "main.ts").write_text("1")
    for name, does in (("node", "echo v24.0.0"), ("npm", '. "$NPM_DOES"')):
        program = tmp_path / "bin" / name
        program.parent.mkdir(exist_ok=True)
        program.write_text(f"#!/bin/sh\n{does}\n")
        program.chmod(0o755)
    return tmp_path


def build(tree: Path, npm_does: str) -> subprocess.CompletedProcess[str]:
    (tree / "npm-does").write_text(f'echo "$1" >> npm-calls\n{npm_does}')
    environment = {"PATH": f"{tree / 'bin'}:{os.environ['PATH']}", "NPM_DOES": str(tree / "npm-does")}
    command = [sys.executable, str(tree / "scripts" / "ade.py"), "build"]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


WORKS = """
mkdir -p node_modules
touch node_modules/.package-lock.json
if [ "$1" = run ]; then
  mkdir -p "$ADE_OUT"
  cp src/main.ts "$ADE_OUT/index.html"
fi
"""


def test_it_is_built_once_for_the_same_sources(tree: Path) -> None:
    page, calls = tree / "ade" / "dist" / "index.html", tree / "ade" / "npm-calls"
    assert build(tree, WORKS).returncode == 0
    assert page.read_text() == "1"
    made = calls.read_text()
    calls.unlink()
    assert made.split() == ["ci", "run"]
    assert build(tree, WORKS).returncode == 0
    assert not calls.exists()
    assert not (tree / "ade" / "build-state").exists()


def test_a_change_is_built(tree: Path) -> None:
    build(tree, WORKS)
    (tree / "ade" / "npm-calls").unlink()
    (tree / "ade" / "src" / "main.ts").write_text("2")
    assert build(tree, WORKS).returncode == 0
    assert (tree / "ade" / "dist" / "index.html").read_text() == "2"


def test_a_build_that_fails_says_why_and_leaves_the_page(tree: Path) -> None:
    build(tree, WORKS)
    (tree / "ade" / "npm-calls").unlink()
    (tree / "ade" / "src" / "main.ts").write_text("2")
    failed = build(tree, "echo no such package; exit 1")
    assert failed.returncode == 1
    assert "no such package" in failed.stderr
    assert (tree / "ade" / "dist" / "index.html").read_text() == "1"
    state = (tree / "ade" / "build-state").read_text()
    assert "could not be built" in state
    assert "no such package" in state
    assert "make ade" in state


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("npm error code E404\nnpm error 404 Not Found - GET x\nnpm error A complete log is in y\n", "404 Not Found"),
        ("building\nerror during build: no such file\n    at main\n", "error during build: no such file"),
        ("one\ntwo\n\n", "two"),
        ("", "status 7"),
    ],
)
def test_the_line_that_says_why(said: str, why: str) -> None:
    assert why in ade.reason(said, 7)
