"""Agents moved as agent files, by the official client."""

import argparse
import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from letta_client import APIStatusError

from cli import agent_files
from cli.errors import CliError
from tests.e2e.stack import Stack

NOTES = '''def note(text: str) -> str:
    """Notes something.

    Args:
        text: What.
    """
    return f"noted {text}"
'''
PICTURE = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def exported(client: Any, agent_id: str, **options: Any) -> dict[str, Any]:
    """The document."""
    document: dict[str, Any] = json.loads(client.agents.with_raw_response.export_file(agent_id, **options).text())
    return document


def take_in(client: Any, document: Any, **options: Any) -> list[str]:
    """The agents of a document."""
    data = document if isinstance(document, bytes) else json.dumps(document).encode()
    ids: list[str] = client.agents.import_file(file=("x.af", data), **options).agent_ids
    return ids


def comparable(document: dict[str, Any]) -> dict[str, Any]:
    """Without what differs from export to export."""
    made = copy.deepcopy(document) | {"created_at": None}
    for agent in made["agents"]:
        # What llm_config says is set explicitly after an import.
        agent["model_settings"] = None
        for message in agent["messages"]:
            message["otid"] = None
            message["approval_request_id"] = message["approval_request_id"] and "message"
            if message["role"] == "system":
                message |= {"content": None, "created_at": None}
    return made


@pytest.fixture(scope="module")
def whole(client: Any) -> Iterator[dict[str, Any]]:
    """An agent with a bit of everything, as a document."""
    tool = client.tools.create(source_code=NOTES, default_requires_approval=True)
    agent = client.agents.create(
        name="whole",
        model="loci/demo",
        memory_blocks=[{"label": "human", "value": "", "limit": 3000}, {"label": "persona", "value": "I am whole."}],
        tool_ids=[tool.id],
        secrets={"TOKEN": "secret value"},
        tags=["b", "a"],
        metadata={"level": 3},
    )
    client.agents.messages.create(agent.id, input="My name is Ada.")
    content = [
        {"type": "text", "text": "What is this?"},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PICTURE}},
    ]
    client.agents.messages.create(agent.id, messages=[{"role": "user", "content": content}])
    document = exported(client, agent.id)
    yield document
    client.agents.delete(agent.id)
    client.tools.delete(tool.id)


def test_what_goes_out_comes_in_and_goes_out_the_same(client: Any, whole: dict[str, Any]) -> None:
    assert "secret value" not in json.dumps(whole)
    assert [message["id"] for message in whole["agents"][0]["messages"]] == whole["agents"][0]["in_context_message_ids"]
    [agent_id] = take_in(client, whole, append_copy_suffix=False)
    assert comparable(exported(client, agent_id)) == comparable(whole)
    answer = client.agents.messages.create(agent_id, input="What is my name?")
    assert answer.stop_reason.stop_reason == "end_turn"
    assert "Ada" in client.agents.blocks.retrieve("human", agent_id=agent_id).value


def test_the_client_gets_a_string_or_the_document(client: Any, whole: dict[str, Any]) -> None:
    [agent_id] = take_in(client, whole)
    answer: Any = client.agents.export_file(agent_id)
    document = json.loads(answer) if isinstance(answer, str) else answer
    assert document["agents"][0]["name"] == "whole_copy"


def test_overrides(client: Any, whole: dict[str, Any]) -> None:
    secrets = json.dumps({"TOKEN": "new", "OTHER": "dropped"})
    [agent_id] = take_in(client, whole, name="eve", model="loci/demo", embedding="loci/hash", secrets=secrets)
    agent = client.agents.retrieve(agent_id, include=["agent.secrets"])
    assert (agent.name, agent.model, agent.embedding) == ("eve", "loci/demo", "loci/hash")
    assert [each.key for each in agent.secrets] == ["TOKEN"]
    older = take_in(client, whole, override_name="adam", override_model_handle="loci/demo", strip_messages=True)
    agent = client.agents.retrieve(older[0])
    assert (agent.name, len(agent.message_ids)) == ("adam", 1)


