"""Attacks of tools on approvals: an agent of their own, or somebody else's, that shall not wait for a person."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

import grpc
import orjson
import pytest
from google.protobuf.field_mask_pb2 import FieldMask

from loci.agent.v1 import agent_pb2
from loci.agent.v1 import agent_service_pb2 as wire
from services.common.context import CallContext, use_context
from services.common.errors import PermissionDenied, from_rpc
from services.common.ids import from_public, uuid7
from tests.integration.agent.admin_world import AUDIENCE, ORGANIZATION, USER, AdminWorld

REFUND = {"type": "requires_approval", "tool_name": "refund", "timeout_seconds": 60.0, "on_timeout": "deny"}
AT_ONCE = REFUND | {"timeout_seconds": 1.0, "on_timeout": "approve"}


@dataclass
class Tool:
    """A tool that is called by an agent whose refunds wait for a person."""

    world: AdminWorld
    context: CallContext
    refund_id: str

    async def call(self, rpc: Any, request: Any) -> Any:
        """Calls with the token of the run. Raises LociError."""
        with use_context(self.context, signer=self.world.signer):
            try:
                return await rpc(request, timeout=10)
            except grpc.RpcError as error:
                raise from_rpc(error) from None

    async def make(self, *rules: dict[str, Any], tool_ids: tuple[str, ...] = ()) -> agent_pb2.Agent:
        """An agent that the tool makes."""
        draft = agent_pb2.Agent(tool_ids=tool_ids)
        if rules:
            draft.tool_rules_json = orjson.dumps(rules).decode()
        request = wire.CreateAgentRequest(agent=draft, include_base_tools=False)
        made: agent_pb2.Agent = (await self.call(self.world.agents.CreateAgent, request)).agent
        return made


async def run_of(world: AdminWorld, agent_id: UUID) -> UUID:
    """A run that goes on, of a replica that lives."""
    owner = await world.pool.fetchval(
        "INSERT INTO agent.workers (id, beat_at) VALUES ($1, now() + interval '1 hour') RETURNING id", uuid7()
    )
    run_id = uuid7()
    await world.pool.execute(
        "INSERT INTO agent.runs (organization_id, id, agent_id, conversation_id, user_id, status, home_id, deadline,"
        " options, started_at, worker_id)"
        " VALUES ($1, $2, $3, $3, $4, 'running', $5, now() + interval '1 hour', '{}', now(), $5)",
        ORGANIZATION,
        run_id,
        agent_id,
        USER,
        owner,
    )
    return run_id


@pytest.fixture(params=["in its run", "in a run that it waits for"])
async def tool(world: AdminWorld, request: pytest.FixtureRequest) -> Tool:
    """In the agent's own run, or in that of an agent that the run waits for."""
    refund_id = world.peers.add_tool("refund")
    agent = await world.create(tool_ids=[refund_id], tool_rules_json=orjson.dumps([REFUND]).decode())
    run_id = await run_of(world, from_public("agent", agent.id))
    context = CallContext(ORGANIZATION, USER, "run", AUDIENCE, run_id)
    if request.param == "in a run that it waits for":
        other = await world.create()
        nested = await run_of(world, from_public("agent", other.id))
        context = CallContext(ORGANIZATION, USER, "run", AUDIENCE, nested, (run_id,))
    return Tool(world, context, refund_id)


def approvals(agent: agent_pb2.Agent) -> list[dict[str, Any]]:
    return [rule for rule in orjson.loads(agent.tool_rules_json or "[]") if rule["type"] == "requires_approval"]


def waits(agent: agent_pb2.Agent) -> bool:
    """Whether refunds of the agent wait for a person, however long it takes."""
    [rule] = [rule for rule in approvals(agent) if rule["tool_name"] == "refund"]
    return bool(rule.get("on_timeout", "deny") == "deny")


async def test_an_agent_that_it_makes_waits(tool: Tool) -> None:
    assert waits(await tool.make(tool_ids=(tool.refund_id,)))


async def test_so_does_one_that_is_given_the_tool_later(tool: Tool) -> None:
    made = await tool.make()
    request = wire.AttachToolRequest(agent_id=made.id, tool_id=tool.refund_id)
    assert waits((await tool.call(tool.world.agents.AttachTool, request)).agent)


async def test_so_does_one_of_the_tenant(tool: Tool) -> None:
    there = await tool.world.create()
    request = wire.AttachToolRequest(agent_id=there.id, tool_id=tool.refund_id)
    assert waits((await tool.call(tool.world.agents.AttachTool, request)).agent)


async def test_so_does_one_whose_tools_it_sets(tool: Tool) -> None:
    there = await tool.world.create()
    draft = agent_pb2.Agent(tool_ids=[tool.refund_id])
    request = wire.UpdateAgentRequest(agent_id=there.id, agent=draft, update_mask=FieldMask(paths=["tool_ids"]))
    assert waits((await tool.call(tool.world.agents.UpdateAgent, request)).agent)


async def test_it_makes_no_approval_that_time_gives(tool: Tool) -> None:
    with pytest.raises(PermissionDenied, match="approved by a time-out") as refused:
        await tool.make(AT_ONCE, tool_ids=(tool.refund_id,))
    assert refused.value.reason == "RUN_NOT_PERMITTED"


async def test_a_person_decides_about_approvals(tool: Tool) -> None:
    made = await tool.world.create(
        tool_ids=[tool.refund_id], include_base_tools=False, tool_rules_json=orjson.dumps([AT_ONCE]).decode()
    )
    assert [rule["on_timeout"] for rule in approvals(made)] == ["approve"]
    free = await tool.world.create(tool_ids=[tool.refund_id], include_base_tools=False)
    assert approvals(free) == []
