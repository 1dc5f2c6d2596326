"""Turns through the official SDK and raw HTTP: blocking, by steps, by tokens, failing, cancelled, joined."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator
from typing import Any

import httpx
import letta_client
import orjson
import pytest
from letta_client import AsyncLetta

from loci.agent.v1 import agent_pb2, message_pb2, message_service_pb2, run_pb2, run_service_pb2
from loci.common.v1.page_pb2 import ORDER_ASCENDING
from services.common.errors import FailedPrecondition, LociError, NotFound
from tests.integration.gateway import samples
from tests.integration.gateway.conftest import Edge, StartGateway, trust
from tests.integration.gateway.samples import AGENT_ID, RUN_ID, attached, ended, event, said
from tests.integration.gateway.scripted import Backend, settled

MESSAGES = f"/v1/agents/{AGENT_ID}/messages"
HELLO: Any = {"messages": [{"role": "user", "content": "hello"}]}
RATE_LIMITED = message_service_pb2.TurnError(
    error_type="llm_rate_limit", message="the provider says: slow down", detail="429", reason="LLM_RATE_LIMIT"
)


def streams(backend: Backend, *events: message_service_pb2.TurnEvent, method: str = "StreamMessages") -> None:
    """`method` answers with these events."""
    response = (
        message_service_pb2.StreamMessagesResponse if method == "StreamMessages" else run_service_pb2.StreamRunResponse
    )

    async def answer(_: Any) -> AsyncIterator[Any]:
        for one in events:
            yield response(event=one)

    backend.on(method, answer)


def fails(backend: Backend, method: str, error: LociError) -> None:
    """The streaming `method` is refused before its first event."""

    async def answer(request: Any) -> AsyncIterator[Any]:
        if request is not None:
            raise error
        yield

    backend.on(method, answer)


def answers(backend: Backend, *messages: message_pb2.Message, end: message_service_pb2.TurnEnd | None = None) -> None:
    """SendMessages answers with these messages."""
    response = message_service_pb2.SendMessagesResponse(messages=messages, end=end or samples.turn_end())
    backend.on("SendMessages", lambda _: response)


def frames(body: str) -> list[Any]:
    """The chunks of a stream: JSON, (name, JSON) for named events, and "[DONE]"."""
    found: list[Any] = []
    for block in body.strip().split("\n\n"):
        lines = dict(line.split(": ", 1) for line in block.split("\n"))
        data = lines["data"] if lines["data"] == "[DONE]" else orjson.loads(lines["data"])
        found.append((lines["event"], data) if "event" in lines else data)
    return found


async def stream(edge: Edge, path: str = MESSAGES, **body: Any) -> list[Any]:
    """The chunks that a request is answered with."""
    answer = await edge.http.post(path, json=body)
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert answer.status_code == 200
    return frames(answer.text)


async def test_a_blocking_turn(edge: Edge, backend: Backend) -> None:
    answers(backend, samples.thought("hm"), said("Hello Ada"), samples.returned("4"))
    response = await edge.sdk.agents.messages.create(AGENT_ID, input="My name is Ada", max_steps=7)
    assert [message.message_type for message in response.messages] == [
        "reasoning_message",
        "assistant_message",
        "tool_return_message",
    ]
    assert (response.stop_reason.stop_reason, response.usage.total_tokens) == ("end_turn", 10)
    assert response.messages[1].run_id == RUN_ID
    [request] = backend.requests("SendMessages")
    assert (request.turn.agent_id, request.turn.max_steps) == (AGENT_ID, 7)
    assert request.turn.run_id.startswith("run-")
    assert request.turn.messages[0].content[0].text == "My name is Ada"


async def test_only_the_types_asked_for(edge: Edge, backend: Backend) -> None:
    answers(backend, samples.thought("hm"), said("Hello"))
    response = await edge.sdk.agents.messages.create(
        AGENT_ID, input="hi", include_return_message_types=["assistant_message"]
    )
    assert [message.message_type for message in response.messages] == ["assistant_message"]


async def test_images_and_names_reach_the_agent(edge: Edge, backend: Backend) -> None:
    answers(backend)
    content = [
        {"type": "text", "text": "what is this?"},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAEC"}},
        {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}},
    ]
    message = {"role": "user", "content": content, "name": "Ada", "otid": "o-9", "sender_id": "agent-1"}
    assert (await edge.http.post(MESSAGES, json={"messages": [message]})).status_code == 200
    [sent] = backend.requests("SendMessages")[0].turn.messages
    assert (sent.name, sent.otid, sent.sender_id) == ("Ada", "o-9", "agent-1")
    assert sent.content[1].image.data_base64 == "AAEC"
    assert sent.content[2].image.url == "https://example.org/a.png"


async def test_how_a_repeated_request_is_recognised(edge: Edge, backend: Backend) -> None:
    answers(backend)
    for headers in ({}, {"x-stainless-retry-count": "1"}, {"idempotency-key": "k-1"}, {"authorization": "Bearer x"}):
        await edge.http.post(MESSAGES, json=HELLO, headers=headers)
    await edge.http.post(MESSAGES + "/", json=HELLO)
    await edge.http.post(MESSAGES, json={"input": "other"})
    await edge.http.post(MESSAGES, json=HELLO, headers={"user_id": "user-" + AGENT_ID[6:]})
    turns = [request.turn for request in backend.requests("SendMessages")]
    hashes = [turn.retry.request_hash for turn in turns]
    assert len(hashes[0]) == hashlib.sha256().digest_size
    assert len(set(hashes[:5])) == 1
    assert len(set(hashes)) == 3
    assert [turn.retry.is_retry for turn in turns[:3]] == [False, True, False]
    assert turns[2].retry.idempotency_key == "k-1"
    assert len({turn.run_id for turn in turns}) == len(turns)


class GivesUpOnce(httpx.AsyncHTTPTransport):
    """A connection whose first request runs out of time when `reached` is set, however long that takes."""

    def __init__(self, reached: asyncio.Event) -> None:
        super().__init__(verify=trust())
        self._reached: asyncio.Event | None = reached

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        reached, self._reached = self._reached, None
        if reached is None:
            return await super().handle_async_request(request)
        answering = asyncio.create_task(self._read(request))
        async with asyncio.timeout(20):
            await reached.wait()
        answering.cancel()
        await asyncio.gather(answering, return_exceptions=True)
        raise httpx.ReadTimeout("the time is over", request=request)

    async def _read(self, request: httpx.Request) -> None:
        answer = await super().handle_async_request(request)
        try:
            await answer.aread()
        finally:
            await answer.aclose()


async def test_the_sdk_counts_its_retries(edge: Edge, backend: Backend) -> None:
    reached = asyncio.Event()

    async def slow(request: Any) -> message_service_pb2.SendMessagesResponse:
        if not request.turn.retry.is_retry:
            reached.set()
            await asyncio.Event().wait()
        return message_service_pb2.SendMessagesResponse(end=samples.turn_end())

    backend.on("SendMessages", slow)
    http_client = httpx.AsyncClient(transport=GivesUpOnce(reached))
    async with AsyncLetta(base_url=edge.url, max_retries=1, http_client=http_client) as hasty:
        await hasty.agents.messages.create(AGENT_ID, input="hi")
    first, second = (request.turn.retry for request in backend.requests("SendMessages"))
    assert (first.is_retry, second.is_retry) == (False, True)
    assert first.request_hash == second.request_hash


@pytest.mark.parametrize(
    ("reason", "error_type", "status", "raised"),
    [
        ("LLM_AUTHENTICATION", "llm_authentication", 401, letta_client.AuthenticationError),
        ("LLM_RATE_LIMIT", "llm_rate_limit", 429, letta_client.RateLimitError),
        ("LLM_TIMEOUT", "llm_timeout", 504, letta_client.InternalServerError),
        ("LLM_BAD_REQUEST", "llm_bad_request", 400, letta_client.BadRequestError),
        ("LLM_SERVER_ERROR", "llm_error", 502, letta_client.InternalServerError),
    ],
)
async def test_a_blocking_turn_that_the_model_failed(
    edge: Edge, backend: Backend, reason: str, error_type: str, status: int, raised: type[letta_client.APIStatusError]
) -> None:
    error = message_service_pb2.TurnError(error_type=error_type, message="no", detail="why", reason=reason)
    answers(backend, end=samples.turn_end(agent_pb2.STOP_REASON_LLM_API_ERROR, error))
    with pytest.raises(raised) as caught:
        await edge.sdk.agents.messages.create(AGENT_ID, input="hi")
    assert caught.value.status_code == status
    assert caught.value.body == {"error": {"type": error_type, "message": "no", "detail": "why"}}
    # The stored result would come again: repeating is of no use.
    assert caught.value.response.headers["x-should-retry"] == "false"


async def test_a_stream_of_whole_messages(edge: Edge, backend: Backend) -> None:
    call = samples.called(("c1", "roll_dice", '{"num_sides": 6}'))
    streams(
        backend, attached(), event(1, message=call), event(2, message=samples.returned("4")),
        event(3, message=said("A four", number=3)), ended(),
    )  # fmt: skip
    ping, called, returned, text, stop, usage, done = await stream(edge, **HELLO, streaming=True)
    assert (ping["message_type"], ping["run_id"]) == ("ping", RUN_ID)
    assert called["tool_call"] == {"name": "roll_dice", "arguments": '{"num_sides": 6}', "tool_call_id": "c1"}
    assert called["tool_calls"] == [called["tool_call"]]
    assert (returned["tool_return"], returned["stdout"], returned["name"]) == ("4", ["printed"], "roll_dice")
    assert (text["content"], text["date"], text["seq_id"]) == ("A four", "2025-12-01T12:00:00+00:00", None)
    assert stop == {"message_type": "stop_reason", "stop_reason": "end_turn"}
    assert (usage["message_type"], usage["total_tokens"], usage["run_ids"]) == ("usage_statistics", 10, None)
    assert done == "[DONE]"
    assert not backend.requests("StreamMessages")[0].stream_tokens


async def test_a_stream_of_tokens_says_each_character_once(edge: Edge, backend: Backend) -> None:
    streams(
        backend, attached(), event(1, delta=samples.thought("hm")), event(2, delta=said("Hel")),
        event(3, delta=said("lo")), event(4, message=samples.thought("hm, yes")), event(5, message=said("Hello")),
        ended(),
    )  # fmt: skip
    chunks = await edge.sdk.agents.messages.create(AGENT_ID, input="hi", streaming=True, stream_tokens=True)
    seen = [chunk async for chunk in chunks]
    thoughts = "".join(one.reasoning for one in seen if one.message_type == "reasoning_message")
    texts = [one.content for one in seen if one.message_type == "assistant_message"]
    assert (thoughts, texts) == ("hm, yes", ["Hel", "lo"])
    assert [one.message_type for one in seen[-2:]] == ["stop_reason", "usage_statistics"]
    assert backend.requests("StreamMessages")[0].stream_tokens


async def test_the_stream_route_streams_without_being_told(edge: Edge, backend: Backend) -> None:
    streams(backend, attached(), event(1, message=said("hi")), ended())
    with pytest.deprecated_call():
        chunks = await edge.sdk.agents.messages.stream(AGENT_ID, input="hi")
    seen = [chunk.message_type async for chunk in chunks]
    assert seen == ["ping", "assistant_message", "stop_reason", "usage_statistics"]


async def test_a_stream_without_pings(edge: Edge, backend: Backend) -> None:
    streams(backend, attached(), ended())
    kinds = [one["message_type"] for one in (await stream(edge, **HELLO, streaming=True, include_pings=False))[:-1]]
    assert kinds == ["stop_reason", "usage_statistics"]


async def test_a_background_stream_numbers_its_chunks(edge: Edge, backend: Backend) -> None:
    streams(backend, attached(), event(4, message=said("hi")), ended())
    chunks = await stream(edge, **HELLO, streaming=True, background=True)
    assert [chunk["seq_id"] for chunk in chunks[:2]] == [1, 5]


async def test_keepalive_pings(start_gateway: StartGateway, backend: Backend) -> None:
    gate = asyncio.Event()

    async def slow(_: Any) -> AsyncIterator[Any]:
        yield message_service_pb2.StreamMessagesResponse(event=attached())
        await gate.wait()
        yield message_service_pb2.StreamMessagesResponse(event=ended())

    backend.on("StreamMessages", slow)
    edge = await start_gateway(ping_interval=0.1)
    async with edge.http.stream("POST", MESSAGES, json=HELLO | {"streaming": True}) as answer:
        lines = (line async for line in answer.aiter_lines() if line.startswith("data: "))
        # The first says which run it is; the others come while nothing happens.
        for _ in range(5):
            ping = orjson.loads((await anext(lines)).removeprefix("data: "))
            assert (ping["message_type"], ping["run_id"]) == ("ping", RUN_ID)
        gate.set()
        assert [line async for line in lines][-1] == "data: [DONE]"


async def test_a_stream_whose_turn_failed(edge: Edge, backend: Backend) -> None:
    streams(backend, attached(), ended(7, agent_pb2.STOP_REASON_LLM_API_ERROR, RATE_LIMITED))
    _, stop, (name, error), done = await stream(edge, **HELLO, streaming=True)
    assert (stop["stop_reason"], name, done) == ("llm_api_error", "error", "[DONE]")
    assert error == {
        "message_type": "error_message",
        "run_id": RUN_ID,
        "error_type": "llm_rate_limit",
        "message": "the provider says: slow down",
        "detail": "429",
        "seq_id": None,
    }
    with pytest.raises(letta_client.APIStatusError, match="slow down"):
        _ = [one async for one in await edge.sdk.agents.messages.create(AGENT_ID, input="hi", streaming=True)]


async def test_a_cancelled_stream(edge: Edge, backend: Backend) -> None:
    streams(backend, attached(), ended(7, agent_pb2.STOP_REASON_CANCELLED))
    assert (await stream(edge, **HELLO, streaming=True))[1:] == [
        {"message_type": "stop_reason", "stop_reason": "cancelled"},
    ]


async def test_an_abandoned_attempt_is_told_on_a_ping(edge: Edge, backend: Backend) -> None:
    abandoned = message_service_pb2.AttemptAbandoned(step_id=samples.STEP_ID, message_id="message-1", attempt=1)
    streams(
        backend, attached(), event(1, delta=said("Hel")), event(2, attempt_abandoned=abandoned),
        event(3, delta=said("Good", number=2)), event(4, message=said("Good day", number=2)), ended(),
    )  # fmt: skip
    chunks = await stream(edge, **HELLO, streaming=True, stream_tokens=True)
    assert chunks[2]["message_type"] == "ping"
    assert chunks[2]["attempt_abandoned"] == {"step_id": samples.STEP_ID, "message_id": "message-1", "attempt": 1}
    assert [chunk["content"] for chunk in chunks[3:5]] == ["Good", " day"]


async def test_what_fails_before_the_first_event_is_an_http_error(edge: Edge, backend: Backend) -> None:
    fails(backend, "StreamMessages", NotFound("no such agent", reason="AGENT_NOT_FOUND"))
    answer = await edge.http.post(MESSAGES, json={**HELLO, "streaming": True})
    assert (answer.status_code, answer.json()) == (404, {"detail": "Agent not found"})


async def test_joining_a_run(edge: Edge, backend: Backend) -> None:
    streams(backend, attached(), event(8, message=said("eight")), ended(9), method="StreamRun")
    chunks = await edge.sdk.runs.messages.stream(RUN_ID, starting_after=8)
    seen = [chunk async for chunk in chunks]
    assert [(one.message_type, getattr(one, "seq_id", None)) for one in seen] == [
        ("assistant_message", 9),
        ("stop_reason", None),
        ("usage_statistics", None),
    ]
    [request] = backend.requests("StreamRun")
    assert (request.run_id, request.after_sequence, request.stream_tokens) == (RUN_ID, 7, True)


async def test_joining_a_run_without_a_body(edge: Edge, backend: Backend) -> None:
    streams(backend, attached(), ended(9), method="StreamRun")
    assert [one["message_type"] for one in (await stream(edge, f"/v1/runs/{RUN_ID}/stream"))[:-1]] == [
        "ping",
        "stop_reason",
        "usage_statistics",
    ]


async def test_what_one_request_alone_wants_reaches_the_agent(edge: Edge, backend: Backend) -> None:
    end = samples.turn_end()
    end.turns_json = '[{"role":"assistant","output_ids":[1],"output_token_logprobs":[[-0.5,1,null]]}]'
    end.logprobs_json = '{"content":[{"token":"a","logprob":-0.5,"top_logprobs":[]}]}'
    answers(backend, end=end)
    response = await edge.sdk.agents.messages.create(
        AGENT_ID,
        input="hi",
        override_model="openai/gpt",
        override_system="Be brief.",
        return_logprobs=True,
        top_logprobs=2,
        return_token_ids=True,
        client_skills=[{"name": "pdf", "description": "Reads PDFs.", "location": "skills/pdf"}],
    )
    assert response.logprobs is not None
    assert response.logprobs.content is not None
    assert response.turns is not None
    assert (response.logprobs.content[0].token, response.turns[0].output_ids) == ("a", [1])
    [request] = backend.requests("SendMessages")
    options = request.turn.options
    assert (options.override_model, options.override_system, options.top_logprobs) == ("openai/gpt", "Be brief.", 2)
    assert (options.return_logprobs, options.return_token_ids, options.include_trace) == (True, True, False)
    assert [skill.location for skill in options.client_skills] == ["skills/pdf"]


async def test_a_turn_without_log_probabilities_has_none(edge: Edge, backend: Backend) -> None:
    answers(backend, said("hi"))
    content = (await edge.http.post(MESSAGES, json=HELLO)).json()
    assert (content["logprobs"], content["turns"]) == (None, None)


@pytest.mark.parametrize(
    ("headers", "fields", "asked"),
    [({}, {}, False), ({"X-Loci-Include-Trace": "1"}, {}, True), ({"X-Loci-Include-Trace": "0"}, {}, False),
     ({}, {"include_trace": True}, True)],
)  # fmt: skip
async def test_a_trace_is_kept_where_it_is_asked_for(
    edge: Edge, backend: Backend, headers: dict[str, str], fields: dict[str, Any], asked: bool
) -> None:
    answers(backend)
    await edge.http.post(MESSAGES, json=HELLO | fields, headers=headers)
    assert backend.requests("SendMessages")[0].turn.options.include_trace is asked


@pytest.mark.parametrize(
    ("headers", "asked"),
    [({}, False), ({"X-Experimental-OpenAI-Responses-Websocket": "true"}, True),
     ({"X-Experimental-OpenAI-Responses-Websocket": "True"}, True),
     ({"X-Experimental-OpenAI-Responses-Websocket": "false"}, False)],
)  # fmt: skip
async def test_one_websocket_to_the_provider_is_asked_for_by_a_header(
    edge: Edge, backend: Backend, headers: dict[str, str], asked: bool
) -> None:
    answers(backend)
    await edge.http.post(MESSAGES, json=HELLO, headers=headers)
    assert backend.requests("SendMessages")[0].turn.options.websocket is asked


async def test_a_background_turn_is_one_for_the_service_too(edge: Edge, backend: Backend) -> None:
    streams(backend, attached(), ended())
    await stream(edge, **HELLO, streaming=True, background=True, on_busy="interrupt")
    await stream(edge, **HELLO, streaming=True)
    first, second = (request.turn for request in backend.requests("StreamMessages"))
    assert (first.background, first.on_busy) == (True, message_service_pb2.ON_BUSY_INTERRUPT)
    assert (second.background, second.on_busy) == (False, message_service_pb2.ON_BUSY_UNSPECIFIED)


SUMMARY = message_pb2.Message(
    id="message-8",
    date=samples.NOON,
    summary_message=message_pb2.SummaryMessage(
        summary="so far", compaction_stats=message_pb2.CompactionStats(trigger="manual", context_window=9)
    ),
)
BEGUN = message_pb2.Message(
    id="message-9",
    date=samples.NOON,
    event_message=message_pb2.EventMessage(event_type="compaction", trigger="manual", context_window=9),
)


@pytest.mark.parametrize("asked", [False, True])
async def test_compaction_is_told_to_those_who_ask_for_it(edge: Edge, backend: Backend, asked: bool) -> None:
    streams(backend, attached(), event(1, notice=BEGUN), event(2, message=SUMMARY), ended())
    chunks = (await stream(edge, **HELLO, streaming=True, include_compaction_messages=asked))[1:-3]
    assert [one["message_type"] for one in chunks] == (["event_message", "summary_message"] if asked else [])
    answers(backend, SUMMARY)
    response = await edge.sdk.agents.messages.create(AGENT_ID, input="hi", include_compaction_messages=asked)
    assert [one.message_type for one in response.messages] == (["summary_message"] if asked else [])


async def test_compacting_now(edge: Edge, backend: Backend) -> None:
    response = message_service_pb2.CompactConversationResponse(
        summary="so far", messages_count_before=9, messages_count_after=2
    )
    backend.on("CompactConversation", lambda _: response)
    done = await edge.sdk.agents.messages.compact(AGENT_ID, compaction_settings={"mode": "all"})
    assert (done.summary, done.num_messages_before, done.num_messages_after) == ("so far", 9, 2)
    [request] = backend.requests("CompactConversation")
    assert (request.agent_id, request.compaction_settings_json) == (AGENT_ID, '{"mode":"all"}')
    assert request.run_id.startswith("run-")
    assert len(request.retry.request_hash) == hashlib.sha256().digest_size
    await edge.sdk.agents.messages.compact(AGENT_ID)
    assert backend.requests("CompactConversation")[1].compaction_settings_json == ""


@pytest.mark.parametrize(("summary", "after", "status"), [("", 2, 200), ("so far", 2, 400), ("so far", 3, 400)])
async def test_compacting_what_cannot_be_shorter(
    edge: Edge, backend: Backend, summary: str, after: int, status: int
) -> None:
    response = message_service_pb2.CompactConversationResponse(
        summary=summary, messages_count_before=2, messages_count_after=after
    )
    backend.on("CompactConversation", lambda _: response)
    answer = await edge.http.post(f"/v1/agents/{AGENT_ID}/summarize")
    assert answer.status_code == status
    if status == 200:
        assert answer.json() == {"summary": "", "num_messages_before": 2, "num_messages_after": 2}
    else:
        assert f"{after} of 2" in answer.json()["detail"]


OTID = "00000000-0000-4000-8000-000000000001"
SPOKEN = samples.called(("c1", "send_message", '{"message": "Hello Ada"}'), otid=OTID)
ACCEPTED = samples.returned("None")
ACCEPTED.tool_return_message.tool_returns[0].name = "send_message"


@pytest.mark.parametrize(
    ("shown", "kinds"), [(True, ["assistant_message"]), (False, ["tool_call_message", "tool_return_message"])]
)
async def test_what_an_older_agent_says(edge: Edge, backend: Backend, shown: bool, kinds: list[str]) -> None:
    messages = edge.sdk.agents.messages
    answers(backend, SPOKEN, ACCEPTED)
    response = await messages.create(AGENT_ID, input="hi", use_assistant_message=shown)
    assert [one.message_type for one in response.messages] == kinds

    streams(backend, attached(), event(1, message=SPOKEN), event(2, message=ACCEPTED), ended())
    chunks = await messages.create(AGENT_ID, input="hi", use_assistant_message=shown, streaming=True)
    assert [one.message_type async for one in chunks][1:-2] == kinds

    backend.on("ListMessages", lambda _: message_service_pb2.ListMessagesResponse(messages=[SPOKEN, ACCEPTED]))
    listed: Any = await messages.list(AGENT_ID, use_assistant_message=shown)
    assert [one.message_type for one in listed.items] == kinds
    if shown:
        assert listed.items[0].content == "Hello Ada"


async def test_what_an_older_agent_says_grows_in_a_stream(edge: Edge, backend: Backend) -> None:
    pieces = [samples.called(("c1", "send_message", '{"message": "Hel'), otid=OTID),
              samples.called(("c1", "", 'lo Ada"}'), otid=OTID)]  # fmt: skip
    streams(
        backend, attached(), event(1, delta=pieces[0]), event(2, delta=pieces[1]), event(3, message=SPOKEN), ended()
    )
    chunks = await stream(edge, **HELLO, streaming=True, stream_tokens=True)
    assert [one["content"] for one in chunks[1:-3]] == ["Hel", "lo Ada"]


async def test_a_page_that_shows_nothing_is_not_the_end(edge: Edge, backend: Backend) -> None:
    def page(request: message_service_pb2.ListMessagesRequest) -> message_service_pb2.ListMessagesResponse:
        if not request.page.page_token:
            return message_service_pb2.ListMessagesResponse(messages=[ACCEPTED], next_page_token="2")
        return message_service_pb2.ListMessagesResponse(messages=[SPOKEN], next_page_token="3")

    backend.on("ListMessages", page)
    listed: Any = await edge.sdk.agents.messages.list(AGENT_ID, limit=1)
    assert [one.content for one in listed.items] == ["Hello Ada"]


async def test_cancelling(edge: Edge, backend: Backend) -> None:
    runs = [
        samples.run(id="run-1", status=run_pb2.RUN_STATUS_RUNNING),
        samples.run(id="run-2", status=run_pb2.RUN_STATUS_COMPLETED),
    ]
    backend.on("CancelRuns", lambda _: run_service_pb2.CancelRunsResponse(runs=runs))
    assert await edge.sdk.agents.messages.cancel(AGENT_ID) == {"run-1": "cancelled", "run-2": "failed"}

    def nothing(_: Any) -> None:
        raise FailedPrecondition("the agent has no active run", reason="NOTHING_TO_CANCEL")

    backend.on("CancelRuns", nothing)
    answer = await edge.http.post(MESSAGES + "/cancel")
    assert (answer.status_code, answer.json()) == (409, {"detail": "the agent has no active run"})
    assert answer.headers["x-should-retry"] == "false"


async def test_listing_messages(edge: Edge, backend: Backend) -> None:
    user = message_pb2.Message(
        id="message-0",
        date=samples.NOON,
        user_message=message_pb2.UserMessage(content=[message_pb2.ContentPart(text="hi")]),
    )
    page = message_service_pb2.ListMessagesResponse(messages=[user, said("Hello")])
    backend.on("ListMessages", lambda _: page)
    listed: Any = await edge.sdk.agents.messages.list(AGENT_ID, limit=5, order="asc", after="message-" + RUN_ID[4:])
    assert [(one.message_type, one.content) for one in listed.items] == [
        ("user_message", "hi"),
        ("assistant_message", "Hello"),
    ]
    [request] = backend.requests("ListMessages")
    assert (request.page.page_size, request.page.order == ORDER_ASCENDING) == (5, True)


async def test_a_filtered_page_of_messages_is_filled_from_the_next_ones(edge: Edge, backend: Backend) -> None:
    def page(request: message_service_pb2.ListMessagesRequest) -> message_service_pb2.ListMessagesResponse:
        number = int(request.page.page_token or 0)
        messages = [samples.returned("x", number=2 * number), said(f"text {number}", number=2 * number + 1)]
        return message_service_pb2.ListMessagesResponse(messages=messages, next_page_token=str(number + 1))

    backend.on("ListMessages", page)
    listed: Any = await edge.sdk.agents.messages.list(
        AGENT_ID, limit=3, include_return_message_types=["assistant_message"]
    )
    assert [one.content for one in listed.items] == ["text 2", "text 1", "text 0"]


async def test_a_client_that_leaves_a_stream_leaves_the_run_alone(edge: Edge, backend: Backend) -> None:
    closed = await _leave(edge, backend, streaming=True)
    await settled(closed.is_set)
    assert backend.requests("CancelRuns") == []


@pytest.mark.parametrize("streaming", [True, False])
async def test_a_client_that_leaves_ends_the_run_where_the_operator_says_so(
    start_gateway: StartGateway, backend: Backend, streaming: bool
) -> None:
    backend.on("CancelRuns", lambda _: run_service_pb2.CancelRunsResponse())
    edge = await start_gateway(cancel_on_disconnect=True)
    closed = await _leave(edge, backend, streaming=streaming)
    await settled(closed.is_set)
    await settled(lambda: bool(backend.requests("CancelRuns")))
    [cancel] = backend.requests("CancelRuns")
    run_id = RUN_ID if streaming else backend.requests("SendMessages")[0].turn.run_id
    assert (cancel.agent_id, list(cancel.run_ids)) == (AGENT_ID, [run_id])


async def _leave(edge: Edge, backend: Backend, *, streaming: bool) -> asyncio.Event:
    """Begins a turn that never ends and goes away; the event says when the service saw its call end."""
    reached, closed = asyncio.Event(), asyncio.Event()

    async def endless(_: Any) -> AsyncIterator[Any]:
        try:
            yield message_service_pb2.StreamMessagesResponse(event=attached())
            reached.set()
            await asyncio.Event().wait()
        finally:
            closed.set()

    async def stuck(_: Any) -> None:
        try:
            reached.set()
            await asyncio.Event().wait()
        finally:
            closed.set()

    backend.on("StreamMessages", endless)
    backend.on("SendMessages", stuck)
    async with httpx.AsyncClient(base_url=edge.url, transport=GivesUpOnce(reached)) as leaving:
        with pytest.raises(httpx.ReadTimeout):
            await leaving.post(MESSAGES, json={**HELLO, "streaming": streaming})
    return closed
