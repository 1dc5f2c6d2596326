"""Secrets of agents: a tool finds them, and nobody else does, whatever the tool says of them."""

import ast
import hashlib
from typing import Any

import orjson
import pytest

from tests.e2e.helpers import BLOCKS
from tests.e2e.stack import Stack
from tests.fakes.openai_server import OpenAIServer
from tests.fakes.script import Reply, ToolCall

pytestmark = pytest.mark.sandbox

MODEL = "openai/gpt-4o-mini"
SECRET, MASK = 'sk-Zq7"f0/9+w\nsecond line', "********"
REVEAL = '''
def reveal() -> dict:
    """Say what is known."""
    import base64, hashlib, json, os, sys, time
    key = os.environ["API_KEY"]
    for half in (key[:9], key[9:]):
        print(half, end="", flush=True)
        time.sleep(0.1)
    print(json.dumps(key), repr(os.environ["API_KEY"]), file=sys.stderr)
    basic = base64.b64encode(f"me:{key}".encode()).decode()
    names = ("REGION", "LEVEL")
    found = {name: os.environ.get(name) for name in names}
    return {"key": key, "basic": basic, "hash": hashlib.sha256(key.encode()).hexdigest(), **found}

'''
FAIL = '''
def fail():
    """Fail."""
    import os
    raise ValueError("the key " + os.environ["API_KEY"] + " is no good")
'''


def told(text: Any) -> bool:
    """Returns whether a text, or an object with texts, holds the secret or half of it."""
    said = text if isinstance(text, str) else orjson.dumps(text, default=str).decode()
    forms = (SECRET, SECRET.splitlines()[0], "second line", orjson.dumps(SECRET).decode()[1:-1], "sk-Zq7")
    return any(form in said for form in forms)


def test_a_tool_finds_them_and_nobody_else(stack: Stack, openai_fake: OpenAIServer) -> None:
    client = stack.client()
    tools = [client.tools.upsert(source_code=source) for source in (REVEAL, FAIL)]
    agent = client.agents.create(
        model=MODEL, memory_blocks=BLOCKS, tool_ids=[tool.id for tool in tools], secrets={"API_KEY": SECRET}
    )
    # Nobody logs in here, so whoever may read them sees the values.
    [secret] = client.get(f"/v1/agents/{agent.id}/secrets", cast_to=list[dict[str, Any]])
    assert (secret["key"], secret["value"], secret["agent_id"]) == ("API_KEY", SECRET, agent.id)
    assert [(secret.key, secret.value) for secret in agent.secrets] == [("API_KEY", SECRET)]
    openai_fake.reply(
        Reply(calls=(ToolCall("reveal", {}),)), Reply(calls=(ToolCall("fail", {}),)), Reply(text="I saw a mask.")
    )
    reply = client.agents.messages.create(agent.id, input="Reveal it.", extra_body={"include_trace": True})
    revealed, failed = (one for one in reply.messages if one.message_type == "tool_return_message")
    answer = ast.literal_eval(revealed.tool_return)
    assert answer["hash"] == hashlib.sha256(SECRET.encode()).hexdigest()
    assert answer["key"] == MASK
    assert MASK in answer["basic"]
    assert revealed.stdout == [MASK]
    assert revealed.stderr == [f"\"{MASK}\" '{MASK}'\n"]
    assert failed.status == "error"
    assert f"ValueError: the key {MASK} is no good" in str(failed.tool_return)
    assert not told(openai_fake.bodies("/chat/completions"))
    assert not told([one.to_dict() for one in client.agents.messages.list(agent.id)])
    page = client.get(f"/v1/executions?agent_id={agent.id}", cast_to=dict[str, Any])
    assert len(page["executions"]) == 2
    for execution in page["executions"]:
        receipt = client.get(f"/v1/executions/{execution['call_key']}", cast_to=dict[str, Any])
        assert MASK in receipt["tool_return"]
        assert not told(receipt)
    for step in client.runs.steps.list(revealed.run_id):
        assert not told(client.steps.trace.retrieve(step.id).to_dict())
    for log in (stack.home / "logs").iterdir():
        assert not told(log.read_text()), log
    assert not told(stack.output())


def test_what_is_nearer_to_the_call_holds(stack: Stack, openai_fake: OpenAIServer) -> None:
    client = stack.client()
    config = client.post("/v1/sandbox-config/local/default", cast_to=dict[str, Any])
    path = f"/v1/sandbox-config/{config['id']}"
    try:
        for key, value in (("REGION", "of the sandbox"), ("LEVEL", "of the sandbox"), ("API_KEY", "of the sandbox")):
            made = client.post(
                f"{path}/environment-variable", body={"key": key, "value": value}, cast_to=dict[str, Any]
            )
            assert made["value"] == value
        tool = client.tools.upsert(
            source_code=REVEAL, extra_body={"environment": {"LEVEL": "tool!", "API_KEY": "tool!"}}
        )
        assert tool.environment == {"LEVEL": "tool!", "API_KEY": "tool!"}
        agent = client.agents.create(
            model=MODEL, memory_blocks=BLOCKS, tool_ids=[tool.id], secrets={"API_KEY": "agent"}
        )
        openai_fake.reply(Reply(calls=(ToolCall("reveal", {}),)), Reply(text="Done."))
        reply = client.agents.messages.create(agent.id, input="Reveal it.")
        [revealed] = (one for one in reply.messages if one.message_type == "tool_return_message")
        answer = ast.literal_eval(revealed.tool_return)
        # Values of fewer than 6 characters are not hidden.
        assert (answer["REGION"], answer["LEVEL"], answer["key"]) == (MASK, "tool!", "agent")
        client.agents.update(agent.id, secrets={})
        openai_fake.reply(Reply(calls=(ToolCall("reveal", {}),)), Reply(text="Done."))
        reply = client.agents.messages.create(agent.id, input="Again.")
        [revealed] = (one for one in reply.messages if one.message_type == "tool_return_message")
        assert ast.literal_eval(revealed.tool_return)["key"] == "tool!"
    finally:
        client.delete(path, cast_to=object)
