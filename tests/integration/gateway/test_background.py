"""Background runs over HTTP: begun without waiting, joined by run, conversation or otid, resumed after any seq_id."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import httpx
import orjson
import pytest

from gateway.turns.views import View
from loci.agent.v1 import (
    conversation_pb2,
    conversation_service_pb2,
    message_service_pb2,
    run_pb2,
    run_service_pb2,
)
from services.common.errors import FailedPrecondition, NotFound
from tests.integration.gateway import samples
from tests.integration.gateway.conftest import Edge
from tests.integration.gateway.samples import AGENT_ID, RUN_ID, STEP_ID, attached, ended, event, said
from tests.integration.gateway.scripted import Backend
from tests.integration.gateway.test_turns import answers, fails, frames, stream, streams

CONVERSATION_ID = "conv-00000000-0000-4000-8000-00000000000f"
CONVERSATION = f"/v1/conversations/{CONVERSATION_ID}/stream"
OPENING = [
    event(3, delta=said("Hel")),
    event(4, delta=said("lo ")),
    event(5, delta=said("Ada")),
    event(6, message=said("Hello Ada")),
    event(8, delta=said("By", number=2)),
    event(9, message=said("Bye", number=2)),
    ended(10),
]


@pytest.fixture(autouse=True)
def conversation(backend: Backend) -> None:
    """The conversation's agent is known."""
    found = conversation_pb2.Conversation(id=CONVERSATION_ID, agent_id=AGENT_ID)
    backend.on("GetConversation", lambda _: conversation_service_pb2.GetConversationResponse(conversation=found))


def resumed(request: run_service_pb2.StreamRunRequest) -> list[message_service_pb2.TurnEvent]:
    """What the agent service answers: what is left, deltas of what is whole left out; before it, what is known."""
    after = request.after_sequence
    under_way = 3 <= after < 6 or after == 8
    known = [one for one in OPENING if one.sequence <= after and one.WhichOneof("event") == "delta"]
    context = [one for one in known if one.delta.id == ("message-2" if after == 8 else "message-1")]
    rest = [one for one in OPENING[:-1] if one.sequence > after and one.WhichOneof("event") != "delta"]
    # The end is told again to whoever asks.
    return [attached(), *(context if under_way and request.with_context else []), *rest, OPENING[-1]]


async def test_a_turn_in_the_background_is_answered_with_its_run(edge: Edge, backend: Backend) -> None:
    run = run_pb2.Run(id=RUN_ID, agent_id=AGENT_ID, status=run_pb2.RUN_STATUS_CREATED, background=True)
    backend.on("StartMessages", lambda _: message_service_pb2.StartMessagesResponse(run_id=RUN_ID, started=True))
    backend.on("GetRun", lambda _: run_service_pb2.GetRunResponse(run=run))
    begun = await edge.sdk.agents.messages.create_async(
        AGENT_ID, messages=[{"role": "user", "content": "Hello"}], callback_url="https://example.org/done", max_steps=3
    )
    assert (begun.id, begun.status, begun.background) == (RUN_ID, "created", True)
    [request] = backend.requests("StartMessages")
    turn = request.turn
    assert (turn.agent_id, turn.background, turn.max_steps) == (AGENT_ID, True, 3)
    assert turn.options.callback_url == "https://example.org/done"
    assert turn.run_id.startswith("run-")


async def test_what_is_refused_is_an_http_error(edge: Edge, backend: Backend) -> None:
    async def refuse(_: Any) -> None:
        raise NotFound("no such agent", reason="AGENT_NOT_FOUND")

    backend.on("StartMessages", refuse)
    answer = await edge.http.post(f"/v1/agents/{AGENT_ID}/messages/async", json={"input": "hi"})
    assert (answer.status_code, answer.json()) == (404, {"detail": "Agent not found"})
    answer = await edge.http.post(f"/v1/agents/{AGENT_ID}/messages/async", json={})
    assert answer.status_code == 422


