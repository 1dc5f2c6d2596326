"""What can be set on an agent for its loop: types, rules, approvals, compaction, first messages; and messages reset."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from loci.agent.v1 import agent_pb2, message_pb2
from loci.agent.v1 import agent_service_pb2 as wire
from loci.agent.v1 import conversation_service_pb2 as fork_wire
from loci.agent.v1 import message_service_pb2 as message_wire
from loci.common.v1.page_pb2 import ORDER_ASCENDING, PageRequest
from services.agent.core.messages import Call, Text, parts_to_json
from services.agent.resources.agents.model.base_tools import BASE_TOOLS
from services.agent.resources.agents.model.instructions import INSTRUCTIONS
from services.common.errors import Aborted, InvalidArgument, NotFound
from services.common.ids import from_public, to_public, uuid7
from tests.integration.agent.admin_world import ORGANIZATION, AdminWorld, admin_world

OLDER = BASE_TOOLS["memgpt_agent"]


@pytest.fixture
async def world(agent_url: str, tmp_path: Path) -> AsyncIterator[AdminWorld]:
    """The service with no agents, and a tool runner that has every base tool."""
    async with admin_world(agent_url, tmp_path) as made:
        await made.pool.execute("DELETE FROM agent.agents")
        for name in sorted({name for names in BASE_TOOLS.values() for name in names}):
            if all(tool.name != name for tool in made.peers.tools.values()):
                made.peers.add_tool(name)
        yield made


@pytest.mark.parametrize("name", BASE_TOOLS)
async def test_every_type_has_its_tools_rules_and_instructions(world: AdminWorld, name: str) -> None:
    agent = await world.create(agent_type=agent_pb2.AgentType.Value(f"AGENT_TYPE_{name.upper()}"))
    assert [tool.name for tool in agent.tools] == list(BASE_TOOLS[name])
    assert agent.system == INSTRUCTIONS[name]
    assert agent.message_buffer_autoclear == (name == "workflow_agent")
    rules = {rule["tool_name"]: rule["type"] for rule in _rules(agent)}
    ends = {"send_message", "memory_finish_edits"}
    wanted = {tool: "exit_loop" if tool in ends else "continue_loop" for tool in BASE_TOOLS[name]}
    assert rules == ({} if name == "letta_v1_agent" else wanted)
    assert await world.get(agent.id) == agent


async def test_base_tool_rules_as_the_client_wants_them(world: AdminWorld) -> None:
    asked = await world.create(include_base_tool_rules=True)
    assert {rule["type"] for rule in _rules(asked)} == {"continue_loop"}
    memgpt = agent_pb2.AGENT_TYPE_MEMGPT_AGENT
    assert _rules(await world.create(agent_type=memgpt, include_base_tool_rules=False)) == []
    own = '[{"type": "continue_loop", "tool_name": "send_message"}]'
    mixed = await world.create(agent_type=memgpt, tool_rules_json=own)
    assert [(rule["tool_name"], rule["type"]) for rule in _rules(mixed)] == [(name, "continue_loop") for name in OLDER]


async def test_rules_follow_a_renamed_tool(world: AdminWorld) -> None:
    erase, look = world.peers.add_tool("erase"), world.peers.add_tool("look")
    rules = '[{"type": "requires_approval", "tool_name": "erase"}, {"type": "exit_loop", "tool_name": "erase"}]'
    with_it, without = [await world.create(tool_ids=[tool], tool_rules_json=rules) for tool in (erase, look)]

    async def rename(old: str, new: str, *, only_approvals: bool) -> int:
        request = wire.RenameToolRequest(tool_id=erase, old_name=old, new_name=new, only_approvals=only_approvals)
        return int((await world.call(world.agents.RenameTool, request)).changed_agents)

    async def names(agent_id: str) -> list[tuple[str, str]]:
        return [(rule["type"], rule["tool_name"]) for rule in _rules(await world.get(agent_id))]

    before = [("requires_approval", "erase"), ("exit_loop", "erase")]
    assert await rename("erase", "wipe", only_approvals=True) == 1
    assert await names(with_it.id) == [*before, ("requires_approval", "wipe")]
    assert await rename("erase", "wipe", only_approvals=False) == 1
    assert await names(with_it.id) == [("requires_approval", "wipe"), ("exit_loop", "wipe")]
    assert await rename("erase", "wipe", only_approvals=False) == 0
    # Its rule may be about a tool of its client.
    assert await names(without.id) == before
    # Part of a longer name is no name.
    assert await rename("wip", "x", only_approvals=False) == 0


async def test_tool_rules_are_shown_as_the_reference_shows_them(world: AdminWorld) -> None:
    rules: list[dict[str, Any]] = [
        {"type": "run_first", "tool_name": "a", "args": {"x": 1}, "prompt_template": "ignored"},
        {"type": "requires_approval", "tool_name": "b"},
    ]
    agent = await world.create(tool_rules_json=orjson.dumps(rules).decode())
    assert _rules(agent) == [
        {"type": "run_first", "tool_name": "a", "args": {"x": 1}, "prompt_template": None},
        {"type": "requires_approval", "tool_name": "b", "prompt_template": None},
    ]
    changed = await world.update(agent.id, tool_rules_json='[{"type": "exit_loop", "tool_name": "a"}]')
    assert [rule["type"] for rule in _rules(changed)] == ["exit_loop"]
    assert (await world.update(agent.id, tool_rules_json="[]")).tool_rules_json == ""
    assert _rules(await world.get(agent.id)) == []


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        (
            {"tool_rules_json": '[{"type": "exit_loop", "tool_name": "a"}, {"type": "x", "tool_name": "a"}]'},
            r"rules\[1",
        ),
        ({"tool_rules_json": '{"type": "exit_loop"}'}, "tool_rules must be a JSON array"),
        ({"tool_rules_json": "[1]"}, r"tool_rules\[0\]"),
        ({"compaction_settings_json": '{"mode": "static_buffer"}'}, "compaction_settings cannot be used: mode"),
        ({"compaction_settings_json": '{"sliding_window_percentage": 2}'}, "sliding_window_percentage"),
        ({"response_format_json": '{"type": "xml"}'}, "response_format must be"),
        ({"response_format_json": '{"type": "json_schema"}'}, "response_format must be"),
        ({"model_settings_json": '{"response_format": {"type": 1}}'}, r"model_settings\.response_format must be"),
        ({"recall_passages": 51}, "recall_passages"),
        ({"recall_passages": -1}, "recall_passages"),
        ({"max_files_open": 1_001}, "max_files_open"),
        ({"per_file_view_window_char_limit": 0}, "per_file_view_window_char_limit"),
    ],
)
async def test_settings_that_cannot_be(world: AdminWorld, fields: dict[str, Any], named: str) -> None:
    with pytest.raises(InvalidArgument, match=named) as caught:
        await world.create(**fields)
    assert caught.value.reason == "AGENT_INVALID"
    agent = await world.create()
    with pytest.raises(InvalidArgument, match=named):
        await world.update(agent.id, **fields)
    assert await world.get(agent.id) == agent


async def test_settings_of_the_loop_are_kept_and_changed(world: AdminWorld) -> None:
    schema = '{"type":"json_schema","json_schema":{"name":"a","schema":{}}}'
    agent = await world.create(
        message_buffer_autoclear=True,
        max_files_open=0,
        per_file_view_window_char_limit=99,
        recall_passages=50,
        response_format_json=schema,
    )
    assert (agent.message_buffer_autoclear, agent.max_files_open, agent.recall_passages) == (True, 0, 50)
    assert (agent.per_file_view_window_char_limit, agent.response_format_json) == (99, schema)
    changed = await world.update(agent.id, message_buffer_autoclear=False, recall_passages=0)
    assert (changed.message_buffer_autoclear, changed.recall_passages, changed.max_files_open) == (False, 0, 0)
    usual = await world.update(agent.id, "max_files_open", "response_format_json")
    assert (usual.HasField("max_files_open"), usual.response_format_json) == (False, "")
    assert await world.get(agent.id) == usual


async def test_a_workflow_agent_never_keeps_its_window(world: AdminWorld) -> None:
    agent = await world.create(agent_type=agent_pb2.AGENT_TYPE_WORKFLOW_AGENT, message_buffer_autoclear=False)
    assert agent.message_buffer_autoclear
    assert (await world.update(agent.id, message_buffer_autoclear=False)).message_buffer_autoclear


async def test_a_cleared_system_prompt_is_that_of_the_type(world: AdminWorld) -> None:
    agent = await world.create(agent_type=agent_pb2.AGENT_TYPE_SLEEPTIME_AGENT, system="Mine")
    assert (await world.update(agent.id, "system")).system == INSTRUCTIONS["sleeptime_agent"]


async def test_compaction_settings_are_stored_as_given_and_shown_whole(world: AdminWorld) -> None:
    agent = await world.create()
    shown = orjson.loads(agent.compaction_settings_json)
    assert (shown["model"], shown["mode"], shown["clip_chars"]) == ("loci/demo", "sliding_window", 50_000)
    assert len(shown["prompt"]) > 500
    changed = await world.update(agent.id, compaction_settings_json='{"model": "letta/auto", "mode": "all"}')
    changed_shown = orjson.loads(changed.compaction_settings_json)
    assert (changed_shown["model"], changed_shown["mode"]) == ("letta/auto", "all")
    assert changed_shown["prompt"] != shown["prompt"]
    stored = await world.pool.fetchval("SELECT compaction_settings FROM agent.agents")
    assert stored == {"model": "letta/auto", "mode": "all"}


async def test_the_summariser_follows_the_model(world: AdminWorld) -> None:
    agent = await world.create(model="openai/large")
    assert orjson.loads(agent.compaction_settings_json)["model"] == "openai/gpt-5-mini"
    moved = await world.update(agent.id, model="loci/demo")
    assert orjson.loads(moved.compaction_settings_json)["model"] == "loci/demo"


async def test_tools_bring_the_approval_that_they_ask_for(world: AdminWorld) -> None:
    careful, other = world.peers.add_tool("wipe"), world.peers.add_tool("send_mail")
    for tool_id in (careful, other):
        world.peers.tools[tool_id].default_requires_approval = True
    agent = await world.create(tool_names=["wipe"])
    assert _waiting(agent) == ["wipe"]
    attach = wire.AttachToolRequest(agent_id=agent.id, tool_id=other)
    for _ in range(2):
        attached = (await world.call(world.agents.AttachTool, attach)).agent
        assert _waiting(attached) == ["wipe", "send_mail"]
    plain = await world.create()
    assert _waiting(await world.update(plain.id, tool_ids=[careful, other])) == ["wipe", "send_mail"]
    # Whoever took the rule away does not get it back by changing something else.
    await _set_approval(world, plain.id, "wipe", required=False)
    assert _waiting(await world.update(plain.id, tool_ids=[careful, other])) == ["send_mail"]
    chosen = await world.update(plain.id, tool_ids=[careful], tool_rules_json="[]")
    assert _waiting(chosen) == []


async def test_approval_of_a_tool_is_switched(world: AdminWorld) -> None:
    agent = await world.create(tool_rules_json='[{"type": "exit_loop", "tool_name": "memory_insert"}]')
    for _ in range(2):
        on = await _set_approval(world, agent.id, "memory_insert", required=True)
        assert (_waiting(on), on.version) == (["memory_insert"], 2)
    for _ in range(2):
        off = await _set_approval(world, agent.id, "memory_insert", required=False)
        assert (off.tool_rules_json, off.version) == (agent.tool_rules_json, 3)
    for required in (True, False):
        with pytest.raises(NotFound, match="no tool fly") as caught:
            await _set_approval(world, agent.id, "fly", required=required)
        assert caught.value.reason == "TOOL_NOT_FOUND"


async def test_a_rule_about_a_tool_that_is_gone_can_be_taken_away(world: AdminWorld) -> None:
    agent = await world.create(tool_rules_json='[{"type": "requires_approval", "tool_name": "fly"}]')
    assert _waiting(await _set_approval(world, agent.id, "fly", required=False)) == []


async def test_calls_that_wait_are_shown_with_the_agent(world: AdminWorld) -> None:
    agent = await world.create()
    message_id = await _let_calls_wait(world, agent.id)
    found = await world.get(agent.id)
    pending = found.pending_approval
    assert pending.request_id == to_public("message", type(message_id)(int=message_id.int - 1))
    assert orjson.loads(pending.tool_calls_json) == [{"name": "wipe", "arguments": "{}", "tool_call_id": "c2"}]
    assert (pending.run_id, pending.HasField("due_at")) == ("", True)
    assert pending.otid
    listed = (await world.list()).agents
    assert [each.pending_approval for each in listed] == [pending]
    assert (await world.update(agent.id, name="Eve")).pending_approval == pending
    assert not (await world.create()).HasField("pending_approval")


async def test_a_summary_is_the_first_message_of_the_window(world: AdminWorld) -> None:
    agent = await world.create(initial_messages=[_said(message_pb2.MESSAGE_ROLE_USER, text) for text in "abc"])
    ids = [from_public("message", message_id) for message_id in agent.message_ids]
    await world.pool.execute("UPDATE agent.messages SET role = 'summary' WHERE id = $1", ids[2])
    await world.pool.execute("UPDATE agent.conversation_heads SET window_seq = 3, summary_id = $1", ids[2])
    assert list((await world.get(agent.id)).message_ids) == [agent.message_ids[place] for place in (0, 2, 3)]


async def test_a_conversation_begins_with_what_the_client_gives(world: AdminWorld) -> None:
    agent = await world.create(
        initial_messages=[
            _said(message_pb2.MESSAGE_ROLE_ASSISTANT, "Hello, I am Ada's."),
            _said(message_pb2.MESSAGE_ROLE_USER, "Remember the marmot.", otid="mine"),
        ]
    )
    assert len(agent.message_ids) == 3
    assert await world.get(agent.id) == agent
    system, hello, marmot = await _messages(world, agent.id)
    assert (hello.assistant_message.content, marmot.user_message.content[0].text) == (
        "Hello, I am Ada's.",
        "Remember the marmot.",
    )
    assert [system.id, hello.id, marmot.id] == list(agent.message_ids)
    assert (marmot.otid, marmot.run_id) == ("mine", "")
    await world.say(agent.id)
    assert len((await world.get(agent.id)).message_ids) == 5
    found = "SELECT count(*) FROM agent.messages WHERE search @@ plainto_tsquery('english', 'marmots')"
    assert await world.pool.fetchval(found) == 1


async def test_an_agent_of_an_older_type_begins_with_a_greeting(world: AdminWorld) -> None:
    older = agent_pb2.AGENT_TYPE_MEMGPT_AGENT
    agent = await world.create(agent_type=older)
    assert await world.get(agent.id) == agent
    messages = await _messages(world, agent.id)
    assert [message.WhichOneof("message") for message in messages] == [
        *("system_message", "reasoning_message", "tool_call_message", "tool_return_message", "user_message"),
    ]
    assert list(dict.fromkeys(message.id for message in messages)) == list(agent.message_ids)
    assert {message.run_id for message in messages} == {""}
    # Neither where the client wants none, nor beside its own.
    assert len((await world.create(agent_type=older, include_default_messages=False)).message_ids) == 1
    own = [_said(message_pb2.MESSAGE_ROLE_USER, "Hi")]
    assert len((await world.create(agent_type=older, initial_messages=own)).message_ids) == 2


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (message_pb2.InputMessage(), "MESSAGES_EMPTY"),
        (message_pb2.InputMessage(role=message_pb2.MESSAGE_ROLE_TOOL), "MESSAGE_INVALID"),
        (message_pb2.InputMessage(answers=[message_pb2.Answer()]), "MESSAGE_INVALID"),
        (
            message_pb2.InputMessage(
                role=message_pb2.MESSAGE_ROLE_ASSISTANT,
                content=[message_pb2.ContentPart(image=message_pb2.ImageContent(url="https://a/b"))],
            ),
            "MESSAGE_INVALID",
        ),
    ],
)
async def test_what_no_conversation_begins_with(
    world: AdminWorld, message: message_pb2.InputMessage, reason: str
) -> None:
    with pytest.raises(InvalidArgument) as caught:
        await world.create(initial_messages=[message])
    assert caught.value.reason == reason
    assert await world.rows("agents") == 0


async def test_reset_messages_are_gone_from_view_and_not_from_memory(world: AdminWorld) -> None:
    agent = await world.create()
    await world.say(agent.id, "Remember the marmot.")
    await _let_calls_wait(world, agent.id)
    before = await world.rows("messages")
    reset = await _reset(world, agent.id)
    assert len(reset.message_ids) == 1
    assert not reset.HasField("pending_approval")
    assert reset.last_stop_reason == agent_pb2.STOP_REASON_END_TURN
    assert [message.WhichOneof("message") for message in await _messages(world, agent.id)] == ["system_message"]
    assert await world.rows("messages") == before
    await world.say(agent.id, "Who are you?")
    assert len(await _messages(world, agent.id)) == len((await world.get(agent.id)).message_ids) == 3
    again = await _reset(world, agent.id)
    assert (len(again.message_ids), await world.rows("conversation_segments")) == (1, 1)


async def test_what_was_reset_outlives_its_forks(world: AdminWorld) -> None:
    agent = await world.create()
    await world.say(agent.id, "Remember the marmot.")
    fork = (
        await world.call(world.conversations.ForkConversation, fork_wire.ForkConversationRequest(agent_id=agent.id))
    ).conversation
    await _reset(world, agent.id)
    delete = fork_wire.DeleteConversationRequest(conversation_id=fork.id)
    await world.call(world.conversations.DeleteConversation, delete)
    await world.deliver()
    assert await world.rows("conversations") == 1
    stored = "SELECT count(*) FROM agent.messages WHERE agent_id = $1"
    assert await world.pool.fetchval(stored, from_public("agent", agent.id)) == 2


async def test_messages_are_not_reset_under_a_run(world: AdminWorld) -> None:
    agent = await world.create()
    world.peers.may_answer.clear()
    turn = asyncio.create_task(world.say(agent.id))
    while not world.peers.asked["Generate"]:
        await asyncio.sleep(0.01)
    with pytest.raises(Aborted, match="run-") as caught:
        await _reset(world, agent.id)
    assert caught.value.reason == "CONVERSATION_BUSY"
    world.peers.may_answer.set()
    await turn
    assert len((await _reset(world, agent.id)).message_ids) == 1


async def test_messages_of_nobody_are_not_reset(world: AdminWorld) -> None:
    agent = await world.create()
    await world.delete(agent.id)
    for agent_id in (agent.id, to_public("agent", uuid7())):
        with pytest.raises(NotFound) as caught:
            await _reset(world, agent_id)
        assert caught.value.reason == "AGENT_NOT_FOUND"


def _rules(agent: agent_pb2.Agent) -> list[dict[str, Any]]:
    rules: list[dict[str, Any]] = orjson.loads(agent.tool_rules_json or "[]")
    return rules


def _waiting(agent: agent_pb2.Agent) -> list[str]:
    return [rule["tool_name"] for rule in _rules(agent) if rule["type"] == "requires_approval"]


def _said(role: message_pb2.MessageRole.ValueType, text: str, **fields: Any) -> message_pb2.InputMessage:
    return message_pb2.InputMessage(role=role, content=[message_pb2.ContentPart(text=text)], **fields)


async def _messages(world: AdminWorld, agent_id: str) -> list[message_pb2.Message]:
    request = message_wire.ListMessagesRequest(agent_id=agent_id, page=PageRequest(order=ORDER_ASCENDING))
    return list((await world.call(world.messages.ListMessages, request)).messages)


async def _set_approval(world: AdminWorld, agent_id: str, name: str, *, required: bool) -> agent_pb2.Agent:
    request = wire.SetToolApprovalRequest(agent_id=agent_id, tool_name=name, requires_approval=required)
    agent: agent_pb2.Agent = (await world.call(world.agents.SetToolApproval, request)).agent
    return agent


async def _reset(world: AdminWorld, agent_id: str) -> agent_pb2.Agent:
    agent: agent_pb2.Agent = (
        await world.call(world.agents.ResetMessages, wire.ResetMessagesRequest(agent_id=agent_id))
    ).agent
    return agent


async def _let_calls_wait(world: AdminWorld, agent_id: str) -> Any:
    """A message as a turn leaves it whose calls wait for the client; its id."""
    message_id, raw = uuid7(), from_public("agent", agent_id)
    parts = (Text("I have to."), Call("k1", "c1", "look", "{}"), Call("k2", "c2", "wipe", "{}", gate="approval"))
    await world.pool.execute(
        """
        WITH head AS (
            UPDATE agent.conversation_heads
            SET next_seq = next_seq + 1, pending_message_id = $3, approval_due = now() + interval '1 hour'
            WHERE organization_id = $1 AND conversation_id = $2 RETURNING log_id, next_seq - 1 AS seq
        )
        INSERT INTO agent.messages (organization_id, log_id, seq, id, agent_id, conversation_id, role, content)
        SELECT $1, log_id, seq, $3, $2, $2, 'assistant', $4 FROM head
        """,
        ORGANIZATION,
        raw,
        message_id,
        parts_to_json(parts),
    )
    return message_id
