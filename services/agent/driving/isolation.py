"""Runs that may have killed their owners: each is driven in a process of its own, so that it takes nobody with it.

Whose owner was lost several times without a new fact is a suspect: its reply may be too large to read, or crash a
library. Its owner starts a process that takes the run over, is a worker of its own, and ends with the run. When that
process dies, its lease ends as that of any replica, and the next try begins; its owner and all that it drives live on.
The process ends, too, when its owner does: its standard input is closed then.
"""

import asyncio
import json
import sys
from collections.abc import Sequence
from typing import Protocol
from uuid import UUID

# Claims since the last fact from which on a run is a suspect.
SUSPECT_CLAIMS = 3
# Each is a process of some 100 MB.
_AT_ONCE = 4
_PATIENCE_SECONDS = 5.0


class IsolationFailed(OSError):
    """The process of a run did not end well."""


class Isolation(Protocol):
    """Processes for single runs."""

    async def drive(self, organization_id: UUID, run_id: UUID, fence: int) -> None:
        """Has a run that this replica has claimed under `fence` driven elsewhere, until that is over.

        Raises IsolationFailed, OSError.
        """
        ...


class ChildProcesses:
    """`Isolation` by processes of this program. They have the environment of this one."""

    def __init__(self, command: Sequence[str] = (sys.executable, "-m", "services.agent", "isolate")) -> None:
        self._command = command
        self._slots = asyncio.Semaphore(_AT_ONCE)

    async def drive(self, organization_id: UUID, run_id: UUID, fence: int) -> None:
        """See Isolation.drive."""
        async with self._slots:
            process = await asyncio.create_subprocess_exec(*self._command, stdin=asyncio.subprocess.PIPE)
            assert process.stdin is not None
            try:
                process.stdin.write(run_to_line(organization_id, run_id, fence))
                status = await process.wait()
            finally:
                process.stdin.close()
                await _end(process)
        if status:
            raise IsolationFailed(f"the process of run {run_id} ended with status {status}")


def run_to_line(organization_id: UUID, run_id: UUID, fence: int) -> bytes:
    """Returns what the process is told, as one line."""
    return json.dumps([str(organization_id), str(run_id), fence]).encode() + b"\n"


def run_from_line(line: bytes) -> tuple[UUID, UUID, int]:
    """Returns the same from the line."""
    organization_id, run_id, fence = json.loads(line)
    return UUID(organization_id), UUID(run_id), int(fence)


async def _end(process: asyncio.subprocess.Process) -> None:
    """Lets it hand its run over, for a while."""
    try:
        async with asyncio.timeout(_PATIENCE_SECONDS):
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()
