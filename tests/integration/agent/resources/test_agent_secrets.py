"""Secrets of agents: handed to the tool runner before the agent is there, and erased with it."""

from __future__ import annotations

import pytest

from services.common.errors import Internal, InvalidArgument, NotFound, Unavailable
from services.common.ids import to_public, uuid7
from tests.integration.agent.admin_world import AdminWorld, block


async def test_they_are_set_changed_cleared_and_never_told(world: AdminWorld) -> None:
    agent = await world.create(secrets={"KEY": "s3cret"})
    assert world.peers.secrets == {agent.id: {"KEY": "s3cret"}}
    assert "s3cret" not in str(agent) + str(await world.get(agent.id)) + str(await world.list())
    plain = await world.create()
    assert world.peers.asked["SetEnvironment"] == 1
    both = await world.update(agent.id, name="Ada", secrets={"OTHER": "value"})
    assert (both.name, world.peers.secrets[agent.id]) == ("Ada", {"OTHER": "value"})
    await world.update(agent.id, name="Eve")
    assert world.peers.secrets[agent.id] == {"OTHER": "value"}
    assert (await world.update(agent.id, "secrets")).version == 3
    assert world.peers.secrets == {agent.id: {}}
    await world.delete(plain.id)
    await world.delete(agent.id)
    await world.deliver()
    assert world.peers.secrets == {}


async def test_refused_ones_leave_nothing(world: AdminWorld) -> None:
    refused = InvalidArgument("the environment variable PATH is set by Loci", reason="ENVIRONMENT_INVALID")
    world.peers.failures["SetEnvironment"] = [refused]
    with pytest.raises(InvalidArgument, match="PATH") as caught:
        await world.create(secrets={"PATH": "x"}, blocks=[block("human")])
    assert caught.value.reason == "ENVIRONMENT_INVALID"
    assert (world.peers.asked["CreateAgentMemory"], await world.rows("agents"), await world.rows("outbox")) == (0, 0, 0)
    world.peers.failures["CreateAgentMemory"] = [InvalidArgument("too long", reason="BLOCK_OVER_LIMIT")]
    with pytest.raises(InvalidArgument):
        await world.create(secrets={"KEY": "x"}, blocks=[block("human")])
    assert (world.peers.secrets, await world.rows("outbox")) == ({}, 0)


async def test_those_without_an_agent_are_swept(world: AdminWorld) -> None:
    world.peers.failures["CreateAgentMemory"] = [Unavailable("gone"), Internal("a fault")]
    with pytest.raises(Internal):
        await world.create(secrets={"KEY": "x"}, blocks=[block("human")])
    assert len(world.peers.secrets) == 1
    await world.deliver()
    assert world.peers.secrets == {}


async def test_an_agent_that_is_not_there_gets_none(world: AdminWorld) -> None:
    with pytest.raises(NotFound):
        await world.update(to_public("agent", uuid7()), secrets={"KEY": "x"})
    assert world.peers.secrets == {}