async def test_a_background_stream_is_numbered(edge: Edge, backend: Backend) -> None:
    streams(backend, attached(), *OPENING)
    hello: Any = [{"role": "user", "content": "hello", "otid": "o-1"}]
    chunks = await edge.sdk.agents.messages.create(
        AGENT_ID, messages=hello, streaming=True, stream_tokens=True, background=True
    )
    seen = [chunk async for chunk in chunks if chunk.message_type == "assistant_message"]
    assert [(chunk.seq_id, chunk.content) for chunk in seen] == [
        (4, "Hel"),
        (5, "lo "),
        (6, "Ada"),
        (9, "By"),
        (10, "e"),
    ]
    [request] = backend.requests("StreamMessages")
    assert (request.turn.background, request.turn.messages[0].otid) == (True, "o-1")


@pytest.mark.parametrize("after", [0, 1, 4, 5, 6, 7, 9, 10, 11])
async def test_a_stream_goes_on_after_any_seq_id(edge: Edge, backend: Backend, after: int) -> None:
    async def answer(request: Any) -> AsyncIterator[Any]:
        for one in resumed(request):
            yield run_service_pb2.StreamRunResponse(event=one)

    backend.on("StreamRun", answer)
    chunks = await stream(edge, f"/v1/runs/{RUN_ID}/stream", starting_after=after)
    rest = [chunk for chunk in chunks if chunk != "[DONE]" and chunk["message_type"] == "assistant_message"]
    told = {0: "", 1: "", 4: "Hel", 5: "Hello ", 6: "Hello Ada", 7: "Hello Ada", 9: "Hello AdaBy"}
    assert told.get(after, "Hello AdaBye") + "".join(chunk["content"] for chunk in rest) == "Hello AdaBye"
    assert all(chunk["seq_id"] > after for chunk in rest)
    # The first number is that of the ping; who knows it is not told again.
    assert [chunk["seq_id"] for chunk in chunks[:-1] if chunk["message_type"] == "ping"] == ([1] if after == 0 else [])
    assert chunks[-1] == "[DONE]"
    [request] = backend.requests("StreamRun")
    assert (request.after_sequence, request.with_context) == (max(after - 1, 0), after > 1)


def told(answer: httpx.Response) -> list[tuple[str, str]]:
    """(id, text) of what the agent said."""
    found = []
    for block in answer.text.strip().split("\n\n"):
        lines = dict(line.split(": ", 1) for line in block.split("\n"))
        if '"assistant_message"' in lines["data"]:
            found.append((lines["id"], orjson.loads(lines["data"])["content"]))
    return found


def resumable(backend: Backend, status: run_pb2.RunStatus.ValueType = run_pb2.RUN_STATUS_RUNNING) -> None:
    """The run of `resumed`, which the request for it has begun before."""

    async def answer(request: Any) -> AsyncIterator[Any]:
        for one in resumed(request):
            yield run_service_pb2.StreamRunResponse(event=one)

    backend.on("StreamRun", answer)
    backend.on("GetRun", lambda _: run_service_pb2.GetRunResponse(run=run_pb2.Run(id=RUN_ID, status=status)))


@pytest.mark.parametrize("after", [4, 5, 6, 7, 9])
@pytest.mark.parametrize("way", ["get", "post", "conversation", "the same request"])
async def test_a_browser_goes_on_by_its_last_event_id(edge: Edge, backend: Backend, way: str, after: int) -> None:
    resumable(backend)
    first = attached()
    first.attached.started = False
    streams(backend, first, *OPENING)
    headers = {"last-event-id": str(after)}
    match way:
        case "get":
            answer = await edge.http.get(f"/v1/runs/{RUN_ID}/stream?include_pings=false", headers=headers)
        case "post":
            answer = await edge.http.post(f"/v1/runs/{RUN_ID}/stream/", headers=headers)
        case "conversation":
            answer = await edge.http.post(CONVERSATION, json={"include_pings": False}, headers=headers)
        case _:
            body = {"input": "hi", "streaming": True, "stream_tokens": True, "background": True}
            answer = await edge.http.post(f"/v1/agents/{AGENT_ID}/messages", json=body, headers=headers)
    assert answer.headers["content-type"].startswith("text/event-stream")
    known = {4: "Hel", 5: "Hello ", 6: "Hello Ada", 7: "Hello Ada", 9: "Hello AdaBy"}[after]
    assert known + "".join(text for _, text in told(answer)) == "Hello AdaBye"
    assert all(int(number) > after for number, _ in told(answer))
    assert answer.text.endswith("id: 11\ndata: [DONE]\n\n")
    assert backend.requests("StreamRun")[-1].after_sequence == after - 1


