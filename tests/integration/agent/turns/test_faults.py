"""What models, peers and tools do wrong costs a run at most, never the agent."""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import replace

import asyncpg
import orjson
import pytest

from services.agent.calls.model_calls import ATTEMPTS, MOST_COMPACTIONS
from services.agent.core.events import Abandoned
from services.agent.core.facts import RunStatus, Settings
from services.agent.core.messages import Call, Image, Text
from services.agent.core.ports import CallSite, ModelRequest, PartDelta, PeerLost, Reply
from services.agent.core.ports_journal import TurnRequest
from services.agent.core.window.context import SHORTENINGS
from services.agent.core.window.shrinking import A_PICTURE
from services.agent.core.window.sizes import estimate
from services.common.errors import (
    DeadlineExceeded,
    InvalidArgument,
    LociError,
    OutOfRange,
    ResourceExhausted,
    Unavailable,
)
from services.common.ids import uuid7
from tests.integration.agent.world import ORGANIZATION, World, calls, end, recall_on, text

# What a model refuses does not wedge the agent -------------------------------------------------------------

NO_IMAGES = InvalidArgument("takes no images", reason="LLM_BAD_REQUEST")
TOO_LONG = OutOfRange("too long", reason="LLM_CONTEXT_OVERFLOW")
TOO_HEAVY = ResourceExhausted("Sent message larger than max")


def with_picture(request: TurnRequest) -> TurnRequest:
    picture = Image("AAAA", media_type="image/png")
    return replace(request, messages=tuple(replace(one, parts=(*one.parts, picture)) for one in request.messages))


async def test_a_picture_that_the_model_does_not_take_fails_one_run_only(world: World) -> None:
    async with world.replica() as replica:
        replica.models.replies = [NO_IMAGES, text("Words I understand.")]
        failed = await replica.send(with_picture(world.request("look")))
        assert end(failed).run.status is RunStatus.FAILED
        assert len(replica.models.requests) == 1
        # A refusal that speaks of pictures can mean no other: it is not sent again.
        events = await replica.send(world.request("and now?"), stream=True)
        assert end(events).run.status is RunStatus.COMPLETED
        assert len(replica.models.requests) == 2
        asked = replica.models.requests[-1].history
    assert [part for message in asked for part in message.parts] == [Text("look"), A_PICTURE, Text("and now?")]
    assert not [event for event in events if isinstance(event, Abandoned)]


async def test_a_picture_without_which_the_model_answers_is_not_sent_again(world: World) -> None:
    refused = InvalidArgument("it gave no reason", reason="LLM_BAD_REQUEST")
    async with world.replica() as replica:
        replica.models.replies = [refused, refused, text("Words."), text("More words.")]
        assert end(await replica.send(with_picture(world.request("look")))).run.status is RunStatus.FAILED
        # Only now it shows what was wrong with the request.
        events = await replica.send(world.request("and now?"), stream=True)
        assert [event.attempt for event in events if isinstance(event, Abandoned)] == [1]
        before = len(replica.models.requests)
        assert end(await replica.send(world.request("and then?"))).run.status is RunStatus.COMPLETED
        assert len(replica.models.requests) == before + 1
        asked = [part for message in replica.models.requests[-1].history for part in message.parts]
    assert A_PICTURE in asked
    assert not [part for part in asked if isinstance(part, Image)]


async def test_a_question_about_a_picture_is_not_answered_without_it(world: World) -> None:
    blind = InvalidArgument("takes no images", reason="LLM_IMAGES_UNSUPPORTED")
    async with world.replica() as replica:
        for _ in range(8):
            await replica.send(world.request("x" * 6_000))
        before = len(replica.models.requests)
        replica.models.replies = [blind] * 9
        failure = end(await replica.send(with_picture(world.request("look")))).failure
        assert failure is not None
        assert (failure.reason, len(replica.models.requests) - before) == ("LLM_IMAGES_UNSUPPORTED", 1)
        # The next run shows that picture in words.
        replica.models.replies = [text("Words I understand.")]
        assert end(await replica.send(world.request("and now?"))).run.status is RunStatus.COMPLETED


@pytest.mark.parametrize("refusal", [TOO_LONG, TOO_HEAVY])
async def test_less_of_the_history_is_shown_until_the_model_takes_it(world: World, refusal: LociError) -> None:
    async with world.replica() as replica:
        for _ in range(8):
            await replica.send(world.request("x" * 6_000))
        before = len(replica.models.requests)
        replica.models.replies = [refusal, refusal, text("Now it fits.")]
        events = await replica.send(world.request("the newest"))
        histories = [request.history for request in replica.models.requests[before:]]
    assert end(events).run.status is RunStatus.COMPLETED
    sizes = [sum(map(estimate, history)) for history in histories]
    assert sizes[0] > sizes[1] > sizes[2]
    assert all(history[-1].parts == (Text("the newest"),) for history in histories)


