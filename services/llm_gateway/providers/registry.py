"""The registry of providers, each made at its first use."""

import asyncio
import importlib
from contextlib import suppress
from typing import cast
from uuid import UUID

from services.llm_gateway.core.errors import LlmSdkMissing
from services.llm_gateway.core.ports import Provider
from services.llm_gateway.core.provider_config import ProviderConfig
from services.llm_gateway.core.provider_types import TYPES
from services.llm_gateway.recordings.settings import Recordings


def construct(config: ProviderConfig) -> Provider:
    """Returns the provider for a configuration; imports its module and its vendor's SDK. Raises LlmSdkMissing."""
    row = TYPES[config.type]
    try:
        constructor = getattr(importlib.import_module(row.module), row.constructor)
    except ModuleNotFoundError as error:
        if not row.extra or (error.name or "").startswith("services."):
            raise
        raise LlmSdkMissing(
            f"Providers of type {row.name} need the extra {row.extra!r} ({error.name} is missing): "
            f"run `make setup EXTRAS={row.extra}` in the checkout, or take the image with all extras.",
            provider=config.name,
        ) from error
    return cast(Provider, constructor(config))


# How long a provider that was replaced or deleted may still be answering.
RETIRED_SECONDS = 3_600.0
# Of one tenant. Each has connections and some memory; a provider that is changed again and again closes the oldest.
MOST_RETIRED = 20


class _OldProvider:
    """A provider that was replaced; set `hurry` to have it closed now."""

    def __init__(self, organization_id: UUID | None, provider: Provider) -> None:
        self.organization_id = organization_id
        self.provider = provider
        self.hurry = asyncio.Event()

    async def close_later(self) -> None:
        """Waits, then closes."""
        with suppress(TimeoutError):
            async with asyncio.timeout(RETIRED_SECONDS):
                await self.hurry.wait()
        await self.provider.close()


class ProviderRegistry:
    """The providers by their configuration; each is kept until a newer version of it comes, or the process ends.

    One that was replaced or discarded is closed RETIRED_SECONDS later, so that its calls come to their end; of one
    tenant MOST_RETIRED wait for that.
    """

    def __init__(self, recordings: Recordings | None = None) -> None:
        self._recordings = recordings or Recordings()
        self._made: dict[tuple[object, str], tuple[ProviderConfig, Provider]] = {}
        self._retired: dict[asyncio.Task[None], _OldProvider] = {}
        self._lock = asyncio.Lock()

    async def get(self, config: ProviderConfig) -> Provider:
        """Returns the provider of this configuration. Raises LlmSdkMissing."""
        entry = self._made.get(config.key)
        if entry is not None and entry[0] == config:
            return entry[1]
        async with self._lock:
            entry = self._made.get(config.key)
            if entry is None or entry[0] != config:
                # In a thread: a vendor's SDK takes a second to import.
                provider = await asyncio.to_thread(construct, self._recordings.apply(config))
                self.discard(config)
                entry = self._made[config.key] = config, provider
        return entry[1]

    async def once(self, config: ProviderConfig) -> Provider:
        """Returns a provider of one's own, which the caller closes. Raises LlmSdkMissing."""
        return await asyncio.to_thread(construct, self._recordings.apply(config))

    def discard(self, config: ProviderConfig) -> None:
        """Lets go of the provider of that name, whichever its version, if one was made."""
        entry = self._made.pop(config.key, None)
        if entry is not None:
            theirs = [one for one in self._retired.values() if one.organization_id == config.organization_id]
            if len(theirs) >= MOST_RETIRED:
                theirs[0].hurry.set()
            retired = _OldProvider(config.organization_id, entry[1])
            task = asyncio.create_task(retired.close_later())
            self._retired[task] = retired
            task.add_done_callback(lambda done: self._retired.pop(done, None))

    async def close(self) -> None:
        """Closes all providers."""
        retired = dict(self._retired)
        for task in retired:
            task.cancel()
        for provider in (
            *(one.provider for one in retired.values()),
            *(provider for _, provider in self._made.values()),
        ):
            await provider.close()
