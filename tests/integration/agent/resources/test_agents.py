"""Agents created, read, listed, changed: over gRPC, on the real Postgres."""

import asyncio
import json
from collections.abc import Awaitable
from typing import Any

import asyncpg
import pytest
from google.protobuf.field_mask_pb2 import FieldMask
from sqlalchemy.dialects import postgresql

from loci.agent.v1 import agent_pb2
from loci.agent.v1 import agent_service_pb2 as wire
from services.agent.resources.agents.model.instructions import BLOCK_DESCRIPTIONS
from services.agent.resources.agents.statements import MANY
from services.common.errors import (
    AlreadyExists,
    Internal,
    InvalidArgument,
    NotFound,
    Unavailable,
)
from services.common.ids import from_public, to_public, uuid7
from tests.integration.agent.admin_world import (
    BASE_TOOLS,
    ORGANIZATION,
    OTHER_ORGANIZATION,
    USER,
    AdminWorld,
    block,
)


async def test_create_fills_in_what_is_not_given(world: AdminWorld) -> None:
    agent = await world.create(blocks=[block("human", "Ada"), block("persona")])
    assert agent.id.startswith("agent-")
    assert agent.name
    assert agent.agent_type == agent_pb2.AGENT_TYPE_LETTA_V1_AGENT
    assert "memory" in agent.system
    assert (agent.model, agent.embedding, agent.timezone) == ("loci/demo", "loci/hash", "UTC")
    assert (agent.context_window_limit, agent.version, agent.hidden) == (32_000, 1, False)
    assert [tool.name for tool in agent.tools] == list(BASE_TOOLS)
    assert [each.label for each in agent.blocks] == ["human", "persona"]
    assert agent.created_by_id == agent.last_updated_by_id == to_public("user", USER)
    assert len(agent.message_ids) == 1
    assert not agent.HasField("last_run_completion")
    assert await world.get(agent.id) == agent
    assert await world.rows("outbox") == 0


async def test_create_takes_what_is_given(world: AdminWorld) -> None:
    tool_id = world.peers.add_tool("roll_dice")
    shared = to_public("block", uuid7())
    agent = await world.create(
        name="Grace O'Hopper-2",
        description="Counts",
        system="Be brief.",
        model="openai/large",
        embedding="loci/hash",
        model_settings_json='{"temperature": 0.5}',
        response_format_json='{"type": "json_object"}',
        context_window_limit=200_000,
        tags=["b", "a", "b"],
        metadata_json='{"a": [1]}',
        timezone="Europe/Paris",
        hidden=True,
        project_id="project-1",
        tool_ids=[tool_id],
        tool_names=["roll_dice"],
        block_ids=[shared],
        include_base_tools=False,
    )
    assert (agent.name, agent.description, agent.system) == ("Grace O'Hopper-2", "Counts", "Be brief.")
    assert (agent.model_settings_json, agent.metadata_json) == ('{"temperature":0.5}', '{"a":[1]}')
    assert agent.response_format_json == '{"type":"json_object"}'
    assert (agent.context_window_limit, list(agent.tags)) == (200_000, ["a", "b"])
    assert (agent.timezone, agent.hidden, agent.project_id) == ("Europe/Paris", True, "project-1")
    assert [tool.id for tool in agent.tools] == [tool_id]
    assert [each.id for each in agent.blocks] == [shared]
    assert await world.get(agent.id) == agent


async def test_usual_blocks_are_described(world: AdminWorld) -> None:
    agent = await world.create(blocks=[block("human"), block("persona", description="Mine"), block("notes")])
    assert [each.description for each in agent.blocks] == [BLOCK_DESCRIPTIONS["human"], "Mine", ""]
    assert len({each.id for each in agent.blocks}) == 3


