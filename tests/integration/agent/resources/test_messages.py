"""Messages, runs, steps and tokens as they are read afterwards."""

from typing import Any
from uuid import UUID

import pytest
from sqlalchemy.dialects import postgresql

from loci.agent.v1 import agent_pb2, message_pb2, run_pb2
from loci.agent.v1 import message_service_pb2 as message_wire
from loci.agent.v1 import run_service_pb2 as wire
from loci.agent.v1.conversation_service_pb2 import CreateConversationRequest, DeleteConversationRequest
from loci.common.v1.page_pb2 import PageRequest
from services.agent.core.messages import Call, Text, parts_to_json
from services.agent.core.page_tokens import MessagePage, Place
from services.agent.resources.messages.history import BEGINNING, END, between
from services.common.errors import InvalidArgument, NotFound
from services.common.ids import from_public, to_public, uuid7
from tests.integration.agent.admin_world import ORGANIZATION, AdminWorld, block
from tests.page_requests import paged


async def test_messages_with_the_system_message_first(world: AdminWorld) -> None:
    agent = await world.create(system="You are Loci.", blocks=[block("human", "Ada")])
    before = await _messages(world, agent.id)
    assert [message.id for message in before.messages] == list(agent.message_ids)
    assert before.messages[0].system_message.content.startswith("You are Loci.")
    assert "Ada" in before.messages[0].system_message.content
    assert before.messages[0].date == agent.created_at
    response = await world.say(agent.id, "I am Ada.")
    listed = await _messages(world, agent.id, ascending=True)
    assert [message.WhichOneof("message") for message in listed.messages] == [
        "system_message",
        "user_message",
        "assistant_message",
    ]
    assert listed.messages[1].user_message.content[0].text == "I am Ada."
    assert listed.messages[2].run_id == response.end.run.id
    assert [message.id for message in listed.messages] == list((await world.get(agent.id)).message_ids)
    newest = await _messages(world, agent.id)
    assert list(newest.messages) == list(listed.messages)[::-1]


async def test_the_prompt_is_compiled_only_where_it_is_shown(world: AdminWorld) -> None:
    agent = await world.create()
    await world.say(agent.id)
    world.peers.asked.clear()
    page = await _messages(world, agent.id, page_size=2)
    assert (len(page.messages), world.peers.asked["GetAgentMemory"]) == (2, 0)
    page = await _messages(world, agent.id, page_size=2, page_token=page.next_page_token)
    assert [message.WhichOneof("message") for message in page.messages] == ["system_message"]
    assert page.next_page_token == ""


