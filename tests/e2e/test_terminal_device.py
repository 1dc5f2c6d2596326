"""The terminal client as a remote device: `letta server` registers with Loci, is sent a message, and answers it."""

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.helpers import create
from tests.e2e.stack import Stack
from tests.polling import wait_until

FOLDER = Path(__file__).parent / "npm-letta-code"
CLIENT = FOLDER / "node_modules/@letta-ai/letta-code/letta.js"


def until(condition: Callable[[], Any], process: "subprocess.Popen[bytes]") -> Any:
    """Returns the first true answer of `condition`, while the client runs."""

    def answer() -> Any:
        assert process.poll() is None
        return condition()

    return wait_until(answer, 90, pause=0.1)


@pytest.mark.timeout(400)
@pytest.mark.skipif(shutil.which("node") is None, reason="Node is not installed")
@pytest.mark.skipif(not CLIENT.is_file(), reason="needs: npm ci --prefix tests/e2e/npm-letta-code")
def test_the_terminal_client_is_a_device(stack: Stack, tmp_path: Path) -> None:
    client = stack.client()
    agent_id = create(client, "loci/demo")
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "LETTA_BASE_URL": stack.url,
        "LETTA_API_KEY": "none",
        "IGNORE_SELF_HOSTED_LISTENER_ERROR": "1",
        "LETTA_CODE_TELEM": "0",
        "DISABLE_AUTOUPDATER": "1",
    }
    command = ["node", str(CLIENT), "server", "--env-name", "laptop", "--debug"]
    with (tmp_path / "output").open("wb") as output:
        process = subprocess.Popen(
            command, cwd=tmp_path, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output
        )
    try:

        def laptop() -> Any:
            online = client.environments.list(online_only="true").connections
            return next((each for each in online if each.connection_name == "laptop"), None)

        device = until(laptop, process)
        message: Any = {"role": "user", "content": "My name is Ada.", "client_message_id": "cm-1"}
        client.environments.send_message(device.connection_id, messages=[message], agent_id=agent_id)

        def answered() -> bool:
            return any(each.message_type == "assistant_message" for each in client.agents.messages.list(agent_id))

        until(answered, process)
        until(lambda: client.environments.retrieve(device.device_id).current_mode, process)
        found = client.environments.retrieve(device.device_id)
        assert found.metadata.working_directory == str(tmp_path)
        assert found.metadata.letta_code_version
        assert "Ada" in client.agents.blocks.retrieve("human", agent_id=agent_id).value
    finally:
        process.terminate()
        process.wait(20)
    wait_until(lambda: client.environments.retrieve(device.device_id).connected_at is None, 60, pause=0.1)
