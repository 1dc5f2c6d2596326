"""Agent files as they are read: every form, every reference, and what is said in them."""

from datetime import UTC, datetime
from typing import Any

import orjson
import pytest

from gateway.agent_files import drafts
from gateway.agent_files.drafts import Options
from gateway.agent_files.messages import MessageWriter, stored_messages
from gateway.agent_files.reader import read
from gateway.agent_files.schema import AgentFile
from loci.agent.v1 import message_pb2
from loci.agent.v1.transfer_service_pb2 import StoredMessage
from services.common.errors import InvalidArgument

MANAGED = {"manager_type": "supervisor", "manager_agent_id": "agent-8"}
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def said(number: int, role: str, content: Any = None, **fields: Any) -> dict[str, Any]:
    """A message of a file."""
    parts = [{"type": "text", "text": content, "signature": None}] if isinstance(content, str) else content
    return {"type": "message", "id": f"message-{number}", "role": role, "content": parts, **fields}


def call(call_id: str, name: str, arguments: str = "{}") -> dict[str, Any]:
    return {"id": call_id, "function": {"name": name, "arguments": arguments}, "type": "function"}


def document(**fields: Any) -> dict[str, Any]:
    """A small file: an agent with a block and a tool, who was greeted."""
    agent = {
        "id": "agent-0",
        "name": "ada",
        "agent_type": "letta_v1_agent",
        "llm_config": {"handle": "openai/gpt-4o-mini", "model": "gpt-4o-mini", "context_window": 32_000},
        "tool_ids": ["tool-0"],
        "block_ids": ["block-0"],
        "messages": [said(0, "system", "compiled"), said(1, "user", "Hi")],
        "in_context_message_ids": ["message-0", "message-1"],
    }
    return {
        "agents": [agent | fields],
        "groups": [],
        "blocks": [{"id": "block-0", "label": "human", "value": "Ada", "limit": 2}],
        "files": [],
        "sources": [],
        "tools": [{"id": "tool-0", "name": "look", "tool_type": "custom", "source_code": "def look(): ..."}],
        "mcp_servers": [],
        "metadata": {"revision_id": "x"},
    }


def of(value: Any) -> AgentFile:
    return read(orjson.dumps(value))


def stored(*messages: dict[str, Any], tools: tuple[str, ...] = ("look",), **fields: Any) -> list[StoredMessage]:
    """The messages of an agent that are not the first."""
    everything = [said(0, "system", "compiled"), *messages]
    fields.setdefault("in_context_message_ids", [each["id"] for each in everything])
    file = of(document(messages=everything, **fields))
    return stored_messages(file.agents[0], frozenset(tools), NOW)


# Forms --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("times", [0, 1, 2])
def test_a_document_may_be_a_text_of_a_document(times: int) -> None:
    data: Any = document()
    for _ in range(times):
        data = orjson.dumps(data).decode()
    assert of(data).agents[0].name == "ada"


def legacy(**fields: Any) -> dict[str, Any]:
    messages = [
        said(9, "system", "old prompt"),
        said(9, "user", '{"type": "user_message", "message": "Hi", "time": "t"}'),
    ]
    messages += [said(9, "system", "new prompt"), said(9, "user", '{"type": "heartbeat", "reason": "r"}')]
    for message in messages:
        del message["id"]
    return {
        "agent_type": "memgpt_agent",
        "name": "old",
        "system": "old prompt",
        "core_memory": [{"label": "human", "value": "Ada", "limit": 5_000, "metadata_": {"a": 1}}],
        "tools": [{"name": "send_message", "tool_type": "letta_core"}],
        "messages": messages,
        "in_context_message_indices": [2, 3],
        "tags": [{"tag": "x"}],
        "tool_exec_environment_variables": [{"key": "TOKEN", "value": ""}],
        "tool_rules": [],
        "created_at": "2025-04-01T03:47:19",
        "version": "0.6.47",
    } | fields


