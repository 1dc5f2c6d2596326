"""Identities and groups: the official client where it has methods, HTTP for the rest; through every service."""

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import httpx
import pytest
from letta_client import NotFoundError, UnprocessableEntityError

from tests.e2e.stack import Stack

PROPERTIES = [{"key": "age", "value": 36, "type": "number"}, {"key": "home", "value": {"a": [1]}, "type": "json"}]
IDENTITY = {"id", "identifier_key", "name", "identity_type", "project_id", "agent_ids", "block_ids", "properties"}
GROUP = {
    "id", "manager_type", "agent_ids", "description", "project_id", "template_id", "base_template_id", "deployment_id",
    "shared_block_ids", "manager_agent_id", "termination_token", "max_turns", "sleeptime_agent_frequency",
    "turns_counter", "last_processed_message_id", "max_message_buffer_length", "min_message_buffer_length", "hidden",
}  # fmt: skip


@pytest.fixture
def http(stack: Stack) -> Iterator[httpx.Client]:
    """Routes that the client has no methods for; with and without the slash at the end."""
    with httpx.Client(base_url=f"{stack.url}/v1", timeout=20) as client:
        yield client


def done(answer: httpx.Response) -> Any:
    """The body of an answer that is well."""
    assert answer.status_code == 200, answer.text
    return answer.json()


def names(page: Any) -> list[str]:
    """Returns the names in order."""
    return [agent.name for agent in page]


def test_identities_of_agents_and_blocks(stack: Stack, http: httpx.Client) -> None:
    client, key = stack.client(), uuid4().hex
    block, other = (client.blocks.create(label=label, value="") for label in ("a", "b"))
    before = done(http.get("/identities/count"))
    body = {"identifier_key": key, "name": "Ada", "identity_type": "user", "properties": PROPERTIES}
    ada = done(http.post("/identities/", json=body | {"block_ids": [block.id]}))
    assert ada.keys() == IDENTITY
    assert (ada["properties"], ada["block_ids"], ada["agent_ids"]) == (PROPERTIES, [block.id], [])
    taken = http.post("/identities", json=body)
    assert (taken.status_code, taken.headers["x-should-retry"]) == (409, "false")
    assert key in taken.json()["detail"]
    org = done(http.put("/identities/", json={"identifier_key": f"{key}-org", "name": "Org", "identity_type": "org"}))
    same = {"identifier_key": f"{key}-org", "name": "The firm", "identity_type": "org", "properties": PROPERTIES}
    assert done(http.put("/identities/", json=same)) == org | {"name": "The firm", "properties": PROPERTIES}
    assert done(http.get("/identities/count")) == before + 2

    agent = client.agents.create(model="loci/demo", name=key, identity_ids=[ada["id"]], enable_sleeptime=True)
    assert (agent.identity_ids, agent.enable_sleeptime) == ([ada["id"]], True)
    (tending_id,) = agent.managed_group.agent_ids
    assert (agent.multi_agent_group.id, agent.managed_group.manager_type) == (agent.managed_group.id, "sleeptime")
    client.agents.blocks.attach(other.id, agent_id=agent.id)
    tending = client.agents.retrieve(tending_id, include=["agent.blocks"])
    assert (tending.name, tending.agent_type) == (f"{key}-sleeptime", "sleeptime_agent")
    assert {one.label for one in tending.blocks} == {"memory_persona", "b"}
    assert agent.identities[0].identifier_key == key
    assert client.agents.identities.attach(org["id"], agent_id=agent.id) is None
    shown = client.agents.retrieve(agent.id, include=["agent.identities"])
    assert ([one.id for one in shown.identities], shown.tools) == ([ada["id"], org["id"]], [])
    assert client.agents.retrieve(agent.id, include=["agent.tools"]).identities == []
    assert names(client.agents.list(identity_id=org["id"])) == [key]
    assert names(client.agents.list(identifier_keys=[f"{key}-org", "x"], include=["agent.identities"])) == [key]
    assert names(client.agents.list(identity_id=ada["id"], template_id="none")) == []
    assert [one["id"] for one in done(http.get(f"/identities/{org['id']}/agents"))] == [agent.id]
    assert client.agents.identities.detach(org["id"], agent_id=agent.id) is None
    assert names(client.agents.list(identity_id=org["id"])) == []
    assert client.agents.update(agent.id, identity_ids=[org["id"]]).identity_ids == [org["id"]]
    assert client.agents.update(agent.id, identity_ids=[]).identity_ids == []

    for action in ("attach", "attach", "detach", "attach"):
        assert done(http.patch(f"/blocks/{other.id}/identities/{action}/{ada['id']}"))["id"] == other.id
    about = [one.id for one in client.blocks.list(identity_id=ada["id"])]
    assert about == [block.id, other.id]
    assert [one.id for one in client.blocks.list(identifier_keys=[key, "x"], order="desc")] == about[::-1]
    assert client.blocks.list(identifier_keys=["x"]).items == []
    assert [one["id"] for one in done(http.get(f"/identities/{ada['id']}/blocks?order=asc&limit=1"))] == [block.id]

    new = [{"key": "age", "value": 37, "type": "number"}]
    assert done(http.put(f"/identities/{ada['id']}/properties", json=new)) is None
    changed = done(http.patch(f"/identities/{ada['id']}", json={"name": "Lady Ada", "block_ids": [other.id]}))
    assert (changed["name"], changed["properties"]) == ("Lady Ada", [*new, PROPERTIES[1]])
    assert done(http.get(f"/identities/{ada['id']}")) == changed
    assert done(http.delete(f"/identities/{ada['id']}")) is None
    assert http.get(f"/identities/{ada['id']}").status_code == 404


