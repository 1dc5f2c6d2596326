"""Whom agents serve and blocks are about: over gRPC, on the real Postgres, with the real memory service."""

import asyncio
from collections.abc import Awaitable
from typing import Any
from uuid import uuid4

import pytest
from google.protobuf.field_mask_pb2 import FieldMask

from loci.agent.v1 import agent_pb2, agent_service_pb2, identity_pb2
from loci.agent.v1 import identity_service_pb2 as wire
from services.common.errors import AlreadyExists, InvalidArgument, NotFound
from tests.integration.agent.admin_world import OTHER_ORGANIZATION
from tests.integration.agent.company_world import Company
from tests.page_requests import paged

# As Postgres writes it.
PROPERTIES = '[{"key":"age","type":"number","value":36},{"key":"town","type":"string","value":"London"}]'


async def test_an_identity_comes_back_as_it_was_made(company: Company) -> None:
    agents = [await company.agent() for _ in range(3)]
    blocks = [await company.block(label) for label in "ab"]
    given: dict[str, Any] = {"agent_ids": [agents[2], agents[0]], "block_ids": [blocks[1], blocks[0]]}
    ada = await company.identity(properties_json=PROPERTIES, project_id="p", **given)
    assert (ada.identifier_key, ada.name, ada.identity_type, ada.project_id) == ("ada", "Ada", "user", "p")
    assert (ada.properties_json, list(ada.agent_ids), list(ada.block_ids)) == (PROPERTIES, *given.values())
    assert await company.get_identity(ada.id) == ada
    assert sorted(await company.about(ada.id)) == sorted(blocks)
    with pytest.raises(NotFound):
        await company.get_identity(ada.id, OTHER_ORGANIZATION)

    # Another tenant and another project have keys of their own.
    for fields in ({"organization_id": OTHER_ORGANIZATION}, {"project_id": "q"}, {}):
        await company.identity(**fields)
    with pytest.raises(AlreadyExists) as caught:
        await company.identity(project_id="p", block_ids=blocks)
    assert caught.value.reason == "IDENTITY_KEY_TAKEN"


async def test_the_same_id_again_is_the_same_identity(company: Company) -> None:
    block = await company.block("a")
    first = await company.identity(identity_id=f"identity-{uuid4()}", block_ids=[block])
    assert await company.identity(identity_id=first.id, block_ids=[block]) == first
    # Even where it would be refused by now.
    assert await company.identity(identity_id=first.id, block_ids=[block], agent_ids=[f"agent-{uuid4()}"]) == first
    assert await company.about(first.id) == [block]


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"identity_type": "robot"}, "IDENTITY_INVALID"),
        ({"key": ""}, "IDENTITY_INVALID"),
        ({"name": "x" * 257}, "IDENTITY_INVALID"),
        ({"properties_json": "{}"}, "IDENTITY_INVALID"),
        ({"agent_ids": ["ada"]}, "INVALID_ID"),
        ({"agent_ids": [f"agent-{uuid4()}"]}, "AGENT_NOT_FOUND"),
        ({"block_ids": [f"block-{uuid4()}"]}, "BLOCK_NOT_FOUND"),
    ],
)
async def test_what_is_refused_leaves_nothing(company: Company, fields: dict[str, Any], reason: str) -> None:
    identity_id, block = f"identity-{uuid4()}", await company.block("a")
    with pytest.raises((InvalidArgument, NotFound)) as caught:
        await company.identity(**{"identity_id": identity_id, "block_ids": [block]} | fields)
    assert caught.value.reason == reason
    assert await company.world.rows("identities") == 0
    assert await company.about(identity_id) == []


async def test_update_changes_the_fields_of_the_mask(company: Company) -> None:
    one, two = await company.agent(), await company.agent()
    first, second = await company.block("a"), await company.block("b")
    ada = await company.identity(agent_ids=[one], block_ids=[first], properties_json=PROPERTIES)
    await company.identity("bob")
    changed = await company.update_identity(
        ada.id, ["name", "agent_ids", "block_ids"], name="Lady Ada", agent_ids=[two], block_ids=[second, first]
    )
    assert (changed.name, list(changed.agent_ids), list(changed.block_ids)) == ("Lady Ada", [two], [first, second])
    assert (changed.identifier_key, changed.properties_json) == ("ada", PROPERTIES)
    assert changed.updated_at.ToDatetime() > ada.updated_at.ToDatetime()

    unknown = f"agent-{uuid4()}"
    for paths, fields, reason in (
        (["identifier_key", "block_ids"], {"identifier_key": "bob"}, "IDENTITY_KEY_TAKEN"),
        (["agent_ids", "block_ids", "name"], {"agent_ids": [unknown], "name": "x"}, "AGENT_NOT_FOUND"),
        (["project_id"], {"project_id": "p"}, "UPDATE_MASK_INVALID"),
        (["name"], {"name": ""}, "IDENTITY_INVALID"),
    ):
        with pytest.raises((AlreadyExists, NotFound, InvalidArgument)) as caught:
            await company.update_identity(ada.id, paths, **fields)
        assert caught.value.reason == reason
    assert await company.get_identity(ada.id) == changed
    cleared = await company.update_identity(ada.id, ["properties_json", "agent_ids", "block_ids"])
    assert (cleared.properties_json, list(cleared.agent_ids), list(cleared.block_ids)) == ("", [], [])
    with pytest.raises(NotFound):
        await company.update_identity(f"identity-{uuid4()}", ["name", "block_ids"], name="x", block_ids=[first])


