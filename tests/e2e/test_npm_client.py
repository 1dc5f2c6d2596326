"""The walk with the official TypeScript client; the AI SDK with OpenAI's provider and with Letta's."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.helpers import create
from tests.e2e.stack import Stack
from tests.fakes.openai_server import OpenAIServer
from tests.fakes.script import Reply, ToolCall

FOLDER = Path(__file__).parent / "npm"

pytestmark = [
    pytest.mark.skipif(shutil.which("node") is None, reason="Node is not installed"),
    pytest.mark.skipif(not (FOLDER / "node_modules").is_dir(), reason="needs: npm ci --prefix tests/e2e/npm"),
]


def run(*command: str) -> Any:
    done = subprocess.run(["node", *command], cwd=FOLDER, capture_output=True, text=True, timeout=90, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("major", ["5", "6"])
def test_the_ai_sdk(stack: Stack, openai_fake: OpenAIServer, major: str) -> None:
    agent_id = create(stack.client(), "openai/gpt-4o-mini")
    call = Reply(calls=(ToolCall("ls", {"path": "/"}),))
    turns = (
        Reply(text="Hello."), call, Reply(text="There is a.txt."), Reply(text="Hello again."),
        Reply(text='{"name": "Ada"}'), call, Reply(text="Still a.txt."),
    )  # fmt: skip
    openai_fake.reply(*turns, *turns, Reply(text="Hi."), Reply(text="Hi again."))
    seen = run("ai.mjs", stack.url, agent_id, major)
    expected = {
        "text": "Hello.",
        "again": "Hello again.",
        "object": {"name": "Ada"},
        "tools": ["There is a.txt.", 2],
        "stream": "Still a.txt.",
    }
    assert seen == {"chat": expected, "responses": expected, "letta": {"text": "Hi.", "stream": "Hi again."}}
    returned = [body["messages"][-1] for body in openai_fake.bodies("/chat/completions")]
    assert sum("/a.txt" in str(message["content"]) for message in returned if message["role"] == "tool") == 4


def test_walk(stack: Stack) -> None:
    seen = run("walk.mjs", stack.url)
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