async def test_the_same_id_again_is_the_same_agent(world: AdminWorld) -> None:
    agent_id = to_public("agent", uuid7())
    first, again = await asyncio.gather(
        world.create(agent_id=agent_id, name="One", blocks=[block("human")]),
        world.create(agent_id=agent_id, name="One", blocks=[block("human")]),
    )
    world.peers.failures["GetModel"] = [NotFound("gone", reason="MODEL_NOT_FOUND")]
    later = await world.create(agent_id=agent_id, name="Another", model="openai/none")
    assert first == again == later
    assert [each.id for each in first.blocks] == [each.id for each in later.blocks]
    assert (await world.rows("agents"), await world.rows("conversations")) == (1, 1)
    assert (await world.rows("conversation_segments"), await world.rows("conversation_heads")) == (1, 1)
    assert await world.rows("outbox") == 0


async def test_a_deleted_agents_id_is_not_used_again(world: AdminWorld) -> None:
    agent = await world.create()
    await world.delete(agent.id)
    with pytest.raises(AlreadyExists, match="use another") as caught:
        await world.create(agent_id=agent.id)
    assert caught.value.reason == "AGENT_ID_TAKEN"


@pytest.mark.parametrize(
    ("fields", "reason", "named"),
    [
        ({"name": "no/slash"}, "AGENT_INVALID", "name"),
        ({"name": "x" * 257}, "AGENT_INVALID", "name"),
        ({"model": "gpt-4o"}, "MODEL_HANDLE_INVALID", "provider/model"),
        ({"model": "openai/none"}, "MODEL_NOT_FOUND", "openai/none"),
        ({"embedding": "loci/none"}, "MODEL_NOT_FOUND", "loci/none"),
        ({"timezone": "Mars/Base"}, "AGENT_INVALID", "IANA"),
        ({"metadata_json": "[1]"}, "AGENT_INVALID", "metadata"),
        ({"model_settings_json": "{"}, "AGENT_INVALID", "model_settings"),
        ({"context_window_limit": 32_001}, "AGENT_INVALID", "32000"),
        ({"context_window_limit": 0}, "AGENT_INVALID", "at least 1"),
        ({"agent_type": 77}, "AGENT_INVALID", "workflow_agent"),
        ({"tool_names": ["nothing"]}, "TOOL_NOT_FOUND", "nothing"),
        ({"tool_ids": [to_public("tool", uuid7())]}, "TOOL_NOT_FOUND", "tool-"),
        ({"tool_ids": ["hammer"]}, "INVALID_ID", "tool-<uuid>"),
        ({"block_ids": ["block-1"]}, "INVALID_ID", "block-<uuid>"),
        ({"agent_id": "Ada"}, "INVALID_ID", "agent-<uuid>"),
    ],
)
async def test_what_cannot_be_created_leaves_nothing(
    world: AdminWorld, fields: dict[str, Any], reason: str, named: str
) -> None:
    with pytest.raises((InvalidArgument, NotFound), match=named) as caught:
        await world.create(**{"blocks": [block("human")], **fields})
    assert caught.value.reason == reason
    assert world.peers.asked["CreateAgentMemory"] == 0
    assert (await world.rows("agents"), await world.rows("outbox")) == (0, 0)


async def test_parts_without_an_agent_are_swept(world: AdminWorld) -> None:
    agent_id = to_public("agent", uuid7())
    # Tried again, until it is not known whether there are any.
    world.peers.failures["CreateAgentMemory"] = [Unavailable("gone", reason="DISK_FULL"), Internal("a fault")]
    with pytest.raises(Internal):
        await world.create(agent_id=agent_id, blocks=[block("human")])
    assert world.peers.asked["CreateAgentMemory"] == 2
    order = await world.pool.fetchrow(
        "SELECT kind, not_before - now() > interval '59 minutes' AS later FROM agent.outbox"
    )
    assert tuple(order) == ("purge_orphan", True)
    await world.deliver()
    assert world.peers.purged == [("blocks", agent_id), ("secrets", agent_id)]
    assert await world.rows("outbox") == 0


async def test_a_reservation_of_an_agent_that_came_to_be_sweeps_nothing(world: AdminWorld) -> None:
    agent = await world.create(blocks=[block("human")])
    await world.pool.execute(
        "INSERT INTO agent.outbox (organization_id, id, kind, subject_id, payload)"
        " VALUES ($1, $2, 'purge_orphan', $3, $4)",
        ORGANIZATION,
        uuid7(),
        from_public("agent", agent.id),
        {"user_id": str(USER)},
    )
    await world.deliver()
    assert world.peers.purged == []
    assert await world.rows("outbox") == 0


