"""Compaction on the real journal: what is left of the window, what is stored, and that it cannot fail."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from uuid import UUID

import orjson
import pytest

from services.agent.core.events import Compacting, Event, MessagePiece
from services.agent.core.facts import Options, RunStatus, Settings, StopReason, Usage
from services.agent.core.messages import Call, Return, Text
from services.agent.core.ports import CallSite, ModelRequest, Reply
from services.agent.core.ports_journal import TurnRequest
from services.agent.core.summaries.summary import summary_of, unpack
from services.agent.core.turn import MOST_MESSAGES
from services.agent.core.window.sizes import estimate
from services.agent.resources.learned_windows.store import PostgresLearnedWindows
from services.common.errors import OutOfRange, Unavailable
from services.common.ids import uuid7
from tests.integration.agent.world import ORGANIZATION, SECONDS, World, calls, end, recall_on, text, world_on
from tests.polling import until

OVERFLOW = OutOfRange("too long", reason="LLM_CONTEXT_OVERFLOW", metadata={"limit": "16000", "requested": "20000"})
WINDOW = 32_000


@pytest.fixture
async def world(agent_url: str) -> AsyncIterator[World]:
    """A world with an agent of its own."""
    async with world_on(agent_url) as world:
        yield world


def full(reply: str = "Noted.") -> Reply:
    """A reply after which the provider counts the window as full."""
    return Reply((Text(reply),), Usage(int(WINDOW * 0.95), 10), "stop")


def summaries(events: list[Event]) -> list[str]:
    return [
        summary_of(event.message)
        for event in events
        if isinstance(event, MessagePiece) and event.message.role == "summary"
    ]


def compaction(world: World, **settings: object) -> TurnRequest:
    """A request for a compaction."""
    asked = world.request()
    return TurnRequest(
        ORGANIZATION, ORGANIZATION, asked.agent_id, asked.conversation_id, uuid7(), (), 60.0, Options(compact=settings)
    )


async def talk(replica: object, world: World, count: int, *, words: int = 1_000) -> None:
    for number in range(count):
        await replica.send(world.request(f"message {number} " + "word " * words))  # type: ignore[attr-defined]


def texts(request: ModelRequest) -> list[str]:
    return [part.text for message in request.history for part in message.parts if isinstance(part, Text)]


async def test_a_full_window_is_compacted_after_the_step(world: World) -> None:
    async with world.replica() as replica:
        await talk(replica, world, 10)
        replica.models.replies, replica.models.summaries = [full()], [text("They counted to ten.")]
        events = await replica.send(world.request("the last straw"))
        assert end(events).run.status is RunStatus.COMPLETED
        assert summaries(events) == ["They counted to ten."]
        assert [event.trigger.value for event in events if isinstance(event, Compacting)] == ["post_step_context_check"]
        await replica.send(world.request("and now?"))
        asked = replica.models.requests[-1]
    assert asked.history[0].role == "summary"
    assert unpack(texts(asked)[0]) is not None
    assert "message 0" not in " ".join(texts(asked)[1:])
    assert texts(asked)[-1] == "and now?"
    # Nothing is lost: it is stored, and found.
    stored = await world.history()
    assert sum(role == "user" for role, _ in stored) == 12


async def test_what_a_request_wants_of_its_answer_is_not_wanted_of_the_summary(world: World) -> None:
    async with world.replica() as replica:
        await talk(replica, world, 10)
        replica.models.replies = [full()]
        straw = world.request("the last straw")
        wanted = Options(stop=("END",), response_format={"type": "json_object"})
        await replica.send(replace(straw, options=wanted))
        answer, summary = replica.models.requests[-1], replica.models.summary_requests[-1]
    assert (answer.settings.options.stop, answer.settings.response_format) == (("END",), {"type": "json_object"})
    assert summary.text_only
    assert (summary.settings.options.stop, summary.settings.response_format) == ((), None)


async def test_what_was_compacted_is_found(world: World) -> None:
    async with world.replica() as replica:
        await replica.send(world.request("my cat is called Schopenhauer"))
        await talk(replica, world, 10)
        replica.models.replies = [full()]
        await replica.send(world.request("the last straw"))
        recall = recall_on(world.pool)
        settings = Settings(1, "loci/demo", "loci/hash", "", WINDOW)
        site = CallSite(ORGANIZATION, world.agent_id, world.agent_id, uuid7(), uuid7(), settings)
        found = await recall.search(Call("k", "c", "conversation_search", '{"query": "Schopenhauer"}'), site)
    assert "my cat is called Schopenhauer" in found.text


async def test_a_long_return_is_stored_whole_and_shown_and_measured_as_far_as_a_window_shows_one(world: World) -> None:
    whole = "\n".join(f"line {number} of the log" for number in range(10_000))

    async def log(call: Call) -> str:
        return whole

    async with world.replica() as replica:
        replica.tools.actions = {"log": log}
        replica.tools.return_char_limit = len(whole)
        replica.models.replies = [calls("log"), text("Long."), text("Yes."), text("Yes.")]
        events = await replica.send(world.request("Read the log."))
        await replica.send(world.request("Was it?"))
        asked = [request.history[2].parts[0] for request in replica.models.requests[1:]]
        compacted = await replica.send(compaction(world, mode="all"))
    (kept,) = [
        part
        for event in events
        if isinstance(event, MessagePiece)
        for part in event.message.parts
        if isinstance(part, Return)
    ]
    assert kept.text == whole
    assert whole in [said for role, said in await world.history() if role == "tool"]
    for shown_part in asked:
        assert isinstance(shown_part, Return)
        assert WINDOW * 0.8 - 100 < len(shown_part.text) <= WINDOW * 0.8
        assert shown_part.text.startswith("line 0 of")
        assert shown_part.text.endswith("line 9999 of the log")
    # No summary was called for by what is stored but not shown.
    assert not any(isinstance(event, Compacting) for event in events)
    summarised = replica.models.summary_requests[0].history[-1].parts[0]
    assert isinstance(summarised, Text)
    assert "characters are left out here" in summarised.text
    assert len(summaries(compacted)) == 1


async def test_an_overflow_is_compacted_and_the_call_made_again(world: World) -> None:
    async with world.replica() as replica:
        await talk(replica, world, 12)
        replica.models.replies = [OVERFLOW, text("Now it fits.")]
        events = await replica.send(world.request("too much?"))
        last = end(events)
        asked = replica.models.requests[-1]
    assert (last.run.status, last.failure) == (RunStatus.COMPLETED, None)
    assert summaries(events) == ["They talked."]
    windows = PostgresLearnedWindows(world.pool)
    (learned,) = await windows.list(ORGANIZATION)
    assert (learned.model, learned.tokens < WINDOW) == ("loci/demo", True)
    assert sum(map(estimate, asked.history)) < learned.tokens
    await windows.forget(ORGANIZATION, "loci/demo")
    assert await windows.list(ORGANIZATION) == []


async def test_a_window_that_is_seen_to_overflow_is_compacted_before_the_call(world: World) -> None:
    async with world.replica() as replica:
        await talk(replica, world, 10, words=4_000)
        assert replica.models.summary_requests
        assert all(sum(map(estimate, request.history)) < WINDOW for request in replica.models.requests)


@pytest.mark.parametrize("failures", [1, 20])
async def test_a_summariser_that_fails_is_done_without(world: World, failures: int) -> None:
    async with world.replica() as replica:
        await talk(replica, world, 10)
        replica.models.replies = [full()]
        replica.models.summaries = [Unavailable("down", reason="LLM_SERVER_ERROR")] * failures
        events = await replica.send(world.request("the last straw"))
        assert end(events).run.stop_reason is StopReason.END_TURN
        (summary,) = summaries(events)
        # Another way is tried before there is none by a model.
        assert summary == "They talked." if failures == 1 else "messages (" in summary
        assert end(await replica.send(world.request("and now?"))).run.status is RunStatus.COMPLETED


async def test_a_model_that_lies_about_its_window_is_found_out(world: World) -> None:
    """It says 32,000 tokens and refuses what is above 19,200."""
    limit = int(WINDOW * 0.6)

    async def lying(request: ModelRequest):  # type: ignore[no-untyped-def]
        if sum(map(estimate, request.history)) > limit:
            raise OutOfRange("too long", reason="LLM_CONTEXT_OVERFLOW")
        yield text("Fine.")

    async with world.replica() as replica:
        replica.models.replies = [lying] * 200
        replica.models.summaries = [OutOfRange("too long", reason="LLM_CONTEXT_OVERFLOW")] * 200
        for number in range(30):
            events = await replica.send(world.request(f"{number} " + "words and " * 700))
            assert end(events).run.status is RunStatus.COMPLETED


async def test_a_compaction_can_be_asked_for(world: World) -> None:
    async with world.replica() as replica:
        await talk(replica, world, 10)
        asked = len(replica.models.requests)
        events = await replica.send(compaction(world, mode="all", prompt="In one word."))
        assert end(events).run.stop_reason is StopReason.END_TURN
        assert summaries(events) == ["They talked."]
        assert replica.models.summary_requests[-1].prompt == "In one word."
        assert len(replica.models.requests) == asked
        await replica.send(world.request("go on"))
        assert [message.role for message in replica.models.requests[-1].history] == ["summary", "user"]
        await replica.send(world.request("and on"))
        assert [message.role for message in replica.models.requests[-1].history] == [
            "summary", "user", "assistant", "user",
        ]  # fmt: skip


@pytest.mark.parametrize("said", [0, 1])
async def test_nothing_to_compact_changes_nothing(world: World, said: int) -> None:
    async with world.replica() as replica:
        replica.models.replies = [Reply((), Usage(1, 1), "stop")]
        await talk(replica, world, said)
        events = await replica.send(compaction(world))
        assert end(events).run.stop_reason is StopReason.END_TURN
        assert summaries(events) == []


async def test_a_compaction_in_the_middle_of_a_run_survives_its_owner(world: World) -> None:
    async def work(call: Call) -> str:
        return "done"

    async with world.replica() as second:
        async with world.replica() as first:
            for replica in (first, second):
                replica.tools.actions = {"work": work}
            await talk(first, world, 10)
            hung = asyncio.Event()

            async def hang(request: ModelRequest):  # type: ignore[no-untyped-def]
                hung.set()
                await asyncio.Event().wait()
                yield text("never")

            step = calls("work")
            first.models.replies = [Reply(step.parts, Usage(int(WINDOW * 0.95), 5), "tool_calls"), hang]
            second.models.replies = [text("I went on.")]
            run = asyncio.create_task(first.send(world.request("work")))
            await asyncio.wait_for(hung.wait(), SECONDS)
            await first.die()
            run.cancel()
            await asyncio.gather(run, return_exceptions=True)
        await until(lambda: second.models.requests, SECONDS)
        history = second.models.requests[-1].history
    assert history[0].role == "summary"
    assert [message.role for message in history[-3:]] == ["user", "assistant", "tool"]
    assert orjson.loads(texts(second.models.requests[-1])[0])["compaction_stats"]["messages_count_after"] >= 2


async def test_each_compaction_of_a_run_is_collected_whoever_owns_it(world: World) -> None:
    collected: list[tuple[str, str]] = []

    async def work(call: Call) -> str:
        return "x" * 12_000

    async def apply(call: Call, site: CallSite, *, create_block: bool = False) -> Return:
        collected.append((call.key, orjson.loads(call.arguments)["new_memory"]))
        return Return(call.id, call.name, "done")

    def busy() -> Reply:
        step = calls("work", arguments='{"request_heartbeat": true}')
        return Reply(step.parts, Usage(int(WINDOW * 0.95), 5), "tool_calls")

    await world.add_agent(agent_type="voice_convo_agent")
    speech = calls("send_message", arguments='{"message": "Hi."}')
    async with world.replica() as second:
        async with world.replica() as first:
            for number, replica in enumerate((first, second), start=1):
                replica.tools.actions = {"work": work, "send_message": work}
                replica.memory.apply = apply  # type: ignore[method-assign]
                replica.models.summaries = [text(f"Summary {number}.")]
            first.models.replies = [speech] * 5
            await talk(first, world, 5)
            hung = asyncio.Event()

            async def hang(request: ModelRequest):  # type: ignore[no-untyped-def]
                hung.set()
                await asyncio.Event().wait()
                yield text("never")

            first.models.replies = [busy(), hang]
            second.models.replies = [busy(), speech]
            request = world.request("work")
            run = asyncio.create_task(first.send(request))
            await asyncio.wait_for(hung.wait(), SECONDS)
            await first.die()
            run.cancel()
            await asyncio.gather(run, return_exceptions=True)
        await until(lambda: len(second.models.requests) == 2, SECONDS)
    assert [summary for _, summary in collected] == ["Summary 1.", "Summary 2."]
    assert len({key for key, _ in collected}) == 2
    assert all(key.startswith(f"{request.run_id}/summary/") for key, _ in collected)


async def test_ids_of_the_window_begin_with_the_summary(world: World) -> None:
    async with world.replica() as replica:
        await talk(replica, world, 10)
        await replica.send(compaction(world, mode="all"))
        await replica.send(world.request("go on"))
    head = await world.pool.fetchrow(
        "SELECT summary_id, window_seq FROM agent.conversation_heads WHERE conversation_id = $1", world.agent_id
    )
    assert isinstance(head["summary_id"], UUID)
    assert head["window_seq"] == 21


async def test_a_refusal_without_numbers_harms_one_run_at_most(world: World) -> None:
    """However odd the refusal, the next run sends what it has, and nothing is learned of the model."""
    sizes = {"limit": "200000", "requested": "6000", "output": "199000"}
    for metadata in ({}, sizes):
        refusal = OutOfRange("too long", reason="LLM_CONTEXT_OVERFLOW", metadata=metadata)
        async with world.replica() as replica:
            replica.models.replies = [refusal] * 4
            await replica.send(world.request("Hello"))
            replica.models.replies = []
            events = await replica.send(world.request("Hello again"))
            assert end(events).run.status is RunStatus.COMPLETED
    learned = await PostgresLearnedWindows(world.pool).list(ORGANIZATION)
    assert [row.tokens for row in learned] in ([], [200_000])


async def test_many_short_messages_are_summarised_too(world: World) -> None:
    """They fill no window by their tokens, but no more than so many are read."""
    await world.pool.execute("UPDATE agent.agents SET context_window_limit = 1000000 WHERE id = $1", world.agent_id)
    async with world.replica() as replica:
        await talk(replica, world, MOST_MESSAGES // 2 + 1, words=1)
        assert len(replica.models.summary_requests) == 1
        await replica.send(world.request("and now?"))
        assert replica.models.requests[-1].history[0].role == "summary"


async def test_a_prompt_that_fits_is_not_refused_unseen(agent_url: str) -> None:
    async with world_on(agent_url) as world, world.replica() as replica:
        await world.add_agent(system="Be kind to people. " * 5_500)
        assert end(await replica.send(world.request("Hello"))).run.status is RunStatus.COMPLETED
        await world.add_agent(system="Be kind to people. " * 20_000)
        failure = end(await replica.send(world.request("Hello"))).failure
        assert failure is not None
        assert failure.stop_reason is StopReason.CONTEXT_WINDOW_OVERFLOW_IN_SYSTEM_PROMPT
        assert "the system prompt about" in failure.message


async def test_what_is_left_is_counted_by_the_provider_where_it_can(world: World) -> None:
    async with world.replica() as replica:
        await talk(replica, world, 10)
        replica.models.counts = [1_234]
        events = await replica.send(compaction(world))
    (shown,) = [event.message for event in events if isinstance(event, MessagePiece)]
    (part,) = shown.parts
    assert isinstance(part, Text)
    summary, stats = unpack(part.text) or ("", None)
    assert summary == "They talked."
    assert stats is not None
    assert stats.context_tokens_after == 1_234
