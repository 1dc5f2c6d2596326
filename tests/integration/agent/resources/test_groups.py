"""Groups of agents: over gRPC, on the real Postgres, with the real memory service."""

from typing import Any
from uuid import uuid4

import pytest

from loci.agent.v1 import group_service_pb2 as wire
from services.common.errors import AlreadyExists, InvalidArgument, LociError, NotFound
from tests.integration.agent.admin_world import OTHER_ORGANIZATION
from tests.integration.agent.company_world import Company
from tests.page_requests import paged


async def test_a_group_comes_back_as_it_was_made(company: Company) -> None:
    one, two, manager = [await company.agent() for _ in range(3)]
    block = await company.block("plan")
    group = await company.group(
        group_id=f"group-{uuid4()}",
        agent_ids=[two, one],
        manager_type="dynamic",
        manager_agent_id=manager,
        manager_settings_json='{"max_turns":5}',
        shared_block_ids=[block],
        project_id="p",
    )
    assert (group.description, list(group.agent_ids), group.manager_type) == ("Those who go.", [two, one], "dynamic")
    assert (group.manager_agent_id, list(group.shared_block_ids), group.project_id) == (manager, [block], "p")
    assert group.manager_settings_json == '{"max_turns":5,"termination_token":"DONE!"}'
    assert await company.get_group(group.id) == group
    assert [await company.blocks_of(agent) for agent in (one, two, manager)] == [{block}, {block}, set()]
    managed = (await company.world.get(manager)).managed_group
    assert managed == group
    assert not (await company.world.get(one)).HasField("managed_group")
    again = await company.group(group_id=group.id, agent_ids=[two, one], shared_block_ids=[block])
    assert again == group

    with pytest.raises(NotFound) as caught:
        await company.world.call(company.groups.GetGroup, wire.GetGroupRequest(group_id=group.id), OTHER_ORGANIZATION)
    assert caught.value.reason == "GROUP_NOT_FOUND"


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"manager_type": "anarchy"}, "GROUP_INVALID"),
        ({"manager_type": "supervisor"}, "GROUP_INVALID"),
        ({"manager_agent_id": f"agent-{uuid4()}"}, "GROUP_INVALID"),
        ({"manager_settings_json": '{"termination_token":"x"}'}, "GROUP_INVALID"),
        ({"agent_ids": ["me"]}, "INVALID_ID"),
        ({"agent_ids": [f"agent-{uuid4()}"]}, "AGENT_NOT_FOUND"),
        ({"manager_type": "supervisor", "manager_agent_id": f"agent-{uuid4()}"}, "AGENT_NOT_FOUND"),
        ({"shared_block_ids": [f"block-{uuid4()}"]}, "BLOCK_NOT_FOUND"),
    ],
)
async def test_what_is_refused_leaves_nothing(company: Company, fields: dict[str, Any], reason: str) -> None:
    agent, block = await company.agent(), await company.block("plan")
    shared = [block, *fields.pop("shared_block_ids", ())]
    with pytest.raises((InvalidArgument, NotFound)) as caught:
        await company.group(**{"agent_ids": [agent], "shared_block_ids": shared} | fields)
    assert caught.value.reason == reason
    assert await company.world.rows("groups") == 0
    assert await company.blocks_of(agent) == set()


async def test_a_member_with_another_block_of_the_label_hinders(company: Company) -> None:
    first, second = await company.block("plan"), await company.block("plan")
    agents = [await company.agent() for _ in range(3)]
    await company.attach_block(agents[1], second)
    await company.attach_block(agents[2], first)
    with pytest.raises(AlreadyExists) as caught:
        await company.group(agent_ids=agents, shared_block_ids=[first])
    assert caught.value.reason == "BLOCK_LABEL_TAKEN"
    # Who had it keeps it.
    assert [await company.blocks_of(agent) for agent in agents] == [set(), {second}, {first}]


