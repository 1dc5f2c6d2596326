"""What was said beside a message that was found: it counts in a hybrid search, and an answer can bring it along."""

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from loci.agent.v1 import conversation_service_pb2
from loci.agent.v1 import message_service_pb2 as wire
from services.common.errors import InvalidArgument
from tests.integration.agent.admin_world import AdminWorld, admin_world, empty

SAID = ("We got a parrot!", "It has a name already.", "Biscuit.", "The weather is bad.")


@pytest.fixture
async def service(agent_url: str, tmp_path: Path) -> AsyncIterator[AdminWorld]:
    """The service with no messages."""
    await empty(agent_url, "agent.messages, agent.vector_marks")
    async with admin_world(agent_url, tmp_path) as made:
        yield made


async def search(service: AdminWorld, agent_id: str, query: str, **fields: Any) -> list[wire.MessageHit]:
    """Among what the user said."""
    request = wire.SearchMessagesRequest(**{"agent_id": agent_id, "query": query, "roles": ["user"], **fields})
    return list((await service.call(service.messages.SearchMessages, request)).hits)


def texts(hits: list[wire.MessageHit]) -> list[str]:
    return [hit.message.user_message.content[0].text for hit in hits]


async def test_what_was_said_next_counts(service: AdminWorld) -> None:
    agent = await service.create()
    for said in SAID:
        await service.say(agent.id, said)
    assert texts(await search(service, agent.id, "parrot")) == list(SAID[:3])
    assert texts(await search(service, agent.id, "parrot", mode=wire.MESSAGE_SEARCH_MODE_TEXT)) == [SAID[0]]
    # Another conversation is another occasion.
    made = conversation_service_pb2.CreateConversationRequest(agent_id=agent.id)
    conversation = (await service.call(service.conversations.CreateConversation, made)).conversation
    await service.say(agent.id, "Elsewhere.", conversation.id)
    assert texts(await search(service, agent.id, "weather")) == [SAID[3], SAID[2], SAID[1]]


async def test_another_day_is_another_occasion(service: AdminWorld) -> None:
    agent = await service.create()
    for said in SAID[:2]:
        await service.say(agent.id, said)
    await service.pool.execute(
        "UPDATE agent.messages SET created_at = created_at - $1::interval WHERE content::text LIKE '%parrot%'",
        timedelta(days=1),
    )
    assert texts(await search(service, agent.id, "parrot")) == [SAID[0]]


async def test_what_was_said_at_the_time_that_a_question_names_comes_first(service: AdminWorld) -> None:
    agent = await service.create()
    for number in range(6):
        await service.say(agent.id, f"I cooked dish{number}.")
    await service.pool.execute(
        "UPDATE agent.messages SET created_at = '2023-01-12'::timestamptz + (seq / 2) * interval '1 month'"
    )
    hits = await search(service, agent.id, "What did I cook in May 2023?")
    assert hits[0].message.date.ToDatetime().month == 5
    assert len(hits) == 6


async def test_what_was_said_after_the_event_that_a_question_names_comes_first(service: AdminWorld) -> None:
    agent = await service.create()
    for said in (*(f"I cooked dish{number}." for number in range(3)), "The trip to Rome was lovely!", "I cooked rice."):
        await service.say(agent.id, said)
    await service.pool.execute(
        "UPDATE agent.messages SET created_at = '2023-01-12'::timestamptz + (seq / 2) * interval '1 month'"
    )
    assert texts(await search(service, agent.id, "What did I cook after the trip to Rome?"))[0] == "I cooked rice."


async def test_a_hit_brings_its_neighbours_along(service: AdminWorld) -> None:
    agent = await service.create()
    for said in SAID:
        await service.say(agent.id, said)
    mode = wire.MESSAGE_SEARCH_MODE_TEXT
    (hit,) = await search(service, agent.id, "biscuit", mode=mode, context=1)
    sides = [[one.user_message.content[0].text for one in side] for side in (hit.before, hit.after)]
    assert sides == [[SAID[1]], [SAID[3]]]
    # Of all roles, the model's answers stand between.
    (hit,) = await search(service, agent.id, "biscuit", mode=mode, context=1, roles=["user", "assistant"])
    assert [one.WhichOneof("message") for one in (*hit.before, *hit.after)] == ["assistant_message"] * 2
    (newest,) = await search(service, agent.id, "", limit=1, context=10)
    assert [one.user_message.content[0].text for one in newest.before] == list(SAID[:3])
    for wrong in (-1, 11):
        with pytest.raises(InvalidArgument) as refused:
            await search(service, agent.id, "x", context=wrong)
        assert "context is 0 to 10" in refused.value.message
