"""Rounds in which a member's call waits for the client: the round waits with it, and the answer goes on with both."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from services.agent.core.events import Event, MessagePiece
from services.agent.core.facts import StopReason
from services.agent.core.groups.plan import Kind
from services.agent.core.messages import Call, Decision, Message, Return
from services.agent.core.ports import ModelRequest, PartDelta, Reply
from services.agent.core.ports_journal import TurnRequest
from services.common.errors import Aborted
from services.common.ids import uuid7
from tests.integration.agent.turns.test_groups import Group, chooses, spoken
from tests.integration.agent.world import ORGANIZATION, SECONDS, Replica, World, calls, end, text

APPROVED = Decision("call_0", approve=True)


async def group_of(world: World, kind: Kind, *names: str, waits: str) -> Group:
    """A group in which the calls of one wait for a person."""
    group = await Group(world, kind).made(*names)
    (agent,) = [each for each in group.agents if each.name == waits]
    rules = [{"type": "requires_approval", "tool_name": "roll"}]
    await world.pool.execute("UPDATE agent.agents SET tool_rules = $2 WHERE id = $1", agent.id, rules)
    return group


def rolling(replica: Replica, *replies: object) -> list[str]:
    """Its agents have a tool; the keys of the calls that were made."""
    rolled: list[str] = []

    async def roll(call: Call) -> str:
        rolled.append(call.key)
        return "six"

    replica.tools.actions, replica.models.replies = {"roll": roll}, [*replies]
    return rolled


async def answer(group: Group, decision: Decision = APPROVED) -> TurnRequest:
    """An answer to the call that waits, in the group."""
    request = await group.request()
    message = Message(uuid7(), "approval", (decision,), datetime.now(UTC), request.run_id)
    return replace(request, messages=(message,))


def waiting(events: Sequence[Event]) -> list[tuple[str | None, str]]:
    """Who waits for a person, and with which tool."""
    pieces = [each for each in events if isinstance(each, MessagePiece)]
    return [
        (each.message.name, part.name) for each in pieces for part in each.parts if isinstance(part, Call) and part.gate
    ]


def stops(events: list[Event]) -> StopReason | None:
    return end(events).run.stop_reason


async def test_a_round_waits_with_its_member_and_goes_on_with_the_answer(world: World) -> None:
    group = await group_of(world, "round_robin", "Ada", "Bob", "Eve", waits="Bob")
    async with world.replica() as replica:
        rolled = rolling(replica, text("A"), calls("roll"), text("It is six."), text("E"))
        first = await replica.send(await group.request())
        assert (spoken(first)[0], waiting(first), stops(first)) == (
            ("Ada", "A"),
            [("Bob", "roll")],
            StopReason.REQUIRES_APPROVAL,
        )
        assert (rolled, await group.runs("Eve")) == ([], [])
        second = await replica.send(await answer(group))
    assert spoken(second) == [("Bob", "It is six."), ("Eve", "E")]
    assert (stops(second), end(second).steps, len(rolled)) == (StopReason.END_TURN, 2, 1)
    assert [len(await group.runs(name)) for name in ("Ada", "Bob", "Eve")] == [1, 2, 1]
    assert (await group.told("Eve"))[0] == "[user] Hello.\n\n[Ada] A\n\n[Bob] It is six."


async def test_what_is_denied_is_told_to_the_member(world: World) -> None:
    group = await group_of(world, "round_robin", "Ada", "Bob", waits="Bob")
    async with world.replica() as replica:
        rolled = rolling(replica, text("A"), calls("roll"), text("Then not."))
        await replica.send(await group.request())
        events = await replica.send(await answer(group, Decision("call_0", reason="Too loud.")))
    assert (spoken(events), rolled) == ([("Bob", "Then not.")], [])
    (refused,) = [part for part in replica.models.requests[-1].history[-1].parts if isinstance(part, Return)]
    assert "Too loud." in refused.text


@pytest.mark.parametrize(
    ("kind", "names", "before", "after", "said"),
    [
        ("supervisor", ("Bob", "Ada"), [], [text("Six.")], [("Bob", "Six.")]),
        (
            "dynamic",
            ("Boss", "Ada", "Bob"),
            [chooses("Bob")],
            [text("Six."), text("DONE!")],
            [("Bob", "Six."), ("Boss", "DONE!")],
        ),
        ("swarm", ("Ada", "Bob"), [chooses("Bob", "hand_over")], [text("Six.")], [("Bob", "Six.")]),
    ],
)
async def test_every_kind_of_group_goes_on_where_it_was(
    world: World,
    kind: Kind,
    names: tuple[str, ...],
    before: list[Reply],
    after: list[Reply],
    said: list[tuple[str, str]],
) -> None:
    group = await group_of(world, kind, *names, waits="Bob")
    async with world.replica() as replica:
        rolling(replica, *before, calls("roll"), *after)
        assert waiting(await replica.send(await group.request())) == [("Bob", "roll")]
        assert spoken(await replica.send(await answer(group))) == said
        if kind == "swarm":
            replica.models.replies = [text("Still Bob.")]
            assert spoken(await replica.send(await group.request("And?"))) == [("Bob", "Still Bob.")]


async def test_nothing_else_is_said_while_a_call_waits(world: World) -> None:
    group = await group_of(world, "round_robin", "Bob", "Eve", waits="Bob")
    async with world.replica() as replica:
        rolling(replica, calls("roll"))
        await replica.send(await group.request())
        with pytest.raises(Aborted, match="waiting for approval"):
            await replica.send(await group.request("And?"))


async def test_waiting_is_given_up_in_the_group_and_by_its_member(world: World) -> None:
    group = await group_of(world, "round_robin", "Bob", "Eve", waits="Bob")
    request = await group.request()
    async with world.replica() as replica:
        rolled = rolling(replica, calls("roll"), text("Well."), text("E"))
        await replica.send(request)
        assert await replica.worker.cancel(ORGANIZATION, [(request.run_id, request.conversation_id)])
        events = await replica.send(await group.request("And?"))
    assert (spoken(events), rolled) == ([("Bob", "Well."), ("Eve", "E")], [])


async def test_a_member_that_waits_again_keeps_the_round_waiting(world: World) -> None:
    group = await group_of(world, "round_robin", "Bob", "Eve", waits="Bob")
    async with world.replica() as replica:
        rolled = rolling(replica, calls("roll"), calls("roll"), text("Twelve."), text("E"))
        await replica.send(await group.request())
        second = await replica.send(await answer(group))
        assert (waiting(second), stops(second)) == ([("Bob", "roll")], StopReason.REQUIRES_APPROVAL)
        third = await replica.send(await answer(group))
    assert (spoken(third), len(rolled)) == ([("Bob", "Twelve."), ("Eve", "E")], 2)


async def test_an_answer_that_the_member_has_already_is_no_second_one(world: World) -> None:
    """Somebody answers in the member's own conversation; the round goes on when it is answered, too."""
    group = await group_of(world, "round_robin", "Bob", "Eve", waits="Bob")
    bob = group.agents[0]
    async with world.replica() as replica:
        rolled = rolling(replica, calls("roll"), text("Six."), text("As I said, six."), text("E"))
        await replica.send(await group.request())
        own = replace(await answer(group), agent_id=bob.id, conversation_id=bob.id)
        await replica.send(replace(own, options=replace(own.options, group=None)))
        events = await replica.send(await answer(group))
    assert (spoken(events), len(rolled)) == ([("Bob", "As I said, six."), ("Eve", "E")], 1)


async def test_the_next_owner_goes_on_with_the_answer(world: World) -> None:
    group = await group_of(world, "round_robin", "Ada", "Bob", "Eve", waits="Bob")
    thinks = asyncio.Event()

    async def think(request: ModelRequest) -> AsyncGenerator[PartDelta | Reply]:
        thinks.set()
        await asyncio.Event().wait()
        yield text("never")

    async with world.replica() as victim:
        rolled = rolling(victim, text("A"), calls("roll"), think)
        await victim.send(await group.request())
        request = await answer(group)
        sending = asyncio.create_task(victim.send(request))
        async with asyncio.timeout(SECONDS):
            await thinks.wait()
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)
        await victim.die()
        async with world.replica(replies=[text("It is six."), text("E")]) as heir:
            events = await heir.send(request)
    assert (spoken(events), len(rolled)) == ([("Bob", "It is six."), ("Eve", "E")], 1)
    assert [len(await group.runs(name)) for name in ("Ada", "Bob", "Eve")] == [1, 2, 1]
