"""Agents that write to agents: a reply comes back once, whoever dies; what may not, or would never end, is refused."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from uuid import UUID

import pytest

from services.agent.core.events import Event, MessagePiece
from services.agent.core.facts import RunStatus
from services.agent.core.messages import Call, Return
from services.agent.core.ports import ModelRequest, PartDelta, Reply
from services.agent.core.ports_agents import AGENT_TOOLS
from services.agent.core.ports_journal import TurnRequest
from services.common.ids import uuid7
from tests.integration.agent.world import ORGANIZATION, SECONDS, Replica, World, answered, calls, end, says, text

ASK, TELL, ASK_TAGGED = (
    "send_message_to_agent_and_wait_for_reply",
    "send_message_to_agent_async",
    "send_message_to_agents_matching_tags",
)


def asks(agent_id: UUID, message: str = "What is it?", tool: str = ASK) -> Reply:
    """A reply that writes to an agent."""
    return calls(tool, arguments=json.dumps({"message": message, "other_agent_id": f"agent-{agent_id}"}))


@asynccontextmanager
async def replica_of(world: World, *replies: object) -> AsyncGenerator[Replica]:
    """A replica whose agents have the tools."""
    async with world.replica() as replica:
        replica.tools.of_agents = tuple(sorted(AGENT_TOOLS))
        replica.models.replies = [*replies]
        yield replica


def returned(events: list[Event]) -> Return:
    """The return of the only call."""
    parts = [part for each in events if isinstance(each, MessagePiece) for part in each.parts]
    (only,) = [part for part in parts if isinstance(part, Return)]
    return only


async def two_agents(world: World) -> tuple[UUID, UUID]:
    """The world's agent, which the requests go to, and another."""
    first = world.agent_id
    second = await world.add_agent()
    world.agent_id = first
    return first, second


async def runs(world: World, agent_id: UUID) -> list[tuple[UUID, str]]:
    """An agent's runs, oldest first."""
    query = "SELECT id, status FROM agent.runs WHERE agent_id = $1 ORDER BY created_at"
    return [(row["id"], row["status"]) for row in await world.pool.fetch(query, agent_id)]


async def said_to(world: World, agent_id: UUID) -> list[str]:
    """What an agent was told, oldest first."""
    query = "SELECT content FROM agent.messages WHERE agent_id = $1 AND role = 'user' ORDER BY seq"
    return [row["content"][0]["text"] for row in await world.pool.fetch(query, agent_id)]


async def test_the_reply_of_the_other_agent_is_what_the_tool_returns(world: World) -> None:
    first, second = await two_agents(world)
    async with replica_of(world, asks(second), text("It is blue."), text("Blue, they say.")) as replica:
        events = await replica.send(world.request("Ask them."))
    assert returned(events) == Return("call_0", ASK, "It is blue.")
    (told,) = await said_to(world, second)
    assert told.endswith("\n\nWhat is it?")
    assert f"agent-{first}" in told
    assert "your reply" in told
    ((run_id, status),) = await runs(world, second)
    assert status == "completed"
    row = await world.pool.fetchrow("SELECT ancestors, user_id FROM agent.runs WHERE id = $1", run_id)
    assert row["ancestors"] == [end(events).run.id]
    sender = await world.pool.fetchval(
        "SELECT sender_id FROM agent.messages WHERE agent_id = $1 AND role = 'user'", second
    )
    assert sender == f"agent-{first}"


async def test_who_waits_takes_no_place_of_those_it_waits_for(world: World) -> None:
    _, second = await two_agents(world)
    loads: list[int] = []
    async with replica_of(world) as replica:

        async def watch(request: ModelRequest) -> AsyncGenerator[PartDelta | Reply]:
            loads.append(replica.worker.load)
            yield text("Blue.")

        replica.models.replies = [asks(second), watch, text("Blue, they say.")]
        await replica.send(world.request("Ask them."))
        await answered(lambda: _is(replica.worker.load == 0))
    assert loads == [1]


