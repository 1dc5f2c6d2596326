"""Templates by the official client: versions, and agents that are made of them."""

from typing import Any

import httpx
import pytest
from letta_client import APIStatusError

from tests.e2e.stack import Stack


def document(value: str = "I work for {{ company }}.") -> dict[str, Any]:
    """An agent file with variables."""
    return {
        "agents": [
            {"id": "agent-0", "name": "clerk", "agent_type": "letta_v1_agent", "block_ids": ["block-0"],
             "system": "You serve {{company}}. {{unknown}}", "llm_config": {"handle": "loci/demo"}, "tags": ["b"]},
        ],
        "blocks": [{"id": "block-0", "label": "persona", "value": value}],
    }  # fmt: skip


def made(client: Any, name: str, **options: Any) -> Any:
    """A template of the document."""
    return client.templates.create(type="agent_file", agent_file=document(), name=name, **options)


def persona(client: Any, agent_id: str) -> str:
    value: str = client.agents.blocks.retrieve("persona", agent_id=agent_id).value
    return value


def test_agents_of_a_template(client: Any) -> None:
    template = made(client, "clerks")
    assert (template.name, template.latest_version) == ("clerks", "1")
    assert template.template_deployment_slug == "default/clerks:1"
    answer = client.templates.agents.create(
        "clerks:latest",
        agent_name="Ada",
        tags=["a"],
        memory_variables={"company": "Loci"},
        tool_variables={"TOKEN": "secret"},
        initial_message_sequence=[
            {"role": "user", "content": "Hello"},
            {"role": "assistant", "content": "Hi, I am Ada."},
        ],
    )
    [agent_id] = answer.agent_ids
    agent = client.agents.retrieve(agent_id, include=["agent.tags", "agent.secrets"])
    assert (agent.name, agent.tags, agent.system) == ("Ada", ["a", "b"], "You serve Loci. {{unknown}}")
    assert persona(client, agent_id) == "I work for Loci."
    assert [each.key for each in agent.secrets] == ["TOKEN"]
    assert (agent.template_id, agent.base_template_id) == (f"{template.id}:1", template.id)
    assert (agent.deployment_id, answer.group_id) == (answer.deployment_id, None)
    kinds = [each.message_type for each in client.agents.messages.list(agent_id, order="asc").items]
    assert kinds == ["system_message", "user_message", "assistant_message"]
    assert client.agents.messages.create(agent_id, input="Hello").stop_reason.stop_reason == "end_turn"
    # It knows nothing of its siblings.
    [other] = client.templates.agents.create("default/clerks:1").agent_ids
    assert persona(client, other) == "I work for {{ company }}."
    assert client.templates.delete("clerks").success
    assert client.agents.retrieve(other).name == "clerk"


def test_versions(client: Any) -> None:
    made(client, "versions")
    assert client.templates.update("versions", agent_file_json=document("second")).success
    values = {}
    for version in ("versions:dev", "versions:current", "versions:latest", "versions:1", "versions"):
        values[version] = persona(client, client.templates.agents.create(version).agent_ids[0])
    assert values == {
        "versions:dev": "second", "versions:current": "second", "versions:latest": "I work for {{ company }}.",
        "versions:1": "I work for {{ company }}.", "versions": "I work for {{ company }}.",
    }  # fmt: skip
    assert client.templates.save("versions", message="the second").latest_version == "2"
    assert persona(client, client.templates.agents.create("versions:2").agent_ids[0]) == "second"
    assert client.templates.rollback("versions", version="1").success
    assert persona(client, client.templates.agents.create("versions:dev").agent_ids[0]).startswith("I work")
    assert client.templates.update("versions", agent_file_json=document("fourth"), save_existing_changes=True).success
    assert persona(client, client.templates.agents.create("versions:3").agent_ids[0]).startswith("I work")
    assert client.templates.rollback("versions", version="latest").success
    client.templates.delete("versions")


