"""The fakes as programs of their own."""

import subprocess
import sys
from pathlib import Path

import httpx2
import pytest

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("module", ["openai_server", "anthropic_server"])
def test_serves_the_script_it_is_given(module: str, tmp_path: Path) -> None:
    script = tmp_path / "script.json"
    script.write_text('{"default": {"text": "from the file"}}')
    command = [sys.executable, "-m", f"tests.fakes.{module}", "--script", str(script), "--no-record"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        base = process.stdout.readline().strip().removesuffix("/v1")
        headers = {"authorization": "Bearer any", "anthropic-version": "2026-10-21"}
        body: dict[str, object] = {"model": "gpt-4o", "messages": [{"role": "user", "content": "hi"}]}
        path = "/v1/chat/completions"
        if module == "anthropic_server":
            body, path = {**body, "model": "claude-haiku-4-5", "max_tokens": 5}, "/v1/messages"
        answer = httpx2.post(base + path, headers=headers, json=body)
        process.terminate()
    assert "from the file" in answer.text