@pytest.mark.parametrize("ascending", [True, False])
@pytest.mark.parametrize("size", [1, 2, 3, 4, 7, 8, 20])
async def test_pages_of_a_fork(world: AdminWorld, ascending: bool, size: int) -> None:
    """Three ranges of two logs: 1-2 of one, 2-3 of another, and from 5 on of a third."""
    agent_id, ids = await _forked(world)
    expected = ids if ascending else ids[::-1]
    seen, token, pages = [], "", 0
    while pages == 0 or token:
        page = await _messages(world, agent_id, ascending=ascending, page_size=size, page_token=token)
        seen += [message.id for message in page.messages]
        token, pages = page.next_page_token, pages + 1
    assert seen == expected
    assert pages == -(-len(ids) // size)
    turn = 1 if ascending else -1
    for place, cursor in enumerate(ids):
        # Later and earlier, whatever the order, which chooses the end of what is left.
        after = await _messages(world, agent_id, ascending=ascending, after=cursor, page_size=size)
        assert [message.id for message in after.messages] == ids[place + 1 :][::turn][:size]
        before = await _messages(world, agent_id, ascending=ascending, before=cursor, page_size=size)
        assert [message.id for message in before.messages] == ids[:place][::turn][:size]
        oldest_first = await _messages(
            world, agent_id, ascending=ascending, before=cursor, page_size=size, oldest_first=True
        )
        assert [message.id for message in oldest_first.messages] == ids[:place][::turn][:size][::turn]
    between = await _messages(world, agent_id, ascending=ascending, after=ids[1], before=ids[5])
    assert [message.id for message in between.messages] == ids[2:5][::turn]


@pytest.mark.parametrize("ascending", [True, False])
async def test_an_agents_list_has_all_of_its_conversations(world: AdminWorld, ascending: bool) -> None:
    agent = await world.create()
    gone, other = [await _conversation(world, agent.id) for _ in range(2)]
    for conversation_id in ("", other, gone, ""):
        await _say(world, agent.id, conversation_id)
    await world.call(world.conversations.DeleteConversation, DeleteConversationRequest(conversation_id=gone))
    default, own = [
        [message.id for message in (await _messages(world, agent.id, conversation_id=one, ascending=True)).messages]
        for one in (agent.id, other)
    ]
    # By when they were stored; prompts, by when their conversations began.
    ids = [default[0], own[0], *default[1:3], *own[1:], *default[3:]]
    turn = 1 if ascending else -1
    assert [message.id for message in (await _messages(world, agent.id, ascending=ascending)).messages] == ids[::turn]
    seen: list[str] = []
    token, pages = "", 0
    while pages == 0 or token:
        page = await _messages(world, agent.id, ascending=ascending, page_size=3, page_token=token)
        seen += [message.id for message in page.messages]
        token, pages = page.next_page_token, pages + 1
    assert (seen, pages) == (ids[::turn], 3)
    for place, cursor in enumerate(ids):
        after = await _messages(world, agent.id, ascending=ascending, after=cursor, page_size=2)
        assert [message.id for message in after.messages] == ids[place + 1 :][::turn][:2]
        before = await _messages(world, agent.id, ascending=ascending, before=cursor, page_size=2, oldest_first=True)
        assert [message.id for message in before.messages] == ids[:place][::turn][:2][::turn]


async def test_unknown_cursors_may_be_ignored(world: AdminWorld) -> None:
    agent = await world.create()
    await world.say(agent.id)
    everything = await _messages(world, agent.id, conversation_id=agent.id)
    unknown = to_public("message", uuid7())
    page = await _messages(
        world, agent.id, conversation_id=agent.id, after=unknown, before=unknown, ignore_unknown_cursors=True
    )
    assert page.messages == everything.messages


@pytest.mark.parametrize("ascending", [True, False])
async def test_calls_that_wait_are_a_cursor_by_the_id_they_are_shown_under(world: AdminWorld, ascending: bool) -> None:
    agent = await world.create()
    log_id = await world.pool.fetchval("SELECT log_id FROM agent.conversation_heads")
    ids = await _store(world, from_public("agent", agent.id), log_id, 1, 2, 3)
    await world.pool.execute(
        "UPDATE agent.messages SET role = 'assistant', content = $1 WHERE seq = 2",
        parts_to_json([Text("May I?"), Call("k", "c", "delete", "{}", gate="approval")]),
    )
    shown = [message.id for message in (await _messages(world, agent.id, ascending=ascending)).messages]
    for cursor in set(shown) - {ids[0], ids[2], *agent.message_ids}:
        after = await _messages(world, agent.id, ascending=ascending, after=cursor)
        assert [message.id for message in after.messages] == ids[2:]
    # What is said before the request has its id.
    assert len(set(shown)) == 4


async def test_the_window_spans_the_ranges(world: AdminWorld) -> None:
    agent_id, ids = await _forked(world)
    assert list((await world.get(agent_id)).message_ids) == ids
    await world.pool.execute("UPDATE agent.conversation_heads SET window_ordinal = 1, window_seq = 3")
    assert list((await world.get(agent_id)).message_ids) == [ids[0], *ids[4:]]


@pytest.mark.parametrize("ascending", [True, False])
async def test_a_page_in_the_middle_reads_no_more_than_it_shows(world: AdminWorld, ascending: bool) -> None:
    agent_id = from_public("agent", (await world.create()).id)
    log_id = await world.pool.fetchval("SELECT log_id FROM agent.conversation_heads")
    await _store(world, agent_id, log_id, *range(1, 5_001))
    await world.pool.execute("ANALYZE agent.messages")
    page, middle = MessagePage(10, ascending=ascending), Place(0, 2_500)
    low, high = (middle, END) if ascending else (BEGINNING, middle)
    query = between(ORGANIZATION, agent_id, low, high, page)
    sql = query.compile(dialect=postgresql.dialect(), compile_kwargs={"literal_binds": True})  # type: ignore[no-untyped-call]
    (plan,) = await world.pool.fetchval(f"EXPLAIN (ANALYZE, FORMAT JSON) {sql}")
    scan = _node(plan["Plan"], "messages")
    assert scan["Node Type"] == "Index Scan"
    assert scan["Actual Rows"] + scan.get("Rows Removed by Filter", 0) <= 11


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"agent_id": to_public("agent", uuid7())}, "AGENT_NOT_FOUND"),
        ({"conversation_id": to_public("conv", uuid7())}, "CONVERSATION_NOT_FOUND"),
        ({"after": to_public("message", uuid7())}, "MESSAGE_NOT_FOUND"),
        ({"after": "message-1"}, "INVALID_ID"),
        ({"page_size": -1}, "PAGE_SIZE_INVALID"),
        ({"page_token": "LTUuMA=="}, "PAGE_TOKEN_INVALID"),
        ({"page_token": "x" * 5_000}, "PAGE_TOKEN_INVALID"),
    ],
)
async def test_messages_that_cannot_be_listed(world: AdminWorld, fields: dict[str, Any], reason: str) -> None:
    agent = await world.create()
    with pytest.raises((NotFound, InvalidArgument)) as caught:
        await _messages(world, **{"agent_id": agent.id, **fields})
    assert caught.value.reason == reason


