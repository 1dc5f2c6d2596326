"""`world`: a provider under contract. Vendors stand behind their fake over HTTP, with the vendor's real SDK between."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from services.llm_gateway.chat import ChatRequest, Completed, Delta, Event, Generation, Message
from services.llm_gateway.provider import ChatModel, Provider
from services.llm_gateway.provider_types import base_url
from services.llm_gateway.providers.anthropic.client import AnthropicProvider
from services.llm_gateway.providers.demo.client import DemoProvider
from services.llm_gateway.providers.openai.client import OpenAIProvider
from tests.fakes.anthropic_server import AnthropicServer
from tests.fakes.openai_server import OpenAIServer
from tests.fakes.script import Reply, ToolCall
from tests.unit.llm_gateway.builders import config, model, request, user

VENDORS = ("openai", "anthropic")


@dataclass
class World:
    """A provider, a model of it, and the fake behind it (none for the demo, which makes its replies itself)."""

    provider: Provider
    model: ChatModel
    fake: OpenAIServer | AnthropicServer | None

    @property
    def vendor(self) -> OpenAIServer | AnthropicServer:
        """The fake, in cases for vendors alone."""
        assert self.fake is not None
        return self.fake

    def script(self, *replies: Reply) -> None:
        """What a vendor answers; the demo follows the request's own words."""
        if self.fake is not None:
            self.fake.reply(*replies)

    def ask(self, *messages: Message | str, **options: Any) -> ChatRequest:
        """A request to this world's model."""
        made = [user(message) if isinstance(message, str) else message for message in messages]
        return request(*made, handle=self.model.handle, **options)

    async def events(self, asked: ChatRequest, *, stream: bool = True) -> list[Event]:
        """All events of a call."""
        return [event async for event in self.provider.generate(asked, self.model, stream=stream)]

    async def whole(self, asked: ChatRequest) -> Generation:
        """The reply to a blocking call."""
        (completed,) = await self.events(asked, stream=False)
        assert isinstance(completed, Completed)
        return completed.generation

    async def streamed(self, asked: ChatRequest) -> tuple[Sequence[Delta], Generation]:
        """The deltas and the reply of a streamed call."""
        *deltas, completed = await self.events(asked)
        assert isinstance(completed, Completed)
        return [delta for delta in deltas if not isinstance(delta, Completed)], completed.generation


def calling(*calls: ToolCall, text: str = "") -> Reply:
    return Reply(text=text, calls=calls)


@pytest.fixture(params=[*VENDORS, "demo"])
async def world(request: pytest.FixtureRequest) -> AsyncIterator[World]:
    """Each provider in turn."""
    async for made in _world(request.param):
        yield made


@pytest.fixture(params=VENDORS)
async def vendor_world(request: pytest.FixtureRequest) -> AsyncIterator[World]:
    """Each provider with a vendor, and so with failures, behind it."""
    async for made in _world(request.param):
        yield made


async def _world(name: str) -> AsyncIterator[World]:
    if name == "demo":
        yield World(DemoProvider(config("loci")), model("loci/demo"), None)
        return
    fake: OpenAIServer | AnthropicServer = OpenAIServer() if name == "openai" else AnthropicServer()
    async with fake.running():
        settings = config(name, base_url(name, fake.base_url), stall_seconds=0.5, reply_seconds=0.5)
        provider: Provider = OpenAIProvider(settings) if name == "openai" else AnthropicProvider(settings)
        handle = "openai/gpt-4o-mini" if name == "openai" else "anthropic/claude-haiku-4-5"
        yield World(provider, model(handle), fake)
        await provider.close()
