"""The providers that are configured, each made at its first use."""

import asyncio
import importlib
from typing import cast

from services.llm_gateway.errors import LlmSdkMissing
from services.llm_gateway.provider import Provider
from services.llm_gateway.provider_types import TYPES
from services.llm_gateway.providers.config import ProviderConfig
from services.llm_gateway.recordings import Recordings


def construct(config: ProviderConfig) -> Provider:
    """The provider for a configuration; imports its module and its vendor's SDK. Raises LlmSdkMissing."""
    row = TYPES[config.type]
    try:
        constructor = getattr(importlib.import_module(row.module), row.constructor)
    except ModuleNotFoundError as error:
        if not row.extra or (error.name or "").startswith("services."):
            raise
        raise LlmSdkMissing(
            f"Providers of type {row.name} need the extra {row.extra!r} ({error.name} is missing): "
            f"pip install 'loci[{row.extra}]', or the image with all extras.",
            provider=config.name,
        ) from error
    return cast(Provider, constructor(config))


class Providers:
    """Providers by their configuration; each is kept until a newer version of it comes, or the process ends."""

    def __init__(self, recordings: Recordings | None = None) -> None:
        self._recordings = recordings or Recordings()
        self._made: dict[tuple[object, str], tuple[ProviderConfig, Provider]] = {}
        self._lock = asyncio.Lock()

    async def get(self, config: ProviderConfig) -> Provider:
        """The provider of this configuration. Raises LlmSdkMissing."""
        made = self._made.get(config.key)
        if made is not None and made[0] == config:
            return made[1]
        async with self._lock:
            made = self._made.get(config.key)
            if made is None or made[0] != config:
                # In a thread: a vendor's SDK takes a second to import.
                provider = await asyncio.to_thread(construct, self._recordings.applied(config))
                made = self._made[config.key] = config, provider
        return made[1]

    async def close(self) -> None:
        """Close what was made."""
        for _, provider in self._made.values():
            await provider.close()
