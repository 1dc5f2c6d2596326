"""The fake OpenAI, seen through the vendor's own SDK."""

import time
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import openai
import pytest
from openai import AsyncOpenAI
from openai.types.chat import ChatCompletionChunk

from tests.fakes.openai_server import OpenAIServer
from tests.fakes.script import Reply, Rule, ToolCall, Usage, by_step
from tests.polling import until

HELLO: Any = [{"role": "user", "content": "hello"}]
DICE: Any = [
    {
        "type": "function",
        "function": {"name": "roll_dice", "parameters": {"type": "object", "properties": {}}},
    }
]


@pytest.fixture
async def fake() -> AsyncIterator[OpenAIServer]:
    async with OpenAIServer().running() as server:
        yield server


@pytest.fixture
async def client(fake: OpenAIServer) -> AsyncIterator[AsyncOpenAI]:
    async with AsyncOpenAI(base_url=fake.base_url, api_key="sk-test", max_retries=0, timeout=30) as sdk:
        yield sdk


async def chunks(client: AsyncOpenAI, **options: Any) -> list[ChatCompletionChunk]:
    stream = await client.chat.completions.create(
        model="gpt-4o-mini", messages=HELLO, stream=True, stream_options={"include_usage": True}, **options
    )
    return [chunk async for chunk in stream]


async def test_blocking_text_and_default(fake: OpenAIServer, client: AsyncOpenAI) -> None:
    fake.reply(Reply(text="Hi there", usage=Usage(10, 2, cached=4)))
    answer = await client.chat.completions.create(model="gpt-4o-mini", messages=HELLO)
    assert answer.choices[0].message.content == "Hi there"
    assert answer.choices[0].finish_reason == "stop"
    assert answer.usage is not None
    assert answer.usage.prompt_tokens_details is not None
    assert (answer.usage.total_tokens, answer.usage.prompt_tokens_details.cached_tokens) == (12, 4)
    again = await client.chat.completions.create(model="gpt-4o-mini", messages=HELLO)
    assert again.choices[0].message.content == "Hello from the fake model."
    assert fake.bodies("completions")[0]["messages"] == HELLO


async def test_parallel_calls_blocking_and_streamed(fake: OpenAIServer, client: AsyncOpenAI) -> None:
    reply = Reply(text="Rolling.", calls=[ToolCall("roll_dice", {"num_sides": 6}), ToolCall("roll_dice", {"n": "ü"})])
    fake.reply(reply, reply)
    whole = await client.chat.completions.create(model="gpt-4o-mini", messages=HELLO, tools=DICE)
    calls = whole.choices[0].message.tool_calls
    assert calls is not None
    assert [call.function.arguments for call in calls if call.type == "function"] == [
        '{"num_sides":6}',
        '{"n":"ü"}',
    ]
    received = await chunks(client, tools=DICE)
    deltas = [call for chunk in received for choice in chunk.choices for call in choice.delta.tool_calls or []]
    for index, expected in enumerate(['{"num_sides":6}', '{"n":"ü"}']):
        own = [delta for delta in deltas if delta.index == index]
        assert own[0].id
        assert own[0].function is not None
        assert own[0].function.name == "roll_dice"
        assert "".join(d.function.arguments or "" for d in own if d.function) == expected
    assert [c.choices[0].finish_reason for c in received if c.choices][-1] == "tool_calls"


async def test_stream_has_usage_last_and_text_in_pieces(fake: OpenAIServer, client: AsyncOpenAI) -> None:
    fake.reply(Reply(text="one two three", reasoning="let me think", usage=Usage(7, 3, reasoning=2)))
    received = await chunks(client)
    texts = [c.choices[0].delta.content for c in received if c.choices and c.choices[0].delta.content]
    assert texts == ["one ", "two ", "three"]
    thoughts = [(c.choices[0].delta.model_extra or {}).get("reasoning_content") for c in received if c.choices]
    assert "".join(filter(None, thoughts)) == "let me think"
    assert received[-1].choices == []
    assert received[-1].usage is not None
    assert received[-1].usage.completion_tokens == 3


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
async def test_comments_and_line_ends_parse(fake: OpenAIServer, client: AsyncOpenAI, line_end: str) -> None:
    fake.reply(Reply(text="a b", line_end=line_end, keepalives=True))
    received = await chunks(client)
    assert "".join(c.choices[0].delta.content or "" for c in received if c.choices) == "a b"


@pytest.mark.parametrize(
    ("kind", "error_class", "status"),
    [
        ("authentication", openai.AuthenticationError, 401),
        ("rate_limit", openai.RateLimitError, 429),
        ("quota", openai.RateLimitError, 429),
        ("context_overflow", openai.BadRequestError, 400),
        ("bad_request", openai.BadRequestError, 400),
        ("model_not_found", openai.NotFoundError, 404),
        ("server", openai.InternalServerError, 500),
        ("overloaded", openai.InternalServerError, 503),
    ],
)
async def test_errors(
    fake: OpenAIServer, client: AsyncOpenAI, kind: Any, error_class: type[openai.APIStatusError], status: int
) -> None:
    fake.reply(Reply(error=kind, retry_after=2))
    with pytest.raises(error_class) as caught:
        await client.chat.completions.create(model="gpt-4o-mini", messages=HELLO)
    assert caught.value.status_code == status
    assert caught.value.response.headers["retry-after"] == "2"