def test_the_legacy_form() -> None:
    file = of(legacy())
    [agent] = file.agents
    assert (agent.name, agent.tags, agent.secret_names) == ("old", ["x"], ("TOKEN",))
    assert (agent.block_ids, agent.tool_ids, file.blocks[0].metadata) == (["block-0"], ["tool-0"], {"a": 1})
    assert agent.in_context_message_ids == ["message-2", "message-3"]
    assert file.created_at == datetime(2025, 4, 1, 3, 47, 19, tzinfo=UTC)
    # Prompts that were compiled once are no messages; what a user said is taken out of its packing.
    found = stored_messages(agent, frozenset(), NOW)
    assert [(each.parts[0].text.text, each.in_context) for each in found] == [
        ("Hi", False),
        ('{"type": "heartbeat", "reason": "r"}', True),
    ]


def test_the_legacy_form_with_flags() -> None:
    given = legacy()
    del given["in_context_message_indices"]
    given["messages"][2]["in_context"] = given["messages"][3]["in_context"] = True
    assert of(given).agents[0].in_context_message_ids == ["message-2", "message-3"]


@pytest.mark.parametrize(
    "data",
    [
        b"", b"{", b"[]", b"7", b'""', b"{}", b'{"agents": {}}', b'{"agents": []}', b'{"agents": [7]}',
        b'{"agents": [{"id": "agent-0", "name": 7}]}', b"\xff\xfe", b"[" * 500 + b"]" * 500,
        b'{"agents": [{"id": "agent-0", "metadata": ' + b'{"a":' * 200 + b"1" + b"}" * 200 + b"}]}",
        b'{"agents": [{"id": "agent-0", "name": "\\u0000"}]}',
        b'{"core_memory": 7}', b'{"core_memory": [7]}', b'{"core_memory": [], "messages": {"a": 1}}',
        b'{"core_memory": [], "tags": 7}', b'{"core_memory": [], "tags": [7]}',
        b'{"core_memory": [], "messages": [], "in_context_message_indices": [0]}',
        b'{"core_memory": [], "messages": [], "in_context_message_indices": 7}',
        b'{"core_memory": [], "tool_exec_environment_variables": "x"}',
        b'{"agents": [{"id": "agent-0", "messages": [{"id": "message-0", "role": "user", "created_at": "0001-01-01T00:00:00+14:00"}]}]}',  # noqa: E501
    ],
)  # fmt: skip
def test_what_is_no_agent_file(data: bytes) -> None:
    with pytest.raises(InvalidArgument) as caught:
        read(data)
    assert caught.value.reason == "AGENT_FILE_INVALID"


# References ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spoilt", "named"),
    [
        ({"id": "agent-x"}, "agent-x"),
        ({"id": "block-7"}, "block-7"),
        ({"tool_ids": ["tool-9"]}, "tool-9"),
        ({"block_ids": ["block-9"]}, "block-9"),
        ({"in_context_message_ids": ["message-9"]}, "message-9"),
        ({"messages": [said(1, "user", "a"), said(1, "user", "b")], "in_context_message_ids": []}, "message-1"),
        ({"messages": [said(1, "king", "a")], "in_context_message_ids": []}, "king"),
        ({"agent_type": "wizard"}, "wizard"),
        ({"max_files_open": 2**62}, "max_files_open"),
        ({"max_files_open": 2**31}, "max_files_open"),
        ({"files_agents": [{"file_id": "file-9", "source_id": "source-9", "agent_id": "agent-0"}]}, "file-9"),
    ],
)
def test_every_reference_is_checked(spoilt: dict[str, Any], named: str) -> None:
    with pytest.raises(InvalidArgument, match=named):
        of(document(**spoilt))


