"""Rounds of groups on the real journal: members speak in runs of their own, and a round outlives its replica."""

import asyncio
import json
from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

from services.agent.adapters.group_logs import PostgresGroupLogs
from services.agent.core.events import Delta, Event, MessagePiece
from services.agent.core.facts import Options, RunStatus, StopReason
from services.agent.core.groups.plan import GroupPlan, Kind
from services.agent.core.messages import Return, Text
from services.agent.core.ports import ModelRequest, PartDelta, Reply
from services.agent.core.ports_agents import AgentName
from services.agent.core.ports_journal import TurnRequest
from services.common.ids import uuid7
from tests.integration.agent.world import ORGANIZATION, SECONDS, World, answered, calls, end, text


class Group:
    """A group of agents with these names; the first leads it where one does."""

    def __init__(self, world: World, kind: Kind, **settings: Any) -> None:
        self.world, self.kind, self.settings = world, kind, settings
        self.id = uuid7()
        self.agents: list[AgentName] = []

    async def made(self, *names: str) -> "Group":
        for name in names:
            agent_id = await self.world.add_agent()
            await self.world.pool.execute("UPDATE agent.agents SET name = $2 WHERE id = $1", agent_id, name)
            self.agents.append(AgentName(agent_id, name))
        return self

    async def request(self, said: str = "Hello.", *, max_steps: int = 50) -> TurnRequest:
        """A message to it."""
        ids = [each.id for each in self.agents]
        there = await PostgresGroupLogs(self.world.pool).open(ORGANIZATION, ORGANIZATION, self.id, ids)
        leads = self.kind in ("supervisor", "dynamic")
        manager, members = (there[0], there[1:]) if leads else (None, there)
        plan = GroupPlan(self.kind, tuple(members), manager, **self.settings)
        request = self.world.request(said)
        options = Options(max_steps=max_steps, group=plan.to_json())
        return replace(request, agent_id=self.id, conversation_id=self.id, options=options)

    async def runs(self, name: str) -> list[str]:
        """The states of the runs of an agent."""
        (agent,) = [each for each in self.agents if each.name == name]
        query = "SELECT status FROM agent.runs WHERE agent_id = $1 ORDER BY created_at"
        return [row["status"] for row in await self.world.pool.fetch(query, agent.id)]

    async def told(self, name: str) -> list[str]:
        """What an agent was told."""
        (agent,) = [each for each in self.agents if each.name == name]
        query = "SELECT content FROM agent.messages WHERE agent_id = $1 AND role = 'user' ORDER BY seq"
        return [row["content"][0]["text"] for row in await self.world.pool.fetch(query, agent.id)]


def spoken(events: Sequence[Event]) -> list[tuple[str | None, str]]:
    """Who said what, as a client sees it."""
    pieces = [each for each in events if isinstance(each, MessagePiece)]
    return [(each.message.name, "".join(part.text for part in each.parts if isinstance(part, Text))) for each in pieces]


def chooses(name: str, tool: str = "choose_next_speaker") -> Reply:
    return calls(tool, arguments=json.dumps({"name": name}))


async def test_a_round_of_three_and_the_next(world: World) -> None:
    group = await Group(world, "round_robin").made("Ada", "Bob", "Eve")
    async with world.replica() as replica:
        replica.models.replies = [text("A1"), text("B1"), text("E1"), text("A2"), text("B2"), text("E2")]
        first = await replica.send(await group.request("Hello."))
        second = await replica.send(await group.request("And?"))
    assert spoken(first) == [("Ada", "A1"), ("Bob", "B1"), ("Eve", "E1")]
    assert spoken(second) == [("Ada", "A2"), ("Bob", "B2"), ("Eve", "E2")]
    assert await group.told("Ada") == ["Hello.", "[Bob] B1\n\n[Eve] E1\n\n[user] And?"]
    assert (await group.told("Bob"))[0] == "[user] Hello.\n\n[Ada] A1"
    assert (end(first).usage.prompt_tokens, end(first).steps) == (30, 3)
    senders = {each.message.sender_id for each in first if isinstance(each, MessagePiece)}
    assert senders == {f"agent-{each.id}" for each in group.agents}


async def test_a_supervisor_asks_all_or_one(world: World) -> None:
    group = await Group(world, "supervisor").made("Boss", "Ada", "Bob")
    asks_all = calls("ask_members", arguments=json.dumps({"message": "Your view?"}))
    asks_one = calls("ask_members", arguments=json.dumps({"message": "Sure?", "name": "Bob"}))
    async with world.replica() as replica:
        replica.models.replies = [asks_all, text("Yes."), text("Yes."), asks_one, text("Sure."), text("All say yes.")]
        events = await replica.send(await group.request("Decide."))
    assert spoken(events) == [("Boss", "All say yes.")]
    assert await group.told("Boss") == ["Decide."]
    assert [len(await group.runs(name)) for name in ("Ada", "Bob")] == [1, 2]
    # Members do not hear one another.
    assert all("Yes." not in each for each in await group.told("Bob"))