async def test_members_come_and_go_with_what_is_shared(company: Company) -> None:
    one, two, three = [await company.agent() for _ in range(3)]
    plan, notes, own = [await company.block(label) for label in ("plan", "notes", "own")]
    await company.attach_block(one, own)
    group = await company.group(agent_ids=[one, two], shared_block_ids=[plan])
    changed = await company.update_group(
        group.id, ["agent_ids", "shared_block_ids"], agent_ids=[three, one], shared_block_ids=[plan, notes]
    )
    assert (list(changed.agent_ids), changed.description) == ([three, one], "Those who go.")
    assert [await company.blocks_of(agent) for agent in (one, two, three)] == [{plan, notes, own}, set(), {plan, notes}]

    for _ in range(2):
        request = wire.DetachBlockRequest(group_id=group.id, block_id=plan)
        shown = (await company.world.call(company.groups.DetachBlock, request)).group
        assert list(shown.shared_block_ids) == [notes]
    for _ in range(2):
        attach = wire.AttachBlockRequest(group_id=group.id, block_id=own)
        shown = (await company.world.call(company.groups.AttachBlock, attach)).group
        assert list(shown.shared_block_ids) == [notes, own]
    assert [await company.blocks_of(agent) for agent in (one, three)] == [{notes, own}] * 2
    unknown = wire.AttachBlockRequest(group_id=group.id, block_id=f"block-{uuid4()}")
    with pytest.raises(NotFound) as caught:
        await company.world.call(company.groups.AttachBlock, unknown)
    assert caught.value.reason == "BLOCK_NOT_FOUND"

    await company.world.call(company.groups.DeleteGroup, wire.DeleteGroupRequest(group_id=group.id))
    assert await company.blocks_of(one) == {notes, own}
    gone: tuple[tuple[Any, Any], ...] = (
        (company.groups.DeleteGroup, wire.DeleteGroupRequest(group_id=group.id)),
        (company.groups.GetGroup, wire.GetGroupRequest(group_id=group.id)),
        (company.groups.UpdateGroup, wire.UpdateGroupRequest(group_id=group.id)),
    )
    for rpc, wanted in gone:
        with pytest.raises(NotFound):
            await company.world.call(rpc, wanted)


async def test_managers_change(company: Company) -> None:
    one, manager = await company.agent(), await company.agent()
    group = await company.group(agent_ids=[one], manager_settings_json='{"max_turns":3}')

    async def update(*paths: str, **fields: Any) -> tuple[str, str, str]:
        changed = await company.update_group(group.id, list(paths), **fields)
        return changed.manager_type, changed.manager_agent_id, changed.manager_settings_json

    managed = ("manager_type", "manager_agent_id")
    assert await update(*managed, manager_type="sleeptime", manager_agent_id=manager) == ("sleeptime", manager, "")
    often = '{"sleeptime_agent_frequency":5}'
    assert await update("manager_settings_json", manager_settings_json=often) == ("sleeptime", manager, often)
    assert await update("description", description="") == ("sleeptime", manager, often)
    never = '{"sleeptime_agent_frequency":null}'
    assert await update("manager_settings_json", manager_settings_json=never) == ("sleeptime", manager, "")
    refused: tuple[tuple[tuple[str, ...], dict[str, str]], ...] = (
        (("manager_agent_id",), {}),
        (("manager_settings_json",), {"manager_settings_json": '{"max_turns":3}'}),
        (("manager_agent_id",), {"manager_agent_id": f"agent-{uuid4()}"}),
        (("name",), {}),
    )
    for paths, fields in refused:
        with pytest.raises(LociError):
            await update(*paths, **fields)
    assert await update("manager_type", manager_type="round_robin") == ("round_robin", "", "")


async def test_a_deleted_agent_leaves_its_groups(company: Company) -> None:
    one, two, manager = [await company.agent() for _ in range(3)]
    block = await company.block("plan")
    free = await company.group(agent_ids=[one, two], shared_block_ids=[block])
    managed = await company.group(agent_ids=[one], manager_type="supervisor", manager_agent_id=manager)
    await company.world.delete(two)
    assert list((await company.get_group(free.id)).agent_ids) == [one]
    await company.world.delete(manager)
    with pytest.raises(NotFound):
        await company.get_group(managed.id)
    await company.world.deliver()
    assert list((await company.update_group(free.id, ["description"], description="x")).agent_ids) == [one]
    assert await company.world.rows("group_agents") == 1


async def test_lists_of_groups(company: Company) -> None:
    one, two = await company.agent(), await company.agent()
    first = await company.group(description="first", agent_ids=[one])
    await company.group(
        description="second", agent_ids=[one, two], manager_type="supervisor", manager_agent_id=two, project_id="p"
    )
    await company.group(description="third", agent_ids=[two], hidden=True)

    async def listed(**fields: Any) -> list[str]:
        response = await company.world.call(company.groups.ListGroups, wire.ListGroupsRequest(**paged(**fields)))
        return [each.description for each in response.groups]

    assert await listed() == ["second", "first"]
    assert await listed(ascending=True, show_hidden=True) == ["first", "second", "third"]
    assert await listed(before=first.id, page_size=1) == ["second"]
    assert await listed(manager_type="supervisor") == ["second"]
    assert await listed(project_id="p") == ["second"]
    assert await listed(agent_id=one, after=first.id, ascending=True) == ["second"]
    assert await listed(agent_id=two, show_hidden=True) == ["third", "second"]
    assert (await company.world.call(company.groups.CountGroups, wire.CountGroupsRequest())).groups == 3
