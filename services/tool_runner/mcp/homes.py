"""The folder that a server which is a program keeps: what it wrote is there when it runs again.

No quota of the file system is asked for: the folder is measured while its program runs, and one that is over the limit
has its program ended, and not started again until there is room.
"""

import asyncio
import logging
import os
import shutil
import time
from collections.abc import Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import UUID

from services.tool_runner.core.job import MIB, SandboxUnavailable
from services.tool_runner.core.ports import Process

_LOOK_SECONDS = 5.0
# Looking takes at most this share of the time.
_SHARE = 0.05
_log = logging.getLogger(__name__)


class Homes:
    """A folder for each server of each tenant, in `folder`, with at most `most_bytes` each."""

    def __init__(self, folder: Path, most_bytes: int, *, look_seconds: float = _LOOK_SECONDS) -> None:
        self._folder = folder
        self._most_bytes = most_bytes
        self._look_seconds = look_seconds

    async def of(self, organization_id: UUID, server_id: UUID) -> Path:
        """Returns the folder, made where it is not there yet. Raises SandboxUnavailable; also where it is full."""
        home = self._path(organization_id, server_id)
        try:
            await asyncio.to_thread(_make, home)
        except OSError as error:
            text = f"the folder {home} for what it writes cannot be made (LOCI_MCP_HOME_DIR): {error}"
            raise SandboxUnavailable(text) from error
        if await asyncio.to_thread(used_bytes, home) > self._most_bytes:
            raise SandboxUnavailable(f"{self._full()} The folder is {home}")
        return home

    async def remove(self, organization_id: UUID, server_id: UUID | None) -> None:
        """Removes the folder of a server that is gone; None: those of a tenant that is."""
        homes = self._folder / str(organization_id)
        await asyncio.to_thread(_remove, homes / str(server_id) if server_id else homes)

    def watched(self, process: Process, home: Path) -> "WatchedProcess":
        """Returns the process of the folder, which ends when the folder is too large."""
        return WatchedProcess(process, self._watch(process, home))

    async def _watch(self, process: Process, home: Path) -> str:
        """Returns why it ended the process."""
        pause = self._look_seconds
        while True:
            await asyncio.sleep(pause)
            began = time.monotonic()
            used = await asyncio.to_thread(used_bytes, home)
            pause = max(self._look_seconds, (time.monotonic() - began) / _SHARE)
            if used > self._most_bytes:
                await process.close()
                return self._full()

    def _full(self) -> str:
        return f"its folder holds more than {self._most_bytes // MIB} MiB: LOCI_MCP_HOME_MIB is the limit."

    def _path(self, organization_id: UUID, server_id: UUID) -> Path:
        return self._folder / str(organization_id) / str(server_id)


class WatchedProcess:
    """See `ports.Process`."""

    def __init__(self, process: Process, watch: Coroutine[Any, Any, str]) -> None:
        self._process = process
        self._watch = asyncio.create_task(watch)

    async def read(self) -> bytes:
        """See `ports.Process`."""
        return await self._process.read()

    async def write(self, data: bytes) -> None:
        """See `ports.Process`."""
        await self._process.write(data)

    @property
    def errors(self) -> str:
        """See `ports.Process`; with the reason where it was ended for its folder."""
        ended = self._watch.done() and not self._watch.cancelled() and not self._watch.exception()
        return f"{self._process.errors}\n{self._watch.result()}" if ended else self._process.errors

    async def close(self) -> None:
        """See `ports.Process`."""
        self._watch.cancel()
        await asyncio.gather(self._watch, return_exceptions=True)
        await self._process.close()


def used_bytes(folder: str | Path) -> int:
    """Returns what the files take on the disk; those that go meanwhile count for nothing."""
    total, left = 0, [str(folder)]
    while left:
        with suppress(FileNotFoundError, NotADirectoryError), os.scandir(left.pop()) as entries:
            for entry in entries:
                with suppress(FileNotFoundError):
                    total += entry.stat(follow_symlinks=False).st_blocks * 512
                    if entry.is_dir(follow_symlinks=False):
                        left.append(entry.path)
    return total


def _make(home: Path) -> None:
    home.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    home.mkdir(exist_ok=True, mode=0o700)


def _remove(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    if folder.exists():
        _log.warning("a folder of an MCP server could not be removed", extra={"folder": str(folder)})
