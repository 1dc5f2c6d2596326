"""Checkpoints, rewinds and forks over gRPC, on the real Postgres and with the real memory service."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from loci.agent.v1 import agent_service_pb2, conversation_service_pb2, message_service_pb2
from loci.agent.v1 import checkpoint_pb2 as pb
from loci.agent.v1 import checkpoint_service_pb2 as wire
from loci.agent.v1.conversation_pb2 import Conversation
from loci.common.v1.page_pb2 import PageRequest
from services.agent.resources.checkpoints.model import CheckpointKind, CheckpointRef
from services.agent.resources.checkpoints.store import PostgresCheckpoints
from services.common.database import open_pool
from services.common.errors import Aborted, AlreadyExists, InvalidArgument, LociError, NotFound
from services.common.ids import from_public, to_public, uuid7
from services.common.statement_counter import StatementCounter
from tests.integration.agent.admin_world import ORGANIZATION, OTHER_ORGANIZATION, block
from tests.integration.agent.travel_world import TravelWorld, travel_world

NOTHING = "Nothing yet."


@pytest.fixture
async def world(urls: tuple[str, str], tmp_path: Path) -> AsyncIterator[TravelWorld]:
    """Both services, without agents."""
    async with travel_world(*urls, tmp_path) as made:
        for table in ("agents", "outbox", "messages"):
            await made.world.pool.execute(f"DELETE FROM agent.{table}")
        yield made


async def create(world: TravelWorld, *, tools: tuple[str, ...] = (), **fields: Any) -> str:
    """An agent with a block that it notes things in; its id."""
    agent = await world.world.create(
        blocks=[block("human", NOTHING)],
        tool_names=("core_memory_append", "conversation_search", *tools),
        include_base_tools=False,
        **fields,
    )
    return agent.id


async def converse(world: TravelWorld, agent_id: str, *labels: str) -> Conversation:
    """A conversation of its own, with copies of these blocks."""
    request = conversation_service_pb2.CreateConversationRequest(agent_id=agent_id, isolated_block_labels=labels)
    made: Conversation = (await world.world.call(world.world.conversations.CreateConversation, request)).conversation
    return made


async def fork(world: TravelWorld, agent_id: str, checkpoint_id: str, **fields: Any) -> Conversation:
    """A conversation out of a checkpoint."""
    request = wire.ForkConversationAtCheckpointRequest(agent_id=agent_id, checkpoint_id=checkpoint_id, **fields)
    made: Conversation = (
        await world.world.call(world.world.checkpoints.ForkConversationAtCheckpoint, request)
    ).conversation
    return made


async def compact(world: TravelWorld, agent_id: str) -> None:
    """Has the window compacted."""
    request = message_service_pb2.CompactConversationRequest(
        agent_id=agent_id, compaction_settings_json='{"mode": "all"}'
    )
    await world.world.call(world.world.messages.CompactConversation, request)


async def window(world: TravelWorld, agent_id: str) -> list[str]:
    """The messages in an agent's window."""
    return list((await world.world.get(agent_id)).message_ids)


async def reset(world: TravelWorld, agent_id: str) -> None:
    """Begins the agent's default conversation anew."""
    request = agent_service_pb2.ResetMessagesRequest(agent_id=agent_id)
    await world.world.call(world.world.agents.ResetMessages, request)


async def refused(call: Any) -> LociError:
    """The error of a call."""
    with pytest.raises(LociError) as caught:
        await call
    return caught.value


async def messages_stored(world: TravelWorld) -> int:
    """Of all agents."""
    return await world.world.rows("messages")


# Listed -----------------------------------------------------------------------------------------------------------


async def test_the_places_of_a_turn_with_tools(world: TravelWorld) -> None:
    agent_id = await create(world)
    await world.say(agent_id, "note tea and cake")
    run, second, first, begun = await world.checkpoints(agent_id)
    assert [pb.CheckpointKind.Name(each.kind).rpartition("_")[2] for each in (run, second, first, begun)] == [
        "RUN", "STEP", "STEP", "INPUT",
    ]  # fmt: skip
    assert [each.label for each in (run, second, first, begun)] == [
        "note tea and cake", "core_memory_append", "core_memory_append", "note tea and cake",
    ]  # fmt: skip
    assert run.id == run.run_id == begun.run_id == first.run_id
    assert (first.id, begun.id) == (first.step_id, begun.message_id)
    [(block_id, _)] = begun.block_versions.items()
    # The step names what it saw; what holds after it has its own edit.
    assert [each.block_versions[block_id] for each in (run, second, first, begun)] == [3, 3, 2, 1]
    assert {each.conversation_id for each in (run, second, first, begun)} == {agent_id.replace("agent-", "conv-")}