async def test_refused_blocks_leave_no_order(world: AdminWorld) -> None:
    world.peers.failures["CreateAgentMemory"] = [InvalidArgument("too long", reason="BLOCK_OVER_LIMIT")]
    with pytest.raises(InvalidArgument) as caught:
        await world.create(blocks=[block("human")])
    assert caught.value.reason == "BLOCK_OVER_LIMIT"
    assert (await world.rows("agents"), await world.rows("outbox")) == (0, 0)


async def test_update_changes_the_fields_of_the_mask(world: AdminWorld) -> None:
    agent = await world.create(name="One", description="Old", tags=["x"], context_window_limit=1_000)
    changed = await _update(world, agent.id, name="Two", tags=["z", "y"], system="ignored")
    assert (changed.name, list(changed.tags), changed.system) == ("Two", ["y", "z"], agent.system)
    assert (changed.version, changed.context_window_limit) == (2, 1_000)
    assert changed.updated_at.ToNanoseconds() > agent.updated_at.ToNanoseconds()
    assert (changed.created_at, [tool.id for tool in changed.tools]) == (
        agent.created_at,
        [tool.id for tool in agent.tools],
    )
    cleared = await _update(world, agent.id, "description", "metadata_json")
    assert not cleared.HasField("description")
    larger = await _update(world, agent.id, model="openai/large")
    assert (larger.model, larger.context_window_limit) == ("openai/large", 128_000)
    assert await world.get(agent.id) == larger


async def test_update_without_a_change_makes_no_version(world: AdminWorld) -> None:
    agent = await world.create(name="One")
    assert await _update(world, agent.id, name="One") == agent


@pytest.mark.parametrize(
    ("fields", "paths", "reason"),
    [
        ({"name": "a/b"}, ["name"], "AGENT_INVALID"),
        ({"agent_type": 1}, ["agent_type"], "UPDATE_MASK_INVALID"),
        ({}, ["blocks"], "UPDATE_MASK_INVALID"),
        ({"model": "openai/none"}, ["model"], "MODEL_NOT_FOUND"),
        ({"embedding": "openai/none"}, ["embedding"], "MODEL_NOT_FOUND"),
        ({"tool_ids": [to_public("tool", uuid7())]}, ["tool_ids"], "TOOL_NOT_FOUND"),
        ({"context_window_limit": 32_001}, ["context_window_limit"], "AGENT_INVALID"),
    ],
)
async def test_update_refuses(world: AdminWorld, fields: dict[str, Any], paths: list[str], reason: str) -> None:
    agent = await world.create()
    with pytest.raises((InvalidArgument, NotFound)) as caught:
        await _update(world, agent.id, *paths, **fields)
    assert caught.value.reason == reason
    assert await world.get(agent.id) == agent


async def test_tools_attached_at_the_same_time_are_all_there(world: AdminWorld) -> None:
    agent = await world.create(include_base_tools=False)
    tool_ids = [world.peers.add_tool(f"tool_{number}") for number in range(5)]
    await asyncio.gather(*(_attach(world, agent.id, tool_id) for tool_id in tool_ids))
    found = await _attach(world, agent.id, tool_ids[0])
    assert {tool.id for tool in found.tools} == set(tool_ids)
    assert found.version == 6
    detach = wire.DetachToolRequest(agent_id=agent.id, tool_id=tool_ids[0])
    await world.call(world.agents.DetachTool, detach)
    left = (await world.call(world.agents.DetachTool, detach)).agent
    assert {tool.id for tool in left.tools} == set(tool_ids[1:])
    assert left.version == 7


async def test_attaching_what_is_not_there(world: AdminWorld) -> None:
    agent = await world.create()
    with pytest.raises(NotFound) as caught:
        await _attach(world, agent.id, to_public("tool", uuid7()))
    assert caught.value.reason == "TOOL_NOT_FOUND"
    with pytest.raises(NotFound) as caught:
        await _attach(world, to_public("agent", uuid7()), world.peers.add_tool("x"))
    assert caught.value.reason == "AGENT_NOT_FOUND"