def test_a_template_of_an_agent_has_nothing_of_what_was_said(client: Any) -> None:
    agent = client.agents.create(name="model", model="loci/demo", memory_blocks=[{"label": "persona", "value": "Me."}])
    client.agents.messages.create(agent.id, input="My name is Ada.")
    template = client.templates.create(type="agent", agent_id=agent.id)
    [agent_id] = client.templates.agents.create(template.name).agent_ids
    copy, model = (client.agents.retrieve(each, include=["agent.tools"]) for each in (agent_id, agent.id))
    assert (copy.name, len(copy.message_ids), copy.id == agent.id) == ("model", 1, False)
    assert {tool.name for tool in copy.tools} == {tool.name for tool in model.tools}
    client.templates.delete(template.name)


def test_a_template_of_a_group(client: Any) -> None:
    file = document()
    file["agents"].append({"id": "agent-1", "name": "helper", "agent_type": "letta_v1_agent", "block_ids": ["block-0"]})
    config = {"manager_type": "supervisor", "manager_agent_id": "agent-0"}
    file["groups"] = [{"id": "group-0", "agent_ids": ["agent-1"], "description": "Both", "manager_config": config}]
    client.templates.create(type="agent_file", agent_file=file, name="groups")
    answer = client.templates.agents.create("groups:latest", agent_name="boss")
    assert [client.agents.retrieve(each).name for each in answer.agent_ids] == ["boss", "helper"]
    boss = client.agents.retrieve(answer.agent_ids[0], include=["agent.managed_group"])
    assert boss.managed_group.id == answer.group_id
    client.templates.delete("groups")


@pytest.mark.parametrize("option", ["migrate_agents", "preserve_core_memories_on_migration"])
def test_upgrading_agents_comes_later(client: Any, option: str) -> None:
    template = client.templates.create(type="agent_file", agent_file=document())
    with pytest.raises(APIStatusError, match="upgraded") as caught:
        client.templates.save(template.name, **{option: True})
    assert caught.value.status_code == 501
    client.templates.delete(template.name)


def test_what_is_wrong_is_told(client: Any, stack: Stack) -> None:
    made(client, "told")
    url = f"{stack.url}/v1/templates"
    file = {"type": "agent_file", "agent_file": document()}
    for method, path, body, status in (
        ("POST", "", file | {"name": "told"}, 409),
        ("POST", "", file | {"name": "with spaces"}, 422),
        ("POST", "", {"type": "agent_file", "agent_file": {}}, 400),
        ("POST", "", {"type": "agent", "agent_id": "agent-x"}, 422),
        ("POST", "", {"type": "agent", "agent_id": "agent-00000000-0000-4000-8000-000000000009"}, 404),
        ("POST", "", {"type": "song"}, 422),
        ("PATCH", "/nobody", {"agent_file_json": document()}, 404),
        ("PATCH", "/told", {"agent_file_json": {"agents": []}}, 400),
        ("POST", "/nobody/save", {}, 404),
        ("POST", "/told/rollback", {"version": "current"}, 422),
        ("POST", "/told/rollback", {"version": "dev"}, 422),
        ("POST", "/told/rollback", {"version": "7"}, 404),
        ("POST", "/nobody:1/agents", {}, 404),
        ("POST", "/told:9/agents", {}, 404),
        ("POST", "/told:x/agents", {}, 422),
        ("POST", "/told:1/agents", {"identity_ids": ["identity-00000000-0000-4000-8000-000000000009"]}, 400),
        ("DELETE", "/nobody", None, 404),
    ):
        answer = httpx.request(method, f"{url}{path}", json=body, timeout=30)
        assert answer.status_code == status, (path, body, answer.text)
    client.templates.delete("told")


def test_templates_are_listed(client: Any, stack: Stack) -> None:
    names = [f"listed-{n}" for n in range(3)]
    for name in names:
        made(client, name)
    with httpx.Client(base_url=f"{stack.url}/v1/templates") as http:
        newest = http.get("", params={"limit": 2}).json()
        assert [each["name"] for each in newest] == ["listed-2", "listed-1"]
        assert newest[0]["template_deployment_slug"] == "default/listed-2:1"
        [older, *_] = http.get("", params={"after": newest[-1]["id"]}).json()
        assert older["name"] == "listed-0"
        assert [each["name"] for each in http.get("", params={"name": "listed-1"}).json()] == ["listed-1"]
        assert http.get("", params={"name": "nobody"}).json() == []
        assert http.get("", params={"after": "agent-x"}).status_code == 422
    for name in names:
        client.templates.delete(name)
