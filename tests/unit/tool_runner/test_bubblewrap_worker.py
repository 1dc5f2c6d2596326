"""The end of a worker in bubblewrap, whatever becomes of those who wait for it."""

import asyncio
import os
from pathlib import Path
from typing import Any

from services.tool_runner.sandboxes.bubblewrap.cgroups import Cgroup
from services.tool_runner.sandboxes.bubblewrap.worker import BubblewrapWorker, StartedBwrap


class SlowChild:
    """A bwrap that is gone when the gate is opened."""

    def __init__(self) -> None:
        self.asked, self.gone = asyncio.Event(), asyncio.Event()

    async def end(self) -> int:
        """Waits for the gate."""
        self.asked.set()
        await self.gone.wait()
        return -9


async def test_who_is_cancelled_while_it_closes_one_leaves_nothing_of_it(tmp_path: Path) -> None:
    (group := tmp_path / "group").mkdir()
    (info, said), (errors, complaint), (block, unblock) = os.pipe(), os.pipe(), os.pipe()
    for descriptor in (said, complaint, block):
        os.close(descriptor)
    child: Any = SlowChild()
    freed: list[int] = []
    worker = BubblewrapWorker(
        StartedBwrap(child, info, errors, unblock), Cgroup({"memory": group}), lambda: freed.append(1)
    )
    closing = asyncio.create_task(worker.close())
    await child.asked.wait()
    closing.cancel()
    await asyncio.gather(closing, return_exceptions=True)
    assert closing.cancelled()
    child.gone.set()
    await worker.close()
    assert (group.exists(), freed) == (False, [1])
    await worker.close()
    assert freed == [1]
