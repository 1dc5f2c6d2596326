"""Clients of providers that were replaced: closed later, and never many at once."""

import asyncio
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from services.llm_gateway.core.provider_config import ProviderConfig
from services.llm_gateway.providers import registry
from services.llm_gateway.providers.registry import MOST_RETIRED, ProviderRegistry
from tests.unit.llm_gateway.builders import config


class Made:
    """A provider that notes when it is closed."""

    def __init__(self, made_of: ProviderConfig) -> None:
        self.version, self.closed = made_of.version, asyncio.Event()

    async def close(self) -> None:
        self.closed.set()


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Every provider that was made, in order."""
    found: list[Any] = []

    def construct(made_of: ProviderConfig) -> Made:
        found.append(Made(made_of))
        return found[-1]  # type: ignore[no-any-return]

    monkeypatch.setattr(registry, "construct", construct)
    return found


async def test_whoever_changes_a_provider_a_thousand_times_closes_the_oldest(made: list[Any]) -> None:
    providers, mine = ProviderRegistry(), config("openai", organization_id=UUID(int=1))
    others = replace(mine, organization_id=UUID(int=2))
    for version in (1, 2):
        await providers.get(replace(others, version=version))
    for version in range(1_000):
        await providers.get(replace(mine, version=version))
    async with asyncio.timeout(20):
        await made[-MOST_RETIRED - 2].closed.wait()
    still_open = [one for one in made if not one.closed.is_set()]
    # Both of the other's, and of this one's the newest and those that may still answer.
    assert [one.version for one in still_open] == [1, 2, *range(1_000 - MOST_RETIRED - 1, 1_000)]
    await providers.close()
    assert all(one.closed.is_set() for one in made)


async def test_one_that_was_replaced_is_closed_in_time(made: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "RETIRED_SECONDS", 0.05)
    providers, mine = ProviderRegistry(), config("openai", organization_id=UUID(int=1))
    await providers.get(mine)
    await providers.get(replace(mine, version=1))
    assert not made[0].closed.is_set()
    async with asyncio.timeout(20):
        await made[0].closed.wait()
    assert not made[1].closed.is_set()
    await providers.close()
