"""Tools as they come from elsewhere, through the official client: written for the reference, called by weak models."""

import json
from typing import Any
from uuid import uuid4

import pytest
from letta_client import BadRequestError
from pydantic import BaseModel

from tests.e2e.helpers import BLOCKS
from tests.e2e.stack import Stack
from tests.fakes.openai_server import OpenAIServer
from tests.fakes.script import Reply, ToolCall

pytestmark = pytest.mark.sandbox

MODEL = "openai/gpt-4o-mini"
JOIN = '''
def join_texts(self, items: List[str]) -> str:
    """Join texts.

    Parameters
    ----------
    items : List[str]
        The texts.

    Examples
    --------
    join_texts(["a", "b"]) is "a, b".
    """
    return ", ".join(items)
'''
NUMBERS = '''
def numbers(count: int):
    """Count.

    Args:
        count: how far
    """
    for n in range(count):
        yield {"n": n, "ratio": float("nan")}
'''
ERASE = '''
def erase(what: str) -> str:
    """Erase.

    Args:
        what: it
    """
    return f"erased {what}"
'''


class Item(BaseModel):
    """A thing in stock."""

    sku: str
    name: str = "unknown"


class Entry(BaseModel):
    """Arguments as the SDK has them made: a model, of which the server gets the schema."""

    item: Item
    count: int


@pytest.fixture
def client(stack: Stack) -> Any:
    return stack.client(timeout=60)


def agent_with(client: Any, *tool_ids: str, **settings: Any) -> str:
    agent_id: str = client.agents.create(
        model=MODEL, memory_blocks=BLOCKS, tool_ids=tool_ids, include_base_tools=False, **settings
    ).id
    return agent_id


def told(fake: OpenAIServer) -> str:
    """What the model was told of its last call."""
    messages = fake.bodies("/chat/completions")[-1]["messages"]
    text: str = next(message["content"] for message in reversed(messages) if message["role"] == "tool")
    return text


def test_a_source_of_the_reference_runs_and_what_is_missing_is_said_when_it_is_made(client: Any) -> None:
    tool = client.tools.upsert(source_code=JOIN)
    assert tool.json_schema["parameters"]["properties"] == {
        "items": {"type": "array", "items": {"type": "string"}, "description": "The texts."}
    }
    assert 'is "a, b".' in tool.json_schema["description"]
    agent_id = agent_with(client, tool.id)
    ran = client.agents.tools.run("join_texts", agent_id=agent_id, args={"items": ["a", "b"]})
    assert (ran.status, ran.func_return) == ("success", "a, b")
    with pytest.raises(BadRequestError, match=r"line 2: .*'Thing' is used, but the source does not define it"):
        client.tools.upsert(source_code=JOIN.replace("List[str]) ->", "Thing) ->"))


def test_it_comes_in_an_agent_file_as_well(client: Any) -> None:
    tool = client.tools.upsert(source_code=JOIN)
    exported = client.agents.export_file(agent_with(client, tool.id))
    client.tools.delete(tool.id)
    text = exported if isinstance(exported, str) else json.dumps(exported)
    (agent_id,) = client.agents.import_file(file=("a.af", text.encode(), "application/json")).agent_ids
    ran = client.agents.tools.run("join_texts", agent_id=agent_id, args={"items": ["a", "b"]})
    assert (ran.status, ran.func_return) == ("success", "a, b")


def test_models_as_arguments_are_objects(client: Any, openai_fake: OpenAIServer) -> None:
    source = "def put_away(data: Entry) -> str:\n    return f'{data.count} {data.item.sku} {data.item.name}'\n"
    tool = client.tools.upsert(source_code=source, args_json_schema=Entry.model_json_schema())
    agent_id = agent_with(client, tool.id)
    call = ToolCall("put_away", {"item": {"sku": "x"}, "count": 2})
    openai_fake.reply(Reply(calls=(call,)), Reply(text="Done."))
    client.agents.messages.create(agent_id, input="Put it away.")
    assert told(openai_fake) == "2 x unknown"


def test_arguments_of_weak_models(client: Any, openai_fake: OpenAIServer) -> None:
    tool = client.tools.upsert(source_code=NUMBERS)
    agent_id = agent_with(client, tool.id)
    whole = ToolCall("numbers", raw_arguments=json.dumps(json.dumps({"count": "2"})))
    openai_fake.reply(Reply(calls=(whole,)), Reply(text="Done."))
    client.agents.messages.create(agent_id, input="Count.")
    assert told(openai_fake) == "[{'n': 0, 'ratio': 'NaN'}, {'n': 1, 'ratio': 'NaN'}]"
    openai_fake.reply(Reply(calls=(ToolCall("numbers", {"count": "two"}),)), Reply(text="Sorry."))
    client.agents.messages.create(agent_id, input="Count.")
    assert told(openai_fake).endswith('count: must be an integer, not "two"')


def test_returns_are_valid_json(client: Any) -> None:
    tool = client.tools.upsert(source_code=NUMBERS)
    ran = client.agents.tools.run("numbers", agent_id=agent_with(client, tool.id), args={"count": 1})
    assert (ran.status, ran.func_return) == ("success", [{"n": 0, "ratio": "NaN"}])


def test_rules_follow_a_renamed_tool(client: Any, openai_fake: OpenAIServer) -> None:
    tool = client.tools.upsert(source_code=ERASE)
    other = client.tools.upsert(source_code=JOIN)
    approval: dict[str, Any] = {"type": "requires_approval", "tool_name": "erase"}
    rules = [approval, {"type": "exit_loop", "tool_name": "erase"}]
    agent_id = agent_with(client, tool.id, other.id, tool_rules=rules)
    with pytest.raises(BadRequestError, match="already exists"):
        client.tools.update(tool.id, json_schema={**tool.json_schema, "name": "join_texts"})
    name = f"wipe_{uuid4().hex[:6]}"
    with pytest.raises(BadRequestError):
        client.tools.update(tool.id, json_schema={**tool.json_schema, "name": name, "parameters": []})
    kept = client.agents.retrieve(agent_id).tool_rules
    assert {rule.tool_name for rule in kept} == {"erase"}
    client.tools.update(tool.id, json_schema={**tool.json_schema, "name": name})
    found = client.agents.retrieve(agent_id).tool_rules
    assert [(rule.type, rule.tool_name) for rule in found] == [("requires_approval", name), ("exit_loop", name)]
    openai_fake.reply(Reply(calls=(ToolCall(name, {"what": "all"}),)))
    reply = client.agents.messages.create(agent_id, input="Erase all.")
    assert reply.stop_reason.stop_reason == "requires_approval"
