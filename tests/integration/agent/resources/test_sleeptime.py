"""Agents with a partner that tends their memory: over gRPC, on the real Postgres, with the real memory service."""

import asyncio
from typing import Any
from uuid import uuid4

import pytest

from loci.agent.v1 import agent_pb2
from loci.agent.v1.agent_pb2 import Agent
from services.agent.resources.agents.model.base_tools import BASE_TOOLS
from services.agent.resources.agents.store import PostgresAgents
from services.common.errors import LociError
from tests.integration.agent.admin_world import block
from tests.integration.agent.company_world import Company


async def partner_of(company: Company, agent: Agent) -> Agent:
    """The other agent of its group."""
    group = agent.managed_group
    assert (group.manager_type, group.manager_agent_id) == ("sleeptime", agent.id)
    assert group.manager_settings_json == '{"sleeptime_agent_frequency":5}'
    (partner_id,) = group.agent_ids
    return await company.world.get(partner_id)


def labels(agent: Agent) -> list[str]:
    return sorted(one.label for one in agent.blocks)


async def test_a_new_agent_gets_a_partner_once(company: Company) -> None:
    request: dict[str, Any] = {
        "agent_id": f"agent-{uuid4()}",
        "name": "Ada",
        "model": "loci/demo",
        "enable_sleeptime": True,
        "blocks": [block("human", "Likes tea.")],
        "block_ids": [await company.block("plan")],
    }
    agents = await asyncio.gather(*(company.world.create(**request) for _ in range(3)))
    agent = await company.world.create(**request)
    assert {one.managed_group.id for one in agents} == {agent.managed_group.id}
    assert (await company.world.rows("agents"), await company.world.rows("groups")) == (2, 1)
    partner = await partner_of(company, agent)
    assert (partner.name, partner.agent_type) == ("Ada-sleeptime", agent_pb2.AGENT_TYPE_SLEEPTIME_AGENT)
    assert (partner.model, partner.embedding) == (agent.model, agent.embedding)
    assert {tool.name for tool in partner.tools} == set(BASE_TOOLS["sleeptime_agent"])
    assert (labels(agent), labels(partner)) == (["human", "plan"], ["human", "memory_persona", "plan"])
    assert {one.id for one in agent.blocks} < {one.id for one in partner.blocks}
    # Nothing is left to sweep.
    await company.world.deliver()
    assert await company.world.get(partner.id) == partner


async def test_a_change_gives_an_agent_a_partner_once(company: Company) -> None:
    agent_id = await company.agent(name="Eve")
    await company.attach_block(agent_id, await company.block("memory_persona"))
    plain = await company.update_agent(agent_id, ["name"], name="Eva")
    assert not plain.HasField("managed_group")
    changed = await asyncio.gather(
        *(company.update_agent(agent_id, ["enable_sleeptime"], enable_sleeptime=True) for _ in range(3)),
        return_exceptions=True,
    )
    # The version of the settings may be contended; a partner is made once all the same.
    assert all(isinstance(one, Agent | LociError) for one in changed)
    agent = await company.update_agent(agent_id, ["enable_sleeptime"], enable_sleeptime=True)
    partner = await partner_of(company, agent)
    assert (partner.name, labels(partner)) == ("Eva-sleeptime", ["memory_persona"])
    off = await company.update_agent(agent_id, ["enable_sleeptime"], enable_sleeptime=False)
    assert (off.managed_group, off.enable_sleeptime) == (agent.managed_group, False)
    await company.world.deliver()
    assert (await company.world.rows("agents"), await company.world.rows("groups")) == (2, 1)
    assert await company.world.rows("outbox") == 0


async def test_what_a_crash_leaves_is_swept(company: Company, monkeypatch: pytest.MonkeyPatch) -> None:
    async def crash(*_: Any, **__: Any) -> None:
        raise RuntimeError("the process died here")

    with monkeypatch.context() as patch:
        patch.setattr(PostgresAgents, "insert", crash)
        with pytest.raises(LociError):
            await company.world.create(enable_sleeptime=True, blocks=[block("human")])
    assert (await company.world.rows("agents"), await company.world.rows("outbox")) == (0, 2)
    await company.world.deliver()
    assert await company.world.rows("outbox") == 0
    assert (await company.world.rows("groups")) == 0
