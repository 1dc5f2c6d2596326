"""A world in which every path can name something."""

from collections.abc import Iterator, Mapping

import pytest

from tests.e2e.conftest import Providers
from tests.e2e.sdk_methods.world import World
from tests.e2e.stack import Stack
from tests.fakes.mcp_server import McpServer


@pytest.fixture(scope="package")
def world(open_stack: Stack, providers: Providers) -> Iterator[World]:
    """The objects that the paths name."""
    with McpServer().in_thread() as mcp:
        made = World(open_stack, providers.openai, mcp.url)
        yield made
        made.close()


@pytest.fixture(scope="package")
def there(world: World) -> Mapping[str, str]:
    """For each parameter of a path something that is there."""
    block, folder, archive, server = world.new_block(), world.new_folder(), world.new_archive(), world.new_server()
    agent = world.new_agent(block_ids=[block.id], folder_ids=[folder.id], tool_ids=[world.double.id])
    passage = world.client.archives.passages.create(archive.id, text="There.")
    world.client.agents.archives.attach(archive.id, agent_id=agent.id)
    world.client.agents.messages.create(agent.id, input="Hello.")
    run = next(iter(world.client.runs.list(agent_id=agent.id)))
    file = world.new_file(folder.id)
    ada = {"identifier_key": "there", "name": "Ada", "identity_type": "user", "agent_ids": [agent.id]}
    group = {"agent_ids": [agent.id], "description": "There."}
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
        "memory_id": passage.id,
        "message_id": next(iter(world.client.agents.messages.list(agent.id))).id,
        "passage_id": passage.id,
        "run_id": run.id,
        "step_id": next(iter(world.client.runs.steps.list(run.id))).id,
        "tool_id": world.double.id,
        "tool_name": "double",
        "version": "1",
    }