def test_pages_of_identities(http: httpx.Client) -> None:
    project = uuid4().hex
    made = [
        done(http.post("/identities", json={"identifier_key": key, "name": key, "identity_type": "other",
                                            "project_id": project}))["id"]
        for key in "abc"
    ]  # fmt: skip

    def page(query: str) -> list[str]:
        found = done(http.get(f"/identities/?project_id={project}&{query}"))
        return [one["identifier_key"] for one in found]

    assert page("") == ["c", "b", "a"]
    assert page("order=asc&limit=2") == ["a", "b"]
    assert page(f"order=asc&limit=2&after={made[1]}") == ["c"]
    assert page(f"limit=1&before={made[0]}") == ["b"]
    assert page("identifier_key=b&identity_type=other&name=b") == ["b"]
    assert page("identity_type=org") == []


def test_what_cannot_be_of_identities(stack: Stack, http: httpx.Client) -> None:
    client, unknown = stack.client(), f"identity-{uuid4()}"
    agent = client.agents.create(model="loci/demo")
    with pytest.raises(NotFoundError, match=unknown):
        client.agents.identities.attach(unknown, agent_id=agent.id)
    with pytest.raises(UnprocessableEntityError, match="examples"):
        client.agents.identities.detach("identity-1", agent_id=agent.id)
    with pytest.raises(NotFoundError, match=unknown):
        client.agents.update(agent.id, name="Nobody", identity_ids=[unknown])
    with pytest.raises(UnprocessableEntityError, match="examples"):
        client.agents.create(model="loci/demo", identity_ids=["ada"])
    assert client.agents.retrieve(agent.id).name == agent.name
    block = client.blocks.create(label="x", value="")
    body = {"identifier_key": uuid4().hex, "name": "A", "identity_type": "user"}
    for method, path, sent, status in (
        ("PATCH", f"/blocks/{block.id}/identities/attach/{unknown}", None, 404),
        ("PATCH", f"/blocks/{block.id}/identities/detach/{unknown}", None, 404),
        ("GET", f"/identities/{unknown}/agents", None, 404),
        ("GET", f"/identities/{unknown}/blocks", None, 404),
        ("PUT", f"/identities/{unknown}/properties", [], 404),
        ("PATCH", f"/identities/{unknown}", {"name": "x"}, 404),
        ("DELETE", f"/identities/{unknown}", None, 404),
        ("POST", "/identities", body | {"agent_ids": [f"agent-{uuid4()}"]}, 404),
        ("POST", "/identities", body | {"block_ids": [f"block-{uuid4()}"]}, 404),
        ("POST", "/identities", body | {"name": ""}, 422),
        ("POST", "/identities", body | {"properties": [{"key": "a", "value": "1", "type": "number"}]}, 422),
        ("POST", "/identities", body | {"properties": [{"key": "a", "value": 1, "type": "number"}] * 2}, 422),
    ):
        answer = http.request(method, path, json=sent)
        assert answer.status_code == status, (path, sent, answer.text)
    assert done(http.get(f"/identities?identifier_key={body['identifier_key']}")) == []


