"""Agents moved in and out over gRPC, on the real Postgres and with the real memory service."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import grpc
import orjson
import pytest

from loci.agent.v1 import agent_pb2, message_pb2, message_service_pb2
from loci.agent.v1 import transfer_service_pb2 as wire
from loci.agent.v1.transfer_service_pb2_grpc import TransferServiceStub
from loci.common.v1.page_pb2 import ORDER_ASCENDING, PageRequest
from loci.memory.v1 import archive_service_pb2, block_pb2, block_service_pb2, passage_pb2
from loci.memory.v1.archive_service_pb2_grpc import ArchiveServiceStub
from loci.memory.v1.block_service_pb2_grpc import BlockServiceStub
from services.agent.resources.agents.model.base_tools import BASE_TOOLS
from services.common.channel import make_channel
from services.common.context import CallContext, use_context
from services.common.errors import AlreadyExists, InvalidArgument, LociError, NotFound, from_rpc
from services.common.ids import to_public, uuid7
from services.common.timestamps import timestamp
from tests.integration.agent.admin_world import AUDIENCE, ORGANIZATION, OTHER_ORGANIZATION, USER
from tests.integration.agent.travel_world import TravelWorld, travel_world

BEGUN = datetime(2025, 4, 1, 3, 47, 27, tzinfo=UTC)
ROLES = {name.removeprefix("MESSAGE_ROLE_").lower(): number for name, number in message_pb2.MessageRole.items()}


@dataclass
class Moving:
    """A travel world with stubs for what is moved."""

    world: TravelWorld
    transfers: TransferServiceStub
    blocks: BlockServiceStub
    archives: ArchiveServiceStub

    async def call(self, rpc: Any, request: Any) -> Any:
        """As a user of the tenant. Raises LociError."""
        return await self.world.world.call(rpc, request)

    async def import_agents(self, *parts: wire.ImportAgentsRequest) -> wire.ImportAgentsResponse:
        """One import."""
        made: wire.ImportAgentsResponse = await self.call(self.transfers.ImportAgents, iter(parts))
        return made

    async def begun(self, first: wire.ImportAgentsRequest) -> Any:
        """An import that waits for its client, with the first agent's things attached, secrets among them."""
        context = CallContext(ORGANIZATION, USER, "admin", AUDIENCE)
        with use_context(context, signer=self.world.world.signer):
            begin: Any = self.transfers.ImportAgents
            stream = begin(timeout=60)
            await stream.write(first)
        async with asyncio.timeout(60):
            # The last thing that is done for an agent.
            while not self.world.peers.secrets:
                await asyncio.sleep(0.01)
        return stream

    async def refused(self, *parts: wire.ImportAgentsRequest) -> LociError:
        """The error of an import, which leaves nothing behind."""
        before = await self.counted()
        with pytest.raises(LociError) as caught:
            await self.import_agents(*parts)
        assert await self.counted() == before
        return caught.value

    async def counted(self) -> tuple[int, ...]:
        """Rows of all that an import writes, here and in memory."""
        tables = ("agents", "conversations", "conversation_heads", "messages", "groups", "outbox")
        here = [await self.world.world.rows(table) for table in tables]
        there = [
            await self.world.memory_pool.fetchval(f"SELECT count(*) FROM memory.{table}")
            for table in ("blocks", "agent_blocks", "conversation_blocks", "agent_archives")
        ]
        return (*here, *there, len(self.world.peers.secrets))

    def tool(self, name: str) -> str:
        """A tool of the catalogue, by its name."""
        return next(tool_id for tool_id, tool in self.world.peers.tools.items() if tool.name == name)

    async def block(self, label: str, value: str) -> str:
        """A block that no agent has."""
        draft = block_pb2.Block(label=label, value=value)
        request = block_service_pb2.CreateBlockRequest(block=draft)
        made: str = (await self.call(self.blocks.CreateBlock, request)).block.id
        return made

    async def stored(self, agent_id: str, **fields: Any) -> list[wire.StoredMessage]:
        """What an export reads."""
        request = wire.StreamStoredMessagesRequest(agent_id=agent_id, **fields)
        context = CallContext(ORGANIZATION, USER, "admin", AUDIENCE)
        with use_context(context, signer=self.world.world.signer):
            stream: Any = self.transfers.StreamStoredMessages(request, timeout=10)
            try:
                frames = [frame async for frame in stream]
            except grpc.RpcError as error:
                raise from_rpc(error) from None
        return [message for frame in frames for message in frame.messages]


