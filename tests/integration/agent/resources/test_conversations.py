"""Conversations over gRPC on the real Postgres: made, listed, changed, forked, deleted."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import orjson
import pytest
from google.protobuf.field_mask_pb2 import FieldMask
from google.protobuf.timestamp_pb2 import Timestamp

from loci.agent.v1 import conversation_pb2, message_pb2, message_service_pb2, run_pb2, run_service_pb2
from loci.agent.v1 import conversation_service_pb2 as wire
from loci.agent.v1.conversation_pb2 import Conversation
from loci.common.v1.page_pb2 import ORDER_ASCENDING, PageRequest
from services.agent.core.messages import Call, parts_to_json, system_message_id
from services.agent.resources.conversations.sql import FORK
from services.common.errors import Aborted, AlreadyExists, FailedPrecondition, InvalidArgument, LociError, NotFound
from services.common.ids import from_public, to_public, uuid7
from tests.integration.agent.admin_world import ORGANIZATION, OTHER_ORGANIZATION, AdminWorld, admin_world, block, empty
from tests.page_requests import paged

SHARED_TABLES = (
    "conversations",
    "conversation_heads",
    "conversation_segments",
    "runs",
    "facts",
    "steps",
    "messages",
    "compiled_prompts",
)


@pytest.fixture
async def world(agent_url: str, tmp_path: Path) -> AsyncIterator[AdminWorld]:
    """A service on an empty database."""
    await empty(agent_url, "agent.agents, agent.outbox, agent.messages, agent.compiled_prompts")
    async with admin_world(agent_url, tmp_path) as started:
        yield started


async def create(
    world: AdminWorld, agent_id: str, *, conversation_id: str = "", isolated: tuple[str, ...] = (), **fields: Any
) -> Conversation:
    """A conversation."""
    request = wire.CreateConversationRequest(
        conversation_id=conversation_id,
        agent_id=agent_id,
        conversation=conversation_pb2.Conversation(**fields),
        isolated_block_labels=isolated,
    )
    made: Conversation = (await world.call(world.conversations.CreateConversation, request)).conversation
    return made


async def get(world: AdminWorld, conversation_id: str, organization_id: UUID = ORGANIZATION) -> Conversation:
    """The conversation."""
    request = wire.GetConversationRequest(conversation_id=conversation_id)
    found: Conversation = (await world.call(world.conversations.GetConversation, request, organization_id)).conversation
    return found


async def fork(world: AdminWorld, conversation_id: str, agent_id: str = "", **fields: Any) -> Conversation:
    """A fork."""
    request = wire.ForkConversationRequest(conversation_id=conversation_id, agent_id=agent_id, **fields)
    made: Conversation = (await world.call(world.conversations.ForkConversation, request)).conversation
    return made


async def delete(world: AdminWorld, conversation_id: str) -> None:
    """Deletes it."""
    request = wire.DeleteConversationRequest(conversation_id=conversation_id)
    await world.call(world.conversations.DeleteConversation, request)


async def listed(world: AdminWorld, organization_id: UUID = ORGANIZATION, **fields: Any) -> list[str]:
    """The ids of a list."""
    request = wire.ListConversationsRequest(**paged(**fields))
    page = await world.call(world.conversations.ListConversations, request, organization_id)
    return [conversation.id for conversation in page.conversations]


async def update(world: AdminWorld, conversation_id: str, *paths: str, **fields: Any) -> Conversation:
    """The conversation after a change."""
    request = wire.UpdateConversationRequest(
        conversation_id=conversation_id,
        conversation=conversation_pb2.Conversation(**fields),
        update_mask=FieldMask(paths=paths or list(fields)),
    )
    changed: Conversation = (await world.call(world.conversations.UpdateConversation, request)).conversation
    return changed


async def said(world: AdminWorld, agent_id: str, conversation_id: str = "") -> list[str]:
    """What users said in it, oldest first."""
    request = message_service_pb2.ListMessagesRequest(
        agent_id=agent_id, conversation_id=conversation_id or agent_id, page=PageRequest(order=ORDER_ASCENDING)
    )
    page = await world.call(world.messages.ListMessages, request)
    return [one.user_message.content[0].text for one in page.messages if one.WhichOneof("message") == "user_message"]


async def refused(call: Any) -> LociError:
    """The error of a call."""
    with pytest.raises(LociError) as caught:
        await call
    return caught.value


# Made -------------------------------------------------------------------------------------------------------------


async def test_a_new_conversation(world: AdminWorld) -> None:
    agent = await world.create()
    made = await create(world, agent.id, summary="Travel", description="Where to go")
    assert made == await get(world, made.id)
    assert (made.agent_id, made.summary, made.description) == (agent.id, "Travel", "Where to go")
    assert not made.HasField("model")
    assert not made.HasField("model_settings_json")
    assert not made.HasField("context_window_limit")
    assert not made.HasField("archived_at")
    assert not made.HasField("last_message_at")
    assert made.created_by_id == made.last_updated_by_id == "user-22222222-2222-4222-8222-222222222222"
    assert list(made.in_context_message_ids) == [to_public("message", system_message_id(from_public("conv", made.id)))]


async def test_each_has_messages_of_its_own(world: AdminWorld) -> None:
    agent = await world.create()
    one, two = await create(world, agent.id), await create(world, agent.id)
    await asyncio.gather(
        world.say(agent.id, "to one", one.id), world.say(agent.id, "to two", two.id), world.say(agent.id, "to none")
    )
    assert await said(world, agent.id, one.id) == ["to one"]
    assert await said(world, agent.id, two.id) == ["to two"]
    assert await said(world, agent.id) == ["to none"]
    assert len((await get(world, one.id)).in_context_message_ids) == 3
    request = wire.GetConversationRequest(conversation_id=one.id, omit_relations=True)
    assert not (await world.call(world.conversations.GetConversation, request)).conversation.in_context_message_ids


async def test_the_same_key_is_the_same_request_in_one_conversation_and_an_otid_is_not(world: AdminWorld) -> None:
    agent = await world.create()
    made = await create(world, agent.id)
    message = message_pb2.InputMessage(otid="o-1", content=[message_pb2.ContentPart(text="Hello")])

    async def send(conversation_id: str, key: str = "") -> str:
        turn = message_service_pb2.TurnRequest(
            agent_id=agent.id,
            conversation_id=conversation_id,
            messages=[message],
            retry=message_service_pb2.Retry(idempotency_key=key),
        )
        request = message_service_pb2.SendMessagesRequest(turn=turn)
        run_id: str = (await world.call(world.messages.SendMessages, request)).end.run.id
        return run_id

    runs = [await send(place) for place in (made.id, made.id, "", (await fork(world, made.id)).id)]
    assert len(set(runs)) == 4
    assert await send(made.id, "key") == await send(made.id, "key") != await send("", "key")


async def test_a_model_of_its_own(world: AdminWorld) -> None:
    agent = await world.create()
    made = await create(world, agent.id, model="openai/large", model_settings_json='{"temperature": 0.5}')
    assert (made.model, made.model_settings_json) == ("openai/large", '{"temperature":0.5}')
    assert made.context_window_limit == 128_000
    assert (await create(world, agent.id, context_window_limit=32_000)).context_window_limit == 32_000
    for fields, reason in (
        ({"model": "openai/none"}, "MODEL_NOT_FOUND"),
        ({"context_window_limit": 32_001}, "CONVERSATION_INVALID"),
        ({"model_settings_json": "[]"}, "CONVERSATION_INVALID"),
    ):
        assert (await refused(create(world, agent.id, **fields))).reason == reason
    assert await world.rows("conversations") == 3


async def test_nothing_is_made_of_an_agent_that_is_not_there(world: AdminWorld) -> None:
    missing = to_public("agent", uuid7())
    assert (await refused(create(world, missing))).reason == "AGENT_NOT_FOUND"
    agent = await world.create()
    await world.delete(agent.id)
    assert (await refused(create(world, agent.id))).reason == "AGENT_NOT_FOUND"


async def test_making_it_again_makes_one(world: AdminWorld) -> None:
    agent, other = await world.create(blocks=[block("human")]), await world.create()
    conversation_id = to_public("conv", uuid7())
    first = await create(world, agent.id, conversation_id=conversation_id, isolated=("human",))
    assert await create(world, agent.id, conversation_id=conversation_id, isolated=("human",)) == first
    assert await create(world, agent.id, conversation_id=conversation_id) == first
    taken = await refused(create(world, other.id, conversation_id=conversation_id))
    assert (type(taken), taken.reason) == (AlreadyExists, "CONVERSATION_ID_TAKEN")
    await delete(world, conversation_id)
    taken = await refused(create(world, agent.id, conversation_id=conversation_id))
    assert taken.reason == "CONVERSATION_ID_TAKEN"


# Copies of blocks --------------------------------------------------------------------------------------------------


async def test_copies_of_blocks(world: AdminWorld) -> None:
    agent = await world.create(blocks=[block("human", "Ada"), block("persona")])
    made = await create(world, agent.id, isolated=("human",))
    assert list(made.isolated_block_labels) == ["human"]
    assert list(made.isolated_block_ids) == [world.peers.copies[made.id]["human"].id]
    assert await get(world, made.id) == made
    assert await world.rows("outbox") == 0
    missing = await refused(create(world, agent.id, isolated=("human", "mood")))
    assert (missing.reason, "mood" in missing.message) == ("BLOCK_NOT_FOUND", True)
    assert (await world.rows("outbox"), await world.rows("conversations")) == (0, 2)


async def test_copies_without_a_conversation_are_swept(world: AdminWorld) -> None:
    agent = await world.create(blocks=[block("human")])
    conversation_id = to_public("conv", uuid7())
    world.peers.failures["IsolateBlocks"] = [Aborted("lost", reason="STRANGE")]
    with pytest.raises(Aborted):
        await create(world, agent.id, conversation_id=conversation_id, isolated=("human",))
    orders = await world.pool.fetch("SELECT kind, not_before > now() + interval '50 minutes' AS late FROM agent.outbox")
    assert [tuple(order) for order in orders] == [("purge_conversation_orphan", True)]
    await world.deliver()
    assert world.peers.purged == [("copies", conversation_id)]
    assert await world.rows("outbox") == 0


async def test_a_reservation_that_comes_too_late_harms_nothing(world: AdminWorld) -> None:
    agent = await world.create(blocks=[block("human")])
    made = await create(world, agent.id, isolated=("human",))
    await world.pool.execute(
        "INSERT INTO agent.outbox (organization_id, id, kind, subject_id, payload)"
        " VALUES ($1, $2, 'purge_conversation_orphan', $3, $4)",
        ORGANIZATION,
        uuid7(),
        from_public("conv", made.id),
        {"user_id": str(ORGANIZATION), "agent_id": str(from_public("agent", agent.id))},
    )
    await world.deliver()
    assert world.peers.purged == []


# Listed ------------------------------------------------------------------------------------------------------------


async def test_lists(world: AdminWorld) -> None:
    agent, other = await world.create(), await world.create()
    made = [await create(world, agent.id, summary=f"Talk {number} of 100%") for number in range(5)]
    ids = [each.id for each in made]
    foreign = await create(world, other.id)
    assert await listed(world, agent_id=agent.id) == ids[::-1]
    assert await listed(world) == [foreign.id, *ids[::-1]]
    assert await listed(world, agent_id=agent.id, ascending=True, page_size=2) == ids[:2]
    assert await listed(world, agent_id=agent.id, after=ids[2]) == [ids[1], ids[0]]
    assert await listed(world, agent_id=agent.id, before=ids[2], page_size=1) == [ids[3]]
    assert await listed(world, summary_search="TALK 3") == [ids[3]]
    assert await listed(world, summary_search="0%", page_size=1) == [ids[4]]
    assert await listed(world, summary_search="_") == []
    assert await listed(world, OTHER_ORGANIZATION) == []
    unknown = await refused(listed(world, after=to_public("conv", uuid7())))
    assert (unknown.reason, unknown.message.startswith("The cursor conv-")) == ("CURSOR_NOT_FOUND", True)


async def test_pages(world: AdminWorld) -> None:
    agent = await world.create()
    ids = [(await create(world, agent.id)).id for _ in range(5)]
    found: list[str] = []
    request = wire.ListConversationsRequest(page=PageRequest(page_size=2))
    for size in (2, 2, 1):
        page = await world.call(world.conversations.ListConversations, request)
        assert len(page.conversations) == size
        found += [each.id for each in page.conversations]
        request.page.page_token = page.next_page_token
    assert (found, request.page.page_token) == (ids[::-1], "")


async def test_hidden_and_archived_ones(world: AdminWorld) -> None:
    agent = await world.create()
    plain, hidden, archived = [await create(world, agent.id, hidden=number == 1) for number in range(3)]
    assert (await update(world, archived.id, archived_at=Timestamp(seconds=1))).HasField("archived_at")
    assert await listed(world) == [plain.id]
    assert await listed(world, show_hidden=True) == [hidden.id, plain.id]
    assert await listed(world, archive_status=wire.ARCHIVE_STATUS_ARCHIVED) == [archived.id]
    assert await listed(world, archive_status=wire.ARCHIVE_STATUS_ALL) == [archived.id, plain.id]
    await update(world, archived.id, "archived_at")
    assert await listed(world) == [archived.id, plain.id]
    # It works like any other.
    await update(world, archived.id, archived_at=Timestamp(seconds=1))
    assert len((await world.say(agent.id, "Hello", archived.id)).messages) == 1


async def test_orders(world: AdminWorld) -> None:
    agent = await world.create()
    one, two, three = [await create(world, agent.id) for _ in range(3)]
    await world.say(agent.id, "Hello", two.id)
    await update(world, one.id, last_message_at=Timestamp(seconds=4_000_000_000))
    assert (await get(world, one.id)).last_message_at.seconds == 4_000_000_000
    by_completion = wire.CONVERSATION_ORDER_LAST_RUN_COMPLETION
    assert await listed(world, order_by=by_completion) == [two.id, three.id, one.id]
    by_message = wire.CONVERSATION_ORDER_LAST_MESSAGE_AT
    assert await listed(world, order_by=by_message) == [one.id, two.id, three.id]
    assert await listed(world, order_by=by_message, after=one.id, page_size=1) == [two.id]
    assert await listed(world, order_by=by_message, ascending=True) == [three.id, two.id, one.id]


async def test_a_turn_is_the_last_message(world: AdminWorld) -> None:
    agent = await world.create()
    made = await create(world, agent.id)
    before = datetime.now(UTC)
    await world.say(agent.id, "Hello", made.id)
    found = await get(world, made.id)
    assert abs((found.last_message_at.ToDatetime(tzinfo=UTC) - before).total_seconds()) < 10
    assert found.updated_at == made.updated_at


# Changed -----------------------------------------------------------------------------------------------------------


async def test_changes(world: AdminWorld) -> None:
    agent = await world.create()
    made = await create(world, agent.id, summary="old", description="old", model="openai/large")
    changed = await update(world, made.id, summary="new")
    assert (changed.summary, changed.description, changed.model) == ("new", "old", "openai/large")
    assert changed.updated_at.ToDatetime() > made.updated_at.ToDatetime()
    assert changed == await get(world, made.id)
    cleared = await update(world, made.id, "description", "model", "model_settings_json")
    assert (cleared.HasField("description"), cleared.HasField("model")) == (False, False)
    assert not cleared.HasField("context_window_limit")
    assert await update(world, made.id, "summary", summary="new") == await get(world, made.id)
    wrong = await refused(update(world, made.id, "agent_id"))
    assert (type(wrong), wrong.reason) == (InvalidArgument, "UPDATE_MASK_INVALID")
    assert (await refused(update(world, made.id, model="openai/none"))).reason == "MODEL_NOT_FOUND"


async def test_default_conversations_and_those_of_others_are_not_there(world: AdminWorld) -> None:
    agent = await world.create()
    made = await create(world, agent.id)
    default = to_public("conv", from_public("agent", agent.id))
    for conversation_id in (default, to_public("conv", uuid7())):
        for call in (
            get(world, conversation_id),
            update(world, conversation_id, summary="x"),
            delete(world, conversation_id),
            fork(world, conversation_id),
        ):
            assert (await refused(call)).reason == "CONVERSATION_NOT_FOUND"
    assert (await refused(get(world, made.id, OTHER_ORGANIZATION))).reason == "CONVERSATION_NOT_FOUND"
    other = await world.create()
    assert (await refused(fork(world, made.id, other.id))).reason == "CONVERSATION_NOT_FOUND"


# Forked ------------------------------------------------------------------------------------------------------------


async def test_a_fork_shares_the_history_and_goes_its_own_way(world: AdminWorld) -> None:
    agent = await world.create()
    made = await create(world, agent.id, summary="Travel", model="openai/large")
    await world.say(agent.id, "one", made.id)
    forked = await fork(world, made.id, hidden=True)
    assert (forked.summary, forked.model, forked.hidden) == ("Travel", "openai/large", True)
    assert forked.in_context_message_ids[1:] == (await get(world, made.id)).in_context_message_ids[1:]
    await asyncio.gather(world.say(agent.id, "two", made.id), world.say(agent.id, "three", forked.id))
    again = await fork(world, forked.id)
    await world.say(agent.id, "four", again.id)
    assert await said(world, agent.id, made.id) == ["one", "two"]
    assert await said(world, agent.id, forked.id) == ["one", "three"]
    assert await said(world, agent.id, again.id) == ["one", "three", "four"]
    assert await world.rows("messages") == 8


async def test_a_fork_of_the_default_conversation(world: AdminWorld) -> None:
    agent = await world.create()
    await world.say(agent.id, "one")
    forked = await fork(world, "", agent.id)
    await world.say(agent.id, "two", forked.id)
    assert (await said(world, agent.id), await said(world, agent.id, forked.id)) == (["one"], ["one", "two"])
    missing = await refused(fork(world, "", to_public("agent", uuid7())))
    assert missing.reason == "AGENT_NOT_FOUND"


async def test_a_fork_costs_the_same_after_many_messages(world: AdminWorld) -> None:
    agent = await world.create()
    made = await create(world, agent.id)
    await world.say(agent.id, "one", made.id)
    short = await _buffers(world, agent.id, made.id)
    await world.pool.execute(
        "WITH head AS (UPDATE agent.conversation_heads SET next_seq = 20003, window_seq = 19990"
        "   WHERE conversation_id = $1 RETURNING log_id)"
        " INSERT INTO agent.messages (organization_id, log_id, seq, id, agent_id, conversation_id, role, content)"
        " SELECT $2, head.log_id, n, gen_random_uuid(), $3, $1, 'user', '[]' FROM head, generate_series(3, 20002) n",
        from_public("conv", made.id),
        ORGANIZATION,
        from_public("agent", agent.id),
    )
    await world.pool.execute("VACUUM ANALYZE agent.messages")
    assert await _buffers(world, agent.id, made.id) <= short + 20
    forked = await fork(world, made.id)
    assert len(forked.in_context_message_ids) == 14


async def _buffers(world: AdminWorld, agent_id: str, conversation_id: str) -> int:
    """Rows that a fork writes and pages that it touches."""
    async with world.pool.acquire() as connection:
        transaction = connection.transaction()
        await transaction.start()
        text, *values = FORK.bind(
            organization_id=ORGANIZATION,
            reservation_id=None,
            id=uuid7(),
            agent_id=from_public("agent", agent_id),
            user_id=ORGANIZATION,
            isolated_labels=[],
            log_id=uuid7(),
            hidden=False,
            source_id=from_public("conv", conversation_id),
            last_ordinal=None,
            last_seq=None,
        )
        plan = await connection.fetchval(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {text}", *values)
        await transaction.rollback()
    root = plan[0]["Plan"]
    return int(root["Shared Hit Blocks"]) + int(root["Shared Read Blocks"])


async def test_a_fork_up_to_a_message(world: AdminWorld) -> None:
    agent = await world.create()
    made = await create(world, agent.id)
    for text in ("one", "two", "three"):
        await world.say(agent.id, text, made.id)
    ids = (await get(world, made.id)).in_context_message_ids
    # System, then question and answer in turn.
    forked = await fork(world, made.id, message_id=ids[3])
    assert await said(world, agent.id, forked.id) == ["one", "two"]
    assert list(forked.in_context_message_ids[1:]) == list(ids[1:4])
    await world.say(agent.id, "four", forked.id)
    within = await fork(world, forked.id, message_id=ids[2])
    assert await said(world, agent.id, within.id) == ["one"]
    empty = await fork(world, made.id, message_id=ids[0])
    await world.say(agent.id, "new", empty.id)
    assert await said(world, agent.id, empty.id) == ["new"]
    missing = await refused(fork(world, within.id, message_id=ids[5]))
    assert (type(missing), missing.reason) == (NotFound, "MESSAGE_NOT_FOUND")


async def test_a_fork_from_before_the_summary_sees_what_was_said_until_then(world: AdminWorld) -> None:
    agent = await world.create()
    made = await create(world, agent.id)
    for text in ("one", "two", "three"):
        await world.say(agent.id, text, made.id)
    ids = (await get(world, made.id)).in_context_message_ids
    # As if compaction had put the third answer in the place of the first two questions and answers.
    await world.pool.execute(
        "UPDATE agent.conversation_heads SET window_seq = 5, summary_id = $2 WHERE conversation_id = $1",
        from_public("conv", made.id),
        from_public("message", ids[6]),
    )
    for message_id, window, summary in ((ids[6], 5, ids[6]), (ids[5], 1, None), (ids[2], 1, None)):
        forked = await fork(world, made.id, message_id=message_id)
        head = await world.pool.fetchrow(
            "SELECT window_ordinal, window_seq, summary_id FROM agent.conversation_heads WHERE conversation_id = $1",
            from_public("conv", forked.id),
        )
        wanted = None if summary is None else from_public("message", summary)
        assert tuple(head) == (0, window, wanted)


async def test_copies_of_blocks_are_forked_as_they_are(world: AdminWorld) -> None:
    agent = await world.create(blocks=[block("human", "Ada")])
    made = await create(world, agent.id, isolated=("human",))
    world.peers.copies[made.id]["human"].value = "Ada Lovelace"
    forked = await fork(world, made.id)
    assert list(forked.isolated_block_labels) == ["human"]
    assert list(forked.isolated_block_ids) != list(made.isolated_block_ids)
    assert world.peers.copies[forked.id]["human"].value == "Ada Lovelace"
    # The agent's own blocks are those of its default conversation.
    assert not (await fork(world, "", agent.id)).isolated_block_ids


async def test_a_fork_does_not_wait_for_approval(world: AdminWorld) -> None:
    agent = await world.create()
    made = await create(world, agent.id)
    await world.say(agent.id, "one", made.id)
    await world.pool.execute(
        "UPDATE agent.conversation_heads SET pending_message_id = $1, approval_due = now()", uuid7()
    )
    forked = await fork(world, made.id)
    head = await world.pool.fetchrow(
        "SELECT pending_message_id, approval_due, active_run_id, waiting"
        " FROM agent.conversation_heads WHERE conversation_id = $1",
        from_public("conv", forked.id),
    )
    assert tuple(head) == (None, None, None, 0)


async def test_forking_again_makes_one(world: AdminWorld) -> None:
    agent = await world.create()
    made, new_id = await create(world, agent.id), to_public("conv", uuid7())
    first = await fork(world, made.id, new_conversation_id=new_id)
    assert await fork(world, made.id, new_conversation_id=new_id) == first
    assert await world.rows("conversations") == 3


# Deleted -----------------------------------------------------------------------------------------------------------


async def test_what_is_deleted_is_not_there(world: AdminWorld) -> None:
    agent = await world.create()
    made = await create(world, agent.id)
    await world.say(agent.id, "one", made.id)
    await delete(world, made.id)
    for call in (
        get(world, made.id),
        update(world, made.id, summary="x"),
        delete(world, made.id),
        fork(world, made.id),
        world.say(agent.id, "two", made.id),
        said(world, agent.id, made.id),
    ):
        assert (await refused(call)).reason == "CONVERSATION_NOT_FOUND"
    assert await listed(world) == []


async def test_nothing_of_it_is_left(world: AdminWorld) -> None:
    agent = await world.create(blocks=[block("human")])
    await world.say(agent.id, "default")
    left = {table: await world.rows(table) for table in SHARED_TABLES}
    made = await create(world, agent.id, isolated=("human",))
    await world.say(agent.id, "one", made.id)
    await delete(world, made.id)
    await world.deliver()
    assert {table: await world.rows(table) for table in SHARED_TABLES} == left
    assert world.peers.purged == [("copies", made.id)]
    assert await world.rows("outbox") == 0


async def test_a_fork_keeps_what_it_shares(world: AdminWorld) -> None:
    agent = await world.create()
    made = await create(world, agent.id)
    await world.say(agent.id, "one", made.id)
    forked = await fork(world, made.id)
    await world.say(agent.id, "two", made.id)
    await world.say(agent.id, "three", forked.id)
    await delete(world, made.id)
    await world.deliver()
    assert await said(world, agent.id, forked.id) == ["one", "three"]
    # "two" and its answer are nobody's any more.
    assert await world.rows("messages") == 4
    await delete(world, forked.id)
    await world.deliver()
    assert {table: await world.rows(table) for table in ("messages", "runs", "facts", "steps")} == dict.fromkeys(
        ("messages", "runs", "facts", "steps"), 0
    )


async def test_its_runs_end(world: AdminWorld) -> None:
    agent = await world.create()
    made = await create(world, agent.id)
    world.peers.may_answer.clear()
    turns = [asyncio.create_task(world.say(agent.id, text, made.id)) for text in ("one", "two")]
    other = asyncio.create_task(world.say(agent.id, "default"))
    while await world.rows("runs") < 3 or world.peers.asked["Generate"] < 2:
        await asyncio.sleep(0.01)
    await delete(world, made.id)
    ends = [response.end for response in await asyncio.gather(*turns)]
    assert [end.run.status for end in ends] == [run_pb2.RUN_STATUS_CANCELLED] * 2
    world.peers.may_answer.set()
    assert (await other).end.run.status == run_pb2.RUN_STATUS_COMPLETED
    await world.deliver()
    assert (await world.rows("runs"), await world.rows("conversation_line")) == (1, 0)


async def test_erasing_waits_for_a_run_to_stop(world: AdminWorld) -> None:
    agent = await world.create()
    made = await create(world, agent.id)
    run_id = from_public("run", (await world.say(agent.id, "one", made.id)).end.run.id)
    await delete(world, made.id)
    await world.pool.execute("UPDATE agent.runs SET status = 'running', worker_id = NULL WHERE id = $1", run_id)
    await world.pool.execute("UPDATE agent.outbox SET not_before = now()")
    assert await world.built.deliveries.deliver_due() == 2
    assert (await world.rows("conversations"), await world.rows("outbox"), world.peers.purged) == (2, 2, [])
    await world.pool.execute("UPDATE agent.runs SET status = 'cancelled' WHERE id = $1", run_id)
    await world.deliver()
    assert (await world.rows("conversations"), await world.rows("outbox")) == (1, 0)


async def test_they_go_with_their_agent(world: AdminWorld) -> None:
    agent = await world.create(blocks=[block("human")])
    made = await create(world, agent.id, isolated=("human",))
    await world.say(agent.id, "one", made.id)
    await fork(world, made.id)
    await world.delete(agent.id)
    assert (await refused(get(world, made.id))).reason == "CONVERSATION_NOT_FOUND"
    assert await listed(world) == []
    await world.deliver()
    assert {table: await world.rows(table) for table in SHARED_TABLES} == dict.fromkeys(SHARED_TABLES, 0)


# Cancelled, recompiled ---------------------------------------------------------------------------------------------


async def test_only_its_runs_are_cancelled(world: AdminWorld) -> None:
    agent = await world.create()
    made = await create(world, agent.id)
    world.peers.may_answer.clear()
    mine, default = [asyncio.create_task(world.say(agent.id, "Hello", each)) for each in (made.id, "")]
    while world.peers.asked["Generate"] < 2:
        await asyncio.sleep(0.01)
    request = run_service_pb2.CancelRunsRequest(agent_id=agent.id, conversation_id=made.id)
    cancelled = await world.call(world.runs.CancelRuns, request)
    assert [run.conversation_id for run in cancelled.runs] == [made.id]
    assert (await mine).end.run.status == run_pb2.RUN_STATUS_CANCELLED
    nothing = await refused(world.call(world.runs.CancelRuns, request))
    assert (type(nothing), nothing.reason) == (FailedPrecondition, "NOTHING_TO_CANCEL")
    request.conversation_id = to_public("conv", from_public("agent", agent.id))
    assert len((await world.call(world.runs.CancelRuns, request)).runs) == 1
    assert (await default).end.run.status == run_pb2.RUN_STATUS_CANCELLED


async def test_recompiling(world: AdminWorld) -> None:
    agent = await world.create(system="Be kind.")
    made = await create(world, agent.id)
    for conversation_id, agent_id, name in ((made.id, "", made.id), ("", agent.id, "default")):
        await world.say(agent.id, "one", conversation_id)
        await world.say(agent.id, "two", conversation_id)
        request = wire.RecompileConversationRequest(conversation_id=conversation_id, agent_id=agent_id, dry_run=True)
        shown = (await world.call(world.conversations.RecompileConversation, request)).prompt
        assert shown.startswith("Be kind.")
        assert f"CONVERSATION_ID: {name}" in shown
        # As it was compiled at the beginning, and so for the next turn.
        assert "- 0 previous messages" in shown
        request.dry_run = False
        anew = (await world.call(world.conversations.RecompileConversation, request)).prompt
        assert "- 4 previous messages" in anew
        head = from_public("conv", conversation_id) if conversation_id else from_public("agent", agent_id)
        versions = "SELECT prompt_versions FROM agent.conversation_heads WHERE conversation_id = $1"
        assert (await world.pool.fetchval(versions, head))["recalled"] == 4
        await world.say(agent.id, "three", conversation_id)
        assert (await world.pool.fetchval(versions, head))["recalled"] == 4
    request = wire.RecompileConversationRequest(conversation_id=to_public("conv", uuid7()))
    missing = await refused(world.call(world.conversations.RecompileConversation, request))
    assert missing.reason == "CONVERSATION_NOT_FOUND"


async def let_calls_wait(world: AdminWorld, agent_id: str, conversation_id: str, hours: int | None) -> None:
    """A message as a turn leaves it whose call waits for the client."""
    raw = from_public("agent", agent_id)
    place = from_public("conv", conversation_id) if conversation_id else raw
    parts = (Call("k1", "c1", "wipe", "{}", gate="approval"),)
    await world.pool.execute(
        """
        WITH head AS (
            UPDATE agent.conversation_heads
            SET next_seq = next_seq + 1, pending_message_id = $3, approval_due = now() + make_interval(hours => $6)
            WHERE organization_id = $1 AND conversation_id = $4 RETURNING log_id, next_seq - 1 AS seq
        )
        INSERT INTO agent.messages (organization_id, log_id, seq, id, agent_id, conversation_id, role, content)
        SELECT $1, log_id, seq, $3, $2, $4, 'assistant', $5 FROM head
        """,
        ORGANIZATION,
        raw,
        uuid7(),
        place,
        parts_to_json(parts),
        hours,
    )


async def test_what_waits_is_told_of_each_conversation(world: AdminWorld) -> None:
    agent, other = await world.create(), await world.create()
    soon, late, idle = [(await create(world, agent.id)).id for _ in range(3)]
    await let_calls_wait(world, agent.id, "", None)
    await let_calls_wait(world, agent.id, late, 2)
    await let_calls_wait(world, agent.id, soon, 1)
    await let_calls_wait(world, other.id, "", 1)
    gone = (await create(world, agent.id)).id
    await let_calls_wait(world, agent.id, gone, 1)
    await world.call(world.conversations.DeleteConversation, wire.DeleteConversationRequest(conversation_id=gone))
    request = wire.ListPendingApprovalsRequest(agent_id=agent.id)
    told = (await world.call(world.conversations.ListPendingApprovals, request)).approvals
    assert [each.conversation_id for each in told] == [soon, late, ""]
    assert [each.approval.HasField("due_at") for each in told] == [True, True, False]
    assert orjson.loads(told[0].approval.tool_calls_json) == [{"name": "wipe", "arguments": "{}", "tool_call_id": "c1"}]
    # With the agent its default conversation's is shown, and it is the same.
    assert (await world.get(agent.id)).pending_approval == told[2].approval
    strange = await world.call(world.conversations.ListPendingApprovals, request, OTHER_ORGANIZATION)
    assert list(strange.approvals) == []
    assert idle