async def _is(truth: bool) -> bool:
    return truth


async def test_a_caller_that_is_taken_over_waits_on_for_the_same_reply(world: World) -> None:
    """The replica dies while the other agent thinks: both runs go on elsewhere, and nobody is asked twice."""
    _, second = await two_agents(world)
    thinks = asyncio.Event()

    async def think(request: ModelRequest) -> AsyncGenerator[PartDelta | Reply]:
        thinks.set()
        await asyncio.Event().wait()
        yield text("never")

    request = world.request("Ask them.")
    async with replica_of(world, asks(second), think) as victim:
        sending = asyncio.create_task(victim.send(request))
        async with asyncio.timeout(SECONDS):
            await thinks.wait()
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)
        await victim.die()

        async def reply(model_request: ModelRequest) -> AsyncGenerator[PartDelta | Reply]:
            asked = any(message.role == "tool" for message in model_request.history)
            yield text("Blue, they say.") if asked else text("It is blue.")

        async with replica_of(world, reply, reply) as heir:
            events = await heir.send(request)
    assert returned(events) == Return("call_0", ASK, "It is blue.")
    assert [status for _, status in await runs(world, second)] == ["completed"]
    assert len(await said_to(world, second)) == 1
    assert end(events).run.status is RunStatus.COMPLETED


async def test_two_agents_that_ask_each_other_are_told_so(world: World) -> None:
    first, second = await two_agents(world)
    replies = (asks(second), asks(first), text("I cannot ask."), text("So be it."))
    async with replica_of(world, *replies) as replica:
        await replica.send(world.request("Ask them."))
    query = "SELECT content FROM agent.messages WHERE agent_id = $1 AND role = 'tool'"
    ((refused,),) = [row["content"] for row in await world.pool.fetch(query, second)]
    assert refused["is_error"]
    assert "would never be answered" in refused["text"]
    assert len(await runs(world, first)) == 1


async def test_agents_that_write_to_each_other_for_ever_are_stopped(world: World) -> None:
    """Nobody waits, so nothing is closed; the chain of messages has an end all the same."""
    first, second = await two_agents(world)
    async with replica_of(world) as replica:

        async def pong(request: ModelRequest) -> AsyncGenerator[PartDelta | Reply]:
            told = request.history[-1]
            other = second if f"agent-{second}" in str(told.parts) or "Begin." in str(told.parts) else first
            yield text("Said.") if told.role == "tool" else asks(other, "And you?", TELL)

        replica.models.replies = [pong] * 40
        await replica.send(world.request("Begin."))
        idle = "SELECT count(*) = 0 FROM agent.runs WHERE agent_id = ANY($1) AND status IN ('created', 'running')"
        await answered(lambda: world.pool.fetchval(idle, [first, second]))
    assert len(await runs(world, first)) + len(await runs(world, second)) == 9
    query = "SELECT content FROM agent.messages WHERE agent_id = ANY($1) AND role = 'tool'"
    rows = await world.pool.fetch(query, [first, second])
    (last,) = [part for row in rows for part in row["content"] if part.get("is_error")]
    assert "goes no further" in last["text"]


