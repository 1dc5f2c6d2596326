"""Agents of every type with rules, compaction settings and approvals: the official client and all services."""

from typing import Any

import pytest
from letta_client import NotFoundError, UnprocessableEntityError

from tests.e2e.stack import Stack
from tests.fakes.anthropic_server import AnthropicServer
from tests.fakes.openai_server import OpenAIServer
from tests.fakes.script import Reply, ToolCall, by_step

MODEL = "openai/gpt-4o-mini"
TENDING = {"memory_replace", "memory_insert", "memory_rethink", "memory_finish_edits"}
OLDER = {
    "send_message",
    "conversation_search",
    "core_memory_append",
    "core_memory_replace",
    "memory",
    "memory_apply_patch",
}
TYPES = {
    "letta_v1_agent": {"memory_insert", "memory_replace", "conversation_search"},
    "memgpt_agent": OLDER,
    "memgpt_v2_agent": {"send_message", "conversation_search", "memory_replace", "memory_insert"},
    "split_thread_agent": OLDER,
    "sleeptime_agent": TENDING,
    "react_agent": set(),
    "workflow_agent": set(),
    "voice_convo_agent": {"send_message", "conversation_search"},
    "voice_sleeptime_agent": TENDING,
}
SOURCE = '''
def wipe_disk() -> str:
    """Wipe the disk.

    Returns:
        str: What happened.
    """
    return "wiped"
'''


@pytest.mark.parametrize("name", TYPES)
def test_agents_of_every_type(stack: Stack, name: str) -> None:
    client = stack.client()
    agent = client.agents.create(agent_type=name, model=MODEL)
    assert (agent.agent_type, {tool.name for tool in agent.tools}) == (name, TYPES[name])
    ruled = set() if name == "letta_v1_agent" else TYPES[name]
    assert {rule.tool_name for rule in agent.tool_rules} == ruled
    assert agent.message_buffer_autoclear == (name == "workflow_agent")
    assert client.agents.retrieve(agent.id).system == agent.system


@pytest.mark.parametrize("name", ["memgpt_agent", "memgpt_v2_agent", "split_thread_agent", "voice_convo_agent"])
def test_older_agents_speak_by_a_tool_and_end_with_it(stack: Stack, openai_fake: OpenAIServer, name: str) -> None:
    client = stack.client()
    agent = client.agents.create(agent_type=name, model=MODEL)
    search = ToolCall("conversation_search", {"query": "Ada"})
    openai_fake.reply(Reply(calls=(search,)), Reply(calls=(ToolCall("send_message", {"message": "Hi Ada"}),)))
    reply = client.agents.messages.create(agent.id, input="Hello")
    assert [message.content for message in reply.messages if message.message_type == "assistant_message"] == ["Hi Ada"]
    assert reply.stop_reason.stop_reason == client.agents.retrieve(agent.id).last_stop_reason == "end_turn"
    assert len(openai_fake.bodies("/chat/completions")) == 2


def test_a_sleeptime_agent_ends_with_its_last_tool(stack: Stack, openai_fake: OpenAIServer) -> None:
    client = stack.client()
    agent = client.agents.create(
        agent_type="sleeptime_agent", model=MODEL, memory_blocks=[{"label": "human", "value": "Nobody."}]
    )
    rethink = ToolCall("memory_rethink", {"label": "human", "new_memory": "Ada"})
    openai_fake.reply(Reply(calls=(rethink,)), Reply(calls=(ToolCall("memory_finish_edits", {}),)))
    reply = client.agents.messages.create(agent.id, input="Ada said: I am Ada.")
    assert reply.stop_reason.stop_reason == "tool_rule"
    assert client.agents.blocks.retrieve("human", agent_id=agent.id).value == "Ada"


