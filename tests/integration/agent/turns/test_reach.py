"""Attacks through other agents: whoever began may write to some agents, and reaches no others through these."""

import json
from collections.abc import AsyncGenerator
from dataclasses import replace
from uuid import UUID

import pytest

from services.agent.core.messages import Call
from services.agent.core.ports import ModelRequest, PartDelta, Reply
from services.agent.core.ports_journal import TurnRequest
from services.common.context import current
from services.common.core.ceiling import Ceiling, ceiling
from services.common.ids import uuid7
from tests.integration.agent.turns.test_agent_calls import ASK, ASK_TAGGED, TELL, asks, replica_of, returned, runs
from tests.integration.agent.turns.test_groups import Group, spoken
from tests.integration.agent.turns.test_tending import rested, tended
from tests.integration.agent.world import World, answered, calls, end, text

TALKS = frozenset({"read_messages", "write_messages"})
EVERY_AGENT = Ceiling("agent-only")


def limited_to(*agent_ids: UUID) -> Ceiling:
    """A key that may talk to these, and look at no others."""
    return ceiling("agent-only", {f"agent-{agent_id}": TALKS for agent_id in agent_ids})


def below(request: TurnRequest, limit: Ceiling) -> TurnRequest:
    return replace(request, ceiling=limit)


async def three_agents(world: World) -> tuple[UUID, UUID, UUID]:
    """The world's agent, which the requests go to, and two others; all have one tag."""
    first, tag = world.agent_id, f"tag-{uuid7()}"
    second, third = await world.add_agent(), await world.add_agent()
    tagged = [first, second, third]
    await world.pool.execute("UPDATE agent.agents SET tags = $2 WHERE id = ANY($1)", tagged, [tag])
    world.agent_id = first
    return first, second, third


async def tag_of(world: World) -> str:
    (tag,) = await world.pool.fetchval("SELECT tags FROM agent.agents WHERE id = $1", world.agent_id)
    return str(tag)


@pytest.mark.parametrize("tool", [ASK, TELL])
async def test_an_agent_beyond_the_key_is_not_written_to(world: World, tool: str) -> None:
    first, second, _ = await three_agents(world)
    async with replica_of(world, asks(second, tool=tool), text("I may not.")) as replica:
        one = returned(await replica.send(below(world.request("Ask them."), limited_to(first))))
    assert one.is_error
    assert f"may not write to agent-{second}" in one.text
    assert await runs(world, second) == []


async def test_a_right_to_read_is_none_to_write(world: World) -> None:
    first, second, _ = await three_agents(world)
    reads = ceiling("client", {f"agent-{first}": TALKS, f"agent-{second}": frozenset({"read_messages", "read_agent"})})
    async with replica_of(world, asks(second), text("I may not.")) as replica:
        assert "may not write to" in returned(await replica.send(below(world.request("Ask them."), reads))).text
    assert await runs(world, second) == []


async def test_of_all_with_a_tag_those_within_the_key_are_asked(world: World) -> None:
    first, second, third = await three_agents(world)
    wanted = {"message": "Your colour?", "match_all": [await tag_of(world)], "match_some": []}
    asking = calls(ASK_TAGGED, arguments=json.dumps(wanted))
    async with replica_of(world, asking, text("Blue."), text("Blue, they say.")) as replica:
        one = returned(await replica.send(below(world.request("Ask all."), limited_to(first, third))))
    assert [each["agent_id"] for each in json.loads(one.text)] == [f"agent-{third}"]
    assert await runs(world, second) == []