async def test_upsert_finds_by_key_and_project(company: Company) -> None:
    async def upsert(**fields: Any) -> Any:
        draft = identity_pb2.Identity(**{"identifier_key": "ada", "identity_type": "user"} | fields)
        paths = [name for name in fields if name != "project_id"]
        request = wire.UpsertIdentityRequest(identity=draft, update_mask=FieldMask(paths=paths))
        return (await company.world.call(company.identities.UpsertIdentity, request)).identity

    agent = await company.agent()
    made = await upsert(name="Ada", agent_ids=[agent])
    changed = await upsert(name="Lady Ada", properties_json=PROPERTIES)
    assert (changed.id, changed.name, list(changed.agent_ids)) == (made.id, "Lady Ada", [agent])
    assert changed.properties_json == PROPERTIES
    assert (await upsert(name="Ada", project_id="p")).id != made.id

    many = await asyncio.gather(*(upsert(name=f"Bob {number}", project_id="new") for number in range(6)))
    assert len({each.id for each in many}) == 1


async def test_properties_are_set_by_their_keys(company: Company) -> None:
    ada = await company.identity(properties_json=PROPERTIES)
    new = '[{"key":"town","type":"json","value":{"name":"Paris"}},{"key":"alive","type":"boolean","value":false}]'
    request = wire.UpsertIdentityPropertiesRequest(identity_id=ada.id, properties_json=new)
    changed = (await company.world.call(company.identities.UpsertIdentityProperties, request)).identity
    age = '{"key":"age","type":"number","value":36}'
    assert changed.properties_json == f"[{age},{new[1:-1]}]"
    request.properties_json = '[{"key":"age","value":"36","type":"number"}]'
    with pytest.raises(InvalidArgument) as caught:
        await company.world.call(company.identities.UpsertIdentityProperties, request)
    assert caught.value.reason == "IDENTITY_INVALID"


async def test_agents_serve_identities(company: Company) -> None:
    ada, bob = await company.identity("ada"), await company.identity("bob")
    agent = await company.world.create(identity_ids=[bob.id, ada.id], enable_sleeptime=True, template_id="t:1")
    assert [each.identifier_key for each in agent.identities] == ["bob", "ada"]
    assert (agent.enable_sleeptime, agent.template_id, agent.base_template_id) == (True, "t:1", "")
    assert not agent.identities[0].agent_ids
    changed = await company.update_agent(agent.id, ["identity_ids", "name"], identity_ids=[ada.id], name="Guide")
    assert ([each.id for each in changed.identities], changed.name) == ([ada.id], "Guide")
    assert (await company.update_agent(agent.id, ["enable_sleeptime"])).enable_sleeptime is False

    stub, pair = company.identities, {"agent_id": agent.id, "identity_id": bob.id}
    for _ in range(2):
        shown = await company.world.call(stub.AttachIdentity, wire.AttachIdentityRequest(**pair))
        assert [each.id for each in shown.agent.identities] == [ada.id, bob.id]
    for _ in range(2):
        shown = await company.world.call(stub.DetachIdentity, wire.DetachIdentityRequest(**pair))
        assert [each.id for each in shown.agent.identities] == [ada.id]

    unknown = {"agent_id": f"agent-{uuid4()}", "identity_id": f"identity-{uuid4()}"}
    for name, reason in (("agent_id", "AGENT_NOT_FOUND"), ("identity_id", "IDENTITY_NOT_FOUND")):
        wrong = pair | {name: unknown[name]}
        for rpc, request in (
            (stub.AttachIdentity, wire.AttachIdentityRequest(**wrong)),
            (stub.DetachIdentity, wire.DetachIdentityRequest(**wrong)),
        ):
            with pytest.raises(NotFound) as caught:
                await company.world.call(rpc, request)
            assert caught.value.reason == reason
    with pytest.raises(NotFound):
        await company.world.create(identity_ids=[unknown["identity_id"]])
    with pytest.raises(NotFound):
        await company.update_agent(
            agent.id, ["identity_ids", "name"], identity_ids=[unknown["identity_id"]], name="Nobody"
        )
    assert (await company.world.get(agent.id)).name == "Guide"
    # It and the one that tends its memory.
    assert await company.world.rows("agents") == 2