async def test_a_dynamic_manager_leads_the_round(world: World) -> None:
    group = await Group(world, "dynamic").made("Boss", "Ada", "Bob")
    async with world.replica() as replica:
        replica.models.replies = [chooses("Bob"), text("Here."), chooses("Ada"), text("Me, too."), text("DONE!")]
        events = await replica.send(await group.request())
    assert spoken(events) == [("Bob", "Here."), ("Ada", "Me, too."), ("Boss", "DONE!")]
    offered = [{tool.name for tool in request.tools} for request in replica.models.requests]
    assert offered[:2] == [{"choose_next_speaker"}, set()]


async def test_a_swarm_keeps_the_floor_where_it_was_handed(world: World) -> None:
    group = await Group(world, "swarm").made("Ada", "Bob")
    async with world.replica() as replica:
        replica.models.replies = [chooses("Bob", "hand_over"), text("Bob here."), text("Still Bob.")]
        first = await replica.send(await group.request())
        second = await replica.send(await group.request("And?"))
    assert (spoken(first), spoken(second)) == ([("Bob", "Bob here.")], [("Bob", "Still Bob.")])


async def test_a_floor_that_is_handed_to_nobody_stays(world: World) -> None:
    group = await Group(world, "swarm").made("Ada", "Bob")
    wrong = calls("hand_over", arguments="{}")
    async with world.replica(replies=[wrong, text("Still Ada.")]) as replica:
        events = await replica.send(await group.request())
        again = await replica.send(await group.request("And?"))
    said = spoken(events) + spoken(again)
    assert {name for name, _ in said} == {"Ada"}
    query = "SELECT content FROM agent.messages WHERE agent_id = $1 AND role = 'tool'"
    ((refused,),) = [row["content"] for row in await world.pool.fetch(query, group.agents[0].id)]
    assert refused["is_error"]
    assert "`name` must be a text" in refused["text"]


async def test_a_round_goes_on_where_it_was_when_its_replica_dies(world: World) -> None:
    group = await Group(world, "round_robin").made("Ada", "Bob", "Eve")
    thinks = asyncio.Event()

    async def think(request: ModelRequest) -> AsyncGenerator[PartDelta | Reply]:
        thinks.set()
        await asyncio.Event().wait()
        yield text("never")

    request = await group.request()
    async with world.replica(replies=[text("A"), think]) as victim:
        sending = asyncio.create_task(victim.send(request))
        async with asyncio.timeout(SECONDS):
            await thinks.wait()
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)
        await victim.die()
        async with world.replica(replies=[text("B"), text("E")]) as heir:
            events = await heir.send(request)
    assert spoken(events) == [("Ada", "A"), ("Bob", "B"), ("Eve", "E")]
    assert [await group.runs(name) for name in ("Ada", "Bob", "Eve")] == [["completed"]] * 3


async def test_a_member_that_is_deleted_in_the_middle_is_passed_over(world: World) -> None:
    group = await Group(world, "round_robin").made("Ada", "Bob", "Eve")

    async def deletes(request: ModelRequest) -> AsyncGenerator[PartDelta | Reply]:
        await world.pool.execute("UPDATE agent.agents SET deleted_at = now() WHERE id = $1", group.agents[1].id)
        yield text("A")

    async with world.replica(replies=[deletes, text("E")]) as replica:
        events = await replica.send(await group.request())
    assert [name for name, _ in spoken(events)] == ["Ada", "Bob", "Eve"]
    assert "could not speak" in spoken(events)[1][1]
    assert end(events).run.status is RunStatus.COMPLETED


async def test_a_round_is_cancelled_with_who_speaks(world: World) -> None:
    group = await Group(world, "round_robin").made("Ada", "Bob")
    thinks = asyncio.Event()

    async def think(request: ModelRequest) -> AsyncGenerator[PartDelta | Reply]:
        thinks.set()
        await asyncio.Event().wait()
        yield text("never")

    request = await group.request()
    async with world.replica(replies=[think]) as replica:
        sending = asyncio.create_task(replica.send(request))
        async with asyncio.timeout(SECONDS):
            await thinks.wait()
            await replica.worker.cancel(ORGANIZATION, [(request.run_id, request.conversation_id)])
            assert end(await sending).run.status is RunStatus.CANCELLED
        await answered(lambda: _all(group, "Ada", ["cancelled"]))
    assert await group.runs("Bob") == []


