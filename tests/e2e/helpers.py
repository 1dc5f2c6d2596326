"""Agents, and results that come in the background, as many modules need them; `running` is in stack.py."""

import functools
import os
import shutil
import subprocess
from collections.abc import Mapping
from typing import Any

import httpx
import pytest
from letta_client import Letta

from tests.e2e.stack import Stack
from tests.polling import wait_until

DICE = '''
def roll_dice(num_sides: int = 6) -> str:
    """Roll a die and say what came up.

    Args:
        num_sides (int): How many sides the die has.

    Returns:
        str: What came up.
    """
    import random

    return f"rolled {random.randint(1, num_sides)} of {num_sides}"
'''

BLOCKS: list[Any] = [
    {"label": "human", "value": "Nothing is known yet."},
    {"label": "persona", "value": "I am a helpful agent."},
]


def skip_without_sandbox() -> None:
    """Skips a test that runs tool code, where nothing can."""
    if not _has_sandbox():
        pytest.skip("needs bubblewrap, or a Docker engine")


@functools.cache
def _has_sandbox() -> bool:
    return shutil.which("bwrap") is not None or docker_answers(os.environ)


def docker_answers(environment: Mapping[str, str]) -> bool:
    """Returns whether a Docker engine answers to who has this environment."""
    if shutil.which("docker") is None:
        return False
    version = subprocess.run(["docker", "version"], env=environment, capture_output=True, check=False, timeout=20)
    return version.returncode == 0


def create(client: Letta, model: str, **options: Any) -> str:
    """An agent with the two usual blocks; its id."""
    return client.agents.create(memory_blocks=BLOCKS, model=model, **options).id


def types(messages: Any) -> list[str]:
    """The message types."""
    return [message.message_type for message in messages]


def finished_run(client: Any, run_id: str) -> Any:
    """The run, once it is over."""

    def answer() -> Any:
        run = client.runs.retrieve(run_id)
        return None if run.status in ("created", "running") else run

    return wait_until(answer, 60)


def calls_that_run(stack: Stack, agent_id: str) -> list[Any]:
    """The agent's calls whose code runs now."""
    query = {"agent_id": agent_id, "states": "started"}
    found: list[Any] = httpx.get(f"{stack.url}/v1/executions", params=query, timeout=30).json()["executions"]
    return found


def finished_file(client: Any, folder_id: str, file_id: str) -> Any:
    """The file with its text, once it is read or cannot be."""

    def answer() -> Any:
        file = client.folders.files.retrieve(file_id, folder_id=folder_id, include_content=True)
        return file if file.processing_status in ("completed", "error") else None

    return wait_until(answer, 60)