async def test_pages(world: TravelWorld) -> None:
    agent_id = await create(world)
    for said in ("one", "two", "three"):
        await world.say(agent_id, said)
    whole = await world.checkpoints(agent_id)
    assert [each.label for each in whole] == ["three", "three", "two", "two", "one", "one"]
    assert await world.checkpoints(agent_id, after=whole[1].id) == whole[2:]
    request, paged = wire.ListCheckpointsRequest(agent_id=agent_id, page=PageRequest(page_size=4)), []
    for _ in range(2):
        page = await world.world.call(world.world.checkpoints.ListCheckpoints, request)
        paged += page.checkpoints
        request.page.page_token = page.next_page_token
    assert (paged, request.page.page_token) == (whole, "")


async def test_a_run_that_goes_on_is_none(world: TravelWorld) -> None:
    agent_id = await create(world)
    world.world.peers.may_answer.clear()
    turn = asyncio.create_task(world.say(agent_id, "one"))
    while not world.world.peers.asked["Generate"]:
        await asyncio.sleep(0.01)
    assert [each.id.partition("-")[0] for each in await world.checkpoints(agent_id)] == ["message"]
    [begun] = await world.checkpoints(agent_id)
    error = await refused(world.rewind(agent_id, begun.id))
    assert (type(error), error.reason, error.metadata["run_id"]) == (Aborted, "CONVERSATION_BUSY", begun.run_id)
    error = await refused(world.fork_agent(agent_id, begun.run_id))
    assert (type(error), error.reason) == (NotFound, "CHECKPOINT_NOT_FOUND")
    world.world.peers.may_answer.set()
    await turn


async def test_what_is_not_there(world: TravelWorld) -> None:
    agent_id, other_id = await create(world), await create(world)
    await world.say(agent_id, "one")
    run_id = await world.run_of(agent_id, "one")
    await world.say(other_id, "two")
    for call, kind, reason in (
        (world.rewind(other_id, run_id), NotFound, "CHECKPOINT_NOT_FOUND"),
        (world.rewind(agent_id, to_public("step", uuid7())), NotFound, "CHECKPOINT_NOT_FOUND"),
        (world.rewind(agent_id, to_public("block", uuid7())), InvalidArgument, "INVALID_ID"),
        (world.rewind(agent_id, run_id, to_public("conv", uuid7())), NotFound, "CONVERSATION_NOT_FOUND"),
        (world.fork_agent(to_public("agent", uuid7()), run_id), NotFound, "AGENT_NOT_FOUND"),
    ):
        error = await refused(call)
        assert (type(error), error.reason) == (kind, reason)
    request = wire.RewindConversationRequest(agent_id=agent_id, checkpoint_id=run_id)
    foreign = world.world.call(world.world.checkpoints.RewindConversation, request, OTHER_ORGANIZATION)
    assert (await refused(foreign)).reason == "AGENT_NOT_FOUND"


# Rewound ----------------------------------------------------------------------------------------------------------


async def test_back_to_the_second_turn_and_forth_again(world: TravelWorld) -> None:
    agent_id = await create(world)
    for thing in ("tea", "cake", "pie"):
        await world.say(agent_id, f"note {thing}")
    before = await window(world, agent_id)
    made = await world.rewind(agent_id, await world.run_of(agent_id, "note cake"))
    assert await world.said(agent_id) == ["note tea", "note cake"]
    assert (await world.values(agent_id))["human"] == f"{NOTHING}\ntea\ncake"
    [outcome] = made.blocks
    assert (outcome.label, outcome.outcome, outcome.scope, outcome.version) == (
        "human", pb.BLOCK_OUTCOME_RESTORED, pb.BLOCK_SCOPE_AGENT, 3,
    )  # fmt: skip
    assert await world.say(agent_id, "What now?") == f"I know: {NOTHING}\ntea\ncake"
    assert await world.said(agent_id) == ["note tea", "note cake", "What now?"]
    # What was left is found by the agent's search, and can be had again.
    assert "pie" in await world.say(agent_id, "call conversation_search pie")
    back = await world.rewind(agent_id, made.left_checkpoint_id)
    assert await window(world, agent_id) == before
    assert (await world.values(agent_id))["human"] == f"{NOTHING}\ntea\ncake\npie"
    assert back.left_checkpoint_id.startswith("run-")
    request = wire.ListRewindsRequest(agent_id=agent_id)
    rewinds = (await world.world.call(world.world.checkpoints.ListRewinds, request)).rewinds
    assert list(rewinds) == [back, made]
    assert rewinds[0].created_by_id == "user-22222222-2222-4222-8222-222222222222"


