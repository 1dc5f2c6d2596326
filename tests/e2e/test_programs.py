"""Clients of others, each installed from its registry into a place of its own, and run as it is."""

import json
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.helpers import create
from tests.e2e.stack import Stack
from tests.fakes.openai_server import OpenAIServer
from tests.fakes.script import Reply, RequestView, ToolCall

FOLDER = Path(__file__).parent / "programs"
TERMINAL = Path(__file__).parent / "npm-letta-code/node_modules/.bin"
TERMINAL_SDK = Path(__file__).parent / "npm-letta-code-sdk"
MODEL = "openai/gpt-4o-mini"


def _program(name: str, *arguments: str, home: Path, **more: str) -> str:
    """Runs a command of an environment; returns what it prints."""
    binaries = FOLDER / name / ".venv/bin"
    if not binaries.is_dir():
        pytest.skip(f"needs: make tests/e2e/programs/{name}/.venv/.ready")
    environment = {
        "PATH": f"{binaries}:{TERMINAL}:{os.environ['PATH']}",
        "HOME": str(home),
        # It would fetch a list of prices.
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "LETTA_CODE_TELEM": "0",
        # It would ask for its newest release.
        "FASTMCP_CHECK_FOR_UPDATES": "off",
        **more,
    }
    return _run(arguments, home, environment)


def _run(command: Sequence[str], folder: Path, environment: dict[str, str]) -> str:
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=100, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def _obeys(seen: RequestView) -> Reply:
    """A model that says what it is told to say, calls what it is told to call, and fills forms."""
    verb, _, rest = seen.last_text.strip().splitlines()[-1].partition(" ")
    if verb == "call":
        arguments: dict[str, dict[str, Any]] = {"double": {"number": 21}, "Person": {"name": "Ada"}}
        return Reply(calls=(ToolCall(rest, arguments[rest]),))
    return Reply(text='{"name": "Ada"}' if verb == "as" else rest)


def test_langchain_and_litellm(stack: Stack, openai_fake: OpenAIServer, tmp_path: Path) -> None:
    openai_fake.answer(_obeys)
    agent_id = create(stack.client(), MODEL)
    printed = _program("openai", "python", str(FOLDER / "openai/program.py"), stack.url, agent_id, home=tmp_path)
    assert json.loads(printed.splitlines()[-1]) == {
        "langchain": {
            "invoked": "invoked",
            "streamed": "streamed",
            "stopped": "one ",
            "called": {"number": 21},
            "formed": "Ada",
            "by_schema": "Ada",
            "responded": "responded",
            "dimensions": [384, 384],
        },
        "lite": {"completed": "hello", "streamed": "hello", "formed": "Ada", "responded": "responded"},
    }


def test_the_ai_memory_sdk(stack: Stack, openai_fake: OpenAIServer, tmp_path: Path) -> None:
    openai_fake.answer(lambda _: Reply(text="Noted."))
    seen: Any = json.loads(_program("memory", "python", str(FOLDER / "memory/program.py"), stack.url, home=tmp_path))
    assert (seen["run"], seen["agents"]) == ("completed", 1)
    assert "Likes cats" in str(seen["kept"])
    assert "<preferences" in seen["shown"]


def test_letta_evals(stack: Stack, openai_fake: OpenAIServer, tmp_path: Path) -> None:
    if shutil.which("node") is None or not (TERMINAL / "letta").exists():
        pytest.skip("needs: npm ci --prefix tests/e2e/npm-letta-code")
    openai_fake.answer(_obeys)
    for name in ("suite.yaml", "dataset.jsonl"):
        shutil.copy(FOLDER / "evals" / name, tmp_path)
    command = ("letta-evals", "run", "suite.yaml", "--output", "results")
    _program("evals", *command, home=tmp_path, LETTA_BASE_URL=stack.url, LETTA_API_KEY="none")
    summary = json.loads((tmp_path / "results/summary.json").read_text())
    (model,) = summary["models"]
    assert (model["n_attempted"], model["reward"]) == (2, 0.5)


def test_the_letta_mcp_server(stack: Stack, openai_fake: OpenAIServer, tmp_path: Path) -> None:
    openai_fake.answer(_obeys)
    command = ("python", str(FOLDER / "mcp/program.py"), MODEL)
    printed = _program("mcp", *command, home=tmp_path, LETTA_BASE_URL=stack.url, LETTA_API_KEY="none")
    assert json.loads(printed) == {
        "listed": True,
        "said": "hello",
        "history": ["hello"],
        "tools": True,
        "renamed": "Renamed",
        "gone": True,
    }


@pytest.mark.parametrize("memory", ["blocks", "repository"])
def test_the_terminal_client_of_python(stack: Stack, openai_fake: OpenAIServer, tmp_path: Path, memory: str) -> None:
    openai_fake.answer(_obeys)
    command = ["letta", "-p", "say hello", "--output-format", "json", "--new-agent", "--model", MODEL]
    settings = {"LETTA_BASE_URL": stack.url}
    if memory == "repository":
        command.append("--memfs")
        settings |= {"LETTA_MEMFS_LOCAL": "1", "LETTA_MEMFS_BASE_URL": stack.url}
    answer = json.loads(_program("terminal", *command, home=tmp_path, **settings))
    assert (answer["subtype"], answer["result"]) == ("success", "hello")
    cloned = list(tmp_path.glob(f".letta/**/{answer['agent_id']}/**/.git/HEAD"))
    assert bool(cloned) == (memory == "repository")


def test_the_letta_code_sdk(stack: Stack, openai_fake: OpenAIServer, tmp_path: Path) -> None:
    if shutil.which("node") is None or not (TERMINAL_SDK / "node_modules").is_dir():
        pytest.skip("needs: npm ci --prefix tests/e2e/npm-letta-code-sdk")
    openai_fake.answer(_obeys)
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "LETTA_CODE_TELEM": "0",
        "LETTA_API_KEY": "none",
        "LETTA_BASE_URL": stack.url,
        "LETTA_MEMFS_LOCAL": "1",
        "LETTA_MEMFS_BASE_URL": stack.url,
    }
    seen = json.loads(_run(("node", "program.mjs", str(tmp_path), MODEL), TERMINAL_SDK, environment))
    assert (seen["turns"], seen["apart"]) == (["one", "two"], "three")
    assert len(set(seen["conversations"])) == 2
    said = str(openai_fake.bodies()[-1]["messages"])
    assert "say three" in said
    assert "say one" not in said
    assert stack.client().agents.blocks.retrieve("persona", agent_id=seen["agent"]).value
