"""The fake of compatible vendors, seen through OpenAI's SDK, which is what they name as their own client."""

from typing import Any

import openai
import pytest
from openai import AsyncOpenAI

from tests.fakes.openai_compatible import CompatibleServer
from tests.fakes.openai_vendors import FLAVOURS
from tests.fakes.script import Reply, ToolCall, Usage

HELLO: Any = [{"role": "user", "content": "hello"}]


def first_model(vendor: str) -> str:
    return str(FLAVOURS[vendor].models[0]["id"])


@pytest.mark.parametrize("vendor", sorted(FLAVOURS))
async def test_replies_streams_and_models(vendor: str) -> None:
    async with (
        CompatibleServer(vendor).running() as fake,
        AsyncOpenAI(base_url=fake.base_url, api_key="k", max_retries=0, timeout=30) as sdk,
    ):
        fake.reply(*[Reply(text="So: 4.", reasoning="two and two", usage=Usage(9, 4, cached=3))] * 2)
        whole = await sdk.chat.completions.create(model=first_model(vendor), messages=HELLO)
        assert whole.choices[0].finish_reason == "stop"
        assert whole.usage is not None
        assert whole.usage.prompt_tokens == 9
        extra: Any = {"stream_options": {"include_usage": True}} if FLAVOURS[vendor].usage_in == "own" else {}
        stream = await sdk.chat.completions.create(model=first_model(vendor), messages=HELLO, stream=True, **extra)
        chunks: list[Any] = [chunk async for chunk in stream]
        assert [c.choices[0].finish_reason for c in chunks if c.choices][-1] == "stop"
        said = "".join(
            c.choices[0].delta.content for c in chunks if c.choices and isinstance(c.choices[0].delta.content, str)
        )
        assert said == "So: 4."
        if not FLAVOURS[vendor].lists_plainly:
            assert first_model(vendor) in [model.id async for model in sdk.models.list()]


@pytest.mark.parametrize("vendor", sorted(FLAVOURS))
async def test_what_the_vendor_refuses(vendor: str) -> None:
    flavour = FLAVOURS[vendor]
    async with (
        CompatibleServer(vendor).running() as fake,
        AsyncOpenAI(base_url=fake.base_url, api_key="k", max_retries=0, timeout=30) as sdk,
    ):
        fake.reply(Reply(error="rate_limit", retry_after=2))
        with pytest.raises(openai.RateLimitError):
            await sdk.chat.completions.create(model=first_model(vendor), messages=HELLO)
        with pytest.raises(openai.NotFoundError):
            await sdk.chat.completions.create(model="no-such-model", messages=HELLO)
        if flavour.fields is not None:
            with pytest.raises(openai.BadRequestError) as caught:
                await sdk.chat.completions.create(
                    model=first_model(vendor), messages=HELLO, extra_body={"no_such_field": 1}
                )
            assert "no_such_field" in caught.value.response.text
        if flavour.demands:
            call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
            history: Any = [
                *HELLO,
                {"role": "assistant", "content": None, "tool_calls": [call]},
                {"role": "tool", "tool_call_id": "c", "content": "1"},
            ]
            with pytest.raises(openai.BadRequestError, match=flavour.demands):
                await sdk.chat.completions.create(model=first_model(vendor), messages=history)


async def test_parallel_calls_in_the_words_of_a_vendor() -> None:
    async with (
        CompatibleServer("mistral").running() as fake,
        AsyncOpenAI(base_url=fake.base_url, api_key="k", max_retries=0, timeout=30) as sdk,
    ):
        fake.reply(Reply(calls=[ToolCall("f", {"a": 1}), ToolCall("f", {"a": 2})]))
        answer = await sdk.chat.completions.create(model=first_model("mistral"), messages=HELLO)
        calls = answer.choices[0].message.tool_calls
        assert calls is not None
        assert [call.function.arguments for call in calls if call.type == "function"] == ['{"a":1}', '{"a":2}']
