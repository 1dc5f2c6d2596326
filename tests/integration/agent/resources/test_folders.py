"""Folders of agents over gRPC with the real memory service: attached with their tools, shown in prompts, opened."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import orjson
import pytest

from loci.agent.v1 import agent_service_pb2
from loci.agent.v1.agent_pb2 import Agent
from loci.memory.v1 import folder_pb2, folder_service_pb2
from services.common.errors import NotFound
from services.common.ids import to_public, uuid7
from tests.integration.agent.admin_world import ORGANIZATION, block
from tests.integration.agent.travel_world import TravelWorld, travel_world

TOOLS = ["open_files", "grep_files", "semantic_search_files"]
FILE = """
INSERT INTO memory.files (
    organization_id, id, folder_id, name, original_name, media_type, size, sha256, status, line_count, char_count,
    created_by_id, created_at)
VALUES ($1, $2, $3, $4, $4, 'text/plain', 1, '', 4, $5, $6, $2, clock_timestamp())
"""
PAGE = """
INSERT INTO memory.file_pages (organization_id, file_id, page, first_line, last_line, text)
VALUES ($1, $2, 0, 1, $3, $4)
"""


@pytest.fixture
async def world(urls: tuple[str, str], tmp_path: Path) -> AsyncIterator[TravelWorld]:
    """Both services, with the tools for files in the catalogue."""
    async with travel_world(*urls, tmp_path) as made:
        for name in TOOLS:
            made.peers.add_tool(name)
        yield made


async def folder(world: TravelWorld, name: str, **texts: str) -> str:
    """A folder of files that were parsed; its id."""
    folder_id = uuid4()
    draft = folder_pb2.Folder(id=f"source-{folder_id}", name=name)
    await world.world.call(world.folders.CreateFolder, folder_service_pb2.CreateFolderRequest(folder=draft))
    for stem, text in texts.items():
        file_id, lines = uuid4(), text.count("\n") + 1
        values = ORGANIZATION, file_id, folder_id, f"{stem}.txt", lines, len(text)
        await world.memory_pool.execute(FILE, *values)
        await world.memory_pool.execute(PAGE, ORGANIZATION, file_id, lines, text)
    return f"source-{folder_id}"


async def create(world: TravelWorld, *folder_ids: str, **fields: Any) -> Agent:
    """An agent with a block."""
    return await world.world.create(
        blocks=[block("human", "Nothing.")], include_base_tools=False, folder_ids=folder_ids, **fields
    )


async def attach(world: TravelWorld, agent_id: str, folder_id: str) -> Agent:
    request = agent_service_pb2.AttachFolderRequest(agent_id=agent_id, folder_id=folder_id)
    attached: Agent = (await world.world.call(world.world.agents.AttachFolder, request)).agent
    return attached


async def detach(world: TravelWorld, agent_id: str, folder_id: str) -> Agent:
    request = agent_service_pb2.DetachFolderRequest(agent_id=agent_id, folder_id=folder_id)
    detached: Agent = (await world.world.call(world.world.agents.DetachFolder, request)).agent
    return detached


def tools(agent: Agent) -> list[str]:
    return [tool.name for tool in agent.tools]


async def test_tools_come_with_the_first_folder_and_go_with_the_last(world: TravelWorld) -> None:
    name = f"d{uuid7().hex[-9:]}"
    docs, other = await folder(world, name, a="alpha"), await folder(world, f"{name}-o")
    agent = await create(world, tool_names=("grep_files",))
    for _ in range(2):
        agent = await attach(world, agent.id, docs)
        assert tools(agent) == ["grep_files", "open_files", "semantic_search_files"]
    assert [(each.id, each.name, each.file_count) for each in agent.folders] == [(docs, name, 1)]
    assert tools(await attach(world, agent.id, other)) == tools(agent)
    agent = await detach(world, agent.id, docs)
    assert (tools(agent), [each.id for each in agent.folders]) == (
        ["grep_files", "open_files", "semantic_search_files"],
        [other],
    )
    agent = await detach(world, agent.id, other)
    assert (tools(agent), list(agent.folders)) == ([], [])
    assert tools(await detach(world, agent.id, other)) == []
    for wrong in ((agent.id, f"source-{uuid4()}"), (f"agent-{uuid4()}", docs)):
        with pytest.raises(NotFound):
            await attach(world, *wrong)


async def test_who_attaches_while_the_last_folder_goes_has_the_tools(world: TravelWorld) -> None:
    name = f"d{uuid7().hex[-9:]}"
    now, next_one = await folder(world, name), await folder(world, f"{name}-o")
    agent = await create(world, now)
    for _ in range(6):
        await asyncio.gather(detach(world, agent.id, now), attach(world, agent.id, next_one))
        agent = await world.world.get(agent.id)
        assert ([each.id for each in agent.folders], sorted(tools(agent))) == ([next_one], sorted(TOOLS))
        now, next_one = next_one, now


async def test_an_agent_is_made_with_folders_or_not_at_all(world: TravelWorld) -> None:
    name = f"d{uuid7().hex[-9:]}"
    docs = await folder(world, name, a="alpha", b="beta")
    agent_id = to_public("agent", uuid7())
    with pytest.raises(NotFound) as error:
        await create(world, docs, f"source-{uuid4()}", agent_id=agent_id)
    assert error.value.reason == "FOLDER_NOT_FOUND"
    # Nothing is left of it, and the id is free.
    request = folder_service_pb2.ListFolderAgentsRequest(folder_id=docs)
    assert not (await world.world.call(world.folders.ListFolderAgents, request)).agent_ids
    agent = await create(world, docs, agent_id=agent_id, max_files_open=1)
    assert ([each.id for each in agent.folders], tools(agent)) == ([docs], TOOLS)
    assert list((await world.world.get(agent.id)).folders) == list(agent.folders)
    listed = await world.world.list()
    assert {each.id: list(each.folders) for each in listed.agents}[agent.id] == list(agent.folders)
    await world.say(agent.id, "Hello")
    assert "- current_files_open=1\n- max_files_open=1\n" in world.peers.prompts[-1]
    attached = await world.world.call(world.folders.ListFolderAgents, request)
    assert (list(attached.agent_ids), len(agent.blocks)) == ([agent.id], 1)


async def test_an_agent_shows_its_files_and_keeps_its_limits(world: TravelWorld) -> None:
    docs = await folder(world, f"d{uuid7().hex[-9:]}", a="alpha", b="beta")
    agent = await create(world, docs, max_files_open=1)
    assert [(file.is_open, file.visible_content[-8:]) for file in agent.files] == [(True, "1: alpha"), (False, "")]
    assert list((await world.world.get(agent.id)).files) == list(agent.files)
    # New files are opened within them.
    limits = "SELECT most_open, view_chars FROM memory.agent_folders WHERE agent_id = $1"
    agent_key = UUID(agent.id[6:])
    _, characters = await world.memory_pool.fetchrow(limits, agent_key)
    for name, number in (("max_files_open", 2), ("per_file_view_window_char_limit", characters - 1)):
        await world.world.update(agent.id, **{name: number})
    assert tuple(await world.memory_pool.fetchrow(limits, agent_key)) == (2, characters - 1)


async def test_what_is_open_stands_in_the_prompt_of_the_next_turn(world: TravelWorld) -> None:
    name = f"d{uuid7().hex[-9:]}"
    docs = await folder(world, name, a="alpha\nbeta", b="\n".join(f"line {number}" for number in range(1, 31)))
    agent = await create(world, docs, max_files_open=1)
    await world.say(agent.id, "Hello")
    first = world.peers.prompts[-1]
    shown = f'<file status="open" name="{name}/a.txt">'
    assert shown in first
    assert "[Viewing file start (out of 2 lines)]\n1: alpha\n2: beta\n</value>" in first
    assert f'<file status="closed" name="{name}/b.txt">\n<metadata>\n- read_only=true\n- chars_current=0\n' in first
    await world.say(agent.id, "Hello again")
    assert world.peers.prompts[-1] == first

    wanted = [{"file_name": "b.txt", "offset": 10, "length": 2}]
    told = await world.say(agent.id, f"call open_files {orjson.dumps({'file_requests': wanted}).decode()}")
    assert "[Viewing lines 11 to 12 (out of 30 lines)]\n11: line 11\n12: line 12" in told
    assert f"Closed: {name}/a.txt." in told
    # Within a turn the prompt stays; the answer shows what is in view.
    assert world.peers.prompts[-2:] == [first, first]
    await world.say(agent.id, "And now?")
    second = world.peers.prompts[-1]
    assert shown not in second
    assert "[Viewing lines 11 to 12 (out of 30 lines)]\n11: line 11\n12: line 12\n</value>" in second
    assert "line 11" in await world.say(agent.id, 'call grep_files {"pattern": "line 11$"}')
    await detach(world, agent.id, docs)
    await world.say(agent.id, "Gone?")
    assert "<directories>" not in world.peers.prompts[-1]


async def test_a_fork_sees_the_same_folders(world: TravelWorld) -> None:
    name = f"d{uuid7().hex[-9:]}"
    docs = await folder(world, name, a="alpha")
    agent = await create(world, docs)
    await world.say(agent.id, "Hello")
    forked = await world.fork_agent(agent.id, await world.run_of(agent.id, "Hello"))
    assert (list(forked.shared_folder_ids), tools(forked.agent)) == ([docs], TOOLS)
    await world.say(forked.agent.id, "Hello")
    assert "1: alpha" in world.peers.prompts[-1]
    await world.world.delete(agent.id)
    await world.world.deliver()
    left = "SELECT agent_id FROM memory.agent_folders WHERE folder_id = $1"
    found = await world.memory_pool.fetch(left, UUID(docs[7:]))
    assert [f"agent-{row['agent_id']}" for row in found] == [forked.agent.id]