async def test_who_is_deleted_is_served_no_more(company: Company) -> None:
    block = await company.block("a")
    ada, bob = await company.identity("ada", block_ids=[block]), await company.identity("bob")
    agent, other = await company.agent(identity_ids=[ada.id, bob.id]), await company.agent(identity_ids=[bob.id])
    request = wire.DeleteIdentityRequest(identity_id=ada.id)
    await company.world.call(company.identities.DeleteIdentity, request)
    with pytest.raises(NotFound):
        await company.world.call(company.identities.DeleteIdentity, request)
    assert [each.id for each in (await company.world.get(agent)).identities] == [bob.id]
    await company.world.deliver()
    assert await company.about(ada.id) == []
    await company.world.delete(other)
    assert list((await company.get_identity(bob.id)).agent_ids) == [agent]


async def test_lists_of_identities(company: Company) -> None:
    keys = ["a", "b", "c", "d"]
    made = {key: (await company.identity(key, identity_type="org" if key == "c" else "user")).id for key in keys}

    async def listed(**fields: Any) -> list[str]:
        response = await company.world.call(
            company.identities.ListIdentities, wire.ListIdentitiesRequest(**paged(**fields))
        )
        return [each.identifier_key for each in response.identities]

    assert await listed() == keys[::-1]
    assert await listed(ascending=True, after=made["a"], page_size=2) == ["b", "c"]
    assert await listed(before=made["a"], page_size=2) == ["c", "b"]
    assert await listed(identity_type="org") == ["c"]
    assert await listed(name="B") == ["b"]
    assert await listed(identifier_keys=["a", "d", "x"]) == ["d", "a"]
    assert await listed(project_id="p") == []
    counted = await company.world.call(company.identities.CountIdentities, wire.CountIdentitiesRequest())
    assert counted.identities == 4
    with pytest.raises(NotFound) as caught:
        await listed(after=f"identity-{uuid4()}")
    assert caught.value.reason == "CURSOR_NOT_FOUND"


@pytest.mark.parametrize("size", [1, 20])
async def test_a_page_costs_the_same_whatever_its_size(company: Company, size: int) -> None:
    block = await company.block("a")
    for number in range(size):
        identity = await company.identity(str(number), block_ids=[block])
        await company.agent(identity_ids=[identity.id])
    request = wire.ListIdentitiesRequest()
    found, statements = await _cost(company, company.world.call(company.identities.ListIdentities, request))
    assert (len(found.identities), statements) == (size, 1)
    assert all(list(each.block_ids) == [block] and len(each.agent_ids) == 1 for each in found.identities)
    listed, statements = await _cost(company, company.world.list())
    assert (len(listed.agents), statements) == (size, 2)
    assert all(len(agent.identities) == 1 for agent in listed.agents)


async def _cost(company: Company, work: Awaitable[Any]) -> tuple[Any, int]:
    counter = company.world.counter
    await asyncio.sleep(0)
    counter.reset()
    result = await work
    await asyncio.sleep(0)
    return result, sum(text.strip() != ";" for text in counter.texts)


async def test_filters_of_agents(company: Company) -> None:
    ada, bob = await company.identity("ada"), await company.identity("bob", project_id="p")
    made = {
        "one": await company.agent(name="one", identity_ids=[ada.id], project_id="p"),
        "two": await company.agent(name="two", identity_ids=[ada.id, bob.id], template_id="t"),
        "three": await company.agent(name="three", base_template_id="b"),
    }

    async def names(**fields: Any) -> list[str]:
        return [agent.name for agent in (await company.world.list(**{"ascending": True} | fields)).agents]

    assert await names(identity_id=ada.id) == ["one", "two"]
    assert await names(identifier_keys=["bob", "x"]) == ["two"]
    assert await names(identity_id=ada.id, identifier_keys=["bob"]) == ["two"]
    assert await names(template_id="t") == ["two"]
    assert await names(base_template_id="b") == ["three"]
    assert await names(project_id="p") == ["one"]
    assert await names(created_by_id=f"user-{uuid4()}") == []

    by_run = agent_service_pb2.AGENT_ORDER_LAST_RUN_COMPLETION
    assert await names(last_stop_reason=agent_pb2.STOP_REASON_END_TURN) == []
    for name in ("three", "one"):
        await company.world.say(made[name])
    assert await names(order_by=by_run) == ["two", "three", "one"]
    assert await names(order_by=by_run, ascending=False) == ["one", "three", "two"]
    assert await names(order_by=by_run, after=made["two"]) == ["three", "one"]
    assert await names(order_by=by_run, before=made["one"], ascending=False) == []
    assert await names(last_stop_reason=agent_pb2.STOP_REASON_END_TURN) == ["one", "three"]
    assert await names(last_stop_reason=agent_pb2.STOP_REASON_ERROR) == []
    page = await company.world.list(order_by=by_run, page_size=2, ascending=True)
    rest = await company.world.list(order_by=by_run, page_token=page.next_page_token, ascending=True)
    assert [agent.name for agent in (*page.agents, *rest.agents)] == ["two", "three", "one"]
