"""Turns of the older agent types through the official client: forced calls, thoughts in arguments, heartbeats."""

from typing import Any

import orjson
import pytest

from tests.e2e.helpers import BLOCKS, types
from tests.e2e.stack import Stack
from tests.fakes.openai_server import OpenAIServer
from tests.fakes.script import Reply, ToolCall

MODEL = "openai/gpt-4o-mini"
ECHO = '''
def echo(text: str) -> str:
    """Say it again.

    Args:
        text (str): What to say.

    Returns:
        str: The same.
    """
    return text
'''


def made(client: Any, agent_type: str, **options: Any) -> str:
    """An agent of a type; its id."""
    agent_id: str = client.agents.create(
        agent_type=agent_type, model=options.pop("model", MODEL), memory_blocks=BLOCKS, **options
    ).id
    return agent_id


def call(name: str, thinking: str = "", heartbeat: bool = False, **arguments: Any) -> Reply:
    """A reply that calls a tool as older agents do."""
    thought = {"thinking": thinking} if thinking else {}
    return Reply(calls=(ToolCall(name, thought | arguments | {"request_heartbeat": heartbeat}),))


def speech(said: str, thinking: str = "") -> Reply:
    """A reply that speaks."""
    return Reply(calls=(ToolCall("send_message", ({"thinking": thinking} if thinking else {}) | {"message": said}),))


def functions(body: Any) -> dict[str, Any]:
    """The parameters of the tools in a request, by name."""
    return {tool["function"]["name"]: tool["function"]["parameters"] for tool in body["tools"]}


@pytest.mark.parametrize("stream", [False, True])
def test_an_older_agent_thinks_acts_goes_on_and_speaks(
    stack: Stack, openai_fake: OpenAIServer, *, stream: bool
) -> None:
    client = stack.client()
    agent_id = made(client, "memgpt_agent")
    openai_fake.reply(
        call("core_memory_append", "A name! I note it.", heartbeat=True, label="human", content="Name: Ada"),
        speech("Hello Ada.", "Now I greet her."),
    )
    if stream:
        messages: list[Any] = [{"role": "user", "content": "I am Ada."}]
        chunks = list(client.agents.messages.create(agent_id, messages=messages, streaming=True))
        seen = [chunk for chunk in chunks if chunk.message_type.endswith("_message")]
        reason = next(chunk.stop_reason for chunk in chunks if chunk.message_type == "stop_reason")
    else:
        reply = client.agents.messages.create(agent_id, input="I am Ada.")
        seen, reason = reply.messages, reply.stop_reason.stop_reason
    assert types(seen) == [
        *("reasoning_message", "tool_call_message", "tool_return_message"),
        *("reasoning_message", "assistant_message"),
    ]
    assert [one.reasoning for one in seen if one.message_type == "reasoning_message"] == [
        "A name! I note it.",
        "Now I greet her.",
    ]
    assert "thinking" not in seen[1].tool_call.arguments
    assert (seen[-1].content, reason) == ("Hello Ada.", "end_turn")
    assert client.agents.blocks.retrieve("human", agent_id=agent_id).value.endswith("Name: Ada")

    first, second = openai_fake.bodies("/chat/completions")
    assert first["tool_choice"] == "required"
    offered = functions(first)
    assert next(iter(offered["core_memory_append"]["properties"])) == "thinking"
    assert "request_heartbeat" in offered["core_memory_append"]["required"]
    assert "request_heartbeat" not in offered["send_message"]["properties"]
    # The model sees its thoughts where it wrote them, and why it is called again.
    asked = [message for message in second["messages"] if message.get("tool_calls")][-1]["tool_calls"][0]
    assert orjson.loads(asked["function"]["arguments"])["thinking"] == "A name! I note it."
    assert "heartbeat" in second["messages"][-1]["content"]


