"""Stored messages: all of a tenant, one by one, with another text, and from elsewhere."""

from typing import Any

import pytest

from loci.agent.v1 import message_pb2
from loci.agent.v1 import message_service_pb2 as wire
from services.agent.resources.messages import store as stored_messages
from services.common.errors import InvalidArgument, NotFound
from services.common.ids import from_public, uuid7
from tests.integration.agent.admin_world import OTHER_ORGANIZATION, AdminWorld
from tests.page_requests import paged

SAID = message_pb2.ContentPart
_READ_FOR_VECTORS = """
WITH mark AS (
    INSERT INTO agent.vector_marks (organization_id, log_id, agent_id, embedding, seq)
    SELECT organization_id, log_id, agent_id, 'loci/hash', seq FROM agent.messages WHERE id = $1
)
INSERT INTO agent.message_vectors (
    organization_id, message_id, agent_id, log_id, seq, role, created_at, model_id, embedding)
SELECT m.organization_id, m.id, m.agent_id, m.log_id, m.seq, m.role, m.created_at, e.id, '[1,0]'
FROM agent.messages m, agent.embedding_models e WHERE m.id = $1
"""


async def _all(world: AdminWorld, **fields: Any) -> wire.ListAllMessagesResponse:
    request = wire.ListAllMessagesRequest(**paged(**fields))
    found: wire.ListAllMessagesResponse = await world.call(world.messages.ListAllMessages, request)
    return found


async def _message(world: AdminWorld, message_id: str) -> list[message_pb2.Message]:
    request = wire.GetMessageRequest(message_id=message_id)
    return list((await world.call(world.messages.GetMessage, request)).messages)


async def _update(world: AdminWorld, agent_id: str, message_id: str, **text: Any) -> list[message_pb2.Message]:
    request = wire.UpdateMessageRequest(agent_id=agent_id, message_id=message_id, **text)
    return list((await world.call(world.messages.UpdateMessage, request)).messages)


async def _capture(world: AdminWorld, agent_id: str, **fields: Any) -> list[message_pb2.Message]:
    request = wire.CaptureMessagesRequest(agent_id=agent_id, **fields)
    return list((await world.call(world.messages.CaptureMessages, request)).messages)


def _said(text: str, role: str = "USER") -> message_pb2.InputMessage:
    return message_pb2.InputMessage(
        role=message_pb2.MessageRole.Value(f"MESSAGE_ROLE_{role}"), content=[SAID(text=text)]
    )


def _user(text: str) -> message_pb2.UserMessage:
    return message_pb2.UserMessage(content=[SAID(text=text)])


@pytest.mark.parametrize("ascending", [True, False])
async def test_all_messages_of_a_tenant_page_both_ways(world: AdminWorld, ascending: bool) -> None:
    agents = [await world.create(), await world.create()]
    gone = await world.create()
    for agent in (*agents, *agents, gone):
        await world.say(agent.id)
    await world.delete(gone.id)
    stranger = await world.create(OTHER_ORGANIZATION)
    everything = [message.id for message in (await _all(world, ascending=ascending)).messages]
    # Two prompts and four turns.
    assert len(everything) == 10
    times = [(await _message(world, one))[0].date.ToNanoseconds() for one in everything]
    assert times == sorted(times, reverse=not ascending)
    seen: list[str] = []
    token, asked = "", 0
    while asked == 0 or token:
        page = await _all(world, ascending=ascending, page_size=3, page_token=token)
        seen += [message.id for message in page.messages]
        token, asked = page.next_page_token, asked + 1
    assert (seen, asked) == (everything, 4)
    turn = 1 if ascending else -1
    oldest_first = everything[::turn]
    for place, cursor in enumerate(oldest_first):
        after = await _all(world, ascending=ascending, after=cursor, page_size=2, oldest_first=True)
        assert [message.id for message in after.messages] == oldest_first[place + 1 :][::turn][:2][::turn]
        before = await _all(world, ascending=ascending, before=cursor, page_size=2)
        assert [message.id for message in before.messages] == oldest_first[:place][::turn][:2]
    with pytest.raises(NotFound, match="No message found"):
        await _all(world, after=f"message-{uuid7()}")
    assert stranger.id


async def test_a_page_is_read_by_an_index(world: AdminWorld) -> None:
    query = stored_messages._ALL % ("", "DESC", "DESC")
    places = (*stored_messages._FIRST, *stored_messages._LAST)
    async with world.pool.acquire() as connection, connection.transaction():
        await connection.execute("SET LOCAL enable_seqscan = off; SET LOCAL enable_sort = off")
        rows = await connection.fetch(f"EXPLAIN {query}", from_public("org", f"org-{uuid7()}"), *places, 10)
    plan = "\n".join(row[0] for row in rows)
    assert "messages_by_creation" in plan
    assert "Sort" not in plan


async def test_one_message_and_the_prompt_under_its_id(world: AdminWorld) -> None:
    agent = await world.create(system="You are Loci.")
    await world.say(agent.id, "I am Ada.")
    system, user, assistant = (await world.get(agent.id)).message_ids
    assert (await _message(world, user))[0].user_message.content[0].text == "I am Ada."
    assert (await _message(world, assistant))[0].assistant_message.content == "Noted."
    assert (await _message(world, system))[0].system_message.content.startswith("You are Loci.")
    with pytest.raises(NotFound, match="not found"):
        await _message(world, f"message-{uuid7()}")
    with pytest.raises(NotFound):
        await world.call(world.messages.GetMessage, wire.GetMessageRequest(message_id=user), OTHER_ORGANIZATION)