async def test_what_the_vendor_refuses(fake: OpenAIServer, client: AsyncOpenAI) -> None:
    async def refused(**options: Any) -> str:
        with pytest.raises(openai.APIStatusError) as caught:
            await client.chat.completions.create(**{"model": "gpt-4o-mini", "messages": HELLO, **options})
        return str(caught.value)

    call = {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    calling = {"role": "assistant", "content": None, "tool_calls": [call]}
    assert "must be followed by tool messages" in await refused(messages=[*HELLO, calling, *HELLO])
    assert "without response" in await refused(messages=[*HELLO, calling])
    assert "preceding message" in await refused(messages=[{"role": "tool", "tool_call_id": "x", "content": "1"}])
    assert "empty array" in await refused(messages=[])
    assert "does not exist" in await refused(model="gpt-none")
    assert "max_completion_tokens" in await refused(model="gpt-5", max_tokens=5)
    assert "Function tools" in await refused(model="gpt-6-sol", tools=DICE)
    assert "Unrecognized" in await refused(reasoning_effort="low")


async def test_truncated_and_cut_streams(fake: OpenAIServer, client: AsyncOpenAI) -> None:
    fake.reply(Reply(text="a b c d", truncate_after=3), Reply(text="a b c d", end_after=3))
    with pytest.raises((openai.APIConnectionError, httpx2.RemoteProtocolError)):
        await chunks(client)
    assert len(await chunks(client)) == 3
    assert [received.outcome for received in fake.requests] == ["cut", "done"]


async def test_mid_stream_error_and_malformed_bodies(fake: OpenAIServer, client: AsyncOpenAI) -> None:
    fake.reply(Reply(text="a b", error_after=2, message="boom"), Reply(raw_body="<html>hi</html>"))
    with pytest.raises(openai.APIError, match="boom"):
        await chunks(client)
    raw = await client.chat.completions.with_raw_response.create(model="gpt-4o-mini", messages=HELLO)
    assert raw.http_response.headers["content-type"] == "text/html"
    fake.reply(Reply(raw_body="data: {broken\n\n", content_type="text/event-stream"))
    with pytest.raises(ValueError, match="Expecting"):
        await chunks(client)


async def test_hang_first_delay_and_client_leaving(fake: OpenAIServer, client: AsyncOpenAI) -> None:
    fake.reply(Reply(hang=True), Reply(text="late", first_delay=0.1))
    with pytest.raises(openai.APITimeoutError):
        await client.with_options(timeout=1).chat.completions.create(model="gpt-4o-mini", messages=HELLO)
    started = time.monotonic()
    await client.chat.completions.create(model="gpt-4o-mini", messages=HELLO)
    assert time.monotonic() - started > 0.09
    await until(lambda: [received.outcome for received in fake.requests] == ["gone", "done"])


async def test_embeddings_models_and_routes(fake: OpenAIServer, client: AsyncOpenAI) -> None:
    answer = await client.embeddings.create(model="text-embedding-3-small", input=["a", "b", "a"])
    first, second, third = (item.embedding for item in answer.data)
    assert len(first) == 1536
    assert first == third != second
    plain = await client.embeddings.create(model="text-embedding-3-small", input="a", encoding_format="float")
    assert plain.data[0].embedding == pytest.approx(first, abs=1e-6)
    assert "gpt-4o-mini" in [model.id async for model in await client.models.list()]
    fake.rules(Rule(Reply(error="server"), route="models"))
    with pytest.raises(openai.InternalServerError):
        await client.models.list()


async def test_rules_by_step_repeat(fake: OpenAIServer, client: AsyncOpenAI) -> None:
    fake.rules(*by_step(Reply(calls=[ToolCall("roll_dice", id="call_1")]), Reply(text="done")))
    call = {"id": "call_1", "type": "function", "function": {"name": "roll_dice", "arguments": "{}"}}
    after: Any = [
        *HELLO,
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": "6"},
    ]
    for _ in range(2):
        first = await client.chat.completions.create(model="gpt-4o-mini", messages=HELLO, tools=DICE)
        assert first.choices[0].finish_reason == "tool_calls"
        second = await client.chat.completions.create(model="gpt-4o-mini", messages=after, tools=DICE)
        assert second.choices[0].message.content == "done"


def test_scripted_from_another_process_over_http() -> None:
    with OpenAIServer().in_thread() as fake, httpx2.Client(base_url=f"http://127.0.0.1:{fake.port}") as http:
        document = {
            "replies": [{"text": "queued", "usage": {"input": 1, "output": 1}}],
            "rules": [{"contains": "hello", "reply": {"calls": [{"name": "f", "arguments": {"a": 1}}]}}],
            "default": {"text": "other"},
        }
        assert http.post("/_script", json=document).status_code == 200
        assert "there are" in http.post("/_script", json={"replies": [{"txt": "x"}]}).json()["error"]
        sync = openai.OpenAI(base_url=fake.base_url, api_key="sk-test", max_retries=0)
        with sync:
            texts = [sync.chat.completions.create(model="gpt-4o", messages=HELLO).choices[0].message for _ in range(2)]
        assert texts[0].content == "queued"
        assert texts[1].tool_calls is not None
        assert [r["outcome"] for r in http.get("/_requests").json()] == ["done", "done"]
        http.post("/_reset")
        assert http.get("/_requests").json() == []
