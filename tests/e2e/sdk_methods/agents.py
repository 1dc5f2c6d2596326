"""Agents, what is attached to them, and their files as a whole."""

import json
import time
from typing import Any

from tests.e2e.helpers import finished_file
from tests.e2e.sdk_methods.world import EMBEDDING, MODEL, Cases, World, ids, refused

cases = Cases()
EVERY_RELATION = [
    f"agent.{name}"
    for name in ("blocks", "identities", "managed_group", "pending_approval", "secrets", "sources", "tags", "tools")
]


@cases("agents.create")
def create(world: World) -> None:
    block, folder = world.new_block(), world.new_folder()
    agent = world.client.agents.create(
        name="Whole",
        description="One with nearly everything",
        model=MODEL,
        embedding=EMBEDDING,
        agent_type="letta_v1_agent",
        system="Be kind.",
        memory_blocks=[{"label": "human", "value": "Ada", "limit": 500}],
        block_ids=[block.id],
        tools=["memory_insert"],
        tool_ids=[world.double.id],
        tool_rules=[{"type": "exit_loop", "tool_name": "double"}],
        folder_ids=[folder.id],
        tags=["b", "a"],
        metadata={"key": [1, None]},
        model_settings={"provider_type": "openai", "temperature": 0.5, "max_output_tokens": 100},
        compaction_settings={"model": MODEL, "mode": "all"},
        context_window_limit=16_000,
        secrets={"KEY": "value"},
        timezone="Europe/Berlin",
        max_files_open=3,
        per_file_view_window_char_limit=1_000,
        initial_message_sequence=[],
        include_base_tools=False,
        message_buffer_autoclear=True,
        hidden=True,
    )
    assert sorted(one.label for one in agent.blocks) == sorted(["human", block.label])
    assert {"double", "memory_insert"} <= {one.name for one in agent.tools}
    assert (agent.name, agent.timezone, sorted(agent.tags)) == ("Whole", "Europe/Berlin", ["a", "b"])
    assert (agent.metadata, agent.hidden, agent.max_files_open) == ({"key": [1, None]}, True, 3)
    assert [one.key for one in agent.secrets] == ["KEY"]
    assert agent.llm_config.context_window == 16_000
    create_agent = world.client.agents.create
    refused(404, lambda: create_agent(model="loci/none"), "none")
    refused(400, lambda: create_agent(model="demo"), "model")
    refused(422, lambda: create_agent(name="<b>"), "name")
    refused(422, lambda: create_agent(model=MODEL, timezone="Mars/Olympus"), "timezone")
    refused(422, lambda: create_agent(model=MODEL, agent_type="other"), "agent_type")
    refused(400, lambda: create_agent(model=MODEL, tools=["no_such_tool"]), "no_such_tool")


@cases("agents.retrieve")
def retrieve(world: World) -> None:
    agent = world.client.agents.retrieve(world.agent.id)
    assert (agent.id, agent.name, agent.tools) == (world.agent.id, "Reader", [])
    bare = world.client.agents.retrieve(agent.id, include=[])
    assert bare.id == agent.id
    chosen = world.client.agents.retrieve(agent.id, include=["agent.tags"])
    assert (chosen.tags, chosen.tools, chosen.blocks) == (["readers"], [], [])
    assert world.client.agents.retrieve(agent.id, include=EVERY_RELATION).blocks
    refused(422, lambda: world.client.agents.retrieve(agent.id, include=["agent.everything"]), "include")


@cases("agents.update")
def update(world: World) -> None:
    agent, block = world.new_agent(), world.new_block()
    changed = world.client.agents.update(
        agent.id,
        name="Renamed",
        description="new",
        system="Be brief.",
        tags=["t"],
        metadata={"a": 1},
        block_ids=[block.id],
        tool_ids=[world.double.id],
        model_settings={"provider_type": "openai", "temperature": 0.1},
        context_window_limit=20_000,
        timezone="UTC",
    )
    assert (changed.name, changed.system, changed.tags, changed.metadata) == ("Renamed", "Be brief.", ["t"], {"a": 1})
    assert (ids(changed.blocks), ids(changed.tools)) == ([block.id], [world.double.id])
    refused(404, lambda: world.client.agents.update(agent.id, model="loci/none"), "none")
    refused(422, lambda: world.client.agents.update(agent.id, max_files_open=-1), "max_files_open")


