"""`live`: each vendor whose key is in the environment, as the llm gateway would call it. For `make test-live` alone.

This is the only place from which anything leaves the machine. Without LOCI_LIVE nothing here is even collected.
LOCI_LIVE_MODELS="openai=gpt-4o-mini groq=llama-3.1-8b-instant" says which models are asked instead of those below; of a
vendor without either the first chat model that it lists.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from services.common.settings import Env
from services.llm_gateway.core.chat import ChatRequest, Completed, Delta, Event, Generation, Message
from services.llm_gateway.core.known_models import known
from services.llm_gateway.core.models import ChatModel, ModelKind
from services.llm_gateway.core.ports import Provider
from services.llm_gateway.core.provider_config import ProviderConfig
from services.llm_gateway.core.provider_types import TYPES, ProviderType
from services.llm_gateway.providers.environment import read_providers
from services.llm_gateway.providers.registry import construct
from tests.unit.llm_gateway.builders import model, request, user

collect_ignore_glob = [] if os.environ.get("LOCI_LIVE") else ["test_*.py"]

MODELS_SETTING = "LOCI_LIVE_MODELS"
# A call costs at most this many tokens of output, one that thinks _MOST_WITH_THOUGHTS.
_MOST, _MOST_WITH_THOUGHTS = 600, 3_000
_LISTED_WITHIN = 20.0


@dataclass(frozen=True)
class Choice:
    """A model, and the model_settings with which it thinks aloud."""

    name: str = ""
    thinking: Mapping[str, Any] = field(default_factory=lambda: {"reasoning": {"reasoning_effort": "low"}})


CHOICES = {
    "openai": Choice("gpt-5.4-mini"),
    "anthropic": Choice("claude-haiku-4-5", {"thinking": {"type": "enabled", "budget_tokens": 1024}}),
    "google_ai": Choice("gemini-3.5-flash-lite", {"thinking_config": {"include_thoughts": True}}),
    "google_vertex": Choice("gemini-3.5-flash-lite", {"thinking_config": {"include_thoughts": True}}),
    "minimax": Choice("MiniMax-M3.1-Flash", {"thinking": {"type": "enabled", "budget_tokens": 1024}}),
}
# Those that answer by themselves, here or as others, are no vendors.
VENDORS = [row for row in TYPES.values() if row.name != "loci"]


@dataclass
class Live:
    """A vendor, and the model that is asked there."""

    config: ProviderConfig
    provider: Provider
    model: ChatModel
    thinking: Mapping[str, Any]

    def ask(self, *messages: Message | str, **options: Any) -> ChatRequest:
        """A request of a bounded price."""
        made = [user(message) if isinstance(message, str) else message for message in messages]
        most = _MOST_WITH_THOUGHTS if self.model.capabilities.reasoning else _MOST
        return request(*made, handle=self.model.handle, **{"max_output_tokens": most, **options})

    async def reply(self, asked: ChatRequest, *, stream: bool = False) -> Generation:
        """The whole reply."""
        return (await self.told(asked, stream=stream))[1]

    async def told(self, asked: ChatRequest, *, stream: bool = True) -> tuple[Sequence[Delta], Generation]:
        """The deltas and the reply."""
        events: list[Event] = [one async for one in self.provider.generate(asked, self.model, stream=stream)]
        last = events.pop()
        assert isinstance(last, Completed)
        return [one for one in events if not isinstance(one, Completed)], last.generation

    def with_key(self, key: str) -> Provider:
        """The provider with another key."""
        return construct(replace(self.config, api_key=key))


@pytest.fixture(params=VENDORS, ids=lambda row: row.name)
async def live(request: pytest.FixtureRequest) -> AsyncIterator[Live]:
    """Each vendor in turn; skips those that nothing in the environment names."""
    row: ProviderType = request.param
    config = next((one for one in read_providers(Env.of_process()) if one.name == row.name), None)
    if config is None:
        pytest.skip(f"{row.name} is not asked: {' or '.join(row.present_by)} is not set")
    provider = construct(config)
    choice = CHOICES.get(row.name, Choice())
    try:
        name = overrides().get(row.name) or choice.name or await _first_listed(provider)
        yield Live(config, provider, model(f"{row.name}/{name}"), choice.thinking)
    finally:
        await provider.close()


def overrides() -> dict[str, str]:
    """The models that LOCI_LIVE_MODELS names, by vendor."""
    pairs = [pair.partition("=") for pair in os.environ.get(MODELS_SETTING, "").split()]
    unknown = [vendor for vendor, _, name in pairs if vendor not in TYPES or not name]
    if unknown:
        raise pytest.UsageError(f'{MODELS_SETTING} has {unknown[0]!r}; expected "vendor=model vendor=model"')
    return {vendor: name for vendor, _, name in pairs}


async def _first_listed(provider: Provider) -> str:
    listed = await provider.list_models(_LISTED_WITHIN)
    chats = [one.name for one in listed if one.kind in (ModelKind.CHAT, ModelKind.UNKNOWN)]
    if not chats:
        pytest.skip(f"{provider.name} lists no chat model: name one in {MODELS_SETTING}")
    return min(chats, key=lambda name: (known(provider.type, name) is None, chats.index(name)))