async def test_back_to_a_step_and_to_an_input(world: TravelWorld) -> None:
    agent_id = await create(world)
    await world.say(agent_id, "note tea and cake")
    _, _, first, begun = await world.checkpoints(agent_id)
    await world.rewind(agent_id, first.id)
    assert (await world.values(agent_id))["human"] == f"{NOTHING}\ntea"
    assert [each.id for each in await world.checkpoints(agent_id)] == [first.id, begun.id]
    await world.rewind(agent_id, begun.id)
    assert (await world.values(agent_id))["human"] == NOTHING
    assert await world.say(agent_id, "What now?") == f"I know: {NOTHING}"
    assert await world.said(agent_id) == ["note tea and cake", "What now?"]


async def test_blocks_may_stay(world: TravelWorld) -> None:
    agent_id = await create(world)
    for thing in ("tea", "cake"):
        await world.say(agent_id, f"note {thing}")
    made = await world.rewind(agent_id, await world.run_of(agent_id, "note tea"), keep_blocks=True)
    assert [each.outcome for each in made.blocks] == [pb.BLOCK_OUTCOME_LEFT]
    assert (await world.values(agent_id))["human"] == f"{NOTHING}\ntea\ncake"
    assert await world.said(agent_id) == ["note tea"]


async def test_only_copies_of_a_conversation_that_has_some(world: TravelWorld) -> None:
    agent_id = await create(world)
    own = await converse(world, agent_id, "human")
    await world.say(agent_id, "note soup")
    for thing in ("tea", "cake"):
        await world.say(agent_id, f"note {thing}", own.id)
    made = await world.rewind(agent_id, await world.run_of(agent_id, "note tea", own.id), own.id)
    assert [(each.outcome, each.scope) for each in made.blocks] == [
        (pb.BLOCK_OUTCOME_RESTORED, pb.BLOCK_SCOPE_CONVERSATION)
    ]
    assert (await world.values(agent_id, own.id))["human"] == f"{NOTHING}\ntea"
    assert (await world.values(agent_id))["human"] == f"{NOTHING}\nsoup"
    assert await world.said(agent_id, own.id) == ["note tea"]


async def test_a_block_that_others_share_changes_for_them(world: TravelWorld) -> None:
    agent_id = await create(world)
    block_id = (await world.world.get(agent_id)).blocks[0].id
    other = await world.world.create(block_ids=[block_id], include_base_tools=False)
    for thing in ("tea", "cake"):
        await world.say(agent_id, f"note {thing}")
    made = await world.rewind(agent_id, await world.run_of(agent_id, "note tea"))
    assert [each.scope for each in made.blocks] == [pb.BLOCK_SCOPE_AGENTS]
    assert (await world.values(other.id))["human"] == f"{NOTHING}\ntea"


async def test_over_a_compaction_and_to_one(world: TravelWorld) -> None:
    agent_id = await create(world)
    for said in ("one", "two"):
        await world.say(agent_id, said)
    early = await window(world, agent_id)
    await compact(world, agent_id)
    await world.say(agent_id, "three")
    late = await window(world, agent_id)
    assert len(late) < len(early) + 2
    summary = late[1]
    await world.say(agent_id, "four")
    await compact(world, agent_id)
    await world.say(agent_id, "five")
    # The summary of then, not the newest.
    await world.rewind(agent_id, await world.run_of(agent_id, "three"))
    assert await window(world, agent_id) == late
    # Before any: all that was said.
    left = await world.rewind(agent_id, await world.run_of(agent_id, "two"))
    assert await window(world, agent_id) == early
    assert await world.say(agent_id, "What now?") == f"I know: {NOTHING}"
    await world.rewind(agent_id, left.left_checkpoint_id)
    assert (await window(world, agent_id))[1] == summary