def test_a_tool_is_replaced_unless_it_shall_not_be(client: Any, whole: dict[str, Any]) -> None:
    changed = copy.deepcopy(whole)
    [tool] = [each for each in changed["tools"] if each["name"] == "note"]
    tool["source_code"] = NOTES.replace("noted", "wrote down")
    [there] = client.tools.list(name="note").items
    take_in(client, changed, override_existing_tools=False)
    assert "wrote down" not in client.tools.retrieve(there.id).source_code
    take_in(client, changed)
    assert "wrote down" in client.tools.retrieve(there.id).source_code
    # The tools that ship are never replaced.
    builtin = next(each for each in changed["tools"] if each["tool_type"].startswith("letta_"))
    builtin |= {"source_code": NOTES, "description": "spoilt"}
    take_in(client, changed)
    [found] = client.tools.list(name=builtin["name"]).items
    assert (found.description == "spoilt", found.source_code) == (False, None)


def test_what_fails_leaves_nothing_behind(client: Any, whole: dict[str, Any]) -> None:
    spoilt = copy.deepcopy(whole)
    [tool] = [each for each in spoilt["tools"] if each["name"] == "note"]
    before_source = client.tools.list(name="note").items[0].source_code
    tool["source_code"] = NOTES.replace("noted", "spoilt")
    spoilt["tools"].append(tool | {"id": "tool-77", "name": "brand_new", "json_schema": None,
                                   "source_code": NOTES.replace("def note", "def brand_new")})  # fmt: skip
    spoilt["sources"] = [{"id": "source-70", "name": "left behind"}]
    spoilt["files"] = [{"id": "file-70", "source_id": "source-70", "file_name": "a.txt", "content": "text"}]
    spoilt["agents"][0] |= {"source_ids": ["source-70"], "timezone": "Nowhere/Atlantis"}
    before = (len(client.agents.list(limit=1000).items), len(client.blocks.list(limit=1000).items))
    with pytest.raises(APIStatusError, match="timezone") as caught:
        take_in(client, spoilt)
    assert caught.value.status_code == 400
    assert (len(client.agents.list(limit=1000).items), len(client.blocks.list(limit=1000).items)) == before
    assert not client.folders.list(name="left behind").items
    assert not client.tools.list(name="brand_new").items
    assert client.tools.list(name="note").items[0].source_code == before_source


def test_a_group_with_a_shared_block_and_a_request_that_waits(client: Any) -> None:
    waits = {"id": "c", "type": "function", "function": {"name": "run_here", "arguments": "{}"}}
    asked = {"id": "message-1", "role": "approval", "created_at": "2026-01-01T00:00:00Z", "tool_calls": [waits]}
    agents = [
        {"id": f"agent-{number}", "name": f"member {number}", "agent_type": "letta_v1_agent", "block_ids": ["block-0"],
         "llm_config": {"handle": "loci/demo"}, "messages": [asked] if number else [],
         "in_context_message_ids": ["message-1"] if number else []}
        for number in (0, 1)
    ]  # fmt: skip
    config = {"manager_type": "supervisor", "manager_agent_id": "agent-0"}
    document = {
        "agents": agents,
        "groups": [{"id": "group-0", "agent_ids": ["agent-1"], "description": "Two", "manager_config": config}],
        "blocks": [{"id": "block-0", "label": "shared", "value": "Both of us."}],
    }
    first, second = take_in(client, document)
    [one], [other] = client.agents.blocks.list(first).items, client.agents.blocks.list(second).items
    assert one.id == other.id
    pending = client.agents.retrieve(second, include=["agent.pending_approval"]).pending_approval
    assert pending.tool_calls[0].tool_call_id == "c"
    again = exported(client, first)
    assert [agent["name"] for agent in again["agents"]] == ["member 0_copy", "member 1_copy"]
    assert again["groups"][0]["manager_config"] == config
    assert again["agents"][1]["messages"][-1]["role"] == "approval"