async def test_another_agents_conversation_is_not_listed(world: AdminWorld) -> None:
    agent, other = await world.create(), await world.create()
    with pytest.raises(NotFound) as caught:
        await _messages(world, agent.id, conversation_id=other.id.replace("agent-", "conv-"))
    assert caught.value.reason == "CONVERSATION_NOT_FOUND"
    message_id = (await world.say(other.id)).messages[0].id
    with pytest.raises(NotFound) as caught:
        await _messages(world, agent.id, after=message_id)
    assert caught.value.reason == "MESSAGE_NOT_FOUND"


async def test_a_run_and_what_came_of_it(world: AdminWorld) -> None:
    agent = await world.create()
    end = (await world.say(agent.id, "Hello")).end
    run_id = end.run.id
    run = (await world.call(world.runs.GetRun, wire.GetRunRequest(run_id=run_id))).run
    assert run == end.run
    assert (run.status, run.stop_reason) == (run_pb2.RUN_STATUS_COMPLETED, agent_pb2.STOP_REASON_END_TURN)
    said = await world.call(world.runs.ListRunMessages, wire.ListRunMessagesRequest(run_id=run_id))
    assert [message.WhichOneof("message") for message in said.messages] == ["user_message", "assistant_message"]
    (step,) = (await world.call(world.runs.ListRunSteps, wire.ListRunStepsRequest(run_id=run_id))).steps
    assert (step.number, step.status, step.attempts) == (1, run_pb2.STEP_STATUS_SUCCESS, 1)
    assert (step.prompt_tokens, step.completion_tokens, step.model_handle) == (10, 2, "loci/demo")
    assert (step.id, len(step.prompt_hash)) == (said.messages[1].step_id, 64)
    usage = (await world.call(world.runs.GetRunUsage, wire.GetRunUsageRequest(run_id=run_id))).usage
    assert usage == end.usage
    assert (usage.total_tokens, usage.step_count, usage.context_tokens) == (12, 1, 12)


async def test_a_failed_step_says_why(world: AdminWorld) -> None:
    agent = await world.create()
    world.peers.failures["Generate"] = [InvalidArgument("bad schema", reason="LLM_BAD_REQUEST")]
    run = (await world.say(agent.id)).end.run
    (step,) = (await world.call(world.runs.ListRunSteps, wire.ListRunStepsRequest(run_id=run.id))).steps
    assert (step.status, step.error_type) == (run_pb2.STEP_STATUS_FAILED, "LLM_BAD_REQUEST")
    assert "bad schema" in step.error_message
    found = await world.get(agent.id)
    assert found.last_stop_reason == agent_pb2.STOP_REASON_LLM_API_ERROR


async def test_pages_and_filters_of_runs(world: AdminWorld) -> None:
    ada, bea = await world.create(), await world.create()
    world.peers.failures["Generate"] = [InvalidArgument("bad", reason="LLM_BAD_REQUEST")]
    runs = [(await world.say(agent.id)).end.run.id for agent in (ada, ada, bea, ada)]
    assert await _runs(world) == runs[::-1]
    assert await _runs(world, ascending=True, page_size=2) == runs[:2]
    first = await world.call(world.runs.ListRuns, wire.ListRunsRequest(page=PageRequest(page_size=3)))
    rest = wire.ListRunsRequest(page=PageRequest(page_size=3, page_token=first.next_page_token))
    assert [run.id for run in (await world.call(world.runs.ListRuns, rest)).runs] == runs[:1]
    assert await _runs(world, agent_ids=[ada.id]) == [runs[3], runs[1], runs[0]]
    assert await _runs(world, agent_ids=[ada.id, bea.id], after=runs[2]) == [runs[1], runs[0]]
    assert await _runs(world, statuses=[run_pb2.RUN_STATUS_FAILED]) == [runs[0]]
    assert await _runs(world, statuses=[run_pb2.RUN_STATUS_UNSPECIFIED]) == runs[::-1]
    assert await _runs(world, stop_reason=agent_pb2.STOP_REASON_LLM_API_ERROR) == [runs[0]]
    assert await _runs(world, stop_reason=agent_pb2.STOP_REASON_TOOL_RULE) == []
    assert await _runs(world, stop_reason=99) == []  # a value of some later release
    assert await _runs(world, statuses=[99, run_pb2.RUN_STATUS_FAILED]) == [runs[0]]
    assert await _runs(world, background=True) == []
    assert await _runs(world, background=False, page_size=1) == [runs[3]]
    assert await _runs(world, conversation_id=bea.id.replace("agent-", "conv-")) == [runs[2]]


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"after": to_public("run", uuid7())}, "CURSOR_NOT_FOUND"),
        ({"agent_ids": ["Ada"]}, "INVALID_ID"),
    ],
)
async def test_runs_that_cannot_be_listed(world: AdminWorld, fields: dict[str, Any], reason: str) -> None:
    with pytest.raises((NotFound, InvalidArgument)) as caught:
        await _runs(world, **fields)
    assert caught.value.reason == reason


