"""Every method of the official TypeScript client: one Node process goes through the table in npm/methods.mjs."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import Providers
from tests.e2e.device import connected
from tests.e2e.sdk_methods.walking import methods
from tests.e2e.stack import Stack
from tests.fakes.mcp_server import McpServer
from tests.fakes.script import Reply, Rule

FOLDER = Path(__file__).parents[1] / "npm"
METHODS = methods()

pytestmark = [
    # The first of them waits for Node, and maybe for Loci.
    pytest.mark.timeout(420),
    pytest.mark.skipif(shutil.which("node") is None, reason="Node is not installed"),
    pytest.mark.skipif(not (FOLDER / "node_modules").is_dir(), reason="needs: npm ci --prefix tests/e2e/npm"),
]


@pytest.fixture(scope="module")
def told(open_stack: Stack, providers: Providers) -> Any:
    """Returns Node's output, under the names that the methods have in Python."""
    providers.openai.rules(Rule(Reply(hang=True)))
    try:
        with McpServer().in_thread() as mcp, connected(open_stack.url, "node", connectionName="Laptop") as device:
            command = ["node", "methods.mjs", open_stack.url, mcp.url, device.device_id, device.connection_id]
            ran = subprocess.run(command, cwd=FOLDER, capture_output=True, text=True, timeout=300, check=False)
    finally:
        providers.openai.reset()
    assert ran.returncode == 0, ran.stderr
    seen = json.loads(ran.stdout)
    cases = {_python_name(name): case for name, case in seen["cases"].items()}
    return {"methods": set(map(_python_name, seen["methods"])), "cases": cases}


def _python_name(name: str) -> str:
    return re.sub(r"[A-Z]", lambda found: f"_{found[0].lower()}", name)


def test_every_method_has_a_case(told: Any) -> None:
    assert told["methods"] == set(told["cases"])
    assert told["methods"] == set(METHODS)


@pytest.mark.parametrize("name", METHODS)
def test_what_it_does(told: Any, name: str) -> None:
    case = told["cases"][name]
    assert case["error"] is None, case["error"]
    statuses = [status for verb, path, status in case["requests"] if METHODS[name].matches(verb, path)]
    assert any(status < 300 for status in statuses), "the case never succeeded in calling it"