@dataclass
class Said:
    """Messages in the order of a log, one second apart."""

    conversation_id: str
    messages: list[wire.StoredMessage] = field(default_factory=list)

    def add(self, role: str, *parts: wire.StoredPart, in_context: bool = True, **fields: Any) -> "Said":
        """One more."""
        self.messages.append(
            wire.StoredMessage(
                id=to_public("message", uuid7()),
                role=ROLES[role],
                parts=parts,
                created_at=timestamp(BEGUN + timedelta(seconds=len(self.messages))),
                in_context=in_context,
                **fields,
            )
        )
        return self

    @property
    def part(self) -> wire.ImportAgentsRequest:
        """A part of an import."""
        messages = wire.ImportedMessages(conversation_id=self.conversation_id, messages=self.messages)
        return wire.ImportAgentsRequest(messages=messages)


def text(words: str) -> wire.StoredPart:
    return wire.StoredPart(text=wire.StoredText(text=words))


def call(name: str, call_id: str, gate: str = "", **arguments: Any) -> wire.StoredPart:
    made = wire.StoredCall(id=call_id, name=name, arguments=orjson.dumps(arguments).decode(), gate=gate)
    return wire.StoredPart(call=made)


def returned(call_id: str, words: str) -> wire.StoredPart:
    given = message_pb2.ToolReturn(tool_call_id=call_id, status="success", tool_return=words, name="look")
    return wire.StoredPart(tool_return=given)


def agent(agent_id: str, draft: dict[str, Any] | None = None, **fields: Any) -> wire.ImportAgentsRequest:
    settings = agent_pb2.Agent(**({"name": "Moved", "model": "loci/demo"} | (draft or {})))
    return wire.ImportAgentsRequest(agent=wire.ImportedAgent(agent_id=agent_id, agent=settings, **fields))


def new_id(prefix: str = "agent") -> str:
    return to_public(prefix, uuid7())


@pytest.fixture
async def moving(urls: tuple[str, str], tmp_path: Path) -> AsyncIterator[Moving]:
    """Both services, without agents."""
    async with travel_world(*urls, tmp_path) as world:
        for table in ("agents", "outbox", "messages", "groups"):
            await world.world.pool.execute(f"DELETE FROM agent.{table}")
        async with make_channel(world.world.address) as channel, make_channel(f"unix://{tmp_path}/memory") as memory:
            yield Moving(world, TransferServiceStub(channel), BlockServiceStub(memory), ArchiveServiceStub(memory))


# Moved in -----------------------------------------------------------------------------------------------------------