async def test_a_deleted_tool_dangles_unseen(world: AdminWorld) -> None:
    tool_id = world.peers.add_tool("roll")
    agent = await world.create(tool_ids=[tool_id])
    del world.peers.tools[tool_id]
    assert [tool.name for tool in (await world.get(agent.id)).tools] == list(BASE_TOOLS)


async def test_tenants_do_not_see_each_other(world: AdminWorld) -> None:
    agent = await world.create(name="Mine")
    theirs = await world.create(OTHER_ORGANIZATION, agent_id=agent.id, name="Theirs")
    assert theirs.name == "Theirs"
    assert (await world.get(agent.id)).name == "Mine"
    assert [each.name for each in (await world.list()).agents] == ["Mine"]
    await world.delete(agent.id, OTHER_ORGANIZATION)
    assert (await world.get(agent.id)).name == "Mine"
    with pytest.raises(NotFound):
        await world.get(agent.id, OTHER_ORGANIZATION)


async def test_a_turn_shows_in_the_agent(world: AdminWorld) -> None:
    agent = await world.create()
    response = await world.say(agent.id)
    found = await world.get(agent.id)
    assert len(found.message_ids) == 3
    assert found.message_ids[0] == agent.message_ids[0]
    assert found.message_ids[2] == response.messages[0].id
    assert found.last_stop_reason == agent_pb2.STOP_REASON_END_TURN
    assert found.last_run_completion == response.end.run.completed_at
    assert found.last_run_duration_ms == round(response.end.run.total_duration_ns / 1e6)
    assert (found.version, found.updated_at) == (agent.version, agent.updated_at)
    assert (await world.list()).agents[0] == found


async def test_pages_of_agents(world: AdminWorld) -> None:
    made = [(await world.create(name=f"Agent {number}", include_base_tools=False)).id for number in range(7)]
    newest_first = made[::-1]
    seen, token = [], ""
    while True:
        page = await world.list(page_size=3, page_token=token)
        seen += [agent.id for agent in page.agents]
        token = page.next_page_token
        if not token:
            break
    assert seen == newest_first
    assert await _ids(world, ascending=True, after=made[2]) == made[3:]
    assert await _ids(world, after=made[2]) == [made[1], made[0]]
    assert await _ids(world, before=made[4], page_size=1) == [made[5]]
    assert await _ids(world, ascending=True, before=made[4], page_size=2) == made[2:4]
    assert await _ids(world, ascending=True, after=made[0], before=made[4]) == made[1:4]
    back = await world.list(ascending=True, before=made[4], page_size=2)
    further = await world.list(ascending=True, before=made[4], page_size=2, page_token=back.next_page_token)
    assert [agent.id for agent in further.agents] == made[:2]
    await _update(world, made[0], name="Changed")
    assert (await _ids(world, order_by=wire.AGENT_ORDER_UPDATED_AT))[0] == made[0]


async def test_a_page_follows_a_deleted_cursor(world: AdminWorld) -> None:
    made = [(await world.create()).id for _ in range(3)]
    await world.delete(made[1])
    assert await _ids(world, ascending=True, after=made[1]) == [made[2]]


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"page_size": 1_001}, "PAGE_SIZE_INVALID"),
        ({"page_token": "~"}, "PAGE_TOKEN_INVALID"),
        ({"page_token": "MTI="}, "PAGE_TOKEN_INVALID"),
        ({"after": to_public("agent", uuid7())}, "CURSOR_NOT_FOUND"),
        ({"before": "block-1"}, "INVALID_ID"),
    ],
)
async def test_pages_that_cannot_be(world: AdminWorld, fields: dict[str, Any], reason: str) -> None:
    with pytest.raises((InvalidArgument, NotFound)) as caught:
        await world.list(**fields)
    assert caught.value.reason == reason


