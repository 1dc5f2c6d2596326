"""Agents as models, through OpenAI's own SDK: one answer, chunks, calls of the client's tools, failures, lists."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import openai
import orjson
import pytest
import pytest_asyncio
from openai import AsyncOpenAI, DefaultAsyncHttpxClient

from loci.agent.v1 import agent_pb2, agent_service_pb2, message_pb2, message_service_pb2
from services.common.errors import Aborted, NotFound, Unavailable
from tests.integration.gateway import samples
from tests.integration.gateway.conftest import Edge, StartGateway, trust
from tests.integration.gateway.samples import AGENT_ID, NOON, RUN_ID, attached, ended, event, said
from tests.integration.gateway.scripted import Backend, settled
from tests.integration.gateway.test_turns import RATE_LIMITED, answers, fails, streams

HELLO: Any = [{"role": "user", "content": "hello"}]
TOOLS: Any = [{"type": "function", "function": {"name": "ls", "parameters": {"type": "object"}}}]


def openai_client(url: str, key: str = "none") -> AsyncOpenAI:
    """The SDK with nothing but a base URL and a key."""
    return AsyncOpenAI(base_url=url, api_key=key, max_retries=0, http_client=DefaultAsyncHttpxClient(verify=trust()))


@pytest_asyncio.fixture(loop_scope="module")
async def client(edge: Edge) -> AsyncIterator[AsyncOpenAI]:
    """The SDK with nothing but a base URL."""
    async with openai_client(f"{edge.url}/openai/v1") as made:
        yield made


def asks(*calls: tuple[str, str, str], number: int = 1) -> message_pb2.Message:
    """Calls that wait for the client: (id, name, arguments)."""
    made = [message_pb2.ToolCall(tool_call_id=key, name=name, arguments=given) for key, name, given in calls]
    request = message_pb2.ApprovalRequestMessage(tool_calls=made)
    return message_pb2.Message(id=f"message-{number}", date=NOON, otid="o-5", approval_request_message=request)


def waiting() -> message_service_pb2.TurnEnd:
    """A turn that stopped for the client."""
    end = samples.turn_end()
    end.stop_reason = agent_pb2.STOP_REASON_REQUIRES_APPROVAL
    return end


def void(message: str) -> message_service_pb2.TurnEvent:
    """An attempt that was given up."""
    return event(7, attempt_abandoned=message_service_pb2.AttemptAbandoned(message_id=message, attempt=1))


async def chunks_of(client: AsyncOpenAI, **options: Any) -> list[Any]:
    """All chunks of a streamed turn."""
    asked: Any = {"model": AGENT_ID, "messages": HELLO, "stream": True} | options
    return [chunk async for chunk in await client.chat.completions.create(**asked)]


def joined(chunks: list[Any], name: str = "content") -> str:
    """A text that came in pieces."""
    return "".join(getattr(chunk.choices[0].delta, name, None) or "" for chunk in chunks if chunk.choices)


async def test_one_answer(client: AsyncOpenAI, backend: Backend) -> None:
    end = samples.turn_end()
    end.usage.cached_input_tokens = 3
    answers(backend, samples.thought("hm"), said("Let me see."), samples.returned("4"), said("4.", number=3), end=end)
    done = await client.chat.completions.create(model=AGENT_ID, messages=HELLO)
    [choice] = done.choices
    assert (done.id, done.object, done.model, done.created) == (RUN_ID, "chat.completion", AGENT_ID, NOON.seconds)
    assert (choice.message.role, choice.message.content) == ("assistant", "Let me see.\n\n4.")
    assert (choice.finish_reason, choice.message.tool_calls) == ("stop", None)
    assert (choice.model_extra or {})["stop_reason"] == "end_turn"
    assert (choice.message.model_extra or {})["reasoning_content"] == "hm"
    usage: Any = done.usage
    assert usage.total_tokens == end.usage.total_tokens == usage.prompt_tokens + usage.completion_tokens
    assert usage.prompt_tokens_details.cached_tokens == 3


async def test_what_is_new_is_told_to_the_agent(client: AsyncOpenAI, backend: Backend) -> None:
    answers(backend, said("ok"))
    messages: Any = [
        {"role": "system", "content": "Old rules."},
        {"role": "user", "content": "old"},
        {"role": "assistant", "content": "old answer"},
        {"role": "developer", "content": "New rules."},
        {
            "role": "user",
            "name": "Ada",
            "content": [
                {"type": "text", "text": "what is this?"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAEC"}},
                {"type": "image_url", "image_url": {"url": "https://example.org/a.png", "detail": "low"}},
            ],
        },
    ]
    asked: Any = {"temperature": 0.5, "max_tokens": 9, "user": "u-1", "logprobs": True, "top_logprobs": 2}
    await client.chat.completions.create(
        model=f"letta/{AGENT_ID}", messages=messages, extra_body={"max_steps": 3, "on_busy": "reject"}, **asked
    )
    [turn] = [request.turn for request in backend.requests("SendMessages")]
    rules, question = turn.messages
    assert (rules.role, rules.content[0].text) == (message_pb2.MESSAGE_ROLE_SYSTEM, "New rules.")
    assert (question.role, question.name) == (message_pb2.MESSAGE_ROLE_USER, "Ada")
    assert question.content[0].text == "what is this?"
    assert (question.content[1].image.data_base64, question.content[1].image.media_type) == ("AAEC", "image/png")
    assert question.content[2].image.url == "https://example.org/a.png"
    assert (turn.agent_id, turn.conversation_id, turn.max_steps) == (AGENT_ID, "", 3)
    assert turn.on_busy == message_service_pb2.ON_BUSY_REJECT
    assert (turn.options.return_logprobs, turn.options.top_logprobs) == (True, 2)


async def test_a_conversation_of_the_agent(client: AsyncOpenAI, backend: Backend) -> None:
    answers(backend, said("ok"))
    conversation = f"conv-{AGENT_ID[6:]}"
    named: Any = {"conversation_id": conversation}
    await client.chat.completions.create(model=AGENT_ID, messages=HELLO, metadata=named)
    assert backend.requests("SendMessages")[0].turn.conversation_id == conversation
    with pytest.raises(openai.BadRequestError) as caught:
        await client.chat.completions.create(model=AGENT_ID, messages=HELLO, metadata={"conversation_id": "mine"})
    assert caught.value.param == "metadata.conversation_id"


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"n": 2}, "n"),
        ({"stop": {"text": "."}}, "stop.str"),
        ({"response_format": "json_object"}, "response_format"),
        ({"tools": TOOLS, "tool_choice": {"type": "function", "function": {"name": "rm"}}}, "tool_choice"),
        ({"tools": TOOLS, "parallel_tool_calls": "never"}, "parallel_tool_calls"),
        ({"tools": [{"type": "custom", "custom": {"name": "x"}}]}, "tools"),
        ({"functions": [{"name": "f"}]}, "functions"),
        ({"modalities": ["text", "audio"]}, "modalities"),
        ({"messages": [*HELLO, {"role": "assistant", "content": "hi"}]}, "messages"),
        ({"messages": [{"role": "user", "content": [{"type": "input_audio", "input_audio": {}}]}]}, "messages"),
        ({"messages": [{"role": "user", "content": None}]}, "messages"),
        ({"messages": [{"role": "somebody", "content": "x"}]}, "messages.0.role"),
        ({"messages": []}, "messages"),
        ({"messages": HELLO, "max_steps": 0}, "max_steps"),
    ],
)
async def test_what_cannot_be_had_is_refused(
    client: AsyncOpenAI, backend: Backend, fields: dict[str, Any], param: str
) -> None:
    answers(backend)
    body = {"model": AGENT_ID, "messages": HELLO} | fields
    with pytest.raises(openai.BadRequestError) as caught:
        await client.post("/chat/completions", body=body, cast_to=object)
    assert (caught.value.param, caught.value.type) == (param, "invalid_request_error")
    assert caught.value.message
    assert backend.requests("SendMessages") == []


async def test_how_the_turn_answers(client: AsyncOpenAI, backend: Backend) -> None:
    answers(backend, said("ok"))
    form = {"type": "json_object"}
    settings: Any = {"stop": ["."], "response_format": form, "tool_choice": "required", "parallel_tool_calls": False}
    await client.chat.completions.create(model=AGENT_ID, messages=HELLO, tools=TOOLS, **settings)
    [options] = [request.turn.options for request in backend.requests("SendMessages")]
    assert (list(options.stop), options.parallel_tool_calls) == (["."], False)
    assert orjson.loads(options.response_format_json) == form
    assert options.first_call.any_tool


async def test_chunks(client: AsyncOpenAI, backend: Backend) -> None:
    streams(
        backend,
        attached(),
        event(1, delta=samples.thought("h")),
        event(2, delta=samples.thought("m")),
        event(3, delta=said("Hel")),
        event(4, delta=said("lo")),
        event(5, message=samples.thought("hm")),
        event(6, message=said("Hello there")),
        event(8, message=said("Bye.", number=2)),
        ended(9),
    )
    chunks = await chunks_of(client, stream_options={"include_usage": True})
    assert {chunk.id for chunk in chunks} == {RUN_ID}
    first, *rest, last, usage = chunks
    assert (first.choices[0].delta.role, first.choices[0].delta.content) == ("assistant", "")
    assert joined(rest) == "Hello there\n\nBye."
    assert joined(rest, "reasoning_content") == "hm"
    assert [chunk.choices[0].finish_reason for chunk in rest] == [None] * len(rest)
    assert (last.choices[0].finish_reason, usage.choices) == ("stop", [])
    assert usage.usage.total_tokens == samples.turn_end().usage.total_tokens
    assert [chunk.usage for chunk in (*rest, last)] == [None] * (len(rest) + 1)


async def test_the_frames(edge: Edge, backend: Backend) -> None:
    streams(backend, attached(), event(1, message=said("Hello")), ended(2))
    body = {"model": AGENT_ID, "messages": HELLO, "stream": True}
    answer = await edge.http.post("/v1/chat/completions", json=body)
    assert answer.headers["content-type"].startswith("text/event-stream")
    lines = [line for line in answer.text.split("\n\n") if line]
    assert all(line.startswith("data: ") for line in lines)
    assert lines[-1] == "data: [DONE]"
    assert "usage" not in orjson.loads(lines[-2].removeprefix("data: "))


async def test_an_older_agent_speaks_through_its_tool(client: AsyncOpenAI, backend: Backend) -> None:
    otid = f"{AGENT_ID[6:-2]}80"
    speech = samples.called(("c1", "send_message", '{"message":"Hello \\"Ada\\""}'), otid=otid)
    answers(backend, speech)
    done = await client.chat.completions.create(model=AGENT_ID, messages=HELLO)
    assert done.choices[0].message.content == 'Hello "Ada"'
    pieces = [("send_message", '{"mess'), ("", 'age":"Hello \\"A'), ("", 'da\\""}')]
    told = [event(n + 1, delta=samples.called(("c1", *piece), otid=otid)) for n, piece in enumerate(pieces)]
    streams(backend, attached(), *told, event(9, message=speech), ended(10))
    assert joined(await chunks_of(client)) == 'Hello "Ada"'


async def test_calls_of_the_clients_tools(client: AsyncOpenAI, backend: Backend) -> None:
    answers(backend, said("Let me look."), asks(("c1", "ls", '{"a":1}'), ("c2", "ls", "{}")), end=waiting())
    done = await client.chat.completions.create(model=AGENT_ID, messages=HELLO, tools=TOOLS)
    [choice] = done.choices
    assert (choice.finish_reason, choice.message.content) == ("tool_calls", "Let me look.")
    calls: Any = choice.message.tool_calls
    assert [(call.id, call.function.name, call.function.arguments) for call in calls] == [
        ("c1", "ls", '{"a":1}'),
        ("c2", "ls", "{}"),
    ]
    returns: Any = [{"role": "tool", "tool_call_id": key, "content": text} for key, text in (("c1", "a"), ("c2", "b"))]
    history: Any = [
        *HELLO,
        choice.message.model_dump(exclude_none=True),
        *returns,
        {"role": "user", "content": "Well?"},
    ]
    await client.chat.completions.create(model=AGENT_ID, messages=history, tools=TOOLS)
    first, second = [request.turn for request in backend.requests("SendMessages")]
    assert [tool.name for tool in first.options.client_tools] == ["ls"]
    given, question = second.messages
    assert [(one.tool_return.tool_call_id, one.tool_return.tool_return) for one in given.answers] == [
        ("c1", "a"),
        ("c2", "b"),
    ]
    assert question.content[0].text == "Well?"
    await client.chat.completions.create(model=AGENT_ID, messages=HELLO, tools=TOOLS, tool_choice="none")
    assert not backend.requests("SendMessages")[-1].turn.options.client_tools


async def test_calls_come_in_pieces(client: AsyncOpenAI, backend: Backend) -> None:
    pieces = [("c1", "ls", '{"a'), ("c1", "", '":1}'), ("c2", "ls", ""), ("c2", "", "{}")]
    told = [event(n + 1, delta=asks(piece)) for n, piece in enumerate(pieces)]
    whole = asks(("c1", "ls", '{"a":1}'), ("c2", "ls", "{}"))
    end = event(9, end=waiting())
    streams(backend, attached(), *told, event(8, message=whole), end)
    async with client.chat.completions.stream(model=AGENT_ID, messages=HELLO, tools=TOOLS) as stream:
        done = await stream.get_final_completion()
    [choice] = done.choices
    calls: Any = choice.message.tool_calls
    assert [(call.id, call.function.name, call.function.arguments) for call in calls] == [
        ("c1", "ls", '{"a":1}'),
        ("c2", "ls", "{}"),
    ]
    assert choice.finish_reason == "tool_calls"


async def test_an_attempt_that_was_abandoned(client: AsyncOpenAI, backend: Backend) -> None:
    begun = [attached(), event(1, message=said("One.")), event(2, delta=said("Two, thr", number=2)), void("message-2")]
    again = [event(8, delta=said("Two", number=3)), event(9, delta=said(", three.", number=3))]
    streams(backend, *begun, *again, event(10, message=said("Two, three.", number=3)), ended(11))
    assert joined(await chunks_of(client)) == "One.\n\nTwo, three."
    streams(backend, *begun, event(8, delta=said("Or four", number=3)), ended(9))
    with pytest.raises(openai.APIError) as caught:
        await chunks_of(client)
    assert caught.value.code == "attempt_abandoned"
    streams(backend, *begun, ended(9))
    with pytest.raises(openai.APIError, match="void"):
        await chunks_of(client)


async def test_failures_have_openais_shape(client: AsyncOpenAI, backend: Backend) -> None:
    fails(backend, "StreamMessages", NotFound("x", reason="AGENT_NOT_FOUND"))
    with pytest.raises(openai.NotFoundError) as missing:
        await chunks_of(client)
    assert (missing.value.code, missing.value.param) == ("model_not_found", "model")
    end = samples.turn_end()
    end.error.CopyFrom(RATE_LIMITED)
    answers(backend, end=end)
    with pytest.raises(openai.RateLimitError) as limited:
        await client.chat.completions.create(model=AGENT_ID, messages=HELLO)
    assert (limited.value.code, limited.value.type) == ("rate_limit_exceeded", "rate_limit_error")
    assert "slow down" in limited.value.message
    assert limited.value.response.headers["x-should-retry"] == "false"
    streams(backend, attached(), event(1, message=said("One.")), event(2, end=end))
    with pytest.raises(openai.APIError, match="slow down") as told:
        await chunks_of(client)
    assert told.value.code == "rate_limit_exceeded"
    fails(backend, "StreamMessages", Aborted("a call waits", reason="APPROVAL_PENDING"))
    with pytest.raises(openai.ConflictError) as pending:
        await chunks_of(client)
    assert pending.value.code == "approval_pending"
    with pytest.raises(openai.NotFoundError):
        await client.get("/nowhere", cast_to=object)


async def test_a_source_that_is_lost_for_good(backend: Backend, start_gateway: StartGateway) -> None:
    edge = await start_gateway(reattach_window=0.2)

    async def broken(_: Any) -> AsyncIterator[Any]:
        yield message_service_pb2.StreamMessagesResponse(event=attached())
        raise Unavailable("gone", reason="PEER_UNAVAILABLE")

    backend.on("StreamMessages", broken)
    fails(backend, "StreamRun", Unavailable("gone", reason="PEER_UNAVAILABLE"))
    async with openai_client(f"{edge.url}/v1") as client:
        with pytest.raises(openai.APIError, match="broke off") as caught:
            await asyncio.wait_for(chunks_of(client), 30)
    assert caught.value.code == "stream_incomplete"


async def test_the_password_and_large_bodies(backend: Backend, start_gateway: StartGateway) -> None:
    edge = await start_gateway(password="secret", max_body_bytes=1024 * 1024)
    answers(backend, said("ok"))
    async with openai_client(f"{edge.url}/v1", "wrong") as stranger:
        with pytest.raises(openai.AuthenticationError) as refused:
            await stranger.chat.completions.create(model=AGENT_ID, messages=HELLO)
        assert refused.value.code == "invalid_api_key"
    async with openai_client(f"{edge.url}/v1", "secret") as client:
        assert (await client.chat.completions.create(model=AGENT_ID, messages=HELLO)).choices
        with pytest.raises(openai.APIStatusError) as large:
            await client.chat.completions.create(
                model=AGENT_ID, messages=[{"role": "user", "content": "x" * 1024 * 1100}]
            )
        assert (large.value.status_code, large.value.type) == (413, "invalid_request_error")


async def test_agents_by_their_names(client: AsyncOpenAI, backend: Backend) -> None:
    answers(backend, said("ok"))
    other = AGENT_ID[:-1] + "b"
    named = {"Ada": [AGENT_ID], "Bob": [AGENT_ID, other], "agent-x": [other]}

    def agents(request: Any) -> agent_service_pb2.ListAgentsResponse:
        found = [samples.agent(id=one, name=request.name) for one in named.get(request.name, [])]
        return agent_service_pb2.ListAgentsResponse(agents=found)

    backend.on("ListAgents", agents)
    for name, agent_id in (("Ada", AGENT_ID), ("agent-x", other)):
        assert (await client.chat.completions.create(model=name, messages=HELLO)).model == agent_id
    with pytest.raises(openai.BadRequestError, match="several agents") as caught:
        await client.chat.completions.create(model="Bob", messages=HELLO)
    assert caught.value.param == "model"
    for stream in (False, True):
        with pytest.raises(openai.NotFoundError, match="gpt-4o") as missing:
            await client.chat.completions.create(model="gpt-4o", messages=HELLO, stream=stream)
        assert (missing.value.code, missing.value.param) == ("model_not_found", "model")


async def test_agents_are_listed_where_openais_client_asks(edge: Edge, backend: Backend) -> None:
    listed = agent_service_pb2.ListAgentsResponse(agents=[samples.agent()])
    backend.on("ListAgents", lambda _: listed)
    for base in ("/v1", "/openai/v1"):
        async with openai_client(edge.url + base) as client:
            [model] = (await client.models.list()).data
            assert (model.id, model.object, model.created, model.owned_by) == (AGENT_ID, "model", NOON.seconds, "loci")
            assert (await client.models.retrieve(AGENT_ID)).id == AGENT_ID
    for path, headers in (
        ("/v1/models/?format=openai", {}),
        ("/v1/models", {"accept": "application/json; format=openai"}),
        ("/openai/v1/models/", {}),
    ):
        found = (await edge.http.get(path, headers=headers)).json()
        assert (found["object"], found["data"][0]["name"]) == ("list", "Ada's agent")
    assert (await edge.http.get("/v1/models")).json()[0]["handle"] == "loci/demo"
    assert (await edge.sdk.models.list())[0].handle == "loci/demo"


async def test_repeated_requests_are_recognised(edge: Edge, backend: Backend) -> None:
    answers(backend, said("ok"))
    body = {"model": AGENT_ID, "messages": HELLO}
    for headers in ({}, {"x-stainless-retry-count": "1"}, {"idempotency-key": "k-1"}):
        await edge.http.post("/v1/chat/completions", json=body, headers=headers)
    turns = [request.turn for request in backend.requests("SendMessages")]
    assert len({turn.retry.request_hash for turn in turns}) == 1
    assert [turn.retry.is_retry for turn in turns] == [False, True, False]
    assert turns[2].retry.idempotency_key == "k-1"


@pytest.mark.parametrize("on_disconnect", ["detach", "cancel"])
async def test_a_client_that_leaves_does_not_cancel(
    backend: Backend, start_gateway: StartGateway, on_disconnect: str
) -> None:
    edge = await start_gateway(cancel_on_disconnect=on_disconnect == "cancel")
    left = asyncio.Event()

    async def slow(_: Any) -> AsyncIterator[Any]:
        yield message_service_pb2.StreamMessagesResponse(event=attached())
        try:
            await asyncio.Event().wait()
        finally:
            left.set()

    backend.on("StreamMessages", slow)
    async with openai_client(f"{edge.url}/v1") as client:
        stream = await client.chat.completions.create(model=AGENT_ID, messages=HELLO, stream=True)
        await anext(aiter(stream))
        await stream.close()
    await asyncio.wait_for(left.wait(), 20)
    if on_disconnect == "cancel":
        await settled(lambda: bool(backend.requests("CancelRuns")))
    else:
        assert backend.requests("CancelRuns") == []