async def test_an_agent_goes_on_where_it_was(moving: Moving) -> None:
    agent_id, block_id = new_id(), await moving.block("human", "Ada likes Haskell.")
    said = Said(agent_id)
    said.add("user", text("What about the aardvark?"), in_context=False, otid="first")
    said.add("assistant", text("It digs."), in_context=False)
    said.add("user", text("Hello"), name="Ada").add("assistant", text("Hello, Ada"))
    answer = await moving.import_agents(
        agent(
            agent_id,
            {"secrets": {"TOKEN": "t"}, "tool_ids": [moving.tool("conversation_search")]},
            block_ids=[block_id],
            created_at=timestamp(BEGUN),
        ),
        said.part,
    )
    assert (list(answer.agent_ids), answer.messages) == ([agent_id], 4)
    got = await moving.world.world.get(agent_id)
    assert (got.name, got.created_at.ToDatetime(UTC), [each.id for each in got.blocks]) == ("Moved", BEGUN, [block_id])
    assert list(got.message_ids[1:]) == [message.id for message in said.messages[2:]]
    assert moving.world.peers.secrets == {agent_id: {"TOKEN": "t"}}
    assert await moving.world.said(agent_id) == ["What about the aardvark?", "Hello"]
    assert await moving.world.say(agent_id, "Who am I?") == "I know: Ada likes Haskell."
    assert moving.world.peers.heard[-1] == ["Hello", "Who am I?"]
    # What was said before is searched like anything else.
    assert "aardvark" in await moving.world.say(agent_id, "call conversation_search aardvark")
    head = await moving.world.world.pool.fetchrow("SELECT * FROM agent.conversation_heads")
    assert (head["window_seq"], head["summary_id"], head["pending_message_id"]) == (3, None, None)
    # A new place in the log for each new message.
    assert head["next_seq"] == 1 + await moving.world.world.rows("messages")


async def test_times_and_otids_are_kept(moving: Moving) -> None:
    agent_id = new_id()
    said = Said(agent_id).add("user", text("Hi"), otid="o-1").add("assistant", text("Yes?"))
    await moving.import_agents(agent(agent_id), said.part)
    request = message_service_pb2.ListMessagesRequest(agent_id=agent_id, page=PageRequest(order=ORDER_ASCENDING))
    page = await moving.call(moving.world.world.messages.ListMessages, request)
    shown = [(each.id, each.date.ToDatetime(UTC)) for each in page.messages[1:]]
    assert shown == [(each.id, each.created_at.ToDatetime(UTC)) for each in said.messages]
    assert page.messages[1].otid == "o-1"


async def test_a_summary_stands_first(moving: Moving) -> None:
    agent_id = new_id()
    said = Said(agent_id).add("user", text("old"), in_context=False)
    said.add("summary", text("They talked of tea.")).add("user", text("new")).add("assistant", text("Right."))
    await moving.import_agents(agent(agent_id), said.part)
    assert list((await moving.world.world.get(agent_id)).message_ids[1:]) == [each.id for each in said.messages[1:]]
    await moving.world.say(agent_id, "go on")
    assert any("tea" in words for words in moving.world.peers.heard[-1])


async def test_a_call_that_waits_is_answered_here(moving: Moving) -> None:
    agent_id, block_id = new_id(), await moving.block("human", "Nothing.")
    said = Said(agent_id).add("user", text("note tea"))
    said.add("assistant", call("core_memory_append", "call_1", "approval", label="human", content="tea"))
    tool_ids = [moving.tool("core_memory_append")]
    await moving.import_agents(agent(agent_id, {"tool_ids": tool_ids}, block_ids=[block_id]), said.part)
    got = await moving.world.world.get(agent_id)
    assert orjson.loads(got.pending_approval.tool_calls_json)[0]["tool_call_id"] == "call_1"
    await moving.world.approve(agent_id)
    assert await moving.world.values(agent_id) == {"human": "Nothing.\ntea"}
    assert not (await moving.world.world.get(agent_id)).HasField("pending_approval")


async def test_answered_calls_wait_no_more(moving: Moving) -> None:
    agent_id = new_id()
    said = Said(agent_id).add("user", text("look"))
    said.add("assistant", call("look", "call_1", "approval"))
    decided = message_pb2.Decision(tool_call_id="call_1", approve=True)
    said.add("approval", wire.StoredPart(decision=decided)).add("tool", returned("call_1", "seen"))
    await moving.import_agents(agent(agent_id), said.part)
    assert not (await moving.world.world.get(agent_id)).HasField("pending_approval")
    assert await moving.world.say(agent_id, "Hello") == "I know: "