async def test_calls_that_waited_wait_again(world: TravelWorld) -> None:
    world.world.peers.add_tool("delete")
    rules = '[{"type": "requires_approval", "tool_name": "delete"}]'
    agent_id = await create(world, tools=("delete",), tool_rules_json=rules)
    await world.say(agent_id, "one")
    await world.say(agent_id, "call delete")
    assert (await refused(world.say(agent_id, "two"))).reason == "APPROVAL_PENDING"
    waits = await world.run_of(agent_id, "call delete")
    await world.rewind(agent_id, await world.run_of(agent_id, "one"))
    assert await world.say(agent_id, "two") == f"I know: {NOTHING}"
    await world.rewind(agent_id, waits)
    assert (await refused(world.say(agent_id, "three"))).reason == "APPROVAL_PENDING"
    assert (await world.world.get(agent_id)).HasField("pending_approval")
    # So they do in a fork, but not in another agent.
    forked, own = (await world.fork_agent(agent_id, waits)).agent, await fork(world, agent_id, waits)
    assert not forked.HasField("pending_approval")
    assert await world.say(forked.id, "three") == f"I know: {NOTHING}"
    assert (await refused(world.say(agent_id, "three", own.id))).reason == "APPROVAL_PENDING"
    assert (await refused(world.say(agent_id, "three"))).reason == "APPROVAL_PENDING"


async def test_calls_that_were_answered_do_not_wait_again(world: TravelWorld) -> None:
    rules = '[{"type": "requires_approval", "tool_name": "core_memory_append"}]'
    agent_id = await create(world, tool_rules_json=rules)
    await world.say(agent_id, "note tea")
    waits = await world.run_of(agent_id, "note tea")
    await world.approve(agent_id)
    assert (await world.values(agent_id))["human"] == f"{NOTHING}\ntea"
    await world.rewind(agent_id, waits)
    assert (await world.values(agent_id))["human"] == NOTHING
    assert await world.say(agent_id, "What now?") == f"I know: {NOTHING}"
    await world.say(agent_id, "note tea")
    await world.approve(agent_id)
    assert (await world.values(agent_id))["human"] == f"{NOTHING}\ntea"
    steps = [each.label for each in await world.checkpoints(agent_id) if each.id.startswith("step-")]
    assert steps == ["core_memory_append"]


async def test_the_same_rewind_again(world: TravelWorld) -> None:
    agent_id = await create(world)
    for thing in ("tea", "cake"):
        await world.say(agent_id, f"note {thing}")
    rewind_id = to_public("rewind", uuid7())
    tea, cake = await world.run_of(agent_id, "note tea"), await world.run_of(agent_id, "note cake")
    made = await world.rewind(agent_id, tea, rewind_id=rewind_id)
    await world.say(agent_id, "note pie")
    assert await world.rewind(agent_id, tea, rewind_id=rewind_id) == made
    assert await world.said(agent_id) == ["note tea", "note pie"]
    error = await refused(world.rewind(agent_id, cake, rewind_id=rewind_id))
    assert (type(error), error.reason) == (AlreadyExists, "REWIND_ID_TAKEN")


async def test_turns_and_rewinds_at_once(world: TravelWorld) -> None:
    agent_id = await create(world)
    await world.say(agent_id, "begin")
    begin = await world.run_of(agent_id, "begin")

    made: list[pb.Rewind] = []

    async def backwards(speakers: asyncio.Task[Any]) -> None:
        while not speakers.done():
            with suppress(Aborted):
                made.append(await world.rewind(agent_id, begin))
            await asyncio.sleep(0.01)

    async def onwards(name: str) -> None:
        for number in range(8):
            await world.say(agent_id, f"note {name}{number}")
            await asyncio.sleep(0.03)

    async def all_speak() -> None:
        await asyncio.gather(*map(onwards, "ab"))

    speakers = asyncio.create_task(all_speak())
    async with asyncio.timeout(60):
        await asyncio.gather(speakers, backwards(speakers), backwards(speakers))
    assert made
    # Whoever spoke was heard after what was left of the conversation, and after nothing else.
    heard = [tuple(each) for each in world.peers.heard]
    assert all(each[0] == "begin" for each in heard)
    assert all(len(set(each)) == len(each) for each in heard)
    said, told = await world.said(agent_id), await window(world, agent_id)
    assert tuple(said) in heard or said == ["begin"]
    assert len(told) == 1 + 2 + 4 * (len(said) - 1)