def test_groups(stack: Stack, http: httpx.Client) -> None:
    client = stack.client()
    one, two, manager = (client.agents.create(model="loci/demo", name=name) for name in ("one", "two", "three"))
    plan, notes = (client.blocks.create(label=label, value="") for label in ("plan", "notes"))
    before = done(http.get("/groups/count"))
    body = {"agent_ids": [one.id, two.id], "description": "Those who go.", "shared_block_ids": [plan.id]}
    group = done(http.post("/groups/", json=body | {"manager_config": {"manager_type": "round_robin", "max_turns": 3}}))
    path = f"/groups/{group['id']}"
    assert group.keys() == GROUP
    assert {name: group[name] for name in body} == body
    assert (group["manager_type"], group["max_turns"], group["hidden"]) == ("round_robin", 3, False)
    assert [len(client.agents.blocks.list(agent.id).items) for agent in (one, two, manager)] == [1, 1, 0]
    assert done(http.get(path)) == group
    assert done(http.get("/groups/count")) == before + 1
    assert [each["id"] for each in done(http.get(f"/agents/{one.id}/groups"))] == [group["id"]]
    assert done(http.get(f"/agents/{manager.id}/groups")) == []
    assert group["id"] in [each["id"] for each in done(http.get("/groups/?manager_type=round_robin"))]

    dynamic = {"manager_type": "dynamic", "manager_agent_id": manager.id}
    changed = done(http.patch(path, json={"agent_ids": [two.id], "manager_config": dynamic}))
    assert (changed["manager_agent_id"], changed["termination_token"], changed["max_turns"]) == (
        manager.id, "DONE!", None,
    )  # fmt: skip
    assert client.agents.blocks.list(one.id).items == []
    shown = client.agents.retrieve(manager.id, include=["agent.managed_group"])
    assert shown.managed_group.id == shown.multi_agent_group.id == group["id"]
    assert client.agents.retrieve(manager.id, include=["agent.tags"]).managed_group is None
    sent = {"manager_config": {"manager_type": "dynamic", "max_turns": 9}}
    assert done(http.patch(path, json=sent)) == changed | {"max_turns": 9}

    assert done(http.patch(f"{path}/blocks/attach/{notes.id}")) is None
    assert done(http.patch(f"{path}/blocks/detach/{plan.id}")) is None
    assert done(http.get(path))["shared_block_ids"] == [notes.id]
    assert [block.label for block in client.agents.blocks.list(two.id)] == ["notes"]
    # Nothing was said in it; test_many_agents.py has the rest.
    assert done(http.get(f"{path}/messages")) == []
    assert done(http.patch(f"{path}/reset-messages")) is None
    assert http.patch(f"{path}/messages/message-{uuid4()}", json={"content": "Hello."}).status_code == 404

    unknown = f"agent-{uuid4()}"
    wrong: tuple[tuple[dict[str, Any], int], ...] = (
        ({"agent_ids": [unknown]}, 404),
        ({"manager_config": {"manager_type": "supervisor", "manager_agent_id": unknown}}, 404),
        ({"shared_block_ids": [f"block-{uuid4()}"]}, 404),
        ({"manager_config": {"manager_type": "supervisor"}}, 422),
        ({"agent_ids": ["me"]}, 422),
    )
    for fields, status in wrong:
        refused = http.post("/groups", json=body | fields)
        assert refused.status_code == status, refused.text
    other = client.blocks.create(label="notes", value="")
    assert http.patch(f"{path}/blocks/attach/{other.id}").status_code == 409
    assert done(http.get("/groups/count")) == before + 1

    client.agents.delete(two.id)
    assert done(http.get(path))["agent_ids"] == []
    client.agents.delete(manager.id)
    assert http.get(path).status_code == 404
    assert http.delete(path).status_code == 404
