"""Servers that say that their tools changed: they are read anew, soon, and not as often as a server may say it."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from uuid import UUID

_PAUSE_SECONDS = 5.0
_log = logging.getLogger(__name__)

Key = tuple[UUID, UUID]
# Reads the tools of a tenant's server.
Refresh = Callable[[UUID, UUID], Awaitable[object]]


class ToolChanges:
    """One reading at a time for each server; what is said meanwhile is one more after a pause."""

    def __init__(self, pause_seconds: float = _PAUSE_SECONDS) -> None:
        self.refresh: Refresh | None = None
        self._pause = pause_seconds
        self._following: dict[Key, asyncio.Task[None]] = {}
        self._again: set[Key] = set()

    def note(self, organization_id: UUID, server_id: UUID) -> None:
        """Takes what a server said."""
        key = (organization_id, server_id)
        if self.refresh is None:
            return
        if key in self._following:
            self._again.add(key)
        else:
            self._following[key] = asyncio.create_task(self._follow(key, self.refresh))

    async def close(self) -> None:
        """Ends the readings under way."""
        tasks = list(self._following.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _follow(self, key: Key, refresh: Refresh) -> None:
        try:
            while True:
                self._again.discard(key)
                try:
                    await refresh(*key)
                # A supervisor: nobody waits for it, and what is wrong with a server is in its `problem`.
                except Exception as error:  # noqa: BLE001
                    _log.info("an MCP server's tools were not read anew", extra={"problem": type(error).__name__})
                await asyncio.sleep(self._pause)
                if key not in self._again:
                    return
        finally:
            del self._following[key]