# Forked -----------------------------------------------------------------------------------------------------------


async def test_a_conversation_with_blocks_as_they_were(world: TravelWorld) -> None:
    agent_id = await create(world)
    for thing in ("tea", "cake"):
        await world.say(agent_id, f"note {thing}")
    tea = await world.run_of(agent_id, "note tea")
    shared = await fork(world, agent_id, tea)
    assert list(shared.isolated_block_labels) == []
    assert await world.say(agent_id, "What now?", shared.id) == f"I know: {NOTHING}\ntea\ncake"
    new_id = to_public("conv", uuid7())
    own = await fork(world, agent_id, tea, isolate_blocks=True, new_conversation_id=new_id)
    assert (own.id, list(own.isolated_block_labels), len(own.isolated_block_ids)) == (new_id, ["human"], 1)
    assert (await fork(world, agent_id, tea, isolate_blocks=True, new_conversation_id=new_id)).id == new_id
    assert await world.say(agent_id, "note pie", own.id) == f"I know: {NOTHING}\ntea"
    assert (await world.values(agent_id, own.id))["human"] == f"{NOTHING}\ntea\npie"
    assert (await world.values(agent_id))["human"] == f"{NOTHING}\ntea\ncake"
    assert await world.said(agent_id, own.id) == ["note tea", "note pie"]
    # Back to the place of the fork: the copies are as they were made.
    await world.rewind(agent_id, tea, own.id)
    assert (await world.values(agent_id, own.id))["human"] == f"{NOTHING}\ntea"


async def test_an_agent_goes_its_own_way(world: TravelWorld) -> None:
    agent_id = await create(world, name="Ada", tags=["kept"])
    await world.store(agent_id, "The launch code is heliotrope.")
    for thing in ("tea", "cake"):
        await world.say(agent_id, f"note {thing}")
    tea = await world.run_of(agent_id, "note tea")
    new_id = to_public("agent", uuid7())
    forked = await world.fork_agent(agent_id, tea, new_agent_id=new_id)
    agent = forked.agent
    assert (agent.id, agent.name, list(agent.tags)) == (new_id, "Ada (fork)", ["kept"])
    assert [each.value for each in agent.blocks] == [f"{NOTHING}\ntea"]
    assert list(forked.copied_block_ids) == [agent.blocks[0].id]
    assert len(forked.shared_archive_ids) == 1
    assert list(forked.shared_tool_ids) == [tool.id for tool in agent.tools]
    assert await world.fork_agent(agent_id, tea, new_agent_id=new_id) == forked
    assert await world.found(new_id, "heliotrope") == ["The launch code is heliotrope."]

    assert await world.say(new_id, "note pie") == f"I know: {NOTHING}\ntea"
    assert await world.said(new_id) == ["note tea", "note pie"]
    assert await world.said(agent_id) == ["note tea", "note cake"]
    assert (await world.values(new_id))["human"] == f"{NOTHING}\ntea\npie"
    assert (await world.values(agent_id))["human"] == f"{NOTHING}\ntea\ncake"
    # Its past begins before it was made; going back there brings its own copies back.
    assert "note tea" in [each.label for each in await world.checkpoints(new_id)]
    await world.rewind(new_id, tea)
    assert (await world.values(new_id))["human"] == f"{NOTHING}\ntea"
    assert (await world.values(agent_id))["human"] == f"{NOTHING}\ntea\ncake"


async def test_an_id_that_is_taken(world: TravelWorld) -> None:
    agent_id = await create(world)
    await world.say(agent_id, "one")
    error = await refused(world.fork_agent(agent_id, await world.run_of(agent_id, "one"), new_agent_id=agent_id))
    assert (type(error), error.reason) == (AlreadyExists, "AGENT_ID_TAKEN")
    assert await world.world.rows("outbox") == 0