async def test_a_refusal_that_stays_fails_the_run(world: World) -> None:
    async with world.replica() as replica:
        for _ in range(8):
            await replica.send(world.request("x" * 6_000))
        before = len(replica.models.requests)
        replica.models.replies = [TOO_LONG] * 20
        failure = end(await replica.send(world.request())).failure
        assert failure is not None
        assert failure.reason == "LLM_CONTEXT_OVERFLOW"
        assert 1 < len(replica.models.requests) - before <= 1 + MOST_COMPACTIONS + SHORTENINGS


async def test_a_model_gateway_that_stays_lost(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("services.agent.calls.model_calls._FIRST_PAUSE", 0.001)
    async with world.replica() as replica:
        replica.models.replies = [PeerLost("gone")] * 20
        failure = end(await replica.send(world.request())).failure
        assert failure is not None
        assert failure.reason == "LLM_GATEWAY_LOST"
        assert len(replica.models.requests) == ATTEMPTS


async def test_a_providers_nul_is_no_obstacle(world: World) -> None:
    async with world.replica() as replica:
        replica.models.replies = [Unavailable("a\0b", reason="LLM_SERVER_ERROR", metadata={"x": "\0"})]
        events = await replica.send(world.request())
        assert end(events).run.status is RunStatus.FAILED
        assert len(replica.models.requests) == 1


async def test_there_are_only_so_many_deltas(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("services.agent.core.calls.positions.MOST_DELTAS", 3)

    async def talk(request: ModelRequest) -> AsyncGenerator[PartDelta | Reply]:
        for _ in range(10):
            yield PartDelta(0, "content", "la")
        yield text("la" * 10)

    async with world.replica() as replica:
        replica.models.replies = [talk]
        events = await replica.send(world.request(), stream=True)
    assert [type(event).__name__ for event in events] == ["Delta"] * 3 + ["MessagePiece", "Ended"]


async def test_cancel_does_not_need_the_tool_runner(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    started = asyncio.Event()

    async def hang(call: Call) -> str:
        started.set()
        await asyncio.Event().wait()
        return "never"

    async def down(call_key: str) -> None:
        raise DeadlineExceeded("it does not answer")

    async with world.replica() as replica:
        monkeypatch.setattr(replica.tools, "cancel", down)
        replica.tools.actions = {"wait": hang}
        replica.models.replies = [calls("wait")]
        request = world.request()
        sending = asyncio.create_task(replica.send(request))
        await started.wait()
        await replica.worker.cancel(request.organization_id, [(request.run_id, world.agent_id)])
        events = await sending
    assert (end(events).run.status, end(events).run.fence) == (RunStatus.CANCELLED, 1)
    assert await world.pool.fetch("SELECT status FROM agent.steps WHERE run_id = $1", request.run_id) == [
        ("cancelled",)
    ]


# conversation_search ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"query": "dragons"}, "about dragons"),
        (
            {"query": "dragons", "roles": ["user"], "start_date": "0001-01-01", "end_date": "2999-12-31"},
            "about dragons",
        ),
        ({"query": "dragons " + "wörter " * 30_000}, "about dragons"),
        ({"query": "drag\0ons"}, "about dragons"),
        ({"query": "dragons", "roles": [{"role": "user"}]}, "roles must be"),
        ({"query": "dragons", "roles": "user"}, "about dragons"),
        ({"query": {"a": 1}}, "query must be"),
        ({"limit": 10**18}, "limit must be"),
        ({"end_date": "9999-12-31T23:59:59-12:00"}, "end_date must be"),
        ({"start_date": "0001-01-01T00:00:00+12:00"}, "start_date must be"),
        ({"start_date": ["now"]}, "start_date must be"),
    ],
)
async def test_searches_end_in_words(world: World, arguments: dict[str, object], said: str) -> None:
    async with world.replica() as replica:
        await replica.send(world.request("Tell me about dragons."))
    settings = Settings(1, "loci/demo", "loci/hash", "", 32_000)
    here = uuid7()
    site = CallSite(ORGANIZATION, world.agent_id, world.agent_id, here, here, settings)
    call = Call("key", "call", "conversation_search", orjson.dumps(arguments).decode())
    assert said in (await recall_on(world.pool).search(call, site)).text


async def test_a_search_that_the_database_refuses_is_an_error_return(world: World, agent_url: str) -> None:
    here = uuid7()
    site = CallSite(ORGANIZATION, world.agent_id, here, here, here, Settings(1, "", "", "", 1))
    async with (
        asyncpg.create_pool(agent_url, server_settings={"statement_timeout": "50"}, min_size=1, max_size=1) as pool,
        world.pool.acquire() as connection,
        connection.transaction(),
    ):
        await connection.execute("LOCK TABLE agent.messages")
        returned = await recall_on(pool).search(Call("key", "call", "conversation_search", "{}"), site)
    assert returned.is_error
    assert "search failed" in returned.text