async def test_agents_share_blocks_and_make_a_group(moving: Moving) -> None:
    manager_id, member_id, group_id = new_id(), new_id(), new_id("group")
    shared = await moving.block("shared", "Both of us.")
    config = {"manager_type": "supervisor", "manager_agent_id": manager_id}
    group = wire.ImportedGroup(
        group_id=group_id, description="Two", agent_ids=[member_id], manager_config_json=orjson.dumps(config).decode()
    )
    await moving.import_agents(
        agent(manager_id, block_ids=[shared]),
        agent(member_id, block_ids=[shared]),
        wire.ImportAgentsRequest(group=group),
    )
    assert await moving.world.values(manager_id) == await moving.world.values(member_id) == {"shared": "Both of us."}
    row = await moving.world.world.pool.fetchrow("SELECT * FROM agent.groups")
    assert (row["manager_type"], f"agent-{row['manager_agent_id']}") == ("supervisor", manager_id)
    member = await moving.world.world.pool.fetchrow("SELECT * FROM agent.group_agents")
    assert (f"agent-{member['agent_id']}", f"group-{member['group_id']}") == (member_id, group_id)


async def test_conversations_with_their_own_blocks(moving: Moving) -> None:
    agent_id, conversation_id = new_id(), new_id("conv")
    block_id, own = await moving.block("human", "Of all."), await moving.block("human", "Of this one.")
    conversation = wire.ImportedConversation(
        conversation_id=conversation_id, agent_id=agent_id, summary="Tea", isolated_block_ids=[own]
    )
    said = Said(conversation_id).add("user", text("Hi there"))
    await moving.import_agents(
        agent(agent_id, block_ids=[block_id]), wire.ImportAgentsRequest(conversation=conversation), said.part
    )
    assert await moving.world.values(agent_id) == {"human": "Of all."}
    assert await moving.world.values(agent_id, conversation_id) == {"human": "Of this one."}
    assert await moving.world.said(agent_id, conversation_id) == ["Hi there"]
    assert await moving.world.say(agent_id, "What?", conversation_id) == "I know: Of this one."


async def test_archives_come_along(moving: Moving) -> None:
    agent_id = new_id()
    draft = passage_pb2.Archive(name="Old notes")
    made = await moving.call(moving.archives.CreateArchive, archive_service_pb2.CreateArchiveRequest(archive=draft))
    await moving.import_agents(agent(agent_id, archive_ids=[made.archive.id]))
    await moving.world.store(agent_id, "The tea was green.")
    listed = await moving.call(moving.archives.ListArchives, archive_service_pb2.ListArchivesRequest(agent_id=agent_id))
    assert [(each.id, each.passage_count) for each in listed.archives] == [(made.archive.id, 1)]


async def test_the_prompt_of_another_server_is_shown_until_a_turn(moving: Moving) -> None:
    agent_id, conversation_id = new_id(), new_id("conv")
    conversation = wire.ImportedConversation(conversation_id=conversation_id, agent_id=agent_id, prompt="Seen there.")
    await moving.import_agents(
        agent(agent_id, {"system": "Be kind."}, prompt="Seen here."),
        wire.ImportAgentsRequest(conversation=conversation),
    )
    page = PageRequest(page_size=1, order=ORDER_ASCENDING)
    for named, text_of_it in ((agent_id, "Seen here."), (conversation_id, "Seen there.")):
        request = message_service_pb2.ListMessagesRequest(agent_id=agent_id, conversation_id=named, page=page)
        listed = await moving.call(moving.world.world.messages.ListMessages, request)
        assert listed.messages[0].system_message.content == text_of_it
        await moving.world.world.say(agent_id, conversation_id="" if named == agent_id else named)
        listed = await moving.call(moving.world.world.messages.ListMessages, request)
        assert listed.messages[0].system_message.content.startswith("Be kind.")


async def test_base_tools_come_beside_those_of_a_file(moving: Moving) -> None:
    agent_id = new_id()
    draft = {"tool_ids": [moving.tool("core_memory_append")]}
    await moving.import_agents(agent(agent_id, draft, include_base_tools=True))
    names = {tool.name for tool in (await moving.world.world.get(agent_id)).tools}
    assert names == {"core_memory_append", *BASE_TOOLS["letta_v1_agent"]}