async def test_a_fork_remembers_when_its_source_is_gone(world: TravelWorld) -> None:
    agent_id = await create(world)
    await world.store(agent_id, "The launch code is heliotrope.")
    for thing in ("tea", "cake"):
        await world.say(agent_id, f"note {thing}")
    forked = (await world.fork_agent(agent_id, await world.run_of(agent_id, "note tea"))).agent.id
    again = (await world.fork_agent(forked, await world.run_of(forked, "note tea"))).agent.id
    shared = 4
    await world.world.delete(agent_id)
    await world.world.deliver()
    assert await messages_stored(world) == shared
    assert await world.said(forked) == ["note tea"]
    assert await world.found(forked, "heliotrope") == ["The launch code is heliotrope."]
    assert await world.say(forked, "What now?") == f"I know: {NOTHING}\ntea"
    assert "note tea" in await world.say(forked, "call conversation_search note tea")
    # Reset, it still has its past; another that has it as well is left to itself.
    await reset(world, forked)
    assert "note tea" in await world.say(forked, "call conversation_search note tea")
    await world.world.delete(forked)
    await world.world.deliver()
    assert await messages_stored(world) == shared
    assert await world.said(again) == ["note tea"]
    await world.world.delete(again)
    await world.world.deliver()
    assert await messages_stored(world) == 0


async def test_agents_that_go_at_once_leave_nothing(world: TravelWorld) -> None:
    agent_id = await create(world)
    await world.say(agent_id, "note tea")
    forked = (await world.fork_agent(agent_id, await world.run_of(agent_id, "note tea"))).agent.id
    await world.say(forked, "note pie")
    await asyncio.gather(world.world.delete(agent_id), world.world.delete(forked))
    await world.world.deliver()
    tables = ("messages", "agents", "inherited_segments", "agent_forks", "rewound_segments", "conversation_rewinds")
    assert {table: await world.world.rows(table) for table in tables} == dict.fromkeys(tables, 0)


async def test_a_fork_takes_nothing_from_its_source(world: TravelWorld) -> None:
    agent_id = await create(world)
    await world.say(agent_id, "note tea")
    forked = (await world.fork_agent(agent_id, await world.run_of(agent_id, "note tea"))).agent.id
    await reset(world, agent_id)
    await world.world.delete(forked)
    await world.world.deliver()
    assert await messages_stored(world) == 4
    assert "note tea" in await world.say(agent_id, "call conversation_search note tea")


async def test_what_a_rewind_left_goes_with_its_conversation(world: TravelWorld) -> None:
    agent_id = await create(world)
    own = await converse(world, agent_id)
    for said in ("one", "two"):
        await world.say(agent_id, said, own.id)
    forked = await fork(world, agent_id, await world.run_of(agent_id, "two", own.id), conversation_id=own.id)
    await world.rewind(agent_id, await world.run_of(agent_id, "one", own.id), own.id)
    await world.rewind(agent_id, await world.run_of(agent_id, "one", forked.id), forked.id)

    async def delete(conversation_id: str) -> None:
        request = conversation_service_pb2.DeleteConversationRequest(conversation_id=conversation_id)
        await world.world.call(world.world.conversations.DeleteConversation, request)
        await world.world.deliver()

    await delete(own.id)
    # The other one may still go forward to what it left.
    await world.rewind(agent_id, (await world.checkpoints(agent_id, forked.id))[0].id, forked.id)
    assert await messages_stored(world) == 4
    await delete(forked.id)
    assert await messages_stored(world) == 0


async def test_the_cost_does_not_grow_with_the_messages(world: TravelWorld, urls: tuple[str, str]) -> None:
    agent_id = await create(world)
    conversation_id = from_public("agent", agent_id)
    counter = StatementCounter(keep_texts=True)
    pool = await open_pool(urls[0], size=1, counter=counter)
    checkpoints = PostgresCheckpoints(pool)
    costs = []
    for most in (2, 30):
        for number in range(most):
            await world.say(agent_id, f"{most} {number}")
        ref = CheckpointRef(CheckpointKind.RUN, from_public("run", await world.run_of(agent_id, f"{most} 1")))
        rows = await messages_stored(world)
        # What a connection asks for once is no cost of this.
        await checkpoints.find(ORGANIZATION, conversation_id, ref)
        await checkpoints.list(ORGANIZATION, conversation_id, size=2)
        await asyncio.sleep(0.01)
        counter.reset()
        point = await checkpoints.find(ORGANIZATION, conversation_id, ref)
        await checkpoints.list(ORGANIZATION, conversation_id, size=2)
        await asyncio.sleep(0.01)
        costs.append(counter.statements)
        await world.fork_agent(agent_id, to_public("run", ref.id))
        assert await messages_stored(world) == rows
        assert len(point.segments) == 1
    assert costs[0] == costs[1]
    await pool.close()