async def test_all_agents_with_a_tag(world: World) -> None:
    first, second = await two_agents(world)
    third, other = await world.add_agent(), await world.add_agent()
    world.agent_id = first
    tag = f"tag-{uuid7()}"
    for agent_id in (first, second, third):
        await world.pool.execute("UPDATE agent.agents SET tags = $2 WHERE id = $1", agent_id, [tag, "colour"])
    wanted = {"message": "Your colour?", "match_all": [tag], "match_some": ["colour", "shape"]}
    asking = calls(ASK_TAGGED, arguments=json.dumps(wanted))
    async with replica_of(world, asking, text("Blue."), text("Blue."), text("All blue.")) as replica:
        events = await replica.send(world.request("Ask all."))
    replies = json.loads(returned(events).text)
    assert [each["agent_id"] for each in replies] == [f"agent-{second}", f"agent-{third}"]
    assert [each["reply"] for each in replies] == ["Blue.", "Blue."]
    assert await runs(world, other) == []


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"message": "", "other_agent_id": f"agent-{UUID(int=7)}"}, "`message` must be a text"),
        ({"message": "?", "other_agent_id": "Bob"}, "'Bob' is not a valid id"),
        ({"message": "?", "other_agent_id": f"agent-{UUID(int=7)}"}, "Agent not found"),
        ({"message": "?"}, "`other_agent_id` must be a text"),
    ],
)
async def test_what_cannot_be_sent_says_why(world: World, arguments: dict[str, str], sentence: str) -> None:
    async with replica_of(world, calls(ASK, arguments=json.dumps(arguments)), text("Well.")) as replica:
        one = returned(await replica.send(world.request("Ask.")))
    assert one.is_error
    assert sentence in one.text


async def test_no_tags_are_not_all_agents(world: World) -> None:
    empty = json.dumps({"message": "?", "match_all": [], "match_some": []})
    async with replica_of(world, calls(ASK_TAGGED, arguments=empty), text("Well.")) as replica:
        assert "at least one tag" in returned(await replica.send(world.request("Ask."))).text


async def test_a_caller_that_is_cancelled_cancels_whom_it_waits_for(world: World) -> None:
    _, second = await two_agents(world)
    thinks = asyncio.Event()

    async def think(request: ModelRequest) -> AsyncGenerator[PartDelta | Reply]:
        thinks.set()
        await asyncio.Event().wait()
        yield text("never")

    request = world.request("Ask them.")
    async with replica_of(world, asks(second), think) as replica:
        sending = asyncio.create_task(replica.send(request))
        async with asyncio.timeout(SECONDS):
            await thinks.wait()
            await replica.worker.cancel(ORGANIZATION, [(request.run_id, request.conversation_id)])
            assert end(await sending).run.status is RunStatus.CANCELLED
        cancelled = "SELECT status = 'cancelled' FROM agent.runs WHERE agent_id = $1"
        await answered(lambda: world.pool.fetchval(cancelled, second))


async def test_an_agent_that_does_not_answer_in_time(world: World) -> None:
    """It has a part of the caller's time, so the caller can say so."""
    _, second = await two_agents(world)

    async def think(request: ModelRequest) -> AsyncGenerator[PartDelta | Reply]:
        await asyncio.Event().wait()
        yield text("never")

    request: TurnRequest = world.request("Ask them.", seconds=10.0)
    async with replica_of(world, asks(second), think, text("They are slow.")) as replica:
        events = await replica.send(request)
    assert "did not reply" in returned(events).text
    assert "time limit" in returned(events).text
    assert end(events).run.status is RunStatus.COMPLETED


async def test_an_agent_that_waits_for_a_person_is_no_reply(world: World) -> None:
    first = world.agent_id
    second = await world.add_agent(tool_rules=[{"type": "requires_approval", "tool_name": TELL}])
    world.agent_id = first
    async with replica_of(world, asks(second), says(*asks(first, "?", TELL).parts), text("They wait.")) as replica:
        one = returned(await replica.send(world.request("Ask them.")))
    assert one.is_error
    assert "waits for a person" in one.text


async def test_an_older_agent_replies_by_its_call(world: World) -> None:
    first = world.agent_id
    ends = {"type": "exit_loop", "tool_name": "send_message"}
    second = await world.add_agent(agent_type="memgpt_agent", tool_rules=[ends])
    world.agent_id = first
    speaks = calls("send_message", arguments=json.dumps({"message": "It is blue."}))

    async def send(call: Call) -> str:
        return "sent"

    async with replica_of(world, asks(second), speaks, text("Blue, they say.")) as replica:
        replica.tools.actions = {"send_message": send}
        assert returned(await replica.send(world.request("Ask them."))).text == "It is blue."
