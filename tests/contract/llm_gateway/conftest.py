"""`world`: a provider under contract. Vendors stand behind their fake over HTTP, with the vendor's real SDK between."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from services.llm_gateway.core.chat import ChatRequest, Completed, Delta, Event, Generation, Message
from services.llm_gateway.core.models import ChatModel
from services.llm_gateway.core.ports import Provider
from services.llm_gateway.core.provider_types import base_url
from tests.contract.llm_gateway.worlds import WorldSpec, all_worlds
from tests.fakes.script import Reply, ToolCall
from tests.unit.llm_gateway.builders import request, user

WORLDS = all_worlds()
VENDORS = [name for name, spec in WORLDS.items() if spec.fake is not None]


def of_dialect(*dialects: str) -> list[str]:
    """The worlds whose requests have the fields of one of these dialects."""
    return [name for name, spec in WORLDS.items() if spec.dialect in dialects]


def framed_by(*framings: str) -> list[str]:
    """The vendors' worlds whose streams are framed so."""
    return [name for name in VENDORS if WORLDS[name].framing in framings]


@dataclass
class World:
    """A provider, a model of it, and the fake behind it (none for the demo, which makes its replies itself)."""

    provider: Provider
    model: ChatModel
    # A FakeServer, or None; of no type, so that cases can reach what only one vendor's has.
    fake: Any
    spec: WorldSpec

    @property
    def vendor(self) -> Any:
        """The fake, in cases for vendors alone."""
        assert self.fake is not None
        return self.fake

    @property
    def sent(self) -> Any:
        """The last chat that the fake received."""
        paths = self.spec.chat_paths
        return [one for one in self.vendor.requests if not paths or one.path.endswith(paths)][-1]

    def carries(self, what: str) -> bool:
        """Whether the provider can carry it; see WorldSpec."""
        return what in self.spec.carries

    def script(self, *replies: Reply) -> None:
        """Sets the vendor's answers; the demo follows the request's own words."""
        if self.fake is not None:
            self.fake.reply(*replies)

    def ask(self, *messages: Message | str, **options: Any) -> ChatRequest:
        """A request to this world's model."""
        made = [user(message) if isinstance(message, str) else message for message in messages]
        return request(*made, handle=self.model.handle, **{**self.spec.asks, **options})

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


@pytest.fixture(params=WORLDS)
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
    spec = WORLDS[name]
    if spec.fake is None:
        yield World(spec.make(spec.config("")), spec.model(), None, spec)
        return
    fake = spec.fake()
    async with fake.running():
        provider = spec.make(spec.config(base_url(spec.handle.partition("/")[0], fake.base_url)))
        yield World(provider, spec.model(), fake, spec)
        await provider.close()
