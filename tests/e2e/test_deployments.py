"""Objects made from templates one by one, listed and deleted by deployment id; agents.create from a template."""

from typing import Any

import httpx
import pytest
from letta_client import APIStatusError

from tests.e2e.stack import Stack
from tests.e2e.test_templates import document

IDS = {"base_template_id": "template-a", "template_id": "template-a:1", "deployment_id": "deployment-a"}


class Parts:
    """The routes of the parts of templates."""

    def __init__(self, stack: Stack) -> None:
        self._url = f"{stack.url}/v1/_internal_templates"

    def answer(self, method: str, path: str, body: Any = None, **params: Any) -> httpx.Response:
        """Whatever comes."""
        return httpx.request(method, f"{self._url}/{path}", json=body, params=params, timeout=30)

    def make(self, path: str, body: Any) -> Any:
        """One that is made."""
        answer = self.answer("POST", path, body)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def listed(self, deployment_id: str, **params: Any) -> list[tuple[Any, ...]]:
        """Type, id and the template's id of each entity."""
        found = self.answer("GET", f"deployment/{deployment_id}", **params).json()
        assert (found["total_count"], found["deployment_id"]) == (len(found["entities"]), deployment_id)
        return [(each["type"], each["id"], each["entity_id"]) for each in found["entities"]]


@pytest.fixture(scope="module")
def parts(stack: Stack) -> Parts:
    return Parts(stack)


def test_parts_of_a_deployment(parts: Parts, client: Any) -> None:
    block = parts.make("blocks", IDS | {"entity_id": "block-0", "label": "persona", "value": "I.", "hidden": True})
    many = parts.make(
        "blocks/batch", [IDS | {"entity_id": f"block-{n}", "label": "notes", "value": str(n)} for n in (1, 2)]
    )
    assert [(each["value"], each["entity_id"]) for each in many] == [("1", "block-1"), ("2", "block-2")]
    settings = {"name": "Part", "model": "loci/demo", "block_ids": [block["id"], many[0]["id"]], "hidden": True}
    agent = parts.make("agents", IDS | settings | {"entity_id": "agent-0"})
    group = parts.make("groups", IDS | {"agent_ids": [agent["id"]], "description": "One", "project_id": "p"})
    for each in (block, *many, agent, group):
        assert {name: each[name] for name in IDS} == IDS
    assert client.agents.retrieve(agent["id"]).entity_id == "agent-0"
    # Of another deployment, and of none.
    other = parts.make(
        "blocks", IDS | {"deployment_id": "deployment-b", "entity_id": "block-0", "label": "persona", "value": ""}
    )
    client.blocks.create(label="persona", value="")
    blocks = [("block", each["id"], each["entity_id"]) for each in (block, *many)]
    whole = [*blocks, ("agent", agent["id"], "agent-0"), ("group", group["id"], None)]
    assert parts.listed("deployment-a") == whole
    assert parts.listed("deployment-a", entity_types=["group", "agent"]) == whole[3:]
    found = parts.answer("GET", "deployment/deployment-a").json()["entities"]
    assert [(each["name"], each["description"], each["project_id"]) for each in found[3:]] == [
        ("Part", None, None),
        (None, "One", "p"),
    ]
    gone = parts.answer("DELETE", "deployment/deployment-a").json()
    assert gone == {
        "deleted_blocks": [each[1] for each in blocks],
        "deleted_agents": [agent["id"]],
        "deleted_groups": [group["id"]],
        "message": "5 deleted",
    }
    assert parts.listed("deployment-a") == []
    assert parts.answer("DELETE", "deployment/deployment-a").json()["message"] == "0 deleted"
    assert client.blocks.retrieve(other["id"]).deployment_id == "deployment-b"
    parts.answer("DELETE", "deployment/deployment-b")


def test_a_deployment_of_a_template(parts: Parts, client: Any) -> None:
    file = document()
    config = {"manager_type": "supervisor", "manager_agent_id": "agent-0"}
    file["agents"].append({"id": "agent-1", "name": "helper", "agent_type": "letta_v1_agent"})
    file["groups"] = [{"id": "group-0", "agent_ids": ["agent-1"], "description": "Both", "manager_config": config}]
    template = client.templates.create(type="agent_file", agent_file=file, name="deployed")
    made = client.templates.agents.create("deployed:1")
    group = client.agents.retrieve(made.agent_ids[0], include=["agent.managed_group"]).managed_group
    ids = (group.template_id, group.base_template_id, group.deployment_id)
    assert ids == (f"{template.id}:1", template.id, made.deployment_id)
    [block, *others] = parts.listed(made.deployment_id)
    assert (block[0], block[2]) == ("block", "block-0")
    assert others == [
        ("agent", made.agent_ids[0], "agent-0"),
        ("agent", made.agent_ids[1], "agent-1"),
        ("group", made.group_id, None),
    ]
    gone = parts.answer("DELETE", f"deployment/{made.deployment_id}").json()
    assert (gone["message"], gone["deleted_agents"]) == ("4 deleted", made.agent_ids)
    assert parts.listed(made.deployment_id) == []
    client.templates.delete("deployed")