async def test_names_and_models_are_taken_as_they_are(moving: Moving) -> None:
    agent_id = new_id()
    draft = {"name": "Café (v2): beta", "model": "gone/model", "embedding": "gone/embedding"}
    await moving.import_agents(agent(agent_id, draft | {"context_window_limit": 9_000_000}))
    got = await moving.world.world.get(agent_id)
    assert (got.name, got.model, got.embedding) == tuple(draft.values())
    assert got.context_window_limit == 9_000_000
    await moving.import_agents(agent(other := new_id(), draft))
    assert (await moving.world.world.get(other)).context_window_limit == 128_000


async def test_thousands_of_messages_in_frames(moving: Moving) -> None:
    agent_id, frames = new_id(), []
    for number in range(3):
        frames.append(Said(agent_id))
        for each in range(1_000):
            frames[-1].add("user", text(f"{number} {each}"), in_context=number == 2 and each > 990)
    answer = await moving.import_agents(agent(agent_id), *(each.part for each in frames))
    assert answer.messages == 3_000
    assert len((await moving.world.world.get(agent_id)).message_ids) == 10
    whole = await moving.stored(agent_id, whole_history=True)
    assert [each.id for each in whole] == [each.id for frame in frames for each in frame.messages]
    assert [each.in_context for each in whole].count(True) == 9


# Refused ------------------------------------------------------------------------------------------------------------


def _spoilt() -> Sequence[tuple[type[LociError], str, Any]]:
    """Wrong last parts of an import of the agent A."""

    def messages(agent_id: str, *said: wire.StoredMessage) -> wire.ImportAgentsRequest:
        return wire.ImportAgentsRequest(messages=wire.ImportedMessages(conversation_id=agent_id, messages=said))

    def one(**fields: Any) -> wire.StoredMessage:
        given: dict[str, Any] = {
            "id": new_id("message"),
            "role": ROLES["user"],
            "parts": [text("x")],
            "created_at": timestamp(BEGUN),
        }
        return wire.StoredMessage(**given | fields)

    decision = wire.StoredPart(decision=message_pb2.Decision(approve=True))
    return (
        (InvalidArgument, "IMPORT_INVALID", lambda a: wire.ImportAgentsRequest()),
        (InvalidArgument, "IMPORT_INVALID", lambda a: agent(a)),
        (InvalidArgument, "IMPORT_INVALID", lambda a: messages(new_id("conv"), one())),
        (InvalidArgument, "IMPORT_INVALID", lambda a: messages(a, one(in_context=True), one())),
        (InvalidArgument, "IMPORT_INVALID", lambda a: messages(a, *[one()] * 1_001)),
        (InvalidArgument, "MESSAGE_INVALID", lambda a: messages(a, one(role=0))),
        (InvalidArgument, "MESSAGE_INVALID", lambda a: messages(a, one(role=99))),
        (InvalidArgument, "MESSAGE_INVALID", lambda a: messages(a, one(parts=[]))),
        (InvalidArgument, "MESSAGE_INVALID", lambda a: messages(a, one(created_at=None))),
        (InvalidArgument, "MESSAGE_INVALID", lambda a: messages(a, one(parts=[call("x", "1", gate="wide open")]))),
        (InvalidArgument, "MESSAGE_INVALID", lambda a: messages(a, one(parts=[decision]))),
        (InvalidArgument, "INVALID_ID", lambda a: messages(a, one(id="message-7"))),
        (AlreadyExists, "IMPORT_EXISTS", lambda a: messages(a, *[one(id=new_id("message"))] * 2)),
        (InvalidArgument, "AGENT_INVALID", lambda a: agent(new_id(), {"timezone": "Nowhere/Atlantis"})),
        (InvalidArgument, "AGENT_INVALID", lambda a: agent(new_id(), {"metadata_json": "[]"})),
        (NotFound, "TOOL_NOT_FOUND", lambda a: agent(new_id(), {"tool_ids": [new_id("tool")]})),
        (NotFound, "IDENTITY_NOT_FOUND", lambda a: agent(new_id(), {"identity_ids": [new_id("identity")]})),
        (NotFound, "BLOCK_NOT_FOUND", lambda a: agent(new_id(), block_ids=[new_id("block")])),
        (NotFound, "ARCHIVE_NOT_FOUND", lambda a: agent(new_id(), archive_ids=[new_id("archive")])),
        (NotFound, "FOLDER_NOT_FOUND", lambda a: agent(new_id(), folder_ids=[new_id("source")])),
        (
            InvalidArgument,
            "IMPORT_INVALID",
            lambda a: wire.ImportAgentsRequest(
                conversation=wire.ImportedConversation(conversation_id=new_id("conv"), agent_id=new_id())
            ),
        ),
        (
            InvalidArgument,
            "IMPORT_INVALID",
            lambda a: wire.ImportAgentsRequest(
                group=wire.ImportedGroup(group_id=new_id("group"), agent_ids=[new_id()])
            ),
        ),
        (
            InvalidArgument,
            "IMPORT_INVALID",
            lambda a: wire.ImportAgentsRequest(
                group=wire.ImportedGroup(
                    group_id=new_id("group"), agent_ids=[a], manager_config_json='{"manager_type": "boss"}'
                )
            ),
        ),
    )


