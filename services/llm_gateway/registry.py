"""The providers that are configured, each made at its first use."""

import asyncio
import importlib
from typing import cast

from services.llm_gateway.errors import LlmSdkMissing
from services.llm_gateway.provider import Provider
from services.llm_gateway.provider_types import TYPES
from services.llm_gateway.providers.config import ProviderConfig
from services.llm_gateway.recordings.settings import Recordings


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


# How long a provider that was replaced or deleted may still be answering.
RETIRED_SECONDS = 3_600.0


class Providers:
    """Providers by their configuration; each is kept until a newer version of it comes, or the process ends.

    One that was replaced or discarded is closed RETIRED_SECONDS later, so that its calls come to their end.
    """

    def __init__(self, recordings: Recordings | None = None) -> None:
        self._recordings = recordings or Recordings()
        self._made: dict[tuple[object, str], tuple[ProviderConfig, Provider]] = {}
        self._retired: dict[asyncio.Task[None], Provider] = {}
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
                self.discard(config)
                made = self._made[config.key] = config, provider
        return made[1]

    async def once(self, config: ProviderConfig) -> Provider:
        """A provider of one's own, to be closed by whoever asked for it. Raises LlmSdkMissing."""
        return await asyncio.to_thread(construct, self._recordings.applied(config))

    def discard(self, config: ProviderConfig) -> None:
        """Let go of the provider of that name, whichever its version, if one was made."""
        made = self._made.pop(config.key, None)
        if made is not None:
            task = asyncio.create_task(_close_later(made[1]))
            self._retired[task] = made[1]
            task.add_done_callback(lambda done: self._retired.pop(done, None))

    async def close(self) -> None:
        """Close what was made."""
        retired = dict(self._retired)
        for task in retired:
            task.cancel()
        for provider in (*retired.values(), *(provider for _, provider in self._made.values())):
            await provider.close()


async def _close_later(provider: Provider) -> None:
    await asyncio.sleep(RETIRED_SECONDS)
    await provider.close()