@cases("agents.list")
def list_all(world: World) -> None:
    tag = world.name("tag")
    made = [world.new_agent(name=f"{tag} {number}", tags=[tag, f"{tag}_{number % 2}"]).id for number in range(3)]
    listed = world.client.agents.list
    assert ids(listed(tags=[tag], limit=2)) == made[::-1]
    assert ids(listed(tags=[tag], order="asc", limit=1)) == made
    assert ids(listed(tags=[tag], order="asc", after=made[0]).items) == made[1:]
    assert ids(listed(tags=[tag], order="asc", before=made[2]).items) == made[:2]
    assert ids(listed(tags=[tag, f"{tag}_0"], match_all_tags=True, order="asc").items) == [made[0], made[2]]
    assert ids(listed(name=f"{tag} 1").items) == [made[1]]
    assert ids(listed(query_text=f"{tag} 2").items) == [made[2]]
    assert listed(tags=[tag], include=["agent.tools"]).items[0].tools
    assert not listed(tags=[tag]).items[0].tools
    assert ids(listed(tags=[tag], order_by="updated_at").items) == made[::-1]
    refused(422, lambda: listed(after="agent-42"), "agent-")
    refused(422, lambda: listed(order="up"), "order")


@cases("agents.delete")
def delete(world: World) -> None:
    agent = world.new_agent()
    assert agent.id in world.client.agents.delete(agent.id)["message"]
    refused(404, lambda: world.client.agents.retrieve(agent.id), "Agent not found")


@cases("agents.recompile")
def recompile(world: World) -> None:
    agent = world.new_agent()
    text = world.client.agents.recompile(agent.id)
    assert isinstance(text, str)
    assert "persona" in text
    assert world.client.agents.recompile(agent.id, dry_run=True)


@cases("agents.export_file", "agents.import_file")
def export_and_import(world: World) -> None:
    exported = world.client.agents.export_file(world.agent.id)
    file: dict[str, Any] = json.loads(exported) if isinstance(exported, str) else exported
    assert len(file["agents"]) == 1
    body = json.dumps(file).encode()
    taken = world.client.agents.import_file(file=("agent.af", body), append_copy_suffix=True, strip_messages=True)
    copy = world.client.agents.retrieve(taken.agent_ids[0])
    assert (copy.id != world.agent.id, copy.name) == (True, "Reader_copy")
    named = world.client.agents.import_file(
        file=("agent.af", body), override_name="Other", model=MODEL, embedding=EMBEDDING
    )
    assert world.client.agents.retrieve(named.agent_ids[0]).name == "Other"
    refused(400, lambda: world.client.agents.import_file(file=("agent.af", b"no json")))
    refused(400, lambda: world.client.agents.import_file(file=("agent.af", b'{"agents": 5}')))


@cases("agents.blocks.list", "agents.blocks.retrieve", "agents.blocks.update")
def blocks(world: World) -> None:
    agent, client = world.new_agent(), world.client.agents.blocks
    assert [one.label for one in client.list(agent.id)] == ["human", "persona"]
    assert [one.label for one in client.list(agent.id, order="desc", limit=1).items] == ["persona"]
    changed = client.update("human", agent_id=agent.id, value="Ada", description="Who", limit=900, read_only=True)
    found = client.retrieve("human", agent_id=agent.id)
    assert (found.value, found.description, found.limit, found.read_only) == ("Ada", "Who", 900, True)
    assert changed.id == found.id
    refused(404, lambda: client.retrieve("nothing", agent_id=agent.id))
    refused(404, lambda: client.update("nothing", agent_id=agent.id, value="v"))
    refused(422, lambda: client.update("human", agent_id=agent.id, limit=0), "limit")


@cases("agents.blocks.attach", "agents.blocks.detach")
def attach_block(world: World) -> None:
    agent, block = world.new_agent(), world.new_block()
    attached = world.client.agents.blocks.attach(block.id, agent_id=agent.id)
    assert block.id in ids(attached.blocks)
    twin = world.new_block(label=block.label)
    refused(409, lambda: world.client.agents.blocks.attach(twin.id, agent_id=agent.id))
    assert block.id not in ids(world.client.agents.blocks.detach(block.id, agent_id=agent.id).blocks)


@cases("agents.tools.list", "agents.tools.attach", "agents.tools.detach")
def tools(world: World) -> None:
    agent, client = world.new_agent(include_base_tools=False), world.client.agents.tools
    made = [world.new_tool().id for _ in range(12)]
    for tool_id in made:
        assert client.attach(tool_id, agent_id=agent.id) is None
    assert set(made) <= set(ids(client.list(agent.id, limit=20).items))
    assert len(client.list(agent.id).items) == 10
    assert ids(client.list(agent.id, limit=2, order="asc").items) == made[:2]
    assert client.detach(made[0], agent_id=agent.id) is None
    assert made[0] not in ids(client.list(agent.id, limit=20).items)


@cases("agents.tools.run", "agents.tools.update_approval")
def use_tools(world: World) -> None:
    agent = world.new_agent(tool_ids=[world.double.id])
    result = world.client.agents.tools.run("double", agent_id=agent.id, args={"number": 21})
    assert (result.status, str(result.func_return)) == ("success", "42")
    for required in (True, False):
        world.client.agents.tools.update_approval("double", agent_id=agent.id, body_requires_approval=required)
        rules = world.client.agents.retrieve(agent.id).tool_rules or []
        assert [one.tool_name for one in rules if one.type == "requires_approval"] == ["double"] * required


