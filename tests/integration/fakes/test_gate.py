"""Gates of the fakes: what is held back comes when it is let, and a client that leaves is noticed."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import pytest
from openai import AsyncOpenAI

from tests.fakes.openai_server import OpenAIServer
from tests.fakes.script import Reply, Rule
from tests.polling import until

HELLO: Any = [{"role": "user", "content": "hello"}]


@pytest.fixture
async def fake() -> AsyncIterator[OpenAIServer]:
    async with OpenAIServer().running() as server:
        yield server


@pytest.fixture
async def client(fake: OpenAIServer) -> AsyncIterator[AsyncOpenAI]:
    async with AsyncOpenAI(api_key="sk-test", base_url=fake.base_url, max_retries=0) as sdk:
        yield sdk


async def test_a_whole_reply_waits(fake: OpenAIServer, client: AsyncOpenAI) -> None:
    gate = fake.gate()
    fake.reply(Reply(text="a b", gate=gate, gate_after=2))
    asked = asyncio.create_task(client.chat.completions.create(model="gpt-4o-mini", messages=HELLO))
    await until(lambda: gate.is_reached)
    assert (asked.done(), fake.requests[0].outcome) == (False, "open")
    gate.open()
    assert (await asked).choices[0].message.content == "a b"


async def test_a_stream_waits_in_its_middle(fake: OpenAIServer, client: AsyncOpenAI) -> None:
    gate = fake.gate()
    fake.reply(Reply(text="a b c", gate=gate, gate_after=2))
    stream = await client.chat.completions.create(model="gpt-4o-mini", messages=HELLO, stream=True)
    came = [await anext(stream), await anext(stream)]
    await until(lambda: gate.is_reached)
    gate.open()
    came += [chunk async for chunk in stream]
    assert "".join(chunk.choices[0].delta.content or "" for chunk in came if chunk.choices) == "a b c"


async def test_who_leaves_is_gone_and_a_reset_opens(fake: OpenAIServer, client: AsyncOpenAI) -> None:
    gate = fake.gate()
    fake.rules(Rule(Reply(text="a", gate=gate)))
    asked = asyncio.create_task(client.chat.completions.create(model="gpt-4o-mini", messages=HELLO))
    await until(lambda: gate.is_reached)
    [received] = fake.requests
    asked.cancel()
    with suppress(asyncio.CancelledError):
        await asked
    await until(lambda: received.outcome == "gone")
    assert not gate.is_open
    fake.reset()
    assert gate.is_open