async def test_filters(world: AdminWorld) -> None:
    both = (await world.create(name="Ada 50", tags=["red", "blue"])).id
    one = (await world.create(name="Bea_", tags=["red"])).id
    sub = (await world.create(name="Sub", tags=["role:subagent"])).id
    assert await _ids(world) == [one, both]
    assert await _ids(world, show_hidden=True) == [sub, one, both]
    assert await _ids(world, tags=["blue", "green"]) == [both]
    assert await _ids(world, tags=["red", "blue"], match_all_tags=True) == [both]
    assert await _ids(world, name="Bea_") == [one]
    assert await _ids(world, name="Bea") == []
    assert await _ids(world, query_text="AD") == [both]
    assert await _ids(world, query_text="%") == []
    assert await _ids(world, query_text="_") == [one]


async def test_a_page_is_two_statements_and_two_calls(world: AdminWorld) -> None:
    for _ in range(20):
        agent = await world.create(blocks=[block("human", "Ada")])
        await world.say(agent.id)
    for size in (1, 20):
        asked, statements, listed = await _costs(world, world.list(page_size=size))
        assert (asked, statements) == ({"BatchGetAgentMemory": 1, "BatchGetTools": 1}, 2)
        assert len(listed.agents) == size
        assert all(len(agent.message_ids) == 3 and len(agent.blocks) == 1 for agent in listed.agents)
    asked, statements, _ = await _costs(world, world.list(omit_relations=True))
    assert (asked, statements) == ({}, 2)
    asked, statements, _ = await _costs(world, world.get(agent.id))
    assert (asked, statements) == ({"BatchGetAgentMemory": 1, "BatchGetTools": 1}, 1)


async def test_a_page_costs_the_same_however_many_agents_there_are(world: AdminWorld, agent_url: str) -> None:
    connection = await asyncpg.connect(agent_url)
    read = []
    for more in (10, 60):
        made = [await world.create() for _ in range(more)]
        ids = [from_public("agent", agent.id) for agent in made[:5]]
        read.append(await _buffers(connection, {"given_organization_id": ORGANIZATION, "given_ids": ids}))
    await connection.close()
    assert read[1] < 1.5 * read[0]


async def _buffers(connection: asyncpg.Connection, values: dict[str, Any]) -> int:
    """Pages of tables and indexes that `MANY` reads."""
    compiled = MANY.compile(dialect=postgresql.asyncpg.dialect())  # type: ignore[no-untyped-call]
    given = compiled.construct_params(values)
    arguments = [given[name] for name in compiled.positiontup or ()]
    plan = await connection.fetchval(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {compiled}", *arguments)
    return int(json.loads(plan)[0]["Plan"]["Shared Hit Blocks"])


async def test_what_a_create_costs(world: AdminWorld) -> None:
    await world.create(blocks=[block("human")])
    asked, statements, _ = await _costs(world, world.create(blocks=[block("human")]))
    assert (asked, statements) == ({"CreateAgentMemory": 1, "BatchGetTools": 1, "GetAgentMemory": 1}, 2)


async def _costs(world: AdminWorld, work: Awaitable[Any]) -> tuple[dict[str, int], int, Any]:
    await asyncio.sleep(0)
    world.peers.asked.clear()
    world.counter.reset()
    result = await work
    await asyncio.sleep(0)
    pings = sum(text.strip() in (";", "SELECT 1") for text in world.counter.texts)
    return dict(world.peers.asked), world.counter.statements - pings, result


async def _ids(world: AdminWorld, **fields: Any) -> list[str]:
    return [agent.id for agent in (await world.list(**fields)).agents]


async def _update(world: AdminWorld, agent_id: str, *paths: str, **fields: Any) -> agent_pb2.Agent:
    mask = FieldMask(paths=paths or [name for name in fields if name != "system"])
    request = wire.UpdateAgentRequest(
        agent_id=agent_id,
        agent=agent_pb2.Agent(**fields),
        update_mask=mask,
    )
    updated: agent_pb2.Agent = (await world.call(world.agents.UpdateAgent, request)).agent
    return updated


async def _attach(world: AdminWorld, agent_id: str, tool_id: str) -> agent_pb2.Agent:
    request = wire.AttachToolRequest(agent_id=agent_id, tool_id=tool_id)
    attached: agent_pb2.Agent = (await world.call(world.agents.AttachTool, request)).agent
    return attached