def test_the_legacy_form(client: Any) -> None:
    nothing = '{"status": "OK", "message": null}'
    history = [
        {"role": "system", "content": [{"type": "text", "text": "Old prompt."}], "created_at": "2025-04-01T03:47:27"},
        {"role": "user", "content": [{"type": "text", "text": '{"type": "user_message", "message": "Hi there"}'}]},
        {"role": "assistant", "content": [{"type": "text", "text": "A guest."}],
         "tool_calls": [{"id": "c", "type": "function",
                         "function": {"name": "send_message", "arguments": '{"message": "Hello"}'}}]},
        {"role": "tool", "tool_call_id": "c", "content": [{"type": "text", "text": nothing}]},
    ]  # fmt: skip
    document = {
        "name": "old", "agent_type": "memgpt_agent", "system": "Old prompt.", "version": "0.6.47", "messages": history,
        "in_context_message_indices": [0, 2, 3], "core_memory": [{"label": "human", "value": "Ada", "limit": 5000}],
        "tools": [{"name": "send_message", "tool_type": "letta_core"}],
        "tool_rules": [{"tool_name": "send_message", "type": "exit_loop"}],
    }  # fmt: skip
    [agent_id] = take_in(client, json.dumps(json.dumps(document)).encode(), model="loci/demo", append_copy_suffix=False)
    agent = client.agents.retrieve(agent_id, include=["agent.tools"])
    assert (agent.name, len(agent.message_ids), [each.name for each in agent.tools]) == ("old", 3, ["send_message"])
    kinds = [message.message_type for message in client.agents.messages.list(agent_id, order="asc").items]
    assert kinds[1:4] == ["user_message", "reasoning_message", "assistant_message"]


def test_exports(client: Any, stack: Stack, whole: dict[str, Any]) -> None:
    [agent_id] = take_in(client, whole)
    assert exported(client, agent_id, scrub_messages=True)["agents"][0]["messages"] == []
    conversation = client.conversations.create(agent_id=agent_id)
    [agent] = exported(client, agent_id, conversation_id=conversation.id)["agents"]
    assert [message["role"] for message in agent["messages"]] == ["system"]
    skill = {"name": "sing", "files": {"SKILL.md": "Sing."}}
    url = f"{stack.url}/v1/agents/{agent_id}/export"
    assert httpx.post(url, json={"skills": [skill]}, timeout=30).json()["skills"] == [skill | {"source_url": None}]
    for method, address, body, status in (
        ("GET", f"{url}?use_legacy_format=true", None, 400),
        ("GET", f"{url}?conversation_id=nonsense", None, 422),
        ("GET", f"{url}?conversation_id=conv-{agent_id[6:]}", None, 200),
        ("GET", url.replace(agent_id[-4:], "0000"), None, 404),
        ("POST", url, {"skills": [{"name": "x"}]}, 422),
        ("POST", url, {"skills": [{"name": "x", "files": {}}]}, 422),
    ):
        answer = httpx.request(method, address, json=body, timeout=30)
        assert answer.status_code == status, answer.text


@pytest.mark.parametrize(
    ("files", "data", "status"),
    [
        ({}, {"name": "x"}, 422),
        ({"file": b"not json"}, {}, 400),
        ({"file": b"{}"}, {}, 400),
        ({"file": b'{"agents": [{"id": "agent-0"}]}'}, {"secrets": "[]"}, 400),
        ({"file": b'{"agents": [{"id": "agent-0"}]}'}, {"secrets": "{"}, 400),
        ({"file": b'{"agents": [{"id": "agent-0"}]}'}, {"model": "no handle"}, 422),
        ({"file": b'{"agents": [{"id": "agent-0"}]}'}, {"model": "no/model"}, 404),
        ({"file": b'{"agents": [{"id": "agent-0"}]}'}, {"strip_messages": "perhaps"}, 422),
    ],
)
def test_what_is_wrong_is_told(stack: Stack, files: dict[str, bytes], data: dict[str, str], status: int) -> None:
    url = f"{stack.url}/v1/agents/import"
    answer = httpx.post(url, files=files or {"other": b"x"}, data=data, timeout=30)
    assert answer.status_code == status, answer.text
    no_form = {"content-type": "multipart/form-data; boundary=y"}
    assert httpx.post(url, content=b"x", headers=no_form, timeout=30).status_code == 422


def test_the_command(client: Any, stack: Stack, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    agent, path = client.agents.create(name="by hand", model="loci/demo"), tmp_path / "x.af"
    common = {"url": stack.url, "name": "again", "model": None, "embedding": None}
    agent_files.run(
        argparse.Namespace(command="export", agent=agent.id, output=str(path), scrub_messages=False, **common)
    )
    agent_files.run(argparse.Namespace(command="import", file=str(path), **common))
    assert "again (agent-" in capsys.readouterr().out
    with pytest.raises(CliError, match="cannot be read"):
        agent_files.run(argparse.Namespace(command="import", file=str(tmp_path / "none.af"), **common))