async def test_an_unknown_run(world: AdminWorld) -> None:
    run_id = to_public("run", uuid7())
    for rpc, request in (
        (world.runs.GetRun, wire.GetRunRequest(run_id=run_id)),
        (world.runs.ListRunMessages, wire.ListRunMessagesRequest(run_id=run_id)),
        (world.runs.ListRunSteps, wire.ListRunStepsRequest(run_id=run_id)),
        (world.runs.GetRunUsage, wire.GetRunUsageRequest(run_id=run_id)),
    ):
        with pytest.raises(NotFound) as caught:
            await world.call(rpc, request)
        assert caught.value.reason == "RUN_NOT_FOUND"


async def _messages(world: AdminWorld, agent_id: str, **fields: Any) -> message_wire.ListMessagesResponse:
    request = message_wire.ListMessagesRequest(**paged(agent_id=agent_id, **fields))
    found: message_wire.ListMessagesResponse = await world.call(world.messages.ListMessages, request)
    return found


async def _conversation(world: AdminWorld, agent_id: str) -> str:
    request = CreateConversationRequest(conversation_id=to_public("conv", uuid7()), agent_id=agent_id)
    created: str = (await world.call(world.conversations.CreateConversation, request)).conversation.id
    return created


async def _say(world: AdminWorld, agent_id: str, conversation_id: str) -> None:
    said = message_pb2.InputMessage(role=message_pb2.MESSAGE_ROLE_USER, content=[message_pb2.ContentPart(text="Hello")])
    turn = message_wire.TurnRequest(agent_id=agent_id, conversation_id=conversation_id, messages=[said])
    await world.call(world.messages.SendMessages, message_wire.SendMessagesRequest(turn=turn))


async def _runs(world: AdminWorld, **fields: Any) -> list[str]:
    response = await world.call(world.runs.ListRuns, wire.ListRunsRequest(**paged(**fields)))
    return [run.id for run in response.runs]


async def _store(world: AdminWorld, agent_id: UUID, log_id: UUID, *places: int) -> list[str]:
    """Messages at places of a log; their ids."""
    ids = [uuid7() for _ in places]
    await world.pool.executemany(
        "INSERT INTO agent.messages (organization_id, log_id, seq, id, agent_id, conversation_id, role, content)"
        " VALUES ($1, $2, $3, $4, $5, $5, 'user', $6)",
        [
            (ORGANIZATION, log_id, seq, message_id, agent_id, [{"type": "text", "text": str(seq)}])
            for seq, message_id in zip(places, ids, strict=True)
        ],
    )
    return [to_public("message", message_id) for message_id in ids]


async def _forked(world: AdminWorld) -> tuple[str, list[str]]:
    """An agent whose conversation has three ranges, and the ids of all its messages, the system message first."""
    agent = await world.create()
    agent_id = from_public("agent", agent.id)
    own = await world.pool.fetchval("SELECT log_id FROM agent.conversation_heads")
    one, two = uuid7(), uuid7()
    await world.pool.execute("DELETE FROM agent.conversation_segments")
    await world.pool.executemany(
        "INSERT INTO agent.conversation_segments VALUES ($1, $2, $3, $4, $5, $6)",
        [
            (ORGANIZATION, agent_id, 0, one, 1, 2),
            (ORGANIZATION, agent_id, 1, two, 2, 3),
            (ORGANIZATION, agent_id, 2, own, 5, None),
        ],
    )
    first = (await _store(world, agent_id, one, 1, 2, 3))[:2]
    second = (await _store(world, agent_id, two, 1, 2, 3, 4))[1:3]
    third = (await _store(world, agent_id, own, 4, 5, 6, 8))[1:]
    return agent.id, [*agent.message_ids, *first, *second, *third]


def _node(plan: Any, table: str) -> Any:
    if plan.get("Relation Name") == table:
        return plan
    return next((found for child in plan.get("Plans", ()) if (found := _node(child, table))), None)
