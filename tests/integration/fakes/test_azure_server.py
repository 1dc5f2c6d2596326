"""The fake Azure OpenAI, seen through the vendor's own SDK."""

from collections.abc import AsyncIterator
from typing import Any

import openai
import pytest
from openai import AsyncAzureOpenAI, AsyncOpenAI

from tests.fakes.azure_server import AzureServer
from tests.fakes.script import Reply

HELLO: Any = [{"role": "user", "content": "hello"}]


@pytest.fixture
async def fake() -> AsyncIterator[AzureServer]:
    async with AzureServer().running() as server:
        yield server


@pytest.fixture
async def dated(fake: AzureServer) -> AsyncIterator[AsyncAzureOpenAI]:
    version = "2025-04-01-preview"
    async with AsyncAzureOpenAI(
        azure_endpoint=fake.base_url, api_version=version, api_key="key", max_retries=0
    ) as client:
        yield client


async def test_chats_embeddings_and_responses_of_the_dated_api(fake: AzureServer, dated: AsyncAzureOpenAI) -> None:
    fake.reply(*[Reply(text="Hi there")] * 3)
    chat = await dated.chat.completions.create(model="my-mini", messages=HELLO)
    assert (chat.model, chat.choices[0].message.content) == ("gpt-4o-mini", "Hi there")
    chunks = [c async for c in await dated.chat.completions.create(model="my-mini", messages=HELLO, stream=True)]
    assert chunks[0].choices == []
    assert "".join(c.choices[0].delta.content or "" for c in chunks if c.choices) == "Hi there"
    assert fake.requests[-1].path == "/openai/deployments/my-mini/chat/completions"
    made = await dated.responses.create(model="my-five", input="hello")
    assert (made.model, made.output_text) == ("gpt-5", "Hi there")
    embedded = await dated.embeddings.create(model="text-embedding-3-small", input=["a"])
    assert len(embedded.data[0].embedding) == 1536


async def test_the_v1_api_by_openais_own_client(fake: AzureServer) -> None:
    fake.reply(Reply(text="Hi there"))
    url = f"{fake.base_url}/openai/v1/"
    async with AsyncOpenAI(base_url=url, api_key="key", default_headers={"api-key": "key"}, max_retries=0) as client:
        made = await client.responses.create(model="my-five", input="hello")
        assert made.output_text == "Hi there"
        names = [model.id async for model in client.models.list()]
    assert "gpt-5" in names


async def test_what_azure_refuses(fake: AzureServer, dated: AsyncAzureOpenAI) -> None:
    with pytest.raises(openai.NotFoundError, match="deployment for this resource"):
        await dated.chat.completions.create(model="gpt-4o-mini", messages=HELLO)
    old = dated.with_options(api_version="2024-10-21")
    with pytest.raises(openai.NotFoundError, match="Resource not found"):
        await old.responses.create(model="my-five", input="hello")
    async with AsyncOpenAI(base_url=f"{fake.base_url}/openai/v1", api_key="key", max_retries=0) as bearer:
        with pytest.raises(openai.AuthenticationError, match="invalid subscription key"):
            await bearer.responses.create(model="my-five", input="hello")
