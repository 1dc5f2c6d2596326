"""Something for each parameter of a path."""

from __future__ import annotations

from tests.e2e.sdk_methods.world import World


def things(world: World) -> dict[str, str]:
    """Makes them; returns the name or id of each by the name of the parameter."""
    block, folder, archive, server = world.new_block(), world.new_folder(), world.new_archive(), world.new_server()
    agent = world.new_agent(
        name=world.name("agent"), block_ids=[block.id], folder_ids=[folder.id], tool_ids=[world.double.id]
    )
    passage, memory = (
        world.client.archives.passages.create(archive.id, text=f"{word}, {world.mark}.") for word in ("There", "Here")
    )
    world.client.agents.archives.attach(archive.id, agent_id=agent.id)
    world.client.agents.messages.create(agent.id, input=f"Hello, {world.mark}.")
    run = next(iter(world.client.runs.list(agent_id=agent.id)))
    said = next(one for one in world.client.agents.messages.list(agent.id) if one.message_type == "user_message")
    file = world.new_file(folder.id)
    ada = {"identifier_key": world.name("there"), "name": "Ada", "identity_type": "user", "agent_ids": [agent.id]}
    group = {"agent_ids": [agent.id], "description": f"There, {world.mark}."}
    return {
        "agent_id": agent.id,
        "archive_id": archive.id,
        "block_id": block.id,
        "block_label": block.label,
        "conversation_id": world.client.conversations.create(agent_id=agent.id).id,
        "file_id": file.id,
        "folder_id": folder.id,
        "folder_name": folder.name,
        "group_id": world.post("/v1/groups/", group)["id"],
        "identity_id": world.post("/v1/identities/", ada)["id"],
        "mcp_server_id": server.id,
        "mcp_server_name": server.server_name,
        "memory_id": memory.id,
        "message_id": said.id,
        "passage_id": passage.id,
        "run_id": run.id,
        "step_id": next(iter(world.client.runs.steps.list(run.id))).id,
        "tool_id": world.double.id,
        "tool_name": "double",
        "version": "1",
    }