@cases("agents.archives.attach", "agents.archives.detach")
def archives(world: World) -> None:
    agent, archive = world.new_agent(), world.new_archive()
    world.client.agents.archives.attach(archive.id, agent_id=agent.id)
    assert ids(world.client.archives.list(agent_id=agent.id)) == [archive.id]
    world.client.agents.archives.detach(archive.id, agent_id=agent.id)
    assert ids(world.client.archives.list(agent_id=agent.id)) == []


@cases("agents.passages.create", "agents.passages.list", "agents.passages.search", "agents.passages.delete")
def passages(world: World) -> None:
    agent, client = world.new_agent(), world.client.agents.passages
    made = client.create(agent.id, text="The first compiler was GHC.", tags=["a"], created_at="2024-01-31T09:30:00Z")
    assert [(one.text, one.tags) for one in made] == [("The first compiler was GHC.", ["a"])]
    client.create(agent.id, text="The second was Hugs.")
    assert ids(client.list(agent.id, limit=1, ascending=True)) == ids(made)
    assert len(client.list(agent.id, search="Hugs")) == 1
    found = client.search(agent.id, query="first compiler", top_k=1, tags=["a"], tag_match_mode="all")
    assert (found.count, found.results[0].content) == (1, "The first compiler was GHC.")
    client.delete(made[0].id, agent_id=agent.id)
    assert len(client.list(agent.id)) == 1
    refused(422, lambda: client.search(agent.id, query="x", tag_match_mode="some"), "tag_match_mode")


@cases("agents.folders.list", "agents.folders.attach", "agents.folders.detach")
def folders(world: World) -> None:
    agent, folder = world.new_agent(), world.new_folder()
    assert world.client.agents.folders.attach(folder.id, agent_id=agent.id) is None
    assert ids(world.client.agents.folders.list(agent.id)) == [folder.id]
    world.client.agents.folders.detach(folder.id, agent_id=agent.id)
    assert ids(world.client.agents.folders.list(agent.id)) == []


@cases("agents.files.list", "agents.files.open", "agents.files.close", "agents.files.close_all")
def files(world: World) -> None:
    agent, folder, client = world.new_agent(), world.new_folder(), world.client.agents.files
    file = world.new_file(folder.id)
    world.client.agents.folders.attach(folder.id, agent_id=agent.id)
    finished_file(world.client, folder.id, file.id)
    assert client.open(file.id, agent_id=agent.id) == []
    assert [one.is_open for one in client.list(agent.id)] == [True]
    client.close(file.id, agent_id=agent.id)
    assert [one.is_open for one in client.list(agent.id, is_open=False)] == [False]
    client.open(file.id, agent_id=agent.id)
    assert client.close_all(agent.id) == [
        file.file_name if "/" in file.file_name else f"{folder.name}/{file.file_name}"
    ]


@cases("agents.identities.attach", "agents.identities.detach")
def identities(world: World) -> None:
    agent, key = world.new_agent(), world.name("key")
    identity = world.post("/v1/identities/", {"identifier_key": key, "name": "Ada", "identity_type": "user"})
    world.client.agents.identities.attach(identity["id"], agent_id=agent.id)
    assert ids(world.client.agents.retrieve(agent.id, include=["agent.identities"]).identities) == [identity["id"]]
    assert ids(world.client.agents.list(identity_id=identity["id"])) == [agent.id]
    assert ids(world.client.agents.list(identifier_keys=[key])) == [agent.id]
    world.client.agents.identities.detach(identity["id"], agent_id=agent.id)
    assert world.client.agents.retrieve(agent.id, include=["agent.identities"]).identities == []


@cases("agents.schedule.create", "agents.schedule.retrieve", "agents.schedule.list", "agents.schedule.delete")
def schedule(world: World) -> None:
    agent, client = world.new_agent(), world.client.agents.schedule
    messages = [{"role": "user", "content": "Good morning."}]
    later = (time.time() + 3_600) * 1_000
    once = client.create(agent.id, messages=messages, schedule={"type": "one-time", "scheduled_at": later})
    daily = client.create(
        agent.id,
        messages=messages,
        schedule={"type": "recurring", "cron_expression": "0 9 * * *"},
        max_steps=3,
        include_return_message_types=["assistant_message"],
    )
    assert once.next_scheduled_at
    assert daily.next_scheduled_at
    found = client.retrieve(daily.id, agent_id=agent.id)
    assert (found.agent_id, found.schedule.cron_expression, found.message.max_steps) == (agent.id, "0 9 * * *", 3)
    page = client.list(agent.id, limit=1)
    assert (len(page.scheduled_messages), page.has_next_page) == (1, True)
    client.delete(once.id, agent_id=agent.id)
    assert [one.id for one in client.list(agent.id).scheduled_messages] == [daily.id]
    bad = {"type": "recurring", "cron_expression": "never"}
    refused(422, lambda: client.create(agent.id, messages=messages, schedule=bad), "cron")
    refused(404, lambda: client.retrieve(once.id, agent_id=agent.id))
