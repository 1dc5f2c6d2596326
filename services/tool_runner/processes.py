"""Ending child processes."""

import asyncio
import contextlib
import os
import signal


async def end_process(process: asyncio.subprocess.Process) -> None:
    """Kill the process if it still runs, and wait until it is gone.

    Not by `process.kill()`: that may reap the child itself, and asyncio then complains that it is unknown.
    """
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGKILL)
    await process.wait()
