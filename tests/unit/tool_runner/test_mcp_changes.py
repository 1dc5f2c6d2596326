"""Servers that say that their tools changed."""

import asyncio
from uuid import UUID, uuid4

from services.tool_runner.mcp.changes import ToolChanges


async def test_what_is_said_during_a_reading_is_one_more_reading() -> None:
    began, go, read = asyncio.Event(), asyncio.Event(), list[UUID]()
    changes = ToolChanges(pause_seconds=0)

    async def refresh(organization_id: UUID, server_id: UUID) -> None:
        read.append(server_id)
        began.set()
        await go.wait()

    server, tenant = uuid4(), uuid4()
    changes.note(tenant, server)  # nobody reads yet
    changes.refresh = refresh
    for _ in range(3):
        changes.note(tenant, server)
    await asyncio.wait_for(began.wait(), 10)
    for _ in range(50):
        changes.note(tenant, server)
    go.set()
    for _ in range(10):
        await asyncio.sleep(0)
    assert read == [server, server]
    await changes.close()


async def test_a_server_that_fails_is_read_again_the_next_time() -> None:
    failed = list[UUID]()
    changes = ToolChanges(pause_seconds=0)

    async def refresh(organization_id: UUID, server_id: UUID) -> None:
        failed.append(server_id)
        raise ValueError("it is down")

    changes.refresh = refresh
    server, tenant = uuid4(), uuid4()
    for expected in (1, 2):
        changes.note(tenant, server)
        for _ in range(10):
            await asyncio.sleep(0)
        assert len(failed) == expected
    await changes.close()