async def test_another_text_is_what_everybody_sees_from_then_on(world: AdminWorld) -> None:
    agent = await world.create(embedding="loci/hash")
    await world.say(agent.id, "I like automobiles.")
    _, user, assistant = (await world.get(agent.id)).message_ids
    (changed,) = await _update(world, agent.id, user, user_message=_user("I like heliotropes."))
    assert (changed.id, changed.user_message.content[0].text) == (user, "I like heliotropes.")
    assert (await _update(world, agent.id, assistant, assistant_message={"content": "So I hear."}))[0].id == assistant
    listed = (await world.call(world.messages.ListMessages, wire.ListMessagesRequest(agent_id=agent.id))).messages
    assert listed[0].assistant_message.content == "So I hear."
    assert listed[1].user_message.content[0].text == "I like heliotropes."

    async def found(query: str) -> set[str]:
        request = wire.SearchMessagesRequest(agent_id=agent.id, query=query, mode=wire.MESSAGE_SEARCH_MODE_TEXT)
        return {hit.message.id for hit in (await world.call(world.messages.SearchMessages, request)).hits}

    assert await found("heliotropes") == {user}
    assert await found("automobiles") == set()
    # The same text again changes nothing, another is kept beside the first.
    await _update(world, agent.id, user, user_message=_user("I like heliotropes."))
    await _update(world, agent.id, user, user_message=_user("I like tea."))
    kept = await world.pool.fetch(
        "SELECT number, content FROM agent.message_revisions WHERE message_id = $1 ORDER BY number",
        from_public("message", user),
    )
    assert [(row["number"], row["content"][0]["text"]) for row in kept] == [
        (1, "I like automobiles."),
        (2, "I like heliotropes."),
    ]
    await world.delete(agent.id)
    await world.deliver()
    assert await world.rows("message_revisions") == 0


async def test_a_vector_follows_the_text(world: AdminWorld) -> None:
    agent = await world.create(embedding="loci/hash")
    await world.say(agent.id, "I like automobiles.")
    user = (await world.get(agent.id)).message_ids[1]
    message_id = from_public("message", user)
    # As if it had been read for vectors before.
    await world.pool.execute("INSERT INTO agent.embedding_models (handle, dimensions) VALUES ('loci/hash', 2)")
    await world.pool.execute(_READ_FOR_VECTORS, message_id)
    vector = "SELECT embedding::text FROM agent.message_vectors WHERE message_id = $1"
    before = await world.pool.fetchval(vector, message_id)
    await _update(world, agent.id, user, user_message=_user("I like tea."))
    assert await world.pool.fetchval(vector, message_id) is None
    await world.deliver()
    after = await world.pool.fetchval(vector, message_id)
    assert None is not after != before
    assert await world.pool.fetchval("SELECT count(*) FROM agent.outbox WHERE kind = 'embed_message'") == 0


async def test_what_does_not_change_is_refused_and_nothing_is_written(world: AdminWorld) -> None:
    agent, other = await world.create(), await world.create()
    await world.say(agent.id)
    system, user, assistant = (await world.get(agent.id)).message_ids
    for message_id, text in (
        (system, {"system_message": {"content": "Be kind."}}),
        (user, {"assistant_message": {"content": "I am the agent."}}),
        (assistant, {"user_message": _user("I am the user.")}),
        (assistant, {"reasoning_message": {"reasoning": "Hm."}}),
        (user, {}),
        (user, {"user_message": _user("")}),
    ):
        with pytest.raises(InvalidArgument):
            await _update(world, agent.id, message_id, **text)
    with pytest.raises(NotFound, match="Message"):
        await _update(world, other.id, user, user_message=_user("Mine now."))
    with pytest.raises(NotFound, match="Agent"):
        await _update(world, f"agent-{uuid7()}", user, user_message=_user("Mine now."))
    assert await world.rows("message_revisions") == 0


async def test_an_exchange_from_elsewhere_is_stored_once(world: AdminWorld) -> None:
    agent = await world.create()
    request_id = str(uuid7())
    exchange = {"messages": [_said("What is 2 + 2?"), _said("4.", "ASSISTANT")], "request_id": request_id}
    stored = await _capture(world, agent.id, **exchange)
    assert [message.WhichOneof("message") for message in stored] == ["user_message", "assistant_message"]
    assert [message.run_id for message in stored] == ["", ""]
    assert [message.id for message in await _capture(world, agent.id, **exchange)] == [one.id for one in stored]
    assert list((await world.get(agent.id)).message_ids)[1:] == [message.id for message in stored]
    # It is a past like any other: the next turn goes on from it.
    await world.say(agent.id, "And 3 + 3?")
    assert len((await world.get(agent.id)).message_ids) == 5
    assert [one.id for one in (await _all(world, ascending=True)).messages][1:3] == [one.id for one in stored]
    for wrong in ({}, {"messages": [_said("")]}, {"messages": [_said("x")], "request_id": "seven"}):
        with pytest.raises(InvalidArgument):
            await _capture(world, agent.id, **wrong)
    with pytest.raises(NotFound, match="Agent"):
        await _capture(world, f"agent-{uuid7()}", messages=[_said("x")])
    with pytest.raises(NotFound, match="Conversation"):
        await _capture(world, agent.id, conversation_id=f"conv-{uuid7()}", messages=[_said("x")])
