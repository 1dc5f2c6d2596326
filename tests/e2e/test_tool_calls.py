"""Calls of tools, whole: state and edits, files, output as it comes, and tools that are run without a turn."""

import json
import threading
from typing import Any
from uuid import uuid4

import httpx
import pytest
from letta_client import NotFoundError

from tests.e2e.helpers import BLOCKS, calls_that_run
from tests.e2e.stack import Stack
from tests.fakes.openai_server import OpenAIServer
from tests.fakes.script import Reply, ToolCall
from tests.polling import wait_until

pytestmark = pytest.mark.sandbox

MODEL = "openai/gpt-4o-mini"
RENAME = '''
def rename(agent_state: "AgentState", name: str) -> str:
    """Learn the name of the human.

    Args:
        name: the name
    """
    before = agent_state.memory.get_block("human").value
    agent_state.memory.update_block_value(label="human", value=f"The human is called {name}.")
    return f"{agent_state.name} knew: {before}"
'''
COUNT = '''
def count_words(text_file: str) -> int:
    """Count the words of a file.

    Args:
        text_file: the file
    """
    words = open(text_file).read().split()
    with open("words.json", "w") as made:
        import json
        json.dump(sorted(set(words)), made)
    return len(words)
'''
COUNT_SCHEMA = {
    "type": "object",
    "properties": {"text_file": {"type": "string", "format": "file", "description": "the file"}},
    "required": ["text_file"],
}
ADD = '''
def add(a: int, b: int = 2) -> int:
    """Add.

    Args:
        a: one
        b: two
    """
    import os
    print(os.environ["WHO"])
    return a + b
'''
TALK = '''
def talk() -> str:
    """Talk."""
    import sys, time
    print("one", flush=True)
    time.sleep(1)
    print("two", file=sys.stderr, flush=True)
    # Who listens has so long to come, and to ask how it stands.
    time.sleep(4)
    return "said"
'''


@pytest.fixture
def http(stack: Stack) -> Any:
    """Plain HTTP to the gateway, for what the official client does not know."""
    with httpx.Client(base_url=stack.url, timeout=60) as client:
        yield client


def test_a_tool_changes_blocks_through_its_agent_state(stack: Stack, openai_fake: OpenAIServer) -> None:
    client = stack.client(timeout=60)
    tool = client.tools.upsert(source_code=RENAME)
    assert "agent_state" not in tool.json_schema["parameters"]["properties"]
    agent = client.agents.create(name=f"Ada-{uuid4().hex[:6]}", model=MODEL, memory_blocks=BLOCKS, tool_ids=[tool.id])
    openai_fake.reply(Reply(calls=(ToolCall("rename", {"name": "Grace"}),)), Reply(text="Noted."))
    client.agents.messages.create(agent.id, input="I am Grace.")
    asked = openai_fake.bodies("/chat/completions")[-1]["messages"]
    told = next(message["content"] for message in asked if message["role"] == "tool")
    assert told.startswith(f"{agent.name} knew: ")
    assert "The human is called Grace." in told
    assert client.agents.blocks.retrieve("human", agent_id=agent.id).value == "The human is called Grace."
    openai_fake.reply(Reply(text="Grace."))
    client.agents.messages.create(agent.id, input="Who am I?")
    assert "The human is called Grace." in openai_fake.bodies("/chat/completions")[-1]["messages"][0]["content"]


def test_tools_are_run_without_a_turn(stack: Stack) -> None:
    client = stack.client(timeout=60)
    tool = client.tools.upsert(source_code=RENAME)
    agent = client.agents.create(name="Ada", model="loci/demo", memory_blocks=BLOCKS, tool_ids=[tool.id])
    result = client.agents.tools.run("rename", agent_id=agent.id, args={"name": "Grace"})
    assert (result.status, result.stderr) == ("success", [])
    assert result.func_return.startswith("Ada knew: ")
    human = next(block for block in result.agent_state.blocks if block.label == "human")
    assert human.value == "The human is called Grace."
    memory = next(one.name for one in client.agents.tools.list(agent.id) if one.name.startswith("memory"))
    assert client.agents.tools.run(memory, agent_id=agent.id, args={}).status == "error"
    with pytest.raises(NotFoundError):
        client.agents.tools.run("run_code", agent_id=agent.id, args={})
    refused = client.agents.tools.run("rename", agent_id=agent.id, args={})
    assert (refused.status, refused.func_return) == ("error", None)
    assert refused.stderr[0].startswith("Nothing was run")


def test_source_is_run_once(http: httpx.Client) -> None:
    answer = http.post("/v1/tools/run", json={"source_code": ADD, "args": {"a": 1}, "env_vars": {"WHO": "me"}})
    told = answer.json()
    assert (told["status"], told["tool_return"], told["stdout"]) == ("success", "3", ["me\n"])
    told = http.post("/v1/tools/run", json={"source_code": ADD, "args": {"a": "x"}}).json()
    assert (told["status"], "a: must be an integer" in told["tool_return"]) == ("error", True)
    assert http.post("/v1/tools/run", json={"source_code": "not python", "args": {}}).status_code == 400


def test_files_go_in_and_come_out(stack: Stack, http: httpx.Client) -> None:
    client = stack.client(timeout=60)
    tool = client.tools.upsert(source_code=COUNT, args_json_schema=COUNT_SCHEMA)
    agent = client.agents.create(model="loci/demo", memory_blocks=BLOCKS, tool_ids=[tool.id])
    given = http.post("/v1/executions/files", files={"file": ("text.txt", b"to be or not to be")}).json()
    result = client.agents.tools.run("count_words", agent_id=agent.id, args={"text_file": given["id"]})
    assert (result.status, result.func_return) == ("success", 6)
    (made,) = http.get("/v1/executions/files", params={"agent_id": agent.id}).json()["files"]
    assert made["name"] == "words.json"
    content = http.get(f"/v1/executions/files/{made['id']}/content").content
    assert json.loads(content) == ["be", "not", "or", "to"]
    receipt = http.get(f"/v1/executions/{made['call_key']}").json()
    assert (receipt["tool_name"], receipt["outcome"], receipt["result"]) == ("count_words", "success", 6)


@pytest.mark.timing
def test_what_a_call_prints_is_seen_as_it_prints_it(
    stack: Stack, openai_fake: OpenAIServer, http: httpx.Client
) -> None:
    client = stack.client(timeout=60)
    tool = client.tools.upsert(source_code=TALK)
    agent = client.agents.create(model=MODEL, memory_blocks=BLOCKS, tool_ids=[tool.id])
    openai_fake.reply(Reply(calls=(ToolCall("talk", {}),)), Reply(text="Done."))
    turn = threading.Thread(target=lambda: client.agents.messages.create(agent.id, input="Talk."))
    turn.start()
    [running] = wait_until(lambda: calls_that_run(stack, agent.id), pause=0.01)
    key, seen = running["call_key"], []
    with http.stream("GET", f"/v1/executions/{key}/stream") as stream:
        for line in stream.iter_lines():
            if line.startswith("event: "):
                seen.append(line.removeprefix("event: "))
                if seen == ["stdout"]:
                    state = http.get(f"/v1/executions/{key}").json()["state"]
                    assert state == "started"
    turn.join(60)
    assert seen == ["stdout", "stderr", "receipt"]
    receipt = http.get(f"/v1/executions/{key}").json()
    assert (receipt["stdout"], receipt["stderr"], receipt["run_id"] is not None) == ("one\n", "two\n", True)
    again = http.get(f"/v1/executions/{key}/stream", headers={"last-event-id": "1"}).text
    assert again.startswith("id: 2\nevent: stderr\n")