def test_a_call_without_heartbeat_ends_the_turn_and_a_failed_one_does_not(
    stack: Stack, openai_fake: OpenAIServer
) -> None:
    client = stack.client()
    agent_id = made(client, "memgpt_v2_agent", include_base_tool_rules=False)
    openai_fake.reply(
        call("memory_insert", "Wrong place.", label="nowhere", new_string="Ada"),
        call("memory_insert", "Better.", label="human", new_string="Name: Ada"),
    )
    reply = client.agents.messages.create(agent_id, input="I am Ada.")
    returned = [one.status for one in reply.messages if one.message_type == "tool_return_message"]
    assert (returned, reply.stop_reason.stop_reason) == (["error", "success"], "end_turn")
    assert reply.usage.step_count == 2


def test_an_older_agent_that_only_talks_ends_with_no_tool_call(stack: Stack, openai_fake: OpenAIServer) -> None:
    client = stack.client()
    agent_id = made(client, "split_thread_agent")
    openai_fake.reply(Reply(text="I forgot to call."), speech("Here I am."))
    reply = client.agents.messages.create(agent_id, input="Hello?")
    assert reply.stop_reason.stop_reason == "no_tool_call"
    assert client.agents.messages.create(agent_id, input="Hello?").messages[-1].content == "Here I am."


def test_the_demo_model_serves_older_agents(stack: Stack) -> None:
    client = stack.client()
    agent_id = made(client, "memgpt_agent", model="loci/demo")
    reply = client.agents.messages.create(agent_id, input="Hello, who are you?")
    assert "assistant_message" in types(reply.messages)
    assert reply.stop_reason.stop_reason == "end_turn"
    assert client.agents.messages.create(agent_id, input="And again?").stop_reason.stop_reason == "end_turn"


def test_a_react_agent_has_no_memory_in_its_prompt_and_acts_by_its_tools(
    stack: Stack, openai_fake: OpenAIServer
) -> None:
    client = stack.client()
    tool = client.tools.upsert(source_code=ECHO)
    agent_id = made(client, "react_agent", tool_ids=[tool.id])
    openai_fake.reply(call("echo", "Say it.", heartbeat=True, text="one"), call("echo", "Enough.", text="two"))
    reply = client.agents.messages.create(agent_id, input="Echo.")
    returned = [one.tool_return for one in reply.messages if one.message_type == "tool_return_message"]
    assert (returned, reply.stop_reason.stop_reason) == (["one", "two"], "end_turn")
    body = openai_fake.bodies("/chat/completions")[0]
    assert "<memory_blocks>" not in body["messages"][0]["content"]
    assert set(functions(body)) == {"echo"}


def test_a_workflow_agent_begins_every_turn_with_nothing(stack: Stack, openai_fake: OpenAIServer) -> None:
    client = stack.client()
    tool = client.tools.upsert(source_code=ECHO)
    agent_id = made(client, "workflow_agent", tool_ids=[tool.id])
    for said in ("one", "two"):
        openai_fake.reply(call("echo", text=said))
        reply = client.agents.messages.create(agent_id, input=f"Say {said}.")
        assert reply.stop_reason.stop_reason == "end_turn"
    asked = openai_fake.bodies("/chat/completions")[-1]["messages"]
    assert [message["role"] for message in asked] == ["system", "user"]
    assert "two" in asked[-1]["content"]
    assert len(client.agents.messages.list(agent_id, limit=100).items) > 4


def test_a_sleeptime_agent_goes_on_until_it_says_that_it_is_done(stack: Stack, openai_fake: OpenAIServer) -> None:
    client = stack.client()
    agent_id = made(client, "sleeptime_agent")
    edit = ToolCall("memory_insert", {"label": "human", "new_string": "Name: Ada"})
    openai_fake.reply(Reply(calls=(edit,)), Reply(text="One more.", calls=(ToolCall("memory_finish_edits", {}),)))
    reply = client.agents.messages.create(agent_id, input="Ada said hello.")
    assert (reply.stop_reason.stop_reason, reply.usage.step_count) == ("tool_rule", 2)
    assert client.agents.blocks.retrieve("human", agent_id=agent_id).value.endswith("Name: Ada")
    first = openai_fake.bodies("/chat/completions")[0]
    assert "thinking" not in functions(first)["memory_insert"]["properties"]
    assert first.get("tool_choice", "auto") == "auto"
