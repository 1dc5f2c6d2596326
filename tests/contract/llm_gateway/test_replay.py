"""A recording is replayed without a network and without a key, byte for byte, in every dialect over HTTP."""

from __future__ import annotations

import stat
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from services.llm_gateway.core import errors
from services.llm_gateway.core.chat import ChatRequest, Event
from services.llm_gateway.core.models import ChatModel
from services.llm_gateway.core.ports import Provider
from services.llm_gateway.core.provider_config import ProviderConfig
from services.llm_gateway.core.provider_types import base_url
from services.llm_gateway.recordings.replayer import recordings
from tests.contract.llm_gateway.conftest import VENDORS, WORLDS, calling
from tests.contract.llm_gateway.worlds import WorldSpec
from tests.fakes import script
from tests.fakes.script import Reply
from tests.unit.llm_gateway.builders import request, tool, user

DICE = tool("roll_dice", num_sides="integer")
KEY = "sk-a-key-that-is-nowhere-else"


@dataclass
class Taped:
    """A provider of which everything is recorded, the fake behind it, and the folder of the recording."""

    spec: WorldSpec
    config: ProviderConfig
    fake: Any
    folder: Path

    def made(self, **changes: Any) -> Provider:
        """The provider, recording unless told otherwise."""
        return self.spec.make(replace(self.config, **{"record_to": str(self.folder), **changes}))

    def replaying(self, **changes: Any) -> Provider:
        """The provider with another key and the network closed."""
        return self.made(record_to="", replay_from=str(self.folder), api_key="replayed", **changes)

    @property
    def model(self) -> ChatModel:
        """The model that is asked."""
        return self.spec.model()

    def ask(self, text: str, **options: Any) -> ChatRequest:
        """A request."""
        return request(user(text), handle=self.spec.handle, **options)


@pytest.fixture(params=VENDORS)
async def taped(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Taped]:
    """Each vendor in turn."""
    spec = WORLDS[request.param]
    assert spec.fake is not None
    fake = spec.fake()
    async with fake.running():
        config = spec.config(base_url(spec.handle.partition("/")[0], fake.base_url))
        fake.takes_key(KEY)
        yield Taped(spec, replace(config, api_key=KEY), fake, tmp_path / "recording")


async def outcome(provider: Provider, asked: ChatRequest, model: ChatModel, *, stream: bool) -> list[Event | str]:
    """All events of a call; the last may be the error that ended it."""
    found: list[Event | str] = []
    try:
        async for event in provider.generate(asked, model, stream=stream):
            found.append(event)
    except errors.LlmError as error:
        found.append(f"{type(error).__name__}: {error.message}")
    return found


async def everything(taped: Taped, provider: Provider) -> list[Any]:
    """Returns the outcome of one call of each kind."""
    calls = [(text, stream) for text in ("hello", "hello", "use tools", "too fast") for stream in (False, True)]
    options = {"use tools": {"tools": [DICE]}}
    found: list[Any] = [sorted(one.name for one in await provider.list_models(5.0))]
    for text, stream in calls:
        asked = taped.ask(text, **options.get(text, {}))
        found.append(await outcome(provider, asked, taped.model, stream=stream))
    found.append(await outcome(provider, taped.ask("broken"), taped.model, stream=True))
    return found


async def test_what_was_recorded_comes_again(taped: Taped) -> None:
    said = [Reply(text="Grüße 👋 one"), Reply(text="a b c", delta_delay=0.001)] * 2
    said += [calling(script.ToolCall("roll_dice", {"num_sides": 6}))] * 2
    said += [Reply(error="rate_limit", retry_after=3)] * 2
    said += [Reply(text="a b c d e f", truncate_after=4)]
    taped.fake.reply(*said)
    recording = taped.made()
    before = await everything(taped, recording)
    await recording.close()
    assert len(before) == 10
    assert str(before[-1][-1]).startswith("LlmStreamIncomplete")
    await taped.fake.stop()
    requests = len(taped.fake.requests)
    replaying = taped.replaying()
    assert await everything(taped, replaying) == before
    await replaying.close()
    assert len(taped.fake.requests) == requests


async def test_equal_requests_are_answered_in_order_and_the_last_again(taped: Taped) -> None:
    taped.fake.reply(Reply(text="one"), Reply(text="two"))
    recording = taped.made()
    asked = taped.ask("hello")
    first, second = [await outcome(recording, asked, taped.model, stream=True) for _ in range(2)]
    await recording.close()
    replaying = taped.replaying()
    again = [await outcome(replaying, asked, taped.model, stream=True) for _ in range(3)]
    await replaying.close()
    assert first != second
    assert again == [first, second, second]


async def test_a_call_that_was_not_recorded(taped: Taped) -> None:
    recording = taped.made()
    await outcome(recording, taped.ask("what is it?"), taped.model, stream=True)
    await recording.close()
    replaying = taped.replaying()
    with pytest.raises(errors.LlmReplayMissing) as caught:
        _ = [event async for event in replaying.generate(taped.ask("what was it?"), taped.model, stream=True)]
    await replaying.close()
    assert not caught.value.retryable
    assert caught.value.metadata["provider"] == taped.config.name
    assert "what is it?" in caught.value.message
    assert "what was it?" in caught.value.message
    in_order = taped.replaying(replay_in_order=True)
    found = await outcome(in_order, taped.ask("what was it?"), taped.model, stream=True)
    assert not isinstance(found[-1], str)
    await in_order.close()


async def test_no_key_is_recorded_not_even_one_that_is_quoted(taped: Taped) -> None:
    for gzip in (False, True):
        taped.fake.reply(Reply(error="authentication", message=f"No such key: {KEY}.", gzip=gzip))
    recording = taped.made()
    for stream in (False, True):
        await outcome(recording, taped.ask("hello"), taped.model, stream=stream)
    await recording.close()
    [file] = taped.folder.iterdir()
    assert KEY.encode() not in file.read_bytes()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    [recorded] = recordings(replace(taped.config, replay_from=str(taped.folder)))
    # Some speak OpenAI's dialect below the base URL.
    assert recorded.provider["base_url"].removesuffix("/v1") == taped.config.base_url.removesuffix("/v1")
    assert any(exchange.answered.status >= 400 for exchange in recorded.exchanges)
    replaying = taped.replaying()
    for stream in (False, True):
        [told] = await outcome(replaying, taped.ask("hello"), taped.model, stream=stream)
        assert str(told).startswith("LlmAuthentication")
        assert "[removed]" in str(told)
    await replaying.close()


async def test_a_call_that_its_caller_left(taped: Taped) -> None:
    taped.fake.reply(Reply(text="word " * 200, delta_delay=0.01))
    recording = taped.made()
    events = recording.generate(taped.ask("hello"), taped.model, stream=True)
    first = await anext(events)
    await events.aclose()
    await recording.close()
    replaying = taped.replaying()
    again = await outcome(replaying, taped.ask("hello"), taped.model, stream=True)
    await replaying.close()
    assert again[0] == first
    assert str(again[-1]).startswith("LlmStreamIncomplete")