@pytest.mark.parametrize(
    ("part", "named"),
    [
        ({"files": [{"id": "file-0", "source_id": "source-9"}]}, "source-9"),
        ({"groups": [{"id": "group-0", "agent_ids": ["agent-9"]}]}, "agent-9"),
        ({"groups": [{"id": "group-0", "agent_ids": []}]}, "group-0"),
        (
            {
                "groups": [
                    {"id": "group-0", "agent_ids": ["agent-0"], "manager_config": {"manager_agent_id": "agent-8"}}
                ]
            },
            "agent-8",
        ),
        ({"blocks": [{"id": "block-0", "label": "a", "value": ""}] * 2}, "block-0"),
    ],
)
def test_every_reference_between_lists_is_checked(part: dict[str, Any], named: str) -> None:
    with pytest.raises(InvalidArgument, match=named):
        of(document() | part)


def test_a_folder_without_files_is_an_id_without_an_entity() -> None:
    assert of(document(source_ids=["source-0"])).agents[0].source_ids == ["source-0"]


# What was said ------------------------------------------------------------------------------------------------------


def test_the_window_comes_last_in_its_own_order() -> None:
    found = stored(
        said(1, "user", "a"), said(2, "user", "b"), said(3, "user", "c"),
        in_context_message_ids=["message-0", "message-3", "message-1"],
    )  # fmt: skip
    assert [(each.parts[0].text.text, each.in_context) for each in found] == [("b", False), ("c", True), ("a", True)]


def test_an_answered_request_for_approval() -> None:
    found = stored(
        said(1, "approval", None, tool_calls=[call("c", "look")]),
        said(
            2, "approval", None, approvals=[{"type": "approval", "tool_call_id": "c", "approve": False, "reason": "no"}]
        ),
        said(3, "tool", [], tool_returns=[{"tool_call_id": "c", "status": "error", "func_response": "denied"}]),
    )
    assert [message_pb2.MessageRole.Name(each.role) for each in found] == [
        "MESSAGE_ROLE_ASSISTANT", "MESSAGE_ROLE_APPROVAL", "MESSAGE_ROLE_TOOL",
    ]  # fmt: skip
    assert (found[0].parts[0].call.gate, found[1].parts[0].decision.reason) == ("approval", "no")
    assert (found[2].parts[0].tool_return.name, found[2].parts[0].tool_return.status) == ("look", "error")


@pytest.mark.parametrize(("tools", "gate"), [(("look",), "approval"), ((), "client")])
def test_a_request_that_waits(tools: tuple[str, ...], gate: str) -> None:
    [asked] = stored(said(1, "approval", None, tool_calls=[call("c", "look")]), tools=tools)
    assert asked.parts[0].call.gate == gate


def test_what_a_client_ran_itself() -> None:
    answer = {"tool_call_id": "c", "status": "success", "stdout": ["click"], "stderr": [], "func_response": "open"}
    asked, answered = stored(
        said(1, "approval", None, tool_calls=[call("c", "look")]), said(2, "approval", None, approvals=[answer])
    )
    assert (asked.parts[0].call.gate, answered.parts[0].tool_return.tool_return) == ("client", "open")


def test_returns_are_taken_out_of_their_packing() -> None:
    packed = '{"status": "Failed", "message": "no such city", "time": "t"}'
    [_, returned] = stored(
        said(1, "assistant", "", tool_calls=[call("c", "look")]), said(2, "tool", packed, tool_call_id="c")
    )
    given = returned.parts[0].tool_return
    assert (given.tool_return, given.status, given.name) == ("no such city", "error", "look")


def test_older_agents_think_in_the_text_beside_their_calls() -> None:
    thought = said(1, "assistant", "Hm.", tool_calls=[call("c", "look")])
    [older] = stored(thought, agent_type="memgpt_agent")
    [newer] = stored(thought)
    assert (older.parts[0].reasoning.text, older.parts[0].reasoning.prompted) == ("Hm.", True)
    assert newer.parts[0].text.text == "Hm."


def test_only_the_newest_summary_is_one() -> None:
    found = stored(said(1, "summary", "a"), said(2, "summary", "b"))
    assert [each.role for each in found] == [message_pb2.MESSAGE_ROLE_USER, message_pb2.MESSAGE_ROLE_SUMMARY]