async def test_a_new_request_has_no_last_event(edge: Edge, backend: Backend) -> None:
    first = attached()
    first.attached.started = True
    streams(backend, first, *OPENING)
    body = {"input": "hi", "streaming": True, "stream_tokens": True, "background": True}
    answer = await edge.http.post(f"/v1/agents/{AGENT_ID}/messages", json=body, headers={"last-event-id": "0"})
    assert [number for number, _ in told(answer)] == ["4", "5", "6", "9", "10"]
    foreground = await edge.http.post(
        f"/v1/agents/{AGENT_ID}/messages", json=body | {"background": False}, headers={"last-event-id": "x"}
    )
    assert "id: " not in foreground.text


async def test_what_the_body_says_goes_before_the_header(edge: Edge, backend: Backend) -> None:
    resumable(backend)
    answer = await edge.http.post(
        f"/v1/runs/{RUN_ID}/stream", json={"starting_after": 0}, headers={"last-event-id": "nonsense"}
    )
    assert answer.status_code == 200
    answer = await edge.http.get(f"/v1/runs/{RUN_ID}/stream?starting_after=5", headers={"last-event-id": "3"})
    assert [request.after_sequence for request in backend.requests("StreamRun")] == [0, 4]


@pytest.mark.parametrize("value", ["x", "-1", "1.5", "9" * 19, "1" * 400, "１２"])
async def test_a_last_event_id_that_is_none(edge: Edge, backend: Backend, value: str) -> None:
    headers: Any = {"last-event-id": value.encode("utf-8")}
    for answer in (
        await edge.http.get(f"/v1/runs/{RUN_ID}/stream", headers=headers),
        await edge.http.post(CONVERSATION, json={}, headers=headers),
    ):
        assert answer.status_code == 422
        assert "Last-Event-ID" in answer.json()["detail"]
    assert (await edge.http.get(f"/v1/runs/{RUN_ID}/stream?starting_after=x")).status_code == 422
    assert not backend.requests("StreamRun")


@pytest.mark.parametrize(("after", "status"), [(0, 200), (10, 200), (11, 204), (12, 204)])
async def test_an_event_source_that_knows_the_end_need_not_come_back(
    edge: Edge, backend: Backend, after: int, status: int
) -> None:
    resumable(backend, run_pb2.RUN_STATUS_COMPLETED)
    headers = {"last-event-id": str(after)}
    assert (await edge.http.get(f"/v1/runs/{RUN_ID}/stream", headers=headers)).status_code == status


async def test_a_stream_is_gone_on_with_as_its_request_wanted_it(edge: Edge, backend: Backend) -> None:
    streams(backend, attached(), ended(10))
    wanted: Any = {"include_return_message_types": ["assistant_message"], "include_compaction_messages": True}
    sent = {"input": "hi", "streaming": True, "background": True, **wanted}
    await stream(edge, f"/v1/agents/{AGENT_ID}/messages", **sent)
    [request] = backend.requests("StreamMessages")
    first = attached()
    first.attached.view_json = request.turn.options.view_json
    streams(backend, first, event(1, message=samples.thought("hm")), *OPENING, method="StreamRun")
    # By steps, and without the thought.
    steps = await stream(edge, f"/v1/runs/{RUN_ID}/stream", include_pings=False)
    assert [one.get("content") for one in steps[:-3]] == ["Hello Ada", "Bye"]
    # The body has the last word.
    tokens = await stream(edge, f"/v1/runs/{RUN_ID}/stream", include_pings=False, stream_tokens=True)
    assert [one.get("content") for one in tokens[:-3]] == ["Hel", "lo ", "Ada", "By", "e"]
    assert [one.stream_tokens for one in backend.requests("StreamRun")] == [True, True]


@pytest.mark.parametrize("path", ["messages", "messages/async"])
async def test_what_a_request_wants_to_see_is_kept_with_its_run(edge: Edge, backend: Backend, path: str) -> None:
    answers(backend)
    backend.on("StartMessages", lambda _: message_service_pb2.StartMessagesResponse(run_id=RUN_ID))
    backend.on("GetRun", lambda _: run_service_pb2.GetRunResponse(run=samples.run()))
    method = "StartMessages" if path.endswith("async") else "SendMessages"
    for wanted in ({}, {"use_assistant_message": False}):
        answer = await edge.http.post(f"/v1/agents/{AGENT_ID}/{path}", json={"input": "hi", **wanted})
        assert answer.status_code == 200
    plain, other = (request.turn.options.view_json for request in backend.requests(method))
    assert plain == ("" if method == "SendMessages" else View().json)
    assert other == View(spoken=None).json