def test_tool_rules_are_changed_and_refused(stack: Stack) -> None:
    client = stack.client()
    rules: list[Any] = [
        {"type": "run_first", "tool_name": "conversation_search", "args": {"query": "x"}},
        {"type": "constrain_child_tools", "tool_name": "memory_insert", "children": ["memory_replace"]},
        {"type": "conditional", "tool_name": "a", "child_output_mapping": {"1": "b"}},
        {"type": "max_count_per_step", "tool_name": "memory_insert", "max_count_limit": 2},
    ]
    agent = client.agents.create(model=MODEL, tool_rules=rules)
    assert [rule.type for rule in agent.tool_rules] == [rule["type"] for rule in rules]
    assert agent.tool_rules[0].args == {"query": "x"}
    changed = client.agents.update(agent.id, tool_rules=rules[3:])
    assert [(rule.type, rule.max_count_limit) for rule in changed.tool_rules] == [("max_count_per_step", 2)]
    with pytest.raises(UnprocessableEntityError, match=r"tool_rules\[0\]\.max_count_limit"):
        client.agents.update(agent.id, tool_rules=[{**rules[3], "max_count_limit": 0}])
    assert client.agents.update(agent.id, tool_rules=[]).tool_rules == []


def test_compaction_settings_are_shown_whole(stack: Stack) -> None:
    client = stack.client()
    agent = client.agents.create(model=MODEL, compaction_settings={"model": "letta/auto"})
    assert (agent.compaction_settings.model, agent.compaction_settings.mode) == ("letta/auto", "sliding_window")
    assert agent.compaction_settings.prompt
    # What a change does not name stays.
    changed = client.agents.update(agent.id, compaction_settings={"mode": "all", "clip_chars": None})
    assert (changed.compaction_settings.model, changed.compaction_settings.mode) == ("letta/auto", "all")
    assert changed.compaction_settings.clip_chars is None
    with pytest.raises(UnprocessableEntityError, match="sliding_window_percentage"):
        client.agents.update(agent.id, compaction_settings={"sliding_window_percentage": 7})


def test_approval_is_switched_and_asked_for(stack: Stack, openai_fake: OpenAIServer) -> None:
    client = stack.client()
    tool = client.tools.upsert(source_code=SOURCE, default_requires_approval=True)
    agent = client.agents.create(model=MODEL, tool_ids=[tool.id])
    assert [(rule.type, rule.tool_name) for rule in agent.tool_rules] == [("requires_approval", "wipe_disk")]
    assert agent.pending_approval is None

    openai_fake.rules(*by_step(Reply(calls=(ToolCall("wipe_disk", {}),)), Reply("Done.")))
    asked = client.agents.messages.create(agent.id, input="Wipe it.")
    assert asked.stop_reason.stop_reason == "requires_approval"
    waiting = client.agents.retrieve(agent.id, include=["agent.pending_approval"]).pending_approval
    [request] = [one for one in asked.messages if one.message_type == "approval_request_message"]
    assert (waiting.id, waiting.tool_call.tool_call_id) == (request.id, request.tool_call.tool_call_id)
    assert client.agents.retrieve(agent.id, include=["agent.tools"]).pending_approval is None

    reset = client.agents.messages.reset(agent.id)
    assert (reset.pending_approval, len(reset.message_ids)) == (None, 1)
    assert client.agents.tools.update_approval("wipe_disk", agent_id=agent.id, body_requires_approval=False) is None
    assert client.agents.retrieve(agent.id).tool_rules == []
    with pytest.raises(NotFoundError):
        client.agents.tools.update_approval("fly", agent_id=agent.id, body_requires_approval=True)


def test_a_conversation_begins_with_what_is_given_and_anew(stack: Stack, anthropic_fake: AnthropicServer) -> None:
    client = stack.client()
    agent = client.agents.create(
        model="anthropic/claude-sonnet-4-6",
        initial_message_sequence=[
            {"role": "user", "content": "My name is Ada."},
            {"role": "assistant", "content": "Hello, Ada."},
        ],
        extra_body={"recall_passages": 2},
    )
    assert (len(agent.message_ids), agent.recall_passages) == (3, 2)
    anthropic_fake.rules(*by_step(Reply("You are Ada.")))
    client.agents.messages.create(agent.id, input="Who am I?")
    shown = [one.message_type for one in client.agents.messages.list(agent.id, order="asc").items]
    assert shown == ["system_message", "user_message", "assistant_message", "user_message", "assistant_message"]
    assert len(client.agents.messages.reset(agent.id, add_default_initial_messages=False).message_ids) == 1
    assert [one.message_type for one in client.agents.messages.list(agent.id).items] == ["system_message"]