async def test_whatever_is_wrong_leaves_nothing_behind(moving: Moving) -> None:
    block_id = await moving.block("human", "Ada")
    for kind, reason, spoil in _spoilt():
        agent_id = new_id()
        said = Said(agent_id).add("user", text("Hi"), in_context=False)
        begun = agent(agent_id, {"secrets": {"TOKEN": "t"}}, block_ids=[block_id])
        error = await moving.refused(begun, said.part, spoil(agent_id))
        assert (type(error), error.reason) == (kind, reason), error
    # The block is free for the next one.
    await moving.import_agents(agent(agent_id := new_id(), block_ids=[block_id]))
    assert await moving.world.values(agent_id) == {"human": "Ada"}


async def test_a_caller_that_goes_away_leaves_nothing_behind(moving: Moving) -> None:
    agent_id, block_id = new_id(), await moving.block("human", "Ada")
    before = await moving.counted()
    stream = await moving.begun(agent(agent_id, {"secrets": {"TOKEN": "t"}}, block_ids=[block_id]))
    await stream.write(Said(agent_id).add("user", text("Hi")).part)
    assert await moving.counted() != before
    stream.cancel()
    async with asyncio.timeout(60):
        while await moving.counted() != before:
            await asyncio.sleep(0.01)
    with pytest.raises(NotFound):
        await moving.world.world.get(agent_id)
    # The id and the block are free.
    await moving.import_agents(agent(agent_id, block_ids=[block_id]))
    assert await moving.world.values(agent_id) == {"human": "Ada"}


SECRET: dict[str, Any] = {"secrets": {"TOKEN": "t"}}


async def test_no_transaction_waits_for_the_client(moving: Moving) -> None:
    stream = await moving.begun(agent(new_id(), SECRET))
    pool = moving.world.world.pool
    open_ones = """SELECT count(*) FROM pg_stat_activity
        WHERE datname = current_database() AND state LIKE 'idle in transaction%'"""
    assert await pool.fetchval(open_ones) == 0
    await stream.done_writing()
    assert len((await stream).agent_ids) == 1


async def test_of_two_imports_of_an_agent_the_second_waits(moving: Moving) -> None:
    agent_id, block_id = new_id(), await moving.block("human", "Ada")
    first = await moving.begun(agent(agent_id, SECRET, block_ids=[block_id]))
    other = await moving.block("human", "Bob")
    second = asyncio.create_task(moving.import_agents(agent(agent_id, block_ids=[other])))
    done, _ = await asyncio.wait([second], timeout=0.2)
    assert not done
    await first.done_writing()
    await first
    with pytest.raises(AlreadyExists):
        await second
    assert await moving.world.values(agent_id) == {"human": "Ada"}