async def test_what_was_void_stays_void(edge: Edge, backend: Backend) -> None:
    void = message_service_pb2.AttemptAbandoned(step_id=STEP_ID, message_id="message-1", attempt=1)
    again = [event(3, delta=said("Hel")), event(4, attempt_abandoned=void), event(5, delta=said("Good", number=2))]
    streams(backend, attached(), *again, event(7, message=said("Good day", number=2)), ended(8), method="StreamRun")
    chunks = await stream(edge, f"/v1/runs/{RUN_ID}/stream", starting_after=6, include_pings=False)
    assert [chunk.get("content") for chunk in chunks[:-3]] == [" day"]


async def test_which_run_of_a_conversation_is_meant(edge: Edge, backend: Backend) -> None:
    streams(backend, attached(), ended(9), method="StreamRun")
    stream_of = edge.sdk.conversations.messages.stream
    for options in ({}, {"otid": "o-1"}, {"run_id": RUN_ID, "otid": "o-1", "starting_after": 4}):
        asked: Any = options
        assert [one.message_type async for one in await stream_of(CONVERSATION_ID, **asked)]
    active, by_otid, by_id = backend.requests("StreamRun")
    for request in (active, by_otid, by_id):
        assert (request.agent_id, request.conversation_id) == (AGENT_ID, CONVERSATION_ID)
    assert [(request.run_id, request.otid) for request in (active, by_otid, by_id)] == [
        ("", ""),
        ("", "o-1"),
        (RUN_ID, "o-1"),
    ]
    assert by_id.after_sequence == 3


async def test_the_default_conversation_is_of_an_agent(edge: Edge, backend: Backend) -> None:
    streams(backend, attached(), ended(9), method="StreamRun")
    await stream(edge, "/v1/conversations/default/stream", agent_id=AGENT_ID, poll_interval=0.1, batch_size=100)
    await stream(edge, "/v1/conversations/default/stream", run_id=RUN_ID)
    of_agent, by_id = backend.requests("StreamRun")
    assert (of_agent.agent_id, of_agent.conversation_id, of_agent.run_id) == (AGENT_ID, "", "")
    assert (by_id.agent_id, by_id.run_id) == ("", RUN_ID)
    answer = await edge.http.post("/v1/conversations/default/stream", json={})
    assert (answer.status_code, "agent_id" in answer.json()["detail"]) == (400, True)


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (FailedPrecondition("No active background runs.", reason="NO_ACTIVE_RUN"), 400),
        (FailedPrecondition("It is not.", reason="RUN_NOT_BACKGROUND"), 400),
        (NotFound("There is none.", reason="RUN_NOT_FOUND"), 404),
        (FailedPrecondition("It is gone.", reason="STREAM_EXPIRED"), 410),
    ],
    ids=lambda value: getattr(value, "reason", None),
)
async def test_what_cannot_be_joined(edge: Edge, backend: Backend, error: Any, status: int) -> None:
    fails(backend, "StreamRun", error)
    answer = await edge.http.post(CONVERSATION, json={"starting_after": 5})
    assert (answer.status_code, answer.json()) == (status, {"detail": error.message})


async def test_the_run_is_found_again_by_its_id_when_the_replica_is_lost(edge: Edge, backend: Backend) -> None:
    calls: list[run_service_pb2.StreamRunRequest] = []

    async def answer(request: Any) -> AsyncIterator[Any]:
        calls.append(request)
        if len(calls) == 1:
            for one in (attached(), OPENING[0], OPENING[1]):
                yield run_service_pb2.StreamRunResponse(event=one)
            return
        for one in (attached(), *OPENING[2:]):
            yield run_service_pb2.StreamRunResponse(event=one)

    backend.on("StreamRun", answer)
    chunks = frames((await edge.http.post(CONVERSATION, json={})).text)
    text = [chunk["content"] for chunk in chunks[:-1] if chunk["message_type"] == "assistant_message"]
    assert "".join(text) == "Hello AdaBye"
    assert (calls[1].run_id, calls[1].after_sequence, calls[1].agent_id) == (RUN_ID, 4, "")