def test_blocks_are_made_all_or_none(parts: Parts) -> None:
    ids = IDS | {"deployment_id": "deployment-c", "entity_id": "block-0"}
    wrong = [ids | {"label": "good", "value": ""}, ids | {"label": "", "value": ""}]
    assert parts.answer("POST", "blocks/batch", wrong).status_code in (400, 422)
    assert parts.listed("deployment-c") == []
    assert parts.make("blocks/batch", []) == []


@pytest.mark.parametrize("missing", ["base_template_id", "template_id", "deployment_id", "entity_id"])
def test_parts_say_where_they_come_from(parts: Parts, missing: str) -> None:
    ids = {name: value for name, value in (IDS | {"entity_id": "x"}).items() if name != missing}
    block = ids | {"label": "persona", "value": ""}
    assert parts.answer("POST", "agents", ids | {"model": "loci/demo"}).status_code == 422
    assert parts.answer("POST", "blocks", block).status_code == 422
    assert parts.answer("POST", "blocks/batch", [block]).status_code == 422
    if missing != "entity_id":
        assert parts.answer("POST", "groups", ids | {"agent_ids": [], "description": ""}).status_code == 422
    assert parts.answer("GET", "deployment/deployment-a", entity_types=["song"]).status_code == 422


# agents.create of a template ----------------------------------------------------------------------------------------


def test_agents_create_of_a_template(client: Any, parts: Parts) -> None:
    template = client.templates.create(type="agent_file", agent_file=document(), name="older")
    agent = client.agents.create(
        from_template="older:1",
        memory_variables={"company": "Loci"},
        name="Ada",
        tags=["a"],
        secrets={"TOKEN": "secret"},
        project_id="p",
        initial_message_sequence=[{"role": "user", "content": "Hello"}],
    )
    assert (agent.name, agent.tags, agent.system) == ("Ada", ["a", "b"], "You serve Loci. {{unknown}}")
    assert (agent.template_id, agent.base_template_id) == (f"{template.id}:1", template.id)
    assert client.agents.blocks.retrieve("persona", agent_id=agent.id).value == "I work for Loci."
    assert ([each.key for each in agent.secrets], agent.project_id) == (["TOKEN"], "p")
    kinds = [each.message_type for each in client.agents.messages.list(agent.id, order="asc").items]
    assert kinds == ["system_message", "user_message"]
    assert len(parts.listed(agent.deployment_id)) == 2
    client.templates.delete("older")


@pytest.mark.parametrize(
    ("body", "status", "told"),
    [
        ({"from_template": "refused:1", "system": "Mine"}, 422, "system"),
        ({"from_template": "refused:1", "memory_blocks": [{"label": "a", "value": ""}]}, 422, "memory_blocks"),
        ({"from_template": "refused:1", "include_base_tools": True}, 422, "include_base_tools"),
        ({"from_template": "refused:1", "agent_type": "letta_v1_agent"}, 422, "agent_type"),
        ({"from_template": "refused:x"}, 422, "from_template"),
        ({"from_template": "refused:9"}, 404, "9"),
        ({"from_template": "nobody:1"}, 404, "nobody"),
        ({"memory_variables": {"a": "b"}}, 422, "from_template"),
        ({"template": True}, 422, "templates.create"),
    ],
)
def test_what_a_template_says_is_not_said_again(
    client: Any, stack: Stack, body: dict[str, Any], status: int, told: str
) -> None:
    client.templates.create(type="agent_file", agent_file=document(), name="refused")
    try:
        before = httpx.get(f"{stack.url}/v1/agents/count", timeout=30).json()
        with pytest.raises(APIStatusError, match=told) as caught:
            client.agents.create(**body)
        assert caught.value.status_code == status
        assert httpx.get(f"{stack.url}/v1/agents/count", timeout=30).json() == before
    finally:
        client.templates.delete("refused")