@pytest.mark.parametrize("tool", [ASK, TELL])
async def test_the_next_in_the_chain_reaches_no_further(world: World, tool: str) -> None:
    """The first may write to the second, which would write to the third: whose key it is does not change on the way."""
    first, second, third = await three_agents(world)

    async def reply(request: ModelRequest) -> AsyncGenerator[PartDelta | Reply]:
        told = "Message from another agent" in str(request.history[0].parts)
        # The other one begins beside the first, so one script serves both.
        yield text("Done.") if request.history[-1].role == "tool" else asks(third) if told else asks(second, tool=tool)

    async with replica_of(world, *[reply] * 4) as replica:
        await replica.send(below(world.request("Ask them."), limited_to(first, second)))
        over = "SELECT count(*) = 1 AND bool_and(completed_at IS NOT NULL) FROM agent.runs WHERE agent_id = $1"
        await answered(lambda: world.pool.fetchval(over, second))
    query = "SELECT content FROM agent.messages WHERE agent_id = $1 AND role = 'tool'"
    ((refused,),) = [row["content"] for row in await world.pool.fetch(query, second)]
    assert f"may not write to agent-{third}" in refused["text"]
    assert await runs(world, third) == []


@pytest.mark.parametrize("limit", [EVERY_AGENT, None])
async def test_what_another_agent_does_is_done_below_the_same_ceiling(world: World, limit: Ceiling | None) -> None:
    _, second, _ = await three_agents(world)
    seen: list[Ceiling | None] = []

    async def look(call: Call) -> str:
        seen.append(current().ceiling)
        return "seen"

    async with replica_of(world, asks(second), calls("look"), text("Blue."), text("Blue, they say.")) as replica:
        replica.tools.actions = {"look": look}
        await replica.send(replace(world.request("Ask them."), ceiling=limit))
    assert seen == [limit]


async def test_a_member_beyond_the_key_does_not_speak(world: World) -> None:
    group = await Group(world, "round_robin").made("Ada", "Bob")
    limit = limited_to(group.id, group.agents[0].id)
    async with world.replica(replies=[text("A")]) as replica:
        events = await replica.send(below(await group.request(), limit))
    assert spoken(events)[0] == ("Ada", "A")
    assert "may not write to" in spoken(events)[1][1]
    assert await group.runs("Bob") == []


async def test_a_supervisor_asks_nobody_beyond_the_key(world: World) -> None:
    group = await Group(world, "supervisor").made("Boss", "Ada", "Bob")
    boss, ada, _ = group.agents
    asks_all = calls("ask_members", arguments=json.dumps({"message": "Your view?"}))
    async with world.replica(replies=[asks_all, text("Yes."), text("Ada says yes.")]) as replica:
        events = await replica.send(below(await group.request(), limited_to(group.id, boss.id, ada.id)))
    assert spoken(events) == [("Boss", "Ada says yes.")]
    assert (len(await group.runs("Ada")), await group.runs("Bob")) == (1, [])


async def test_what_a_member_does_is_done_below_the_ceiling_of_the_round(world: World) -> None:
    group = await Group(world, "round_robin").made("Ada", "Bob")
    seen: list[Ceiling | None] = []

    async def look(call: Call) -> str:
        seen.append(current().ceiling)
        return "seen"

    looks: list[Reply] = [calls("look"), text("A"), calls("look"), text("B")]
    async with world.replica(replies=looks) as replica:
        replica.tools.actions = {"look": look}
        end(await replica.send(below(await group.request(), EVERY_AGENT)))
    assert seen == [EVERY_AGENT, EVERY_AGENT]
    query = "SELECT ceiling FROM agent.runs WHERE agent_id = $1"
    stored = [await world.pool.fetchval(query, each.id) for each in group.agents]
    assert stored == [{"role": "agent-only", "resources": None}] * 2


async def test_who_tends_an_agent_does_it_below_the_ceiling_of_its_turn(world: World) -> None:
    """It is no agent of the key's, and its owner has set it to tend one that is."""
    first, partner = await tended(world, every=1)
    limit = limited_to(first)
    async with world.replica(replies=[text("Answer."), text("Noted.")]) as replica:
        end(await replica.send(below(world.request("Question."), limit)))
        (run,) = await rested(world, partner, 1)
    assert run["ceiling"] == {"role": "agent-only", "resources": {f"agent-{first}": sorted(TALKS)}}
