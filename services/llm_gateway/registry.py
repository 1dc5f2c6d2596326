"""The table of provider types, and the providers that the settings configure.

Adding a vendor that speaks OpenAI's or Anthropic's dialect is one row here. A row is not enough where
requests or replies differ: that is a folder `providers/<name>/{client,translate}.py` and one line.
"""

import asyncio
import importlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import cast

from services.llm_gateway.provider import Provider
from services.llm_gateway.providers.config import ProviderConfig


@dataclass(frozen=True, slots=True)
class ProviderType:
    """One row. `module` is imported when a provider of this type is first used: vendors' SDKs are heavy."""

    module: str
    constructor: str
    base_url: str
    # Whether the SDK wants the version at the end of the base URL.
    versioned: bool


_PROVIDERS = "services.llm_gateway.providers"
TYPES: Mapping[str, ProviderType] = {
    "loci": ProviderType(f"{_PROVIDERS}.demo.client", "DemoProvider", "", versioned=False),
    "openai": ProviderType(
        f"{_PROVIDERS}.openai.client", "OpenAIProvider", "https://api.openai.com/v1", versioned=True
    ),
    "anthropic": ProviderType(
        f"{_PROVIDERS}.anthropic.client", "AnthropicProvider", "https://api.anthropic.com", versioned=False
    ),
}


def base_url(provider_type: str, given: str) -> str:
    """The base URL in the form the SDK wants, from one given with or without /v1 and trailing slash."""
    row = TYPES[provider_type]
    url = (given or row.base_url).rstrip("/")
    if row.versioned:
        # Only a bare host gets the version: servers also mount their API below other paths.
        return url if "/" in url.partition("://")[2] else f"{url}/v1"
    return url.removesuffix("/v1")


def construct(config: ProviderConfig) -> Provider:
    """The provider for a configuration; imports its module and its vendor's SDK."""
    row = TYPES[config.type]
    constructor = getattr(importlib.import_module(row.module), row.constructor)
    return cast(Provider, constructor(config))


class Providers:
    """The configured providers by name; each is made at its first use and kept for the life of the
    process.
    """

    def __init__(self, configs: Iterable[ProviderConfig]) -> None:
        self.configs: Mapping[str, ProviderConfig] = {config.name: config for config in configs}
        self._made: dict[str, Provider] = {}
        self._lock = asyncio.Lock()

    async def get(self, name: str) -> Provider:
        """The provider called `name`; KeyError where none is configured."""
        if provider := self._made.get(name):
            return provider
        config = self.configs[name]
        async with self._lock:
            if name not in self._made:
                # In a thread: a vendor's SDK takes a second to import.
                self._made[name] = await asyncio.to_thread(construct, config)
        return self._made[name]

    async def close(self) -> None:
        """Close what was made."""
        for provider in self._made.values():
            await provider.close()