async def _all(group: Group, name: str, states: list[str]) -> bool:
    return await group.runs(name) == states


async def test_a_large_group_has_an_end(world: World) -> None:
    group = await Group(world, "round_robin").made(*(f"Agent {number}" for number in range(6)))
    async with world.replica() as replica:
        replica.models.replies = [text("So.")] * 4
        events = await replica.send(await group.request(max_steps=4))
    assert (len(spoken(events)), end(events).run.stop_reason) == (4, StopReason.MAX_STEPS)


async def test_a_supervisor_that_never_ends_is_ended(world: World) -> None:
    group = await Group(world, "supervisor").made("Boss", "Ada")
    asks = calls("ask_members", arguments=json.dumps({"message": "And?"}))
    async with world.replica() as replica:
        replica.models.replies = [asks, text("So.")] * 3
        events = await replica.send(await group.request(max_steps=3))
    assert [len(await group.runs(name)) for name in ("Boss", "Ada")] == [1, 3]
    assert "without a word" in spoken(events)[0][1]
    assert end(events).run.status is RunStatus.FAILED


async def test_a_group_of_a_thousand_speaks_until_its_turns_are_over(world: World) -> None:
    group = await Group(world, "round_robin").made("Ada", "Bob", "Eve")
    group.agents += await crowd(world, 997)
    async with world.replica(replies=[text("So.")] * 3) as replica:
        events = await replica.send(await group.request(max_steps=3))
    assert [name for name, _ in spoken(events)] == ["Ada", "Bob", "Eve"]
    assert end(events).run.stop_reason is StopReason.MAX_STEPS


async def test_a_thousand_members_are_not_asked_at_once(world: World) -> None:
    group = await Group(world, "supervisor").made("Boss")
    group.agents += await crowd(world, 1_000)
    asks = calls("ask_members", arguments=json.dumps({"message": "And?"}))
    async with world.replica(replies=[asks, text("They are too many.")]) as replica:
        assert spoken(await replica.send(await group.request())) == [("Boss", "They are too many.")]
        (refused,) = [part for part in replica.models.requests[-1].history[-1].parts if isinstance(part, Return)]
    assert "has 1000 members, and one call asks at most 100" in refused.text


async def crowd(world: World, count: int) -> list[AgentName]:
    """Agents that are there, and have no conversation."""
    rows = await world.pool.fetch(
        "INSERT INTO agent.agents (organization_id, id, name, agent_type, system, model, embedding,"
        " context_window_limit, created_by_id, last_updated_by_id)"
        " SELECT $1, gen_random_uuid(), 'Agent ' || number, 'letta_v1_agent', '', 'loci/demo', '', 32000, $1, $1"
        " FROM generate_series(1, $2::int) number RETURNING id, name",
        ORGANIZATION,
        count,
    )
    return [AgentName(row["id"], row["name"]) for row in rows]


async def test_what_was_said_is_read_later_as_it_was_seen(world: World) -> None:
    group = await Group(world, "round_robin").made("Ada", "Bob")
    request = await group.request()
    async with world.replica(replies=[text("A"), text("B")]) as replica:
        seen = await replica.send(request)
        assert spoken(await replica.journal.events(ORGANIZATION, request.run_id, 0)) == spoken(seen)
    assert UUID(str(group.id)) == request.agent_id


async def test_what_a_member_says_is_seen_while_it_says_it(world: World) -> None:
    group = await Group(world, "round_robin").made("Ada", "Bob")
    seen = asyncio.Event()

    async def speaks(request: ModelRequest) -> AsyncGenerator[PartDelta | Reply]:
        yield PartDelta(0, "content", "It is ")
        await seen.wait()
        yield PartDelta(0, "content", "blue.")
        yield text("It is blue.")

    request = await group.request()
    events: list[Event] = []
    async with world.replica(replies=[speaks, text("So it is.")]) as replica, asyncio.timeout(SECONDS):
        accepted, subscription = await replica.worker.accept(request, stream=True)
        async for event in replica.reader.follow(ORGANIZATION, accepted.run_id, subscription=subscription):
            events.append(event)
            if isinstance(event, Delta):
                seen.set()
    deltas = [each for each in events if isinstance(each, Delta)]
    assert [(each.name, each.part) for each in deltas] == [
        ("Ada", Text("It is ")),
        ("Ada", Text("blue.")),
        ("Bob", Text("So it is.")),
    ]
    whole = next(each for each in events if isinstance(each, MessagePiece))
    assert {(each.message_id, each.otid, each.step_id) for each in deltas[:2]} == {
        (whole.message.id, whole.otid, whole.message.step_id)
    }
    assert [each.sequence for each in events] == sorted({each.sequence for each in events})
