"""Models, tags, tokens for browsers, templates and the devices on which clients run."""

from datetime import UTC, datetime, timedelta
from typing import Any

from tests.e2e.sdk_methods.world import EMBEDDING, MODEL, UNKNOWN, Cases, World, refused

cases = Cases()


@cases("health")
def health(world: World) -> None:
    assert world.client.health().status == "ok"


@cases("models.list", "models.embeddings.list")
def models(world: World) -> None:
    assert MODEL in {one.handle for one in world.client.models.list()}
    assert EMBEDDING in {one.handle for one in world.client.models.embeddings.list()}
    assert world.client.models.list(provider_name="none", provider_category=["base"]) == []
    refused(422, lambda: world.client.models.list(provider_category=["mine"]), "provider_category")


@cases("tags.list")
def tags(world: World) -> None:
    stem = world.name("tagged")
    world.new_agent(tags=[f"{stem}_b", f"{stem}_a"])
    listed = world.client.tags.list
    assert listed(query_text=stem) == [f"{stem}_a", f"{stem}_b"]
    assert listed(query_text=stem, order="desc", limit=1) == [f"{stem}_b"]
    assert listed(query_text=stem, after=f"{stem}_a") == [f"{stem}_b"]


@cases("access_tokens.create", "access_tokens.list", "access_tokens.delete")
def access_tokens(world: World) -> None:
    client = world.client.access_tokens
    policy: list[Any] = [{"type": "agent", "id": world.agent.id, "access": ["read_messages"]}]
    made = client.create(hostname="https://app.example.com", policy=policy)
    assert made.policy.data[0].id == world.agent.id
    assert made.expires_at
    tomorrow = (datetime.now(UTC) + timedelta(days=1)).isoformat()
    client.create(hostname="https://app.example.com", policy=policy, expires_at=tomorrow)
    endless = {"hostname": "https://app.example.com", "policy": policy, "expires_at": "2999-01-01T00:00:00Z"}
    refused(422, lambda: client.create(**endless), "within 7 days")
    page = client.list(agent_id=world.agent.id, limit=1, offset=0)
    assert (len(page.tokens), page.has_next_page) == (1, True)
    client.delete(made.token, body={})
    assert made.token not in [one.token for one in client.list(agent_id=world.agent.id).tokens]
    refused(422, lambda: client.create(hostname="app", policy=policy), "hostname")
    refused(422, lambda: client.create(hostname="https://app.example.com", policy=[policy[0] | {"access": ["x"]}]))


@cases("templates.create", "templates.save", "templates.rollback", "templates.delete", "templates.agents.create")
def templates(world: World) -> None:
    client = world.client.templates
    made = world.new_template()
    saved = client.save(made.name, message="Second")
    assert saved.latest_version != made.latest_version
    assert client.rollback(made.name, version=made.latest_version).success
    agents = client.agents.create(
        f"{made.name}:{made.latest_version}", agent_name="Twin", tags=["twin"], memory_variables={"who": "Ada"}
    )
    twin = world.client.agents.retrieve(agents.agent_ids[0], include=["agent.tags"])
    assert (twin.name, "twin" in twin.tags) == ("Twin", True)
    refused(409, lambda: client.create(type="agent", agent_id=world.agent.id, name=made.name))
    refused(404, lambda: client.create(type="agent", agent_id=f"agent-{UNKNOWN}"))
    client.delete(made.name)
    refused(404, lambda: client.save(made.name))


@cases("templates.update")
def update_template(world: World) -> None:
    made = world.new_template()
    file = world.client.get(f"/v1/agents/{world.agent.id}/export", cast_to=object)
    changed = world.client.templates.update(made.name, agent_file_json=file, save_existing_changes=True)
    assert changed.success
    refused(422, lambda: world.client.templates.update(made.name, agent_file_json=5))


@cases("environments.list", "environments.retrieve", "environments.send_message")
def environments(world: World) -> None:
    client = world.client.environments
    device = world.new_device()
    found = client.retrieve(device.device_id)
    assert (found.device_id, found.connection_name) == (device.device_id, device.name)
    assert device.device_id in [one.device_id for one in client.list(limit=100).connections]
    client.list(online_only=True, limit=1)
    message = {"role": "user", "content": "Hello.", "client_message_id": UNKNOWN}
    sent = client.send_message(device.connection_id, messages=[message], agent_id=world.agent.id)
    assert sent.success
    assert device.hear()["payload"]["messages"] == [message]
    refused(404, lambda: client.retrieve("no-such-device"))
