"""Replays the recordings against a Loci of its own: the scenarios' requests, with the scripted model behind it."""

from __future__ import annotations

import fnmatch
import json
import shutil
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tests.e2e.stack import ROOT, own_port, running
from tests.polling import wait_until

HERE = Path(__file__).resolve().parent
TOOLS = HERE / "tools"


@contextmanager
def scripted_model() -> Iterator[str]:
    """The base URL of the model that the scenarios script, in a process of its own."""
    with own_port() as port:
        url = f"http://127.0.0.1:{port}"
        child = subprocess.Popen([sys.executable, str(TOOLS / "fake_llm.py"), "--port", str(port)], cwd=ROOT)
        try:
            wait_until(lambda: _answers(f"{url}/_control/requests"), 60, problem=lambda: "the scripted model is silent")
            yield url
        finally:
            child.terminate()
            child.wait(10)


def _answers(url: str) -> bool:
    with suppress(urllib.error.URLError, ConnectionError):
        urllib.request.urlopen(url, timeout=1).close()
        return True
    return False


def _knows_models(url: str) -> bool:
    body = json.dumps({"name": "first", "embedding": "openai/text-embedding-3-small"}).encode()
    request = urllib.request.Request(f"{url}/v1/archives/", body, {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        return bool(json.load(answer)["embedding_config"]["embedding_dim"])


def environment(model: str) -> dict[str, str]:
    """Returns the settings of a Loci that asks the scripted model."""
    return {
        "OPENAI_API_KEY": "x",
        "OPENAI_BASE_URL": f"{model}/v1",
        "ANTHROPIC_API_KEY": "x",
        "ANTHROPIC_BASE_URL": model,
        "LOCI_MCP_STDIO_PATHS": f"{TOOLS}:{sys.prefix}:{sys.base_prefix}",
    }


@dataclass(frozen=True)
class Recorder:
    """A Loci and the model behind it, to which scenarios are played; each one begins by deleting everything."""

    url: str
    model: str

    def record(self, folder: Path, only: str = "*") -> None:
        """Writes into `folder/actual` what Loci answers to the scenarios whose names match one of the globs."""
        command = [sys.executable, str(TOOLS / "record.py"), self.url, str(folder / "actual")]
        command += ["--scenarios", str(HERE / "scenarios"), "--only", only, "--fake", self.model, "--label", "Loci"]
        subprocess.run(command, check=True, cwd=ROOT)


@contextmanager
def recorder() -> Iterator[Recorder]:
    """A Recorder with a Loci and a model of its own."""
    with scripted_model() as model, running(environment(model)) as stack:
        # On a busy machine the first answers would be without the figures of the models.
        wait_until(lambda: _knows_models(stack.url), 30, pause=0.5, problem=lambda: "the gateway knows no models")
        yield Recorder(stack.url, model)


def differences(folder: Path, only: str = "*", options: tuple[str, ...] = ()) -> tuple[int, str]:
    """Returns the comparer's exit status (0: nothing open) and its report on what a Recorder wrote."""
    expected = folder / "expected"
    expected.mkdir(exist_ok=True)
    for file in sorted((HERE / "expected").glob("*.json")):
        if any(fnmatch.fnmatch(file.stem, glob) for glob in only.split(",")):
            shutil.copy(file, expected)
    command = [sys.executable, str(TOOLS / "compare.py"), str(expected), str(folder / "actual")]
    command += ["--ignore", str(HERE / "agreed.json"), *options]
    done = subprocess.run(command, check=False, cwd=ROOT, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr
