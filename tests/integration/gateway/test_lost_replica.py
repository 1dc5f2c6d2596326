"""An agent replica is lost in the middle of a turn: the gateway finds the run again, and the client sees one turn."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from loci.agent.v1 import message_service_pb2, run_service_pb2
from services.common.errors import Unavailable
from tests.integration.gateway import samples
from tests.integration.gateway.conftest import Edge, StartGateway
from tests.integration.gateway.samples import AGENT_ID, RUN_ID, attached, ended, event, said
from tests.integration.gateway.scripted import Backend, settled
from tests.integration.gateway.test_turns import HELLO, MESSAGES, fails, frames, stream

FOREVER = 60


@pytest.mark.parametrize("grace", [0.0, 0.05], ids=["crash", "shutdown"])
async def test_a_blocking_turn_is_sent_again_with_the_same_run_id(edge: Edge, backend: Backend, grace: float) -> None:
    async def hang(_: Any) -> None:
        await asyncio.sleep(FOREVER)

    backend.on("SendMessages", hang)
    request = asyncio.create_task(edge.sdk.agents.messages.create(AGENT_ID, input="hi"))
    await settled(lambda: len(backend.requests("SendMessages")) == 1)
    await backend.stop("agent", grace)
    assert not request.done()
    done = message_service_pb2.SendMessagesResponse(messages=[said("Hello")], end=samples.turn_end())
    backend.on("SendMessages", lambda _: done)
    await backend.start("agent")
    assert (await request).messages[0].content == "Hello"  # type: ignore[union-attr]
    first, second = (one.turn for one in backend.requests("SendMessages"))
    assert first == second


@pytest.mark.parametrize("grace", [0.0, 0.05], ids=["crash", "shutdown"])
async def test_a_stream_goes_on_after_the_last_event(edge: Edge, backend: Backend, grace: float) -> None:
    async def first(_: Any) -> AsyncIterator[Any]:
        for one in (attached(), event(3, message=said("one")), event(4, delta=said("Hel", number=2))):
            yield message_service_pb2.StreamMessagesResponse(event=one)
        await asyncio.sleep(FOREVER)

    async def rest(_: Any) -> AsyncIterator[Any]:
        # "lo" was shown while nobody listened, so these pieces have a hole before them.
        for one in (attached(), event(7, delta=said(" Ada", number=2)), event(8, message=said("Hello Ada", number=2))):
            yield run_service_pb2.StreamRunResponse(event=one)
        yield run_service_pb2.StreamRunResponse(event=ended(9))

    backend.on("StreamMessages", first)
    backend.on("StreamRun", rest)
    body = HELLO | {"streaming": True, "stream_tokens": True}
    async with edge.http.stream("POST", MESSAGES, json=body) as answer:
        pieces = answer.aiter_text()
        read = ""
        while '"Hel"' not in read:
            read += await anext(pieces)
        await backend.stop("agent", grace)
        await backend.start("agent")
        chunks = frames(read + "".join([piece async for piece in pieces]))
    texts = [chunk["content"] for chunk in chunks[:-1] if chunk["message_type"] == "assistant_message"]
    assert texts == ["one", "Hel", "lo Ada"]
    assert [chunk["message_type"] for chunk in chunks[:-1]].count("ping") == 1
    assert chunks[-1] == "[DONE]"
    [again] = backend.requests("StreamRun")
    assert (again.run_id, again.after_sequence, again.stream_tokens) == (RUN_ID, 4, True)


async def test_a_stream_that_had_received_nothing_begins_again_under_its_run_id(edge: Edge, backend: Backend) -> None:
    tries = 0

    async def flaky(_: Any) -> AsyncIterator[Any]:
        nonlocal tries
        tries += 1
        if tries < 3:
            raise Unavailable("not yet")
        for one in (attached(), event(1, message=said("hi")), ended()):
            yield message_service_pb2.StreamMessagesResponse(event=one)

    backend.on("StreamMessages", flaky)
    chunks = await stream(edge, **HELLO, streaming=True)
    assert chunks[1]["content"] == "hi"
    turns = [request.turn for request in backend.requests("StreamMessages")]
    assert len(turns) == 3
    assert all(turn == turns[0] for turn in turns)


async def test_a_reader_that_lagged_is_resumed(edge: Edge, backend: Backend) -> None:
    async def first(_: Any) -> AsyncIterator[Any]:
        yield message_service_pb2.StreamMessagesResponse(event=attached())
        yield message_service_pb2.StreamMessagesResponse(event=event(1, message=said("one")))
        raise Unavailable("this reader fell behind", reason="READER_LAGS")

    async def rest(_: Any) -> AsyncIterator[Any]:
        for one in (attached(), event(1, message=said("one")), event(2, message=said("two", number=2)), ended()):
            yield run_service_pb2.StreamRunResponse(event=one)

    backend.on("StreamMessages", first)
    backend.on("StreamRun", rest)
    chunks = await stream(edge, **HELLO, streaming=True)
    assert [chunk["content"] for chunk in chunks[1:3]] == ["one", "two"]


async def test_a_replica_that_stays_away_ends_the_stream_properly(
    start_gateway: StartGateway, backend: Backend
) -> None:
    async def lost(_: Any) -> AsyncIterator[Any]:
        yield message_service_pb2.StreamMessagesResponse(event=attached())
        raise Unavailable("gone")

    backend.on("StreamMessages", lost)
    fails(backend, "StreamRun", Unavailable("still gone"))
    edge = await start_gateway(reattach_window=0.5)
    _, stop, (name, error), done = await stream(edge, **HELLO, streaming=True)
    assert (stop["stop_reason"], name, error["error_type"], done) == ("error", "error", "stream_incomplete", "[DONE]")
    assert f"/v1/runs/{RUN_ID}/stream" in error["message"]


async def test_a_blocking_turn_without_any_replica_is_a_503(start_gateway: StartGateway, backend: Backend) -> None:
    await backend.stop("agent")
    edge = await start_gateway(reattach_window=0.5)
    answer = await edge.http.post(MESSAGES, json=HELLO)
    assert answer.status_code == 503
    assert answer.json()["detail"]


async def test_a_source_that_stops_without_an_end_is_resumed(edge: Edge, backend: Backend) -> None:
    async def cut(_: Any) -> AsyncIterator[Any]:
        yield message_service_pb2.StreamMessagesResponse(event=attached())

    async def rest(_: Any) -> AsyncIterator[Any]:
        yield run_service_pb2.StreamRunResponse(event=ended())

    backend.on("StreamMessages", cut)
    backend.on("StreamRun", rest)
    assert (await stream(edge, **HELLO, streaming=True))[-1] == "[DONE]"