def test_messages_go_out_as_they_came_in() -> None:
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk=", "detail": None}}
    thoughts = [
        {"type": "reasoning", "is_native": True, "reasoning": "Hm.", "signature": "s"},
        {"type": "redacted_reasoning", "data": "opaque"},
        {"type": "omitted_reasoning", "signature": "t"},
        {"type": "text", "text": "Well", "signature": "u"},
    ]
    found = stored(
        said(1, "user", [{"type": "text", "text": "Look", "signature": None}, picture], name="ada"),
        said(2, "assistant", thoughts, tool_calls=[call("c", "look", '{"a": 1}')]),
        said(3, "tool", None, tool_returns=[{
            "tool_call_id": "c", "status": "success", "stdout": ["o"], "stderr": None, "func_response": "x",
            "images": [picture],
        }]),
        said(4, "summary", "before"),
    )  # fmt: skip
    writing = MessageWriter("agent-0", "letta_v1_agent", "gpt", UTC)
    once = [writing.message(each, f"message-{place}") for place, each in enumerate(found, start=1)]
    again = stored(*once)
    for first, second in zip(found, again, strict=True):
        second.id = first.id
        first.ClearField("otid")
        second.ClearField("otid")
        assert first == second
    assert once[1]["content"] == thoughts
    assert (once[0]["content"][1], once[0]["name"]) == (picture, "ada")


@pytest.mark.parametrize(
    "spoilt",
    [
        said(1, "user", [{"type": "video"}]),
        said(1, "user", [{"type": "image", "source": {"type": "base64", "data": "###"}}]),
        said(1, "user", [{"type": "image", "source": {"type": "moon"}}]),
        said(1, "assistant", None, tool_calls=[{"id": 7}]),
    ],
)
def test_what_cannot_be_read_is_named(spoilt: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgument, match="message-1"):
        stored(spoilt)


# Entities -----------------------------------------------------------------------------------------------------------


def test_names_get_a_suffix_unless_one_is_given() -> None:
    agent = of(document()).agents[0]
    assert drafts.agent_draft(agent, Options(), ()).name == "ada_copy"
    assert drafts.agent_draft(agent, Options(append_copy_suffix=False), ()).name == "ada"
    assert drafts.agent_draft(agent, Options(name="eve"), ()).name == "eve"


def test_another_model_brings_its_own_window() -> None:
    agent = of(document()).agents[0]
    own, other = drafts.agent_draft(agent, Options(), ()), drafts.agent_draft(agent, Options(model="loci/demo"), ())
    assert (own.model, own.context_window_limit) == ("openai/gpt-4o-mini", 32_000)
    assert (other.model, other.HasField("context_window_limit")) == ("loci/demo", False)


def test_secrets_of_the_file_and_no_others() -> None:
    agent = of(document(secrets={"A": ""}, tool_exec_environment_variables={"B": ""})).agents[0]
    draft = drafts.agent_draft(agent, Options(secrets={"A": "1", "C": "3"}), ())
    assert dict(draft.secrets) == {"A": "1", "B": ""}


def test_a_value_beyond_its_limit_brings_its_own() -> None:
    assert drafts.block_draft(of(document()).blocks[0], "block-1", Options()).limit == 3


def test_schemas_lose_what_the_loop_adds() -> None:
    schema = {
        "name": "look", "type": "object",
        "parameters": {"properties": {"a": {}, "request_heartbeat": {}}, "required": ["a", "request_heartbeat"]},
    }  # fmt: skip
    file = of(
        document() | {"tools": [{"id": "tool-0", "source_type": "json", "source_code": "x", "json_schema": schema}]}
    )
    draft = drafts.tool_draft(file.tools[0])
    assert draft.source_type == "python"
    assert orjson.loads(draft.json_schema_json) == {
        "name": "look", "parameters": {"properties": {"a": {}}, "required": ["a"]},
    }  # fmt: skip
