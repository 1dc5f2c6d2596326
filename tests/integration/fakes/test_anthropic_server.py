"""The fake Anthropic, seen through the vendor's own SDK."""

from collections.abc import AsyncIterator
from typing import Any

import anthropic
import httpx2
import pytest
from anthropic import AsyncAnthropic

from tests.fakes.anthropic_server import AnthropicServer
from tests.fakes.script import Reply, ToolCall, Usage, by_step
from tests.polling import until

HELLO: Any = [{"role": "user", "content": "hello"}]
DICE: Any = [{"name": "roll_dice", "description": "Roll.", "input_schema": {"type": "object", "properties": {}}}]


@pytest.fixture
async def fake() -> AsyncIterator[AnthropicServer]:
    async with AnthropicServer().running() as server:
        yield server


@pytest.fixture
async def client(fake: AnthropicServer) -> AsyncIterator[AsyncAnthropic]:
    async with AsyncAnthropic(base_url=fake.base_url, api_key="sk-ant-test", max_retries=0, timeout=30) as sdk:
        yield sdk


async def create(client: AsyncAnthropic, **options: Any) -> Any:
    return await client.messages.create(
        **{"model": "claude-haiku-4-5", "max_tokens": 100, "messages": HELLO, **options}
    )


async def events(client: AsyncAnthropic, **options: Any) -> list[Any]:
    return [event async for event in await create(client, stream=True, **options)]


async def test_blocking_text(fake: AnthropicServer, client: AsyncAnthropic) -> None:
    fake.reply(Reply(text="Hi there", usage=Usage(10, 2, cached=4, cache_write=3)))
    answer = await create(client)
    assert answer.content[0].text == "Hi there"
    assert answer.stop_reason == "end_turn"
    assert (answer.usage.input_tokens, answer.usage.cache_read_input_tokens) == (10, 4)
    assert answer.usage.cache_creation_input_tokens == 3


async def test_the_sdks_stream_helper_rebuilds_the_message(fake: AnthropicServer, client: AsyncAnthropic) -> None:
    calls = [ToolCall("roll_dice", {"num_sides": 6}), ToolCall("roll_dice", {"n": "ü" * 20})]
    fake.reply(Reply(text="Rolling now.", reasoning="I think", redacted="opaque", calls=calls))
    async with client.messages.stream(model="claude-haiku-4-5", max_tokens=100, messages=HELLO, tools=DICE) as stream:
        whole: Any = await stream.get_final_message()
    assert [block.type for block in whole.content] == [
        "thinking",
        "redacted_thinking",
        "text",
        "tool_use",
        "tool_use",
    ]
    assert (whole.content[0].thinking, whole.content[0].signature) == ("I think", "sig-of-the-fake")
    assert whole.content[2].text == "Rolling now."
    assert [block.input for block in whole.content[3:]] == [{"num_sides": 6}, {"n": "ü" * 20}]
    assert whole.stop_reason == "tool_use"


async def test_stream_events_in_order(fake: AnthropicServer, client: AsyncAnthropic) -> None:
    fake.reply(Reply(text="one two", line_end="\r\n"))
    assert [event.type for event in await events(client)] == [
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]


@pytest.mark.parametrize(
    ("kind", "error_class", "status"),
    [
        ("authentication", anthropic.AuthenticationError, 401),
        ("rate_limit", anthropic.RateLimitError, 429),
        ("quota", anthropic.BadRequestError, 400),
        ("context_overflow", anthropic.BadRequestError, 400),
        ("bad_request", anthropic.BadRequestError, 400),
        ("model_not_found", anthropic.NotFoundError, 404),
        ("server", anthropic.InternalServerError, 500),
        ("overloaded", anthropic.InternalServerError, 529),
    ],
)
async def test_errors(
    fake: AnthropicServer,
    client: AsyncAnthropic,
    kind: Any,
    error_class: type[anthropic.APIStatusError],
    status: int,
) -> None:
    fake.reply(Reply(error=kind, retry_after=2))
    with pytest.raises(error_class) as caught:
        await create(client)
    assert caught.value.status_code == status
    assert caught.value.response.headers["retry-after"] == "2"


async def test_what_the_vendor_refuses(fake: AnthropicServer, client: AsyncAnthropic) -> None:
    async def refused(**options: Any) -> str:
        with pytest.raises(anthropic.APIStatusError) as caught:
            await create(client, **options)
        return str(caught.value)

    use = {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_1", "name": "f", "input": {}}]}
    result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "1"}]}
    assert "without `tool_result`" in await refused(messages=[*HELLO, use, *HELLO])
    assert "unexpected `tool_use_id`" in await refused(messages=[*HELLO, result])
    assert "first message" in await refused(messages=[use, result])
    assert "non-empty" in await refused(messages=[{"role": "user", "content": ""}])
    assert "temperature: Extra inputs" in await refused(extra_body={"temperature": 1.0})
    assert "maximum allowed" in await refused(max_tokens=100_000)
    assert "model: claude-none" in await refused(model="claude-none")
    old_version = {"anthropic-version": "2023-06-01"}
    assert (await create(client, extra_body={"temperature": 1.0}, extra_headers=old_version)).content


async def test_cut_stream_mid_stream_error_and_hang(fake: AnthropicServer, client: AsyncAnthropic) -> None:
    fake.reply(Reply(text="a b c", truncate_after=4), Reply(text="a b c", error_after=4), Reply(hang=True))
    with pytest.raises((anthropic.APIConnectionError, httpx2.RemoteProtocolError)):
        await events(client)
    with pytest.raises(anthropic.APIStatusError, match="Overloaded"):
        await events(client)
    with pytest.raises(anthropic.APITimeoutError):
        await create(client, timeout=1)
    await until(lambda: [received.outcome for received in fake.requests] == ["cut", "done", "gone"])


async def test_marked_prompts_are_written_then_read(client: AsyncAnthropic) -> None:
    system = [{"type": "text", "text": "You are kind. " * 50, "cache_control": {"type": "ephemeral"}}]
    first, second = [(await create(client, system=system)).usage for _ in range(2)]
    assert first.cache_creation_input_tokens == second.cache_read_input_tokens > 0
    assert first.cache_read_input_tokens == second.cache_creation_input_tokens == 0


async def test_models_page(fake: AnthropicServer, client: AsyncAnthropic) -> None:
    listed = [model async for model in await client.models.list(limit=2)]
    assert [model.id for model in listed] == list(fake.chat_models)
    assert (listed[0].max_input_tokens, listed[0].max_tokens) == (200_000, 64_000)


async def test_rules_by_step(fake: AnthropicServer, client: AsyncAnthropic) -> None:
    fake.rules(*by_step(Reply(calls=[ToolCall("roll_dice", id="toolu_1")]), Reply(text="done")))
    use = {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_1", "name": "f", "input": {}}]}
    result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "1"}]}
    assert (await create(client, tools=DICE)).stop_reason == "tool_use"
    assert (await create(client, messages=[*HELLO, use, result])).content[0].text == "done"