OF_ANOTHER = 'UPDATE agent.outbox SET payload = payload || \'{"import_id": "x"}\', not_before = now() + $1'


async def test_an_import_that_lost_its_claim_stores_nothing(moving: Moving) -> None:
    agent_id = new_id()
    stream = await moving.begun(agent(agent_id, SECRET))
    await moving.world.world.pool.execute(OF_ANOTHER, timedelta(minutes=60))
    await stream.done_writing()
    with pytest.raises(grpc.RpcError) as caught:
        await stream
    assert from_rpc(caught.value).reason == "IMPORT_EXISTS"
    with pytest.raises(NotFound):
        await moving.world.world.get(agent_id)
    # What the other one attaches is not taken from it.
    assert moving.world.peers.secrets


async def test_what_a_dead_import_left_is_whoever_s_comes_next(moving: Moving) -> None:
    agent_id = new_id()
    stream = await moving.begun(agent(agent_id, SECRET))
    await moving.world.world.pool.execute(OF_ANOTHER, timedelta(minutes=58))
    await moving.import_agents(agent(agent_id, {"name": "Second"}))
    await stream.done_writing()
    with pytest.raises(grpc.RpcError):
        await stream
    assert (await moving.world.world.get(agent_id)).name == "Second"


async def test_nothing_is_no_import(moving: Moving) -> None:
    assert (await moving.refused()).reason == "IMPORT_INVALID"


async def test_an_agent_that_is_there_stays_as_it_is(moving: Moving) -> None:
    agent_id = new_id()
    await moving.import_agents(agent(agent_id), Said(agent_id).add("user", text("Hi")).part)
    block_id = await moving.block("human", "Not its own.")
    error = await moving.refused(agent(agent_id, {"name": "Other"}, block_ids=[block_id]))
    assert (error.reason, error.metadata["entity"]) == ("IMPORT_EXISTS", agent_id)
    assert (await moving.world.world.get(agent_id)).name == "Moved"
    found = await moving.call(
        moving.transfers.BatchFindAgents, wire.BatchFindAgentsRequest(agent_ids=[new_id(), agent_id])
    )
    assert list(found.agent_ids) == [agent_id]
    elsewhere = await moving.world.world.call(
        moving.transfers.BatchFindAgents, wire.BatchFindAgentsRequest(agent_ids=[agent_id]), OTHER_ORGANIZATION
    )
    assert not elsewhere.agent_ids


# Moved out ----------------------------------------------------------------------------------------------------------


async def test_what_goes_out_goes_in_again(moving: Moving) -> None:
    picture = message_pb2.ImageContent(data_base64="iVBORw==", media_type="image/png")
    thought = wire.StoredReasoning(text="Hm.", signature="proof")
    seen = message_pb2.ToolReturn(
        tool_call_id="c", status="error", tool_return="No", name="look", stdout=["a"], stderr=["b"],
        content=[message_pb2.ContentPart(image=picture)],
    )  # fmt: skip
    first = new_id()
    said = Said(first).add("user", text("long ago"), in_context=False, sender_id=new_id())
    said.add("user", text("Look"), wire.StoredPart(image=picture), name="Ada")
    said.add(
        "assistant",
        wire.StoredPart(reasoning=thought),
        wire.StoredPart(redacted_reasoning="opaque"),
        wire.StoredPart(text=wire.StoredText(text="Well", signature="signed")),
        call("look", "c", "client", at="it"),
    )
    said.add("approval", wire.StoredPart(tool_return=seen)).add("tool", wire.StoredPart(tool_return=seen))
    await moving.import_agents(agent(first), said.part)
    whole = await moving.stored(first, whole_history=True)
    assert whole == said.messages
    assert await moving.stored(first) == said.messages[1:]
    with pytest.raises(NotFound, match="not found"):
        await moving.stored(new_id())
    with pytest.raises(NotFound, match="not found"):
        await moving.stored(first, conversation_id=new_id("conv"))
