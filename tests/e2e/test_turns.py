"""Turns that stop for the client, that are told in other words, or that only shorten the window."""

from typing import Any

import orjson
import pytest
from letta_client import APIStatusError, BadRequestError, ConflictError

from tests.e2e.helpers import create, types
from tests.e2e.stack import Stack
from tests.fakes.anthropic_server import AnthropicServer
from tests.fakes.openai_server import OpenAIServer
from tests.fakes.script import Reply, ToolCall

MODEL = "openai/gpt-4o-mini"
TOOLS: list[Any] = [
    {"name": "ls", "description": "Lists a folder.", "parameters": {"type": "object", "properties": {"path": {}}}}
]


def approval(call_id: str) -> Any:
    """Returns the return of the client's tool."""
    answer = {"type": "tool", "tool_call_id": call_id, "tool_return": "a.txt", "status": "success"}
    return {"type": "approval", "approvals": [answer]}


def test_a_tool_of_the_client(stack: Stack, openai_fake: OpenAIServer) -> None:
    messages = stack.client(max_retries=2).agents.messages
    agent_id = create(stack.client(), MODEL)
    openai_fake.reply(Reply(calls=(ToolCall("ls", {"path": "/"}),)), Reply(text="There is a.txt."))
    stream = messages.create(
        agent_id, input="What is there?", client_tools=TOOLS, streaming=True, stream_tokens=True, background=True
    )
    seen = list(stream)
    [asked] = [chunk for chunk in seen if chunk.message_type == "approval_request_message"][:1]
    assert [chunk.stop_reason for chunk in seen if chunk.message_type == "stop_reason"] == ["requires_approval"]

    with pytest.raises(ConflictError) as busy:
        messages.create(agent_id, input="Hello?")
    body: Any = busy.value.body
    assert (body["detail"]["code"], body["detail"]["pending_request_id"]) == ("PENDING_APPROVAL", asked.id)
    with pytest.raises(APIStatusError) as told:
        list(messages.create(agent_id, input="Hello?", streaming=True))
    body = told.value.body
    assert "waiting for approval" in body["detail"]
    with pytest.raises(BadRequestError, match="Invalid tool call IDs"):
        messages.create(agent_id, messages=[approval("another")])

    follow_up = {"role": "user", "content": "Be brief."}
    sent = [approval(asked.tool_call.tool_call_id), follow_up]
    reply = messages.create(agent_id, messages=sent, client_tools=TOOLS)
    assert types(reply.messages) == ["tool_return_message", "assistant_message"]
    assert reply.messages[-1].content == "There is a.txt."
    history = types(messages.list(agent_id, order="asc").items)
    assert history[2:4] == ["approval_request_message", "approval_response_message"]


def test_what_an_older_agent_says(stack: Stack, openai_fake: OpenAIServer) -> None:
    messages = stack.client().agents.messages
    agent_id = create(stack.client(), MODEL, agent_type="memgpt_v2_agent")
    speech = Reply(calls=(ToolCall("send_message", {"message": 'Hello "Ada"'}),))
    openai_fake.reply(speech, speech, speech)
    reply = messages.create(agent_id, input="I am Ada.")
    assert [(one.message_type, one.content) for one in reply.messages] == [("assistant_message", 'Hello "Ada"')]

    chunks = messages.create(agent_id, input="I am Ada.", streaming=True, stream_tokens=True)
    said = [chunk.content for chunk in chunks if chunk.message_type == "assistant_message"]
    assert "".join(said) == 'Hello "Ada"'

    raw = messages.create(agent_id, input="I am Ada.", use_assistant_message=False)
    assert types(raw.messages) == ["tool_call_message", "tool_return_message"]
    listed = types(messages.list(agent_id).items)
    # The greeting that it begins with is one of them.
    assert (listed.count("assistant_message"), listed.count("tool_call_message")) == (4, 0)
    assert "assistant_message" not in types(messages.list(agent_id, use_assistant_message=False).items)


def test_compacting_now(stack: Stack, openai_fake: OpenAIServer) -> None:
    messages = stack.client().agents.messages
    agent_id = create(stack.client(), MODEL)
    openai_fake.reply(Reply(text="one"), Reply(text="two"), Reply(text="Ada counts."))
    for text in ("Count!", "And on!"):
        messages.create(agent_id, input=text)
    done = messages.compact(agent_id, compaction_settings={"mode": "all"})
    assert (done.summary, done.num_messages_before) == ("Ada counts.", 5)
    assert done.num_messages_after < 5
    [summary] = [one for one in messages.list(agent_id).items if one.message_type == "summary_message"]
    assert (summary.summary, summary.compaction_stats.trigger) == ("Ada counts.", "manual")


def test_a_compacted_window_is_counted_by_its_provider(stack: Stack, anthropic_fake: AnthropicServer) -> None:
    messages = stack.client().agents.messages
    agent_id = create(stack.client(), "anthropic/claude-sonnet-4-6")
    for text in ("Count!", "And on!"):
        messages.create(agent_id, input=text)
    messages.compact(agent_id, compaction_settings={"mode": "all"})
    [summary] = [one for one in messages.list(agent_id).items if one.message_type == "summary_message"]
    [asked] = anthropic_fake.bodies("/count_tokens")
    assert summary.compaction_stats.context_tokens_after == len(orjson.dumps(asked["messages"])) // 4
